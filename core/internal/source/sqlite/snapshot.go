package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// errBusy: the agent was writing; the read is tried again.
var errBusy = errors.New("the database is being written")

// errNotDatabase: the file is no SQLite database.
var errNotDatabase = errors.New("not a SQLite database")

const (
	magic       = "SQLite format 3\x00"
	headerSize  = 100
	journalMark = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

	walHeader   = 32
	walFrame    = 24
	walMagic    = 0x377f0682 // the lowest bit is set when checksums are of big-endian words
	walVersion  = 3007000
	maxWALPages = 1 << 21 // of a log; 8 GiB with pages of 4 KiB

	// settled is how long ago the last change of a file must be, for a later change to have
	// another modification time: kernels take it from a clock with coarse ticks.
	settled = 20 * time.Millisecond
)

// snapshot is a database at one commit. It is read without locks, and its rows are right if
// the snapshot is valid afterwards.
type snapshot struct {
	tree      string // no link leads out of it
	path      string
	main, wal *os.File // wal: nil when there is none
	info      os.FileInfo
	header    [headerSize]byte
	pageSize  int64
	size      int64
	log       *walIndex
	copy      []byte // of a small database without a log: it stays valid
}

// maxCopy is the size up to which a database with a rollback journal is copied to memory: each commit
// of the agent invalidates the rows that are read from its file, and copying is faster than reading rows.
const maxCopy = 32 << 20

// walIndex is where the committed pages of a write-ahead log are. It grows with the log.
type walIndex struct {
	info     os.FileInfo
	header   [walHeader]byte
	order    binary.ByteOrder
	pageSize int64
	next     int64 // offset of the frame behind the last commit
	sum      [2]uint32
	pages    map[uint32]int64 // committed pages, and where they are
	size     int64            // of the database, in pages, at the last commit; 0: no commit
}

// openSnapshot opens the database in a tree. known is the index of the log of an earlier snapshot, or nil.
func openSnapshot(tree, path string, known *walIndex) (_ *snapshot, err error) {
	s := &snapshot{tree: tree, path: path}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.main, err = openRegular(tree, path); err != nil {
		return nil, err
	}
	if s.info, err = s.main.Stat(); err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	if s.info.Size() == 0 {
		return nil, errBusy // it is being created
	}
	if _, err := s.main.ReadAt(s.header[:], 0); err != nil || string(s.header[:len(magic)]) != magic {
		return nil, errNotDatabase
	}
	s.pageSize = int64(binary.BigEndian.Uint16(s.header[16:]))
	if s.pageSize == 1 {
		s.pageSize = 65536
	}
	if s.pageSize < 512 || s.pageSize&(s.pageSize-1) != 0 {
		return nil, errNotDatabase
	}
	s.size = s.info.Size()
	if s.header[18] != 2 { // it has a rollback journal
		if hot(tree, path+"-journal") {
			return nil, errBusy
		}
		if s.size <= maxCopy {
			whole := make([]byte, s.size)
			if _, err := s.main.ReadAt(whole, 0); err != nil && err != io.EOF {
				return nil, fmt.Errorf("read: %w", err)
			}
			if !s.valid() {
				return nil, errBusy
			}
			s.copy = whole
		}
		return s, nil
	}
	if s.wal, err = openRegular(tree, path+"-wal"); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	if s.log, err = readWAL(s.wal, s.pageSize, known); err != nil {
		return nil, err
	}
	if s.log.size > 0 {
		s.size = s.log.size * s.pageSize
	}
	return s, nil
}

