package segment

import (
	"io"
	"os"
)

// Disk is the file system, as far as segments need one. Tests replace it by one that fails.
type Disk interface {
	// Open opens or creates a file for reading and writing.
	Open(path string) (File, error)
	// Edit opens a file that is there for reading and writing.
	Edit(path string) (File, error)
	// Read opens a file for reading.
	Read(path string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes durable which files were created, renamed and removed in a directory.
	SyncDir(dir string) error
	// Free returns how many bytes an unprivileged process can still write.
	Free(dir string) (int64, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
}

// OS is the Disk of the operating system.
type OS struct{}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Open implements Disk.
func (OS) Open(path string) (File, error) { return openFile(path, os.O_RDWR|os.O_CREATE) }

// Edit implements Disk.
func (OS) Edit(path string) (File, error) { return openFile(path, os.O_RDWR) }

// Read implements Disk.
func (OS) Read(path string) (File, error) { return openFile(path, os.O_RDONLY) }

func openFile(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename implements Disk.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements Disk.
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir implements Disk.
func (OS) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
