// Package scaffold writes a new decoder in Go, Python or TypeScript: a folder with a program
// that passes the conformance suite unchanged, and that its author adapts to another format.
package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/earshot-dev/earshot"
)

// The templates have the ending .tmpl, so that no tool takes them for Go.
//
//go:embed all:template
var files embed.FS

// Settings are the values that the templates use.
type Settings struct {
	// Name is the format's name: lower case letters, digits and dashes.
	Name string
	// Language is one of Languages; go when empty.
	Language string
	// Module is the path of the new Go module; earshot-NAME when empty.
	Module string
	// Replace is a folder with the source of Earshot, which the Go module uses. When it is
	// empty, the source that is embedded in this program is written into the new folder.
	Replace string
}

// Decoder is a new decoder.
type Decoder struct{ settings Settings }

// New checks the settings of a decoder and fills in the defaults.
func New(s Settings) (*Decoder, error) {
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(s.Name[:1], "abcdefghijklmnopqrstuvwxyz") != "" {
		return nil, fmt.Errorf("name %q: want lower case letters, digits and dashes, a letter first", s.Name)
	}
	s.Language = cmp.Or(s.Language, "go")
	if _, ok := languages()[s.Language]; !ok {
		return nil, fmt.Errorf("language %q: not one of %s", s.Language, strings.Join(Languages(), ", "))
	}
	if s.Language != "go" {
		if s.Module != "" || s.Replace != "" {
			return nil, fmt.Errorf("a module and a source that it uses are those of a decoder in Go, not in %s", s.Language)
		}
		return &Decoder{s}, nil
	}
	// Without a prefix the module of a format named log would be the package log.
	s.Module = cmp.Or(s.Module, "earshot-"+s.Name)
	if err := module.CheckImportPath(s.Module); err != nil {
		return nil, err
	}
	if s.Replace == "" {
		return &Decoder{s}, nil
	}
	var err error
	if s.Replace, err = filepath.Abs(s.Replace); err != nil {
		return nil, err
	}
	if !IsSource(s.Replace) {
		return nil, fmt.Errorf("%s has no source of Earshot", s.Replace)
	}
	return &Decoder{s}, nil
}

// IsSource reports whether a folder has the source of Earshot.
func IsSource(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(text) == "github.com/earshot-dev/earshot"
}

// language is a language that a decoder can be written in.
type language struct {
	tool string // the program that builds it
	next string // the commands that build and test the new decoder
	sdk  string // the folder of the repository that is copied
	to   string // its folder in the new decoder
}

func languages() map[string]language {
	return map[string]language{
		"go": {tool: "go", next: "go test"},
		"python": {
			tool: "python3",
			next: "python3 -m venv venv && venv/bin/pip install -r requirements.txt && earshot plugin test --exec venv/bin/python --arg decoder.py --testdata testdata",
			sdk:  "core/sdk/python", to: ".",
		},
		"typescript": {
			tool: "npm",
			next: "npm install && npm run build && earshot plugin test --exec node --arg dist/decoder.js --testdata testdata",
			sdk:  "core/sdk/typescript", to: "src",
		},
	}
}

// Languages returns the names of the languages.
func Languages() []string { return slices.Sorted(maps.Keys(languages())) }

// Next returns the commands that build and test the decoder, in its folder.
func (d *Decoder) Next() string { return languages()[d.settings.Language].next }

// Tool is the program that these commands begin with.
func (d *Decoder) Tool() string { return languages()[d.settings.Language].tool }

// Write writes the folder of the decoder into dir and returns the paths of the files, without
// those of the SDK. It fails when the folder exists, and leaves none when it fails.
//
//	Go          NAME/go.mod go.sum main.go decoder.go decoder_test.go, and earshot/ unless Replace is set
//	Python      NAME/decoder.py requirements.txt, and earshot.py decoder_pb2.py
//	TypeScript  NAME/package.json tsconfig.json src/decoder.ts, and src/earshot.ts decoder_pb.ts
//	all         NAME/README.md testdata/{leaves-out.json,hello/{in,want}.jsonl}
func (d *Decoder) Write(dir string) ([]string, error) {
	w := &writer{root: filepath.Join(dir, d.settings.Name), settings: d.settings}
	if err := os.Mkdir(w.root, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already, and stays as it is", w.root)
	} else if err != nil {
		return nil, err
	}
	if err := w.all(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(w.root))
	}
	return w.written, nil
}

