package journal

import (
	"io"
	"os"
)

// disk is the file system, as far as the journal needs one.
type disk interface {
	// open opens or creates a file for reading and writing.
	open(path string) (file, error)
	// read opens a file for reading.
	read(path string) (file, error)
	rename(from, to string) error
	remove(path string) error
	// syncDir makes what was created, renamed and removed in a directory durable.
	syncDir(dir string) error
	// free returns how many bytes are left for us.
	free(dir string) (int64, error)
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	size() (int64, error)
}

type realDisk struct{}

type realFile struct{ *os.File }

func (f realFile) size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (realDisk) open(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return realFile{f}, nil
}

func (realDisk) read(path string) (file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return realFile{f}, nil
}

func (realDisk) rename(from, to string) error { return os.Rename(from, to) }
func (realDisk) remove(path string) error     { return os.Remove(path) }

func (realDisk) syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
