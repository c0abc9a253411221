package store

import (
	"errors"
	"os"
)

// lockOwner makes the file of a directory's owner. There are no locks that end with a process, so
// that directories of killed processes stay.
func lockOwner(path string, flag int) (*os.File, error) {
	if flag&os.O_CREATE == 0 {
		return nil, errors.New("no locks")
	}
	return os.OpenFile(path, os.O_RDWR|flag, 0o600)
}
