//go:build unix

package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketDirsOfTheDeadGo leaves the directory of a process that was killed, which has no
// lock any more, beside those of one that lives and of other programs.
func TestSocketDirsOfTheDeadGo(t *testing.T) {
	temp := t.TempDir()
	alive, remove, err := OwnedDir(temp)
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
	next, removeNext, err := OwnedDir(temp)
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

// TestLinkOfTheDeadGoes leaves the link to a data directory with a long name behind, as a process
// that is killed does: the next start removes it.
func TestLinkOfTheDeadGoes(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dead, dir := filepath.Join(temp, "earshot-1"), filepath.Join(temp, strings.Repeat("long", maxSocket/4))
	for _, d := range []string{dead, dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dead, ownerFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dead, "d")); err != nil {
		t.Fatal(err)
	}
	_, release, err := socketOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	left, err := filepath.Glob(filepath.Join(temp, "earshot*"))
	if _, derr := os.Stat(dir); len(left) != 0 || err != nil || derr != nil {
		t.Errorf("left: %v, %v; the data directory: %v", left, err, derr)
	}
}
