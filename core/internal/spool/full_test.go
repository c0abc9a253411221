package spool

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

// fullDisk is a disk that makes files, and takes no bytes while it is full.
type fullDisk struct {
	segment.OS
	full bool
}

type fullFile struct {
	segment.File
	disk *fullDisk
}

func (d *fullDisk) Open(path string) (segment.File, error) {
	f, err := d.OS.Open(path)
	return fullFile{f, d}, err
}

func (f fullFile) WriteAt(b []byte, at int64) (int, error) {
	if f.disk.full {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, errors.New("no space left on device")
	}
	return f.File.WriteAt(b, at)
}

// TestFullDisk: attempts on a full disk leave no files behind, and the records before and after them are read in order, by this process and the next.
func TestFullDisk(t *testing.T) {
	for _, before := range []int{0, 1} {
		dir, disk := t.TempDir(), &fullDisk{}
		q, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		q.dir.Disk = disk
		add := func(n int) {
			t.Helper()
			if err := q.Append(fmt.Append(nil, "record ", n)); err != nil {
				t.Fatal(err)
			}
		}
		for n := range before {
			add(n)
		}
		disk.full = true
		for range 50 {
			if q.Append([]byte("none")) == nil {
				t.Fatal("a full disk took a record")
			}
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*.spool")); err != nil || len(files) > before+1 || len(q.segments) > before+1 {
			t.Errorf("%d files after 50 attempts, %d segments, error %v", len(files), len(q.segments), err)
		}
		disk.full = false
		for n := before; n < 4; n++ {
			add(n)
		}
		read := func(from, to int) {
			t.Helper()
			for n := from; n < to; n++ {
				b, err := q.Peek()
				if want := fmt.Sprint("record ", n); err != nil || string(b) != want {
					t.Fatalf("%q, %v, want %q", b, err, want)
				}
				if err := q.Take(); err != nil {
					t.Fatal(err)
				}
			}
		}
		read(0, 2)
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if q, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		if q.Torn() != 0 {
			t.Errorf("%d bytes are torn", q.Torn())
		}
		read(2, 4)
		if _, err := q.Peek(); !errors.Is(err, ErrEmpty) {
			t.Error(err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
}
