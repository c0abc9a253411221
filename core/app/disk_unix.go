//go:build unix

package app

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// mayWrite is an error when we may not write to a folder.
func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// FreeDisk is how many bytes the file system of a directory has left for us.
func FreeDisk(dir string) (free int64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
