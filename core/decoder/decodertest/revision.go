package decodertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/msg"
)

// revisionFile ties the goldens to the decoder's Revision, beside the cases. A decoder
// without the file is not held to it.
const revisionFile = "revision.json"

// recorded is the content of the file: the Revision, and for each case a digest of its stream
// and one of its want.jsonl.
type recorded struct {
	Revision uint32               `json:"revision"`
	Cases    map[string]caseState `json:"cases"`
}

type caseState struct {
	Input  string `json:"input"`
	Golden string `json:"golden"`
}

func record(revision uint32, cases []conformance.Case) (recorded, error) {
	r := recorded{Revision: revision, Cases: make(map[string]caseState)}
	for _, c := range cases {
		in := append([]byte(c.Stream.Origin+"\n"), c.Stream.Options...)
		var err error
		for i := range c.Frames {
			if in, err = fixture.AppendFrame(in, &c.Frames[i]); err != nil {
				return r, err
			}
		}
		r.Cases[c.Name] = caseState{msg.HashKey(string(in)), msg.HashKey(string(c.Want))}
	}
	return r, nil
}

// older returns the cases of which the same frames have other messages now, though the
// Revision has not risen.
func (r recorded) older(now recorded) (names []string) {
	for name, c := range now.Cases {
		if was, ok := r.Cases[name]; ok && was.Input == c.Input && was.Golden != c.Golden && now.Revision <= r.Revision {
			names = append(names, name)
		}
	}
	return names
}

func (r recorded) equal(o recorded) bool {
	return r.Revision == o.Revision && maps.Equal(r.Cases, o.Cases)
}

// checkRevision holds the cases in dir to the file. With write it brings the file up to date,
// unless a golden changed under the same Revision.
func checkRevision(dir string, revision uint32, write bool) error {
	path := filepath.Join(dir, revisionFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !write {
		return nil
	}
	var was recorded
	if err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cases, err := conformance.Load(os.DirFS(dir))
	if err != nil {
		return err
	}
	now, err := record(revision, cases)
	if err != nil {
		return err
	}
	switch names := was.older(now); {
	case len(names) > 0:
		slices.Sort(names)
		return fmt.Errorf("the same frames have other messages in %s: raise Revision above %d, so that they replace the rows of before, or delete %s if the decoder has not been released", strings.Join(names, ", "), was.Revision, path)
	case was.equal(now):
		return nil
	case !write:
		return errors.New(path + " is not of these cases: go test -update writes it")
	}
	if b, err = json.MarshalIndent(now, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
