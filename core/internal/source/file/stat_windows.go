package file

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"syscall"
)

// describe takes name and creation time for the identity of a file, of which Windows reports no more without
// opening it: a file with a new name counts as another one until its content is compared.
func describe(info fs.FileInfo) (id inode, s stamp, links uint64) {
	s = stamp{info.Size(), info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		h := fnv.New64a()
		_, _ = h.Write([]byte(info.Name()))
		id, links = inode{h.Sum64(), uint64(st.CreationTime.Nanoseconds())}, 1
	}
	return id, s, links
}

// nameOf is not known here.
func nameOf(*os.File, inode) (path string, ok bool) { return "", false }

// notFound reports whether a path leads nowhere.
func notFound(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// tooManyOpen reports whether an error is that of the limit of open files.
func tooManyOpen(err error) bool {
	const errTooManyOpenFiles = syscall.Errno(4)
	return errors.Is(err, errTooManyOpenFiles)
}

// There are no such flags here.
const (
	noWait   = 0
	noFollow = 0
)

// ownerOf is not known here: with owners no file is read.
func ownerOf(fs.FileInfo) (uid uint32, ok bool) { return 0, false }
