//go:build unix

package attach

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner makes a file, which will take the place of another one, the property of that one's owner, or of the folder's where there
// is none: what root changes for a user is still the user's, whose agent has to read it.
func keepOwner(f *os.File, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(is.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(is.Uid), int(is.Gid))
}
