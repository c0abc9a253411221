package pages

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRelease: the pages of a file that is only read are let go, and read again when they are needed. Those of a
// mapping that has a page of its own stay, and so does that page.
func TestRelease(t *testing.T) {
	const size = 1 << 20
	name := filepath.Join(t.TempDir(), "file with spaces")
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open := func() []byte {
		b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		return b
	}
	clean := open()
	if n, err := Release(name); err != nil || n != size {
		t.Errorf("released %d, %v", n, err)
	}
	if n, err := Release(name); err != nil || n != 0 {
		t.Errorf("released %d of nothing, %v", n, err)
	}
	if strings.Trim(string(clean), "x") != "" {
		t.Error("the file has changed")
	}
	own := open()
	if err := unix.Mprotect(own, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	own[0] = 'y'
	if err := unix.Mprotect(own, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if _, err := Release(name); err != nil {
		t.Error(err)
	}
	if own[0] != 'y' {
		t.Error("a page that was written to is lost")
	}
}

// TestReleaseOfThisProgram: a program goes on without the pages of its code.
func TestReleaseOfThisProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := Release(self); err != nil {
			t.Fatal(err)
		}
	}
	n, err := Release("/nowhere")
	if n != 0 || err != nil {
		t.Error(n, err)
	}
}
