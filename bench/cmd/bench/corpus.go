package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/earshot-dev/earshot/bench/gen"
)

// makeCorpus generates the traffic below dir, unless it is there already.
func makeCorpus(dir string, o gen.Options) (*corpus, error) {
	dir = filepath.Join(dir, fmt.Sprintf("legion-%d-%d-%d", o.Bytes, o.Sessions, o.Seed))
	c := &corpus{dir: dir, oracle: &gen.Oracle{}}
	b, err := os.ReadFile(filepath.Join(dir, "oracle.json"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if c.oracle, err = gen.Legion(o).Write(dir); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, c.oracle); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "sessions/*/messages.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		c.count(data)
	}
	return c, nil
}

// count counts the lines of a file as the collector finds them: without the white
// space around them, and without blank ones.
func (c *corpus) count(data []byte) {
	// A blank last line is accounted for with the line that follows it.
	c.read += int64(len(bytes.TrimRight(data, " \t\r\n")) + 1)
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		c.lines++
		c.size += int64(len(line))
		c.sum += gen.Sum(line)
	}
}
