package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// Case is a recorded stream and its expected output.
type Case struct {
	Name   string
	Stream decoder.Stream
	Frames []frame.Frame
	Want   []byte // want.jsonl; nil when there is none

	Reload       []frame.Frame // nil when there is none
	ReloadStream decoder.Stream
	Lacks        Lacks
	Deltas       []Delta

	raw       []byte
	transport fixture.Transport
}

// Load reads the cases of a directory: every folder in it but "fuzz", where the
// go command keeps the inputs that fuzzing found.
func Load(dir fs.FS) ([]Case, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fmt.Errorf("cases: %w", err)
	}
	var cases []Case
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "fuzz" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		c, err := load(dir, e.Name())
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", e.Name(), err)
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, errors.New("cases: there are none: a case is a folder with in.jsonl or another recording")
	}
	return cases, nil
}

// LeavesOut reads the list of fields that the decoder leaves out on purpose, the file
// leaves-out.json beside the cases; nil when there is none.
func LeavesOut(dir fs.FS) (*unknown.List, error) {
	b, err := fs.ReadFile(dir, "leaves-out.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cases: %w", err)
	}
	l, err := unknown.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("cases: leaves-out.json: %w", err)
	}
	return &l, nil
}

var (
	inputs  = []string{"in.jsonl", "in.sse", "in.ws.jsonl", "in.json", "frames.jsonl"}
	reloads = []string{"reload.jsonl", "reload.sse", "reload.ws.jsonl", "reload.json", "reload.frames.jsonl"}
	others  = []string{"want.jsonl", "reload.lacks.json", "options.json", "origin.txt", "reload.origin.txt", "deltas.json"}
)

func load(dir fs.FS, name string) (c Case, err error) {
	files, err := fs.ReadDir(dir, name)
	if err != nil {
		return c, err
	}
	var input, reload string
	for _, f := range files {
		var into *string
		switch n := f.Name(); {
		case slices.Contains(inputs, n):
			into = &input
		case slices.Contains(reloads, n):
			into = &reload
		case slices.Contains(others, n):
			continue
		default:
			for _, known := range slices.Concat(inputs, reloads, others) {
				stem, _, _ := strings.Cut(known, ".")
				if got, _, _ := strings.Cut(n, "."); got == stem {
					return c, fmt.Errorf("%s: no file of a case has this name; did you mean %s?", n, known)
				}
			}
			continue
		}
		if *into != "" {
			return c, fmt.Errorf("both %s and %s", *into, f.Name())
		}
		*into = f.Name()
	}
	if input == "" {
		return c, fmt.Errorf("no input: want one of %s", strings.Join(inputs, " "))
	}
	l := loader{dir: dir, folder: name}
	c = Case{Name: name}
	c.Stream.Origin = name + "/" + input
	if s, ok := l.text("origin.txt"); ok {
		c.Stream.Origin = strings.TrimSpace(s)
	}
	if s, ok := l.text("options.json"); ok {
		c.Stream.Options = json.RawMessage(s)
	}
	c.ReloadStream = c.Stream
	if s, ok := l.text("reload.origin.txt"); ok {
		c.ReloadStream.Origin = strings.TrimSpace(s)
	}
	if s, ok := l.text("want.jsonl"); ok {
		c.Want = []byte(s)
	}
	l.json("reload.lacks.json", &c.Lacks)
	l.json("deltas.json", &c.Deltas)
	c.raw, c.transport, c.Frames = l.frames(input)
	if reload != "" {
		_, _, c.Reload = l.frames(reload)
	}
	return c, l.err
}

// loader reads the files of a case and keeps the first error.
type loader struct {
	dir    fs.FS
	folder string
	err    error
}

func (l *loader) fail(file string, err error) {
	if l.err == nil && err != nil {
		l.err = fmt.Errorf("%s: %w", file, err)
	}
}

func (l *loader) text(file string) (string, bool) {
	b, err := fs.ReadFile(l.dir, path.Join(l.folder, file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	l.fail(file, err)
	return string(b), err == nil
}

func (l *loader) json(file string, into any) {
	s, ok := l.text(file)
	if !ok {
		return
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	l.fail(file, d.Decode(into))
}

func (l *loader) frames(file string) ([]byte, fixture.Transport, []frame.Frame) {
	s, _ := l.text(file)
	t, err := fixture.TransportOf(file)
	l.fail(file, err)
	frames, err := fixture.Read(t, []byte(s))
	l.fail(file, err)
	if len(frames) == 0 {
		l.fail(file, errors.New("no frames"))
	}
	for i := range frames {
		if r := frames[i].Reason; r != "" {
			l.fail(file, fmt.Errorf("frame %d is %s: a decoder never sees such a frame", i, r))
		}
	}
	return []byte(s), t, frames
}
