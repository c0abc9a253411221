// Package segment keeps the files of a segmented log: numbered files in one directory, of
// which the newest grows. The journal and the spools are built on it.
//
// The callers define the records, begin segments and remove them. This package keeps the promises about the disk:
//
//   - When Create, Append and Replace return nil, the result survives a power cut.
//   - When Append fails, the segment is unchanged. The same Append can be repeated.
//   - Recover cuts off the part of a record that a crash left at the end; it was never
//     acknowledged.
//
// The framing of records is not here, because the two forms on the disk have nothing in
// common but CRC-32C. A record of the journal has a magic number, by which the next one is
// found after damage, and its checksum is seeded with the segment's number, because recorded
// traffic may hold a journal. A record of a spool has a length and a checksum only, and the
// next one is found by lengths that lead exactly to the end of the file.
package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Dir is a directory with segments.
type Dir struct {
	Path string
	Disk Disk
}

// File returns the path of a segment's file. A segment may have files with several
// extensions: its records, an index.
func (d Dir) File(id uint64, ext string) string {
	return filepath.Join(d.Path, fmt.Sprintf("%012d.%s", id, ext))
}

// Info is a file of a segment.
type Info struct {
	ID   uint64
	Size int64
}

// List returns the files with an extension, the oldest first, and removes the files that
// an interrupted Replace left.
func (d Dir) List(ext string) ([]Info, error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, tmp) {
			_ = d.Disk.Remove(filepath.Join(d.Path, name))
			continue
		}
		base, ok := strings.CutSuffix(name, "."+ext)
		id, err := strconv.ParseUint(base, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, Info{ID: id, Size: info.Size()})
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// Create creates an empty segment. A file of that name can only be of an earlier attempt.
func (d Dir) Create(id uint64, ext string) (*Writer, error) {
	path := d.File(id, ext)
	f, err := d.Disk.Open(path)
	if err != nil {
		return nil, err
	}
	if err = f.Truncate(0); err == nil {
		err = d.Disk.SyncDir(d.Path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Writer{dir: d, path: path, file: f}, nil
}

// Recover opens a segment that was not closed. end returns the offset behind the last whole
// record; the bytes from there on are cut off.
func (d Dir) Recover(id uint64, ext string, end func(in io.ReaderAt, size int64) (int64, error)) (w *Writer, cut int64, err error) {
	path := d.File(id, ext)
	f, err := d.Disk.Open(path)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	last, err := end(f, size)
	if err == nil && last < size {
		err = errors.Join(f.Truncate(last), f.Sync())
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return &Writer{dir: d, path: path, file: f, size: last}, size - last, nil
}

// Remove removes a file for good. A missing one is no error.
func (d Dir) Remove(path string) error {
	if err := d.Disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.Disk.SyncDir(d.Path)
}

// tmp ends the names of files that are not complete.
const tmp = ".tmp"

// Replace writes a file so that it is there as a whole or not at all.
func (d Dir) Replace(path string, write func(File) error) error {
	f, err := d.Disk.Open(path + tmp)
	if err != nil {
		return err
	}
	if err = f.Truncate(0); err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Disk.Rename(path+tmp, path)
	}
	if err != nil {
		_ = d.Disk.Remove(path + tmp)
		return err
	}
	return d.Disk.SyncDir(d.Path)
}

// Writer appends to a segment. It is not safe for concurrent use.
type Writer struct {
	dir    Dir
	path   string
	file   File
	size   int64 // synced bytes
	unsure bool  // an fsync failed: the file may have lost pages
	copies int
}

// Size is how many bytes are in the segment.
func (w *Writer) Size() int64 { return w.size }

// Copies counts how often the segment was copied to a new file of the same name, which
// readers have to open.
func (w *Writer) Copies() int { return w.copies }

// Append adds b to the segment and returns when it survives a power cut.
//
// After a failed fsync the kernel may have dropped the pages that it could not write and
// marked them clean, so that a second fsync succeeds without them. The next Append then
// copies the bytes that were synced before, which are on the disk, to a new file.
func (w *Writer) Append(b []byte) error {
	if w.unsure {
		if err := w.copy(b); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		w.size += int64(len(b))
		return nil
	}
	_, err := w.file.WriteAt(b, w.size)
	if err != nil {
		err = fmt.Errorf("write: %w", err)
	} else if err = w.file.Sync(); err != nil {
		err = fmt.Errorf("sync: %w", err)
		w.unsure = true
	}
	if err != nil {
		_ = w.file.Truncate(w.size) // a crash before the next attempt leaves no part of b
		return err
	}
	w.size += int64(len(b))
	return nil
}

// copy makes the segment a new file: its synced bytes, and b.
func (w *Writer) copy(b []byte) error {
	old, err := w.dir.Disk.Read(w.path)
	if err != nil {
		return err
	}
	defer old.Close()
	err = w.dir.Replace(w.path, func(f File) error {
		_, err := io.Copy(io.NewOffsetWriter(f, 0), io.NewSectionReader(old, 0, w.size))
		if err == nil {
			_, err = f.WriteAt(b, w.size)
		}
		return err
	})
	if err != nil {
		return err
	}
	file, err := w.dir.Disk.Open(w.path)
	if err != nil {
		return err
	}
	_ = w.file.Close()
	w.file, w.unsure = file, false
	w.copies++
	return nil
}

// Close closes the file. Everything that was appended is synced.
func (w *Writer) Close() error { return w.file.Close() }
