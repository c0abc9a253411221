package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// patterns are the globs of a source, cut into segments, as a nondeterministic automaton: a
// directory has a set of states, which are the segments that an entry of it may match, and
// the name of an entry leads to its set. So a walk enters only directories in which something
// can match, and recognizes a directory that it has walked with the same set.
type patterns struct {
	list     []pattern
	metadata int // list[metadata:] are those of metadata files
	exclude  []string
	document []string // names of files that are one document
}

type pattern struct {
	segments []string
	fixed    int // the number of leading segments without wildcards
}

// matchState is a state of the automaton: the segment that the next name has to match.
type matchState struct{ pattern, segment uint16 }

// match is the result of matching a name with the patterns.
type match uint8

const (
	tailed match = 1 << iota
	isMetadata
	named // the last segment is more specific than * or **
)

func compile(paths, metadata, documents, exclude []string) (*patterns, error) {
	ps := &patterns{metadata: len(paths), document: documents}
	for _, p := range paths {
		abs, err := absolute(p)
		if err != nil {
			return nil, err
		}
		if err := ps.add(p, strings.TrimPrefix(filepath.ToSlash(abs), "/")); err != nil {
			return nil, fmt.Errorf("paths: %w", err)
		}
	}
	for _, p := range metadata {
		if strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") {
			return nil, fmt.Errorf("metadata_files: pattern %q: leaves the directory of the tailed file", p)
		}
		if err := ps.add(p, filepath.ToSlash(filepath.Clean(p))); err != nil {
			return nil, fmt.Errorf("metadata_files: %w", err)
		}
	}
	for _, p := range documents {
		if !doublestar.ValidatePattern(p) || strings.Contains(p, "/") {
			return nil, fmt.Errorf("documents: pattern %q: not one of a name", p)
		}
	}
	for _, p := range exclude {
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("exclude: pattern %q: malformed", p)
		}
		if strings.Contains(p, "/") {
			abs, err := absolute(p)
			if err != nil {
				return nil, err
			}
			p = abs
		}
		ps.exclude = append(ps.exclude, p)
	}
	return ps, nil
}

func (ps *patterns) add(given, path string) error {
	if !doublestar.ValidatePattern(given) {
		return fmt.Errorf("pattern %q: malformed", given)
	}
	p := pattern{segments: strings.Split(path, "/")}
	for _, s := range p.segments {
		if !doublestar.ValidatePattern(s) {
			return fmt.Errorf("pattern %q: braces span a slash, which is not supported", given)
		}
	}
	p.fixed = slices.IndexFunc(p.segments, func(s string) bool { return strings.ContainsAny(s, `*?[{\`) })
	if p.fixed < 0 {
		p.fixed = len(p.segments) - 1
	}
	if len(p.segments) > 1<<12 || len(ps.list) > 1<<12 {
		return fmt.Errorf("pattern %q: too long, or one too many", given)
	}
	ps.list = append(ps.list, p)
	return nil
}

// root returns the directory of the first n segments of the pattern.
func (p pattern) root(n int) string { return "/" + strings.Join(p.segments[:n], "/") }

// from adds the state at segment i of pattern p, and those that follow it because
// ** may stand for no directory at all.
func (ps *patterns) from(states []matchState, p, i int) []matchState {
	for ; i < len(ps.list[p].segments); i++ {
		if s := (matchState{uint16(p), uint16(i)}); !slices.Contains(states, s) {
			states = append(states, s)
		}
		if ps.list[p].segments[i] != "**" {
			break
		}
	}
	return states
}

// tailed returns the patterns of the files to tail.
func (ps *patterns) tailed() []pattern { return ps.list[:ps.metadata] }

// metadataStates returns the first states of the patterns of metadata files, which apply in a
// directory with a tailed file.
func (ps *patterns) metadataStates() []matchState {
	var states []matchState
	for p := ps.metadata; p < len(ps.list); p++ {
		states = ps.from(states, p, 0)
	}
	return states
}

// split divides states into those of tailed files and those of metadata files.
func (ps *patterns) split(at []matchState) (transcripts, metadata []matchState) {
	for _, s := range at {
		if int(s.pattern) < ps.metadata {
			transcripts = append(transcripts, s)
		} else {
			metadata = append(metadata, s)
		}
	}
	return transcripts, metadata
}

// union returns the states that are in a or in b.
func union(a, b []matchState) []matchState {
	a = slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// step returns the states of the directory of that name, none when nothing below
// it can match, and the match of a file of that name.
func (ps *patterns) step(at []matchState, name string) (next []matchState, m match) {
	for _, s := range at {
		p := ps.list[s.pattern]
		segment, last := p.segments[s.segment], int(s.segment) == len(p.segments)-1
		switch {
		case segment == "**":
			next = ps.from(next, int(s.pattern), int(s.segment))
		case segment != name && !doublestar.MatchUnvalidated(segment, name):
			continue
		case !last:
			next = ps.from(next, int(s.pattern), int(s.segment)+1)
		}
		if last {
			if int(s.pattern) >= ps.metadata {
				m |= isMetadata
			} else {
				m |= tailed
			}
			if segment != "*" && segment != "**" {
				m |= named
			}
		}
	}
	return next, m
}

// excluded reports whether a path is left out.
func (ps *patterns) excluded(path string) bool {
	for _, p := range ps.exclude {
		subject := path
		if !strings.Contains(p, "/") {
			subject = filepath.Base(path)
		}
		if doublestar.MatchUnvalidated(p, subject) {
			return true
		}
	}
	return false
}

// documents reports whether files of that name are one document each.
func (ps *patterns) documents(name string) bool {
	return ShapeOf(name, nil, ps.document) == Document
}

// covers reports whether the patterns name path as a file to tail.
func (ps *patterns) covers(path string) bool {
	if ps.excluded(path) {
		return false
	}
	var at []matchState
	for p := range ps.metadata {
		at = ps.from(at, p, 0)
	}
	names := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, name := range names {
		next, m := ps.step(at, name)
		if i == len(names)-1 {
			return m&tailed != 0
		}
		at = next
	}
	return false
}
