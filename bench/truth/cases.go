package truth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
)

// Cases returns the cases of decoders that have a truth.json: repository is the root of the source.
func Cases(repository fs.FS) (out []Recorded, err error) {
	found, err := fs.Glob(repository, "plugins/*/testdata/*/truth.json")
	if err != nil {
		return nil, err
	}
	for _, file := range found {
		b, err := fs.ReadFile(repository, file)
		if err != nil {
			return nil, err
		}
		folder := path.Dir(file)
		r := Recorded{Format: path.Base(path.Dir(path.Dir(folder))), Name: path.Base(folder), Truth: &Conversation{}}
		if err := json.Unmarshal(b, r.Truth); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if r.Streams, err = streams(repository, path.Dir(folder), r.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func streams(repository fs.FS, testdata, name string) ([]Stream, error) {
	dir, err := fs.Sub(repository, testdata)
	if err != nil {
		return nil, err
	}
	cases, err := conformance.Load(dir)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		if c.Name == name {
			return []Stream{{Origin: c.Stream.Origin, Live: true, Frames: c.Frames}}, nil
		}
	}
	return nil, errors.New("no such case")
}
