//go:build unix

package attach

import (
	"os"
	"syscall"
	"testing"
)

// TestOwnerIsKept: a file that root changes, and changes back, for another user stays that user's, and a new one in a folder of
// that user is too.
func TestOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the files of others")
	}
	const user, group = 65534, 65534
	owned := func(path string) {
		t.Helper()
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != user || is.Gid != group {
			t.Errorf("%s belongs to %d:%d", path, is.Uid, is.Gid)
		}
	}
	dir := t.TempDir()
	if err := os.Chown(dir, user, group); err != nil {
		t.Fatal(err)
	}
	for _, existing := range []bool{true, false} {
		s := Setting{Path: dir + "/settings.json", Syntax: JSON, Keys: claude}
		if existing {
			if err := os.WriteFile(s.Path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(s.Path, user, group); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(s.Path); err != nil {
			t.Fatal(err)
		}
		c, err := s.Plan(tap, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(); err != nil {
			t.Fatal(err)
		}
		owned(s.Path)
		if existing {
			if _, err := c.Undo(); err != nil {
				t.Fatal(err)
			}
			owned(s.Path)
		}
	}
}
