package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// open opens the executable once. A pinned one is read into a private copy, and the copy is
// verified and run: neither another file at its path nor a change of its bytes is seen.
func open(s Settings) (*os.File, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s: not a file", s.Path)
	case !executable(info):
		err = fmt.Errorf("%s: not executable: %w", s.Path, os.ErrPermission)
	case s.SHA256 == "":
		return f, nil
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	defer f.Close()
	h := sha256.New()
	c, err := private(s.SocketDir, func(w io.Writer) error {
		_, err := io.Copy(io.MultiWriter(w, h), f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", s.Path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, s.SHA256) {
		return nil, errors.Join(fmt.Errorf("%s: sha256 is %s, the configuration has %s", s.Path, got, s.SHA256), c.Close())
	}
	return c, nil
}

// copied is private as a file in a directory of our own.
func copied(dir string, fill func(io.Writer) error) (*os.File, error) {
	w, err := os.CreateTemp(dir, "program-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fill(w), w.Chmod(0o500), w.Close()); err != nil {
		return nil, err
	}
	return os.Open(w.Name())
}
