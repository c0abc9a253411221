package engine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// overlay is the name under which the engine boots its file-reading overlay
// database, so that it can be dropped.
const overlay = "_earshot_boot"

// prepare makes the folder such that the engine finds an ordinary database
// "default" in it. Without it the engine makes "default" itself, as an overlay
// that resolves table names as files.
func prepare(path string) error {
	metadata := filepath.Join(path, "metadata")
	if err := os.MkdirAll(metadata, 0o700); err != nil {
		return fmt.Errorf("engine: make data folder: %w", err)
	}
	// The overlay takes its UUID from this link under any name, and the process
	// aborts when "default" has the same one. The engine makes the link again.
	link := filepath.Join(metadata, "default")
	target, err := os.Readlink(link)
	if err == nil {
		if err := os.Remove(link); err != nil {
			return fmt.Errorf("engine: prepare data folder: %w", err)
		}
	}
	definition := filepath.Join(metadata, "default.sql")
	switch _, err := os.Stat(definition); {
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("engine: prepare data folder: %w", err)
	}
	id := filepath.Base(target) // a folder that another chdb program made keeps its tables
	if target == "" {
		id = newUUID()
	}
	tmp := definition + ".new"
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "ATTACH DATABASE _ UUID '%s'\nENGINE = Atomic\n", id), 0o600); err != nil {
		return fmt.Errorf("engine: prepare data folder: %w", err)
	}
	if err := os.Rename(tmp, definition); err != nil {
		return fmt.Errorf("engine: prepare data folder: %w", err)
	}
	return nil
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
