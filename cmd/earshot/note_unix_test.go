//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPagesOfTheDead: the address that a killed run has left is not taken for that of a run that goes on: another program may
// have its port, with a page of its own.
func TestPagesOfTheDead(t *testing.T) {
	dir := t.TempDir()
	const address = "http://127.0.0.1:8090/"
	if err := os.WriteFile(filepath.Join(dir, pageFile), []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := notedPages(dir); ok {
		t.Errorf("%q is taken for the address of a run", got)
	}
	forget, err := notePages(dir, address)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // whoever looks does not take the lock away
		if got, ok := notedPages(dir); !ok || got != address {
			t.Errorf("the address of a run that goes on: %q, %v", got, ok)
		}
	}
	forget()
	if got, ok := notedPages(dir); ok {
		t.Errorf("after its end: %q", got)
	}
}
