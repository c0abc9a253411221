//go:build unix

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockOwner locks the file of a directory's owner; it fails while another process has it locked.
func lockOwner(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
