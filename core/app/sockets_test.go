package app

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketDirsOfTheDeadGo leaves the directory of a process that was killed, which has no
// lock any more, beside those of one that lives and of other programs.
func TestSocketDirsOfTheDeadGo(t *testing.T) {
	temp := t.TempDir()
	alive, remove, err := socketDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	dead, other := filepath.Join(temp, "earshot-1"), filepath.Join(temp, "earshot-other")
	for _, dir := range []string{dead, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dead, ownerFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dead, "socket"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, removeNext, err := socketDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{alive: true, next: true, other: true, dead: false} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	remove()
	removeNext()
	if left, _ := os.ReadDir(temp); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}
