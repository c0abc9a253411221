package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// pageFile is where a run of earshot up notes the address of its pages, in the data directory. It holds a lock of the file for
// as long as it lives: after one that was killed the port may be any program's, also another user's.
const pageFile = "page.addr"

// notePages notes the address until forget is called.
func notePages(dir, address string) (forget func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, pageFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lockNote(f); err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteString(address + "\n")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		_ = os.Remove(f.Name())
		_ = f.Close()
	}, nil
}

// notedPages returns the address of the pages of a run that lives.
func notedPages(dir string) (address string, ok bool) {
	f, err := os.Open(filepath.Join(dir, pageFile))
	if err != nil {
		return "", false
	}
	defer f.Close()
	if !noteIsLocked(f) {
		return "", false
	}
	b, err := os.ReadFile(f.Name())
	address = strings.TrimSpace(string(b))
	return address, err == nil && address != ""
}
