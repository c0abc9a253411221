package wrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// Erase removes the recordings below dir that are of somebody alone, and of others the messages that mention them. It returns how
// many recordings have changed, and those that a wrapper writes, which stay as they are.
func Erase(dir string, of func(path string) bool, mentions func(message []byte) bool) (changed int, busy []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	if err != nil {
		return 0, nil, fmt.Errorf("wrap: erase: %w", err)
	}
	for _, path := range paths {
		whole := of(path)
		switch is, err := eraseFrom(path, whole, mentions); {
		case errors.Is(err, errBusy):
			busy = append(busy, path)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return changed, busy, fmt.Errorf("wrap: erase: %w", err)
		case is:
			changed++
		}
	}
	return changed, busy, nil
}

// errBusy: a wrapper writes the recording.
var errBusy = errors.New("a wrapper writes it")

// eraseFrom removes a recording, or messages of it.
func eraseFrom(path string, whole bool, mentions func([]byte) bool) (changed bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var kept []byte
	if !whole {
		if _, changed, err = without(f, mentions); !changed || err != nil {
			return false, err
		}
	}
	if lock(f) != nil {
		return false, errBusy
	}
	if !whole { // a wrapper may have written more before it ended
		if kept, _, err = without(f, mentions); err != nil {
			return false, err
		}
	}
	if len(kept) == 0 {
		return true, os.Remove(path)
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".erasing-*")
	if err != nil {
		return false, err
	}
	_, err = next.Write(kept)
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(next.Name()))
	}
	return true, nil
}

// without returns the messages of a recording that do not mention them, and whether there are others.
func without(f *os.File, mentions func([]byte) bool) (kept []byte, changed bool, err error) {
	all, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return nil, false, err
	}
	for line := range bytes.Lines(all) {
		if !mentions(line) {
			kept = append(kept, line...)
		}
	}
	return kept, len(kept) < len(all), nil
}
