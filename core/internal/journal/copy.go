package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Copy copies a journal to a directory that does not exist yet, for another process to
// open, while the first one keeps writing. A segment that is complete is linked, where the
// file system can; of the one that is being written the copy ends anywhere, and Open cuts it
// behind its last whole record.
func Copy(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("copy the journal: %w", err)
	}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy the journal: %w", err)
	}
	sealed := make(map[string]bool)
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".idx"); ok {
			sealed[base] = true
		}
	}
	for _, e := range entries {
		base, ext, _ := strings.Cut(e.Name(), ".")
		if ext != "seg" && ext != "idx" {
			continue
		}
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		err := errors.ErrUnsupported
		if sealed[base] {
			err = os.Link(source, target)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = copyFile(source, target)
		}
		// It may have been removed meanwhile: everything in it is safe.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy the journal: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
