// Package scaffold writes a new decoder: a folder with a Go program that passes the
// conformance suite unchanged, and that its author adapts to another format.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

// The templates have the ending .tmpl, so that no tool takes them for Go.
//
//go:embed all:template
var files embed.FS

// Settings are the values that the templates use.
type Settings struct {
	// Name is the format's name: lower case letters, digits and dashes.
	Name string
	// Module is the path of the new module; Name when empty.
	Module string
	// Version is the version of github.com/earshot-dev/earshot that go.mod requires.
	// When it is empty `go mod tidy` takes the newest.
	Version string
	// Replace is a folder with the source of github.com/earshot-dev/earshot, for a
	// program that was built between releases; empty for none.
	Replace string
}

// Write writes the folder Name into dir and returns the paths of the files. It
// fails when the folder exists.
//
//	NAME/go.mod main.go decoder.go decoder_test.go README.md testdata/{leaves-out.json,hello/{in,want}.jsonl}
//
// The author runs `go mod tidy` next.
func Write(dir string, s Settings) ([]string, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	root := filepath.Join(dir, s.Name)
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, fmt.Errorf("scaffold: %w", err)
	}
	var written []string
	err := fs.WalkDir(files, "template", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := s.render(name)
		if err != nil {
			return err
		}
		rel := strings.TrimSuffix(strings.TrimPrefix(name, "template/"), ".tmpl")
		to := filepath.Join(root, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		written = append(written, to)
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		return written, fmt.Errorf("scaffold: %w", err)
	}
	return written, nil
}

func (s *Settings) check() error {
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(s.Name[:1], "abcdefghijklmnopqrstuvwxyz") != "" {
		return fmt.Errorf("scaffold: name %q: want lower case letters, digits and dashes, a letter first", s.Name)
	}
	if s.Module == "" {
		s.Module = s.Name
	}
	return nil
}

func (s *Settings) render(name string) ([]byte, error) {
	raw, err := files.ReadFile(name)
	if err != nil || path.Ext(name) != ".tmpl" {
		return raw, err
	}
	t, err := template.New(path.Base(name)).Delims("<<", ">>").Parse(string(raw))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, s)
	return out.Bytes(), err
}
