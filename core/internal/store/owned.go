package store

import (
	"fmt"
	"os"
	"path/filepath"
)

// ownerFile is locked for as long as the process that made a directory of sockets lives.
const ownerFile = "owner"

// OwnedDir makes a directory for the Unix sockets of this process in a temporary one, and
// removes those of processes that were killed. remove removes it.
func OwnedDir(temp string) (dir string, remove func(), err error) {
	removeStale(temp)
	// It has its name once it is locked, so that no other process takes it for a stale one.
	made, err := os.MkdirTemp(temp, "earshot.new-")
	if err != nil {
		return "", nil, err
	}
	owner, err := lockOwner(filepath.Join(made, ownerFile), os.O_CREATE)
	if err == nil {
		dir = filepath.Join(temp, "earshot-"+filepath.Base(made)[len("earshot.new-"):])
		err = os.Rename(made, dir)
	}
	if err != nil {
		_ = os.RemoveAll(made)
		return "", nil, fmt.Errorf("directory of sockets: %w", err)
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = owner.Close()
	}, nil
}

// removeStale removes the directories whose owner is gone. One without an owner's file is
// not of this package; one of another user cannot be locked.
func removeStale(temp string) {
	list, _ := filepath.Glob(filepath.Join(temp, "earshot-*")) // the pattern is none that fails
	for _, dir := range list {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		if owner, err := lockOwner(filepath.Join(dir, ownerFile), 0); err == nil {
			_ = os.RemoveAll(dir)
			_ = owner.Close()
		}
	}
}
