//go:build unix

package main

import (
	"os"
	"syscall"
)

// lockNote waits for who looks at the lock, which takes no time.
func lockNote(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }

// noteIsLocked reports whether the process that locked a file lives.
func noteIsLocked(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}
