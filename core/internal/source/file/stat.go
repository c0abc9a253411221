//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// inode is what a file is, whatever its names are. It may be used again once the
// file is gone.
type inode struct{ dev, ino uint64 }

// stamp is what changes when a file is written to.
type stamp struct{ size, mtime int64 }

func describe(info fs.FileInfo) (id inode, s stamp, links uint64) {
	s = stamp{info.Size(), info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id, links = inode{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
	}
	return id, s, links
}

// openFile opens a file for reading. It does not wait for the other side of a
// named pipe that has taken the file's place.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// nameOf returns the path by which an open file can be reached now.
func nameOf(f *os.File) (string, bool) {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	return path, err == nil && strings.HasPrefix(path, "/")
}

// gone reports whether a path leads nowhere.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// crowded reports whether an error says that there are too many open files.
func crowded(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
