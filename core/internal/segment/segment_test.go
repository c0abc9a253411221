package segment

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// faultyDisk fails every write or fsync while its error is set.
type faultyDisk struct {
	OS
	write, sync error
}

func (d *faultyDisk) Open(path string) (File, error) {
	f, err := d.OS.Open(path)
	return &faultyFile{File: f, disk: d}, err
}

type faultyFile struct {
	File
	disk *faultyDisk
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if f.disk.write != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, f.disk.write
	}
	return f.File.WriteAt(b, off)
}

// Sync loses bytes at the end of the file, as the page cache does.
func (f *faultyFile) Sync() error {
	if f.disk.sync == nil {
		return f.File.Sync()
	}
	if n, err := f.Size(); err == nil && n >= 3 {
		_, _ = f.File.WriteAt([]byte{0, 0, 0}, n-3)
	}
	return f.disk.sync
}

func newDir(t *testing.T) (Dir, *faultyDisk) {
	t.Helper()
	disk := new(faultyDisk)
	return Dir{Path: t.TempDir(), Disk: disk}, disk
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, d Dir, want string) {
	t.Helper()
	b, err := os.ReadFile(d.File(1, "seg"))
	must(t, err)
	if string(b) != want {
		t.Errorf("the segment has %q, want %q", b, want)
	}
}

// TestAppendFails repeats an Append after each kind of failure: the segment has everything
// once, and nothing of the failed attempt in between.
func TestAppendFails(t *testing.T) {
	errDisk := errors.New("disk")
	for name, fail := range map[string]func(*faultyDisk){
		"write": func(d *faultyDisk) { d.write = errDisk },
		"sync":  func(d *faultyDisk) { d.sync = errDisk },
	} {
		t.Run(name, func(t *testing.T) {
			d, disk := newDir(t)
			w, err := d.Create(1, "seg")
			must(t, err)
			must(t, w.Append([]byte("first ")))
			fail(disk)
			for range 2 {
				if err := w.Append([]byte("second ")); !errors.Is(err, errDisk) {
					t.Fatalf("error %v", err)
				}
				holds(t, d, "first ")
			}
			disk.write, disk.sync = nil, nil
			must(t, w.Append([]byte("second ")))
			must(t, w.Append([]byte("third")))
			holds(t, d, "first second third")
			if copied := w.Copies() == 1; copied != (name == "sync") || w.Size() != 18 {
				t.Errorf("%d copies, size %d", w.Copies(), w.Size())
			}
			must(t, w.Close())
		})
	}
}

// TestRecover cuts off the bytes behind the last record, and removes the file of an
// interrupted Replace.
func TestRecover(t *testing.T) {
	d, _ := newDir(t)
	must(t, os.WriteFile(d.File(1, "seg"), []byte("whole|to"), 0o600))
	must(t, os.WriteFile(d.File(2, "idx"), nil, 0o600))
	must(t, os.WriteFile(d.File(1, "idx")+tmp, []byte("x"), 0o600))
	list, err := d.List("seg")
	must(t, err)
	if len(list) != 1 || list[0] != (Info{ID: 1, Size: 8}) {
		t.Errorf("list %v", list)
	}
	if _, err := os.Stat(filepath.Join(d.Path, "000000000001.idx.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an incomplete file is still there: %v", err)
	}
	w, cut, err := d.Recover(1, "seg", func(in io.ReaderAt, size int64) (int64, error) {
		b := make([]byte, size)
		_, err := in.ReadAt(b, 0)
		return 6, err
	})
	must(t, err)
	must(t, w.Append([]byte("next|")))
	must(t, w.Close())
	holds(t, d, "whole|next|")
	if cut != 2 {
		t.Errorf("%d bytes cut, want 2", cut)
	}
}
