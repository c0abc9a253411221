package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// rowArray makes an array of lines of JSON.
type rowArray struct {
	w     io.Writer
	begun bool
	ended bool // the last byte ended a row
	out   []byte
}

// Write implements io.Writer.
func (a *rowArray) Write(p []byte) (int, error) {
	a.out = a.out[:0]
	for _, c := range p {
		switch {
		case c == '\n': // which JSON escapes in values
			a.ended = true
			continue
		case !a.begun:
			a.out = append(a.out, '[', '\n')
		case a.ended:
			a.out = append(a.out, ',', '\n')
		}
		a.begun, a.ended = true, false
		a.out = append(a.out, c)
	}
	if _, err := a.w.Write(a.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the array.
func (a *rowArray) Close() error {
	end := "\n]\n"
	if !a.begun {
		end = "[]\n"
	}
	_, err := io.WriteString(a.w, end)
	return err
}

// resultFile is a file that is there under its name only once it is whole. On a terminal its
// progress is shown.
type resultFile struct {
	*os.File
	path     string
	progress io.Writer // nil: none is shown
	began    time.Time
	shown    time.Time
	written  int64
}

func newResultFile(path string, progress io.Writer) (*resultFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	r := &resultFile{File: f, path: path, began: time.Now()}
	if width, _ := terminal(progress); width > 0 {
		r.progress = rawOutput(progress)
	}
	return r, nil
}

// Write implements io.Writer.
func (f *resultFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	if now := time.Now(); f.progress != nil && now.Sub(f.shown) > 100*time.Millisecond {
		f.shown = now
		f.show("")
	}
	return n, err
}

// show writes the progress: the size of a result is not known before it is whole.
func (f *resultFile) show(end string) {
	mib := float64(f.written) / (1 << 20)
	fmt.Fprintf(f.progress, "\r\x1b[K%s %.1f MiB, %.1f MiB/s%s", f.path, mib, mib/max(time.Since(f.began).Seconds(), 1e-3), end)
}

// close moves a whole result to its name, and removes another.
func (f *resultFile) close(whole bool) error {
	if f.progress != nil {
		f.show("\n")
	}
	err := errors.Join(f.Chmod(0o600), f.Close())
	if whole && err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if !whole || err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	return nil
}