// writer writes one decoder.
type writer struct {
	root     string
	settings Settings
	requires []string // of the Go module: path and version
	written  []string
}

// all writes the SDK and the templates.
func (w *writer) all() error {
	copySDK := w.module
	if l := languages()[w.settings.Language]; l.sdk != "" {
		copySDK = func() error { return w.sdk(l.sdk, l.to, "") }
	}
	return errors.Join(copySDK(), w.templates("template/all"), w.templates("template/"+w.settings.Language))
}

// templates writes the files of a folder of templates.
func (w *writer) templates(folder string) error {
	return fs.WalkDir(files, folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".tmpl" {
			if text, err = w.render(text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return w.file(strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ".tmpl"), text)
	})
}

func (w *writer) render(text []byte) ([]byte, error) {
	t, err := template.New("").Delims("<<", ">>").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Settings
		Requires []string
	}{w.settings, w.requires})
	return out.Bytes(), err
}

func (w *writer) file(name string, text []byte) error {
	to := filepath.Join(w.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	w.written = append(w.written, to)
	return os.WriteFile(to, text, 0o644)
}

// sdk copies the files of a folder of the embedded source that end like this, without tests.
func (w *writer) sdk(from, to, ending string) error {
	written := w.written
	defer func() { w.written = written }()
	source := earshot.Source()
	return fs.WalkDir(source, from, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "testdata":
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ending) || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		return w.file(path.Join(to, strings.TrimPrefix(name, from)), text)
	})
}

// sdkModules are the modules that the SDK and the tests of a decoder import.
// TestRequirementsAreThoseOfTheSDK holds the list to the imports.
var sdkModules = []string{
	"github.com/fatih/color", "github.com/golang/protobuf", "github.com/hashicorp/go-hclog", "github.com/hashicorp/go-plugin",
	"github.com/hashicorp/yamux", "github.com/mattn/go-colorable", "github.com/mattn/go-isatty", "github.com/oklog/run",
	"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text", "google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc", "google.golang.org/protobuf",
}

// module writes go.sum and, without Replace, the source. The requirements are complete, so that
// the module builds without `go mod tidy`, which needs the network for the tests of others.
func (w *writer) module() error {
	const sourceFolder = "earshot"
	text, err := fs.ReadFile(earshot.Source(), "go.mod")
	if err != nil {
		return err
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	sums, err := fs.ReadFile(earshot.Source(), "go.sum")
	if err != nil {
		return err
	}
	sdkMod := new(modfile.File)
	if err := errors.Join(sdkMod.AddModuleStmt(mod.Module.Mod.Path), sdkMod.AddGoStmt(mod.Go.Version)); err != nil {
		return err
	}
	for _, r := range mod.Require {
		if slices.Contains(sdkModules, r.Mod.Path) {
			w.requires = append(w.requires, r.Mod.Path+" "+r.Mod.Version)
			sdkMod.AddNewRequire(r.Mod.Path, r.Mod.Version, false)
		}
	}
	slices.Sort(w.requires)
	if err := w.file("go.sum", sums); err != nil || w.settings.Replace != "" {
		return err
	}
	w.settings.Replace = "./" + sourceFolder
	if err := w.sdk("core", sourceFolder+"/core", ".go"); err != nil {
		return err
	}
	if text, err = sdkMod.Format(); err != nil {
		return err
	}
	written := w.written
	defer func() { w.written = written }()
	license, err := fs.ReadFile(earshot.Source(), "LICENSE")
	if err != nil {
		return err
	}
	return errors.Join(w.file(sourceFolder+"/go.mod", text), w.file(sourceFolder+"/LICENSE", license))
}
