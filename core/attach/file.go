package attach

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Setting is a place in a settings file.
type Setting struct {
	Path   string   `json:"path"`
	Syntax Syntax   `json:"syntax"`
	Keys   []string `json:"keys"` // from the outermost on; the one variable of an env file
}

// Change is a change of a setting, as a record keeps it.
type Change struct {
	Setting
	Value  string      `json:"value"`
	Old    *string     `json:"old"`    // the text of the value before; nil: there was none
	Was    *string     `json:"was"`    // the value before; nil: there was none
	Depth  int         `json:"depth"`  // how many of the keys were there
	New    bool        `json:"new"`    // the file was not there
	Mode   fs.FileMode `json:"mode"`   // of the file
	Before []byte      `json:"before"` // the file
	Hashes [2]string   `json:"sha256"` // of the file before and after
	after  []byte
}

// Read returns the value of a setting; ok is false when the file or the value is not there.
func (s Setting) Read() (value string, ok bool, err error) {
	text, _, err := s.load()
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	value, ok, err = s.Syntax.get(text, s.Keys)
	return value, ok, s.wrap(err)
}

// Plan returns the change that sets a value, without making it. Where there is no file, base is its
// content, and the caller makes the folder; without base the folder has to be there.
func (s Setting) Plan(value string, base []byte) (*Change, error) {
	c := &Change{Setting: s, Value: value, Mode: 0o600}
	text, mode, err := s.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dir, err := os.Stat(filepath.Dir(s.Path)); base == nil && (err != nil || !dir.IsDir()) {
			return nil, fmt.Errorf("%s: the folder is not there: run the agent once, or name its file with --settings", filepath.Dir(s.Path))
		}
		c.New, text = true, base
	case err != nil:
		return nil, err
	default:
		c.Mode, c.Before = mode, text
	}
	e, err := s.Syntax.set(text, s.Keys, value)
	if err != nil {
		return nil, s.wrap(err)
	}
	c.after, c.Old, c.Was, c.Depth = e.text, e.old, e.was, e.depth
	c.Hashes = [2]string{hash(c.Before), hash(c.after)}
	return c, nil
}

// After is the content of the file with the change.
func (c *Change) After() []byte { return c.after }

// Apply makes a planned change, unless the file has changed since it was planned.
func (c *Change) Apply() error {
	text, _, err := c.load()
	if c.New && err == nil || !c.New && (err != nil || !bytes.Equal(text, c.Before)) {
		return c.wrap(errors.New("it has changed in the meantime: nothing was written"))
	}
	return c.wrap(write(c.Path, c.after, c.Mode))
}

// Undone is how a change was undone.
type Undone int

// How a change was undone.
const (
	Restored Undone = iota // the file is as it was, byte for byte
	TakenOut               // the file had other changes, which stay
	Absent                 // the file has another value, or none: it was left alone
)

// Undo undoes a change.
func (c *Change) Undo() (Undone, error) {
	text, mode, err := c.load()
	if errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	}
	if err != nil {
		return 0, err
	}
	switch hash(text) {
	case c.Hashes[0]:
		if !c.New {
			return Restored, nil
		}
	case c.Hashes[1]:
		if c.New {
			return Restored, c.wrap(os.Remove(c.Path))
		}
		return Restored, c.wrap(write(c.Path, c.Before, c.Mode))
	}
	has, err := c.in(text)
	if err != nil {
		return 0, c.wrap(fmt.Errorf("%w; %s", err, c.byHand()))
	}
	if !has {
		return Absent, nil
	}
	text, err = c.Syntax.unset(text, c)
	if err != nil {
		return 0, c.wrap(fmt.Errorf("%w; %s", err, c.byHand()))
	}
	return TakenOut, c.wrap(write(c.Path, text, mode))
}

// Holds reports whether the file still has the change.
func (c *Change) Holds() (bool, error) {
	text, _, err := c.load()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	has, err := c.in(text)
	return has, c.wrap(err)
}

// in reports whether a text has the changed value.
func (c *Change) in(text []byte) (bool, error) {
	if c.Syntax == List {
		return itemLine(strings.SplitAfter(string(text), "\n"), c.Value) >= 0, nil
	}
	now, ok, err := c.Syntax.get(text, c.Keys)
	return ok && now == c.Value, err
}

// byHand describes to a person how to undo the change.
func (c *Change) byHand() string {
	if c.Was != nil {
		return fmt.Sprintf("set %s to %s yourself", c.Name(), *c.Was)
	}
	return fmt.Sprintf("take %s out yourself", c.Name())
}

// load reads the file of a setting that may be changed, and its mode.
func (s Setting) load() ([]byte, fs.FileMode, error) {
	info, err := os.Lstat(s.Path)
	if err != nil {
		return nil, 0, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(s.Path)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: a symbolic link to nothing", s.Path)
		}
		return nil, 0, fmt.Errorf("%s: a symbolic link: name the file itself, %s", s.Path, to)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: not a file", s.Path)
	}
	if info.Mode().Perm()&0o200 == 0 {
		return nil, 0, fmt.Errorf("%s: read-only: chmod u+w lets it be changed", s.Path)
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		return nil, 0, errors.Join(fmt.Errorf("%s: it has changed in the meantime", s.Path), err)
	}
	text, err := io.ReadAll(f)
	return text, info.Mode().Perm(), err
}

func (s Setting) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	return nil
}

// write replaces a file in one step.
func write(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, keepOwner(f, path), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Record lists the changes that attached an agent, in their order.
type Record struct {
	Agent   string    `json:"agent"`
	Listen  string    `json:"listen"` // address of the tap
	Changes []*Change `json:"changes"`
}

// Records are the records in a directory, a file for each agent.
type Records struct{ Dir string }

func (r Records) path(agent string) string { return filepath.Join(r.Dir, agent+".json") }

// Load returns the record of an agent; nil when there is none.
func (r Records) Load(agent string) (*Record, error) {
	b, err := os.ReadFile(r.path(agent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out Record
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", r.path(agent), err)
	}
	return &out, nil
}

// List returns the agents with a record.
func (r Records) List() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.Dir, "*.json"))
	for i, f := range files {
		name := filepath.Base(f)
		files[i] = name[:len(name)-len(".json")]
	}
	return files, err
}

// Apply writes the record and makes its changes; when one fails, those before it are undone.
func (r Records) Apply(rec *Record) error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	if err := write(r.path(rec.Agent), append(b, '\n'), 0o600); err != nil {
		return err
	}
	for i, c := range rec.Changes {
		if err := c.Apply(); err != nil {
			for ; i > 0; i-- {
				_, uerr := rec.Changes[i-1].Undo()
				err = errors.Join(err, uerr)
			}
			return errors.Join(err, r.Remove(rec.Agent))
		}
	}
	return nil
}

// Remove removes the record of an agent.
func (r Records) Remove(agent string) error { return os.Remove(r.path(agent)) }
