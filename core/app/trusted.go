package app

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// SharedData returns who else may read or change a data directory, as a sentence; empty: nobody but root may, or it is not
// there yet.
func SharedData(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	why := openTo(info, false)
	if mode := info.Mode().Perm(); why == "" && runtime.GOOS != "windows" && mode&0o077 != 0 {
		why = fmt.Sprintf("is open to others (%s)", mode)
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s %s; it has the conversations of agents, and the state by which none is read twice: chown it to this user, and chmod go-rwx", dir, why)
}

// trusted returns why another user could change the file at a path, or put another one there: a
// folder on the way, a link or the file itself belongs to another user than us and root, or others
// may write it. A folder above with the sticky bit, such as /tmp, protects a file in it from all
// but the file's owner. A group that has the number of our user is that user's alone, as most
// distributions make it.
func trusted(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, path := range []string{path, real} {
		parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
		for i := range len(parts) + 1 {
			at := "/" + strings.Join(parts[:i], "/")
			info, err := os.Lstat(at)
			if err != nil {
				return err
			}
			if why := openTo(info, i < len(parts)); why != "" {
				return fmt.Errorf("%s: %s %s: a program that others can change is not started (chown it to %d or root, chmod go-w)", path, at, why, os.Geteuid())
			}
		}
	}
	return nil
}