// openRegular opens a file of a tree for reading, and never waits for a pipe. A writer into the tree decides where its
// names lead, and the sidecar may read more than the writer may: a link that leads out of it is an error.
func openRegular(tree, path string) (*os.File, error) {
	name, err := filepath.Rel(tree, path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if to, linked := os.Readlink(path); linked == nil {
			return nil, fmt.Errorf("open: %w; it is a symbolic link to %s: paths may name the database itself", err, to)
		}
		return nil, fmt.Errorf("open: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	return f, nil
}

// hot reports whether a rollback journal is in use.
func hot(tree, path string) bool {
	f, err := openRegular(tree, path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var mark [len(journalMark)]byte
	_, err = io.ReadFull(f, mark[:])
	return err == nil && string(mark[:]) == journalMark
}

// valid reports whether the files are as they were when the snapshot was made.
func (s *snapshot) valid() bool {
	if s.copy != nil {
		return true
	}
	now, err := os.Stat(s.path)
	if err != nil || !sameState(now, s.info) {
		return false
	}
	if s.header[18] != 2 {
		var header [headerSize]byte
		_, err := s.main.ReadAt(header[:], 0)
		return err == nil && header == s.header && !hot(s.tree, s.path+"-journal")
	}
	wal, err := os.Stat(s.path + "-wal")
	if s.wal == nil {
		// A new log may be empty so far.
		return errors.Is(err, fs.ErrNotExist) || err == nil && wal.Size() == 0
	}
	var header [walHeader]byte
	n, rerr := s.wal.ReadAt(header[:], 0)
	return err == nil && os.SameFile(wal, s.log.info) && (rerr == nil || rerr == io.EOF) && bytes.Equal(header[:n], s.log.header[:n]) && (n == walHeader) == (s.log.next > 0)
}

// fresh reports whether the main file changed so shortly before that a checkpoint afterwards may
// leave its modification time as it is. Without a log the header counts the changes.
func (s *snapshot) fresh() bool { return s.header[18] == 2 && time.Since(s.info.ModTime()) < settled }

func sameState(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// readWAL reads the frames of a log that are committed. A frame whose salt or checksum is wrong is
// left over from before, or not written yet: there is none behind it.
func readWAL(f *os.File, pageSize int64, known *walIndex) (*walIndex, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat log: %w", err)
	}
	x := &walIndex{info: info, pageSize: pageSize, pages: make(map[uint32]int64)}
	if n, err := f.ReadAt(x.header[:], 0); n < walHeader {
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read log: %w", err)
		}
		return x, nil
	}
	if known != nil && known.next > 0 && known.header == x.header && known.pageSize == pageSize && os.SameFile(known.info, info) {
		known.info = info
		return known, known.extend(f)
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(x.header[i:]) }
	if word(0)&^1 != walMagic || word(4) != walVersion || int64(word(8)) != pageSize {
		return x, nil // SQLite ignores it
	}
	x.order = binary.LittleEndian
	if word(0)&1 == 1 {
		x.order = binary.BigEndian
	}
	x.checksum(x.header[:24])
	if x.sum != [2]uint32{word(24), word(28)} {
		return x, nil
	}
	x.next = walHeader
	return x, x.extend(f)
}

// extend reads the transactions that were appended. One that is not committed is read again later:
// the agent may roll it back, and write another in its place.
func (x *walIndex) extend(f *os.File) error {
	frame := make([]byte, walFrame+x.pageSize)
	pending := make(map[uint32]int64)
	next, committed := x.next, x.sum
	defer func() { x.sum = committed }()
	for {
		if _, err := f.ReadAt(frame, next); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		word := func(i int) uint32 { return binary.BigEndian.Uint32(frame[i:]) }
		page, commit := word(0), word(4)
		x.checksum(frame[:8])
		x.checksum(frame[walFrame:])
		if page == 0 || !bytes.Equal(frame[8:16], x.header[16:24]) || x.sum != [2]uint32{word(16), word(20)} {
			return nil
		}
		if len(x.pages)+len(pending) >= maxWALPages {
			return fmt.Errorf("the write-ahead log has more than %d pages", maxWALPages)
		}
		pending[page] = next + walFrame
		next += int64(len(frame))
		if commit == 0 {
			continue
		}
		maps.Copy(x.pages, pending)
		clear(pending)
		x.next, x.size, committed = next, int64(commit), x.sum
	}
}

// checksum continues the checksum of the log.
func (x *walIndex) checksum(b []byte) {
	a, c := x.sum[0], x.sum[1]
	for ; len(b) >= 8; b = b[8:] {
		a += x.order.Uint32(b) + c
		c += x.order.Uint32(b[4:]) + a
	}
	x.sum = [2]uint32{a, c}
}

// Close closes the files.
func (s *snapshot) Close() {
	if s.main != nil {
		_ = s.main.Close()
	}
	if s.wal != nil {
		_ = s.wal.Close()
	}
}

// ReadAt implements io.ReaderAt: the pages of the log in front of those of the main file.
func (s *snapshot) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at < 0 || at >= s.size {
			return n, io.EOF
		}
		within := at % s.pageSize
		part := p[n:min(len(p), n+int(s.pageSize-within))]
		if s.copy != nil {
			n += copy(part, s.copy[at:])
			continue
		}
		from, where := s.main, at
		if s.log != nil && at/s.pageSize < 1<<32-1 {
			if frame, ok := s.log.pages[uint32(at/s.pageSize)+1]; ok {
				from, where = s.wal, frame+within
			}
		}
		got, err := from.ReadAt(part, where)
		if got < len(part) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return n + got, err
		}
		// A database of which SQLite believes that it has a rollback journal needs no -shm file.
		for i := int64(18); i <= 19; i++ {
			if at <= i && i < at+int64(len(part)) {
				part[i-at] = 1
			}
		}
		n += len(part)
	}
	return n, nil
}

// file is a snapshot as a file of the file system that SQLite sees.
type file struct {
	*snapshot
	*io.SectionReader
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return fileInfo{f.snapshot}, nil }

// Close implements fs.File. The snapshot is closed by its owner.
func (f *file) Close() error { return nil }

// ReadAt is that of the section.
func (f *file) ReadAt(p []byte, off int64) (int, error) { return f.SectionReader.ReadAt(p, off) }

// Size is that of the section.
func (f *file) Size() int64 { return f.SectionReader.Size() }

type fileInfo struct{ s *snapshot }

func (i fileInfo) Name() string       { return "db" }
func (i fileInfo) Size() int64        { return i.s.size }
func (i fileInfo) Mode() fs.FileMode  { return 0o444 }
func (i fileInfo) ModTime() time.Time { return i.s.info.ModTime() }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }
