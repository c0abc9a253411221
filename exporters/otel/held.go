package otel

import (
	"bytes"
	"container/list"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/earshot-dev/earshot/core/export"
)

// record is a line of the file of a sampler: a batch that a conversation holds, or a decision
// about it, after which it holds none, or nothing but that the names are of one conversation.
type record struct {
	Names    []string `json:"names"`
	Decision decision `json:"decision,omitempty"`
	Batch    []byte   `json:"batch,omitempty"`
	Spans    int64    `json:"spans,omitempty"`
}

// heldFile is that file; without a path it keeps nothing.
type heldFile struct {
	path    string
	f       *os.File
	pending bytes.Buffer // lines that are not in the file
	size    int64        // of the lines in it
	least   int64        // of those when it was written last
}

// openHeld reads the lines of a file. A line that a crash interrupted was never acknowledged, and
// ends the file.
func openHeld(path string, replay func(record)) (j heldFile, err error) {
	if j.path = path; path == "" {
		return j, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return j, err
	}
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return j, err
	}
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil || len(r.Names) == 0 {
			break
		}
		replay(r)
	}
	return j, nil
}

func (j *heldFile) add(r record) {
	if j.path == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil { // texts, numbers and bytes always marshal
		return
	}
	j.pending.Write(append(line, '\n'))
}

// flush returns when the lines survive a power cut. After an error they are written to the same place.
func (j *heldFile) flush() error {
	if j.pending.Len() == 0 {
		return nil
	}
	if _, err := j.f.WriteAt(j.pending.Bytes(), j.size); err != nil {
		return err
	}
	if err := j.f.Sync(); err != nil {
		return err
	}
	j.size += int64(j.pending.Len())
	j.pending.Reset()
	return nil
}

// grown reports whether the file is worth writing again.
func (j *heldFile) grown() bool { return j.size > 2*j.least+1<<20 }

// rewrite puts the pending lines in the place of all others.
func (j *heldFile) rewrite() error {
	if j.path == "" {
		return nil
	}
	f, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	next := heldFile{path: j.path, f: f, pending: j.pending}
	if err := next.flush(); err != nil {
		_ = f.Close()
		return err
	}
	j.close() // Windows renames no file over an open one
	if err := os.Rename(j.path+".new", j.path); err != nil {
		_ = f.Close()
		return err
	}
	next.least = next.size
	*j = next
	return nil
}

func (j *heldFile) close() {
	if j.f != nil {
		_ = j.f.Close()
	}
}

// replay takes a line of an earlier run.
func (s *sampler) replay(r record) {
	c := s.join(s.now(), r.Names)
	if r.Decision != undecided {
		s.unhold(c, len(c.held))
		c.decision = r.Decision
		s.place(c)
		return
	}
	if len(r.Batch) > 0 {
		s.hold(c, held{r.Batch, r.Spans})
	}
}

// write adds a line about a conversation to the file.
func (s *sampler) write(c *conversation, r record) {
	r.Names, c.written = c.names, len(c.names)
	s.file.add(r)
}

// all goes through the conversations.
func (s *sampler) all(yield func(*conversation) bool) {
	for _, l := range [...]*list.List{s.decided, s.open} {
		for e := l.Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(*conversation)) {
				return
			}
		}
	}
}

// compact writes the file again, without the lines that later ones replaced.
func (s *sampler) compact() error {
	s.file.pending.Reset()
	for c := range s.all {
		for _, h := range c.held {
			s.write(c, record{Batch: h.batch, Spans: h.spans})
		}
		if len(c.held) == 0 {
			s.write(c, record{Decision: c.decision})
		}
	}
	return s.file.rewrite()
}

// Rewrite implements export.Sampler.
func (s *sampler) Rewrite(strip func(*export.Batch) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for c := range s.all {
		held := c.held
		s.unhold(c, len(c.held))
		c.held = nil
		for _, h := range held {
			var b export.Batch
			if err := b.UnmarshalBinary(h.batch); err != nil {
				return fmt.Errorf("otel: sample: %w", err)
			}
			if strip(&b) {
				var err error
				if changed, h.spans = true, int64(len(b.Spans)); b.Len() == 0 {
					continue
				}
				if h.batch, err = b.MarshalBinary(); err != nil {
					return fmt.Errorf("otel: sample: %w", err)
				}
			}
			s.hold(c, h)
		}
	}
	if !changed {
		return nil
	}
	return s.compact()
}
