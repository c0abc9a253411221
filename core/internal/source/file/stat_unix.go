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

func describe(info fs.FileInfo) (id inode, s stamp, links uint64) {
	s = stamp{info.Size(), info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id, links = inode{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
	}
	return id, s, links
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

// Flags of a file that is opened for reading: without waiting, and without following a link.
const (
	noWait   = syscall.O_NONBLOCK
	noFollow = syscall.O_NOFOLLOW
)

// ownerOf returns the user that a file belongs to.
func ownerOf(info fs.FileInfo) (uid uint32, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}
