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

// inode identifies a file under all its names. It may be reused once the file is gone.
type inode struct{ dev, ino uint64 }

// stamp changes when a file is written to.
type stamp struct{ size, mtime int64 }

func describe(info fs.FileInfo) (id inode, s stamp, links uint64) {
	s = stamp{info.Size(), info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id, links = inode{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
	}
	return id, s, links
}

// statFile returns the regular file at a path.
func statFile(path string) (found, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return found{}, false
	}
	x := found{path: path}
	x.id, x.stamp, _ = describe(info)
	return x, true
}

// nameOf returns the present path of an open file; ok is false when it has none.
func nameOf(f *os.File, id inode) (path string, ok bool) {
	info, err := f.Stat()
	if err != nil {
		return "", false
	}
	if _, _, links := describe(info); links == 0 {
		return "", false
	}
	path, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil || !strings.HasPrefix(path, "/") {
		return "", false
	}
	x, ok := statFile(path)
	return path, ok && x.id == id
}

// notFound reports whether a path leads nowhere.
func notFound(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// tooManyOpen reports whether an error is that of the limit of open files.
func tooManyOpen(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
