package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// patterns are the globs of a source, cut into segments, as an automaton: what
// may match below a directory is a set of spots, and the name of an entry leads
// from one set to the next. So a walk enters only directories in which something
// can match, and knows it has seen one when directory and set are the same.
type patterns struct {
	list       []pattern
	companions int // list[companions:] are the companions
	exclude    []string
}

type pattern struct {
	segments []string
	fixed    int // the number of leading segments without wildcards
}

// spot is a place in a pattern: the segment that the next name has to match.
type spot struct{ pattern, segment uint16 }

// match says what a name is by the patterns.
type match uint8

const (
	tailed match = 1 << iota
	accompanies
	named // the last segment says more than "anything"
)

func compile(paths, companions, exclude []string) (*patterns, error) {
	ps := &patterns{companions: len(paths)}
	for _, p := range paths {
		abs, err := absolute(p)
		if err != nil {
			return nil, err
		}
		if err := ps.add(p, strings.TrimPrefix(filepath.ToSlash(abs), "/")); err != nil {
			return nil, fmt.Errorf("paths: %w", err)
		}
	}
	for _, p := range companions {
		if strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") {
			return nil, fmt.Errorf("companions: pattern %q: leaves the directory of its transcript", p)
		}
		if err := ps.add(p, filepath.ToSlash(filepath.Clean(p))); err != nil {
			return nil, fmt.Errorf("companions: %w", err)
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

// from adds the spot at segment i of pattern p, and those that follow it because
// ** may stand for no directory at all.
func (ps *patterns) from(spots []spot, p, i int) []spot {
	for ; i < len(ps.list[p].segments); i++ {
		if s := (spot{uint16(p), uint16(i)}); !slices.Contains(spots, s) {
			spots = append(spots, s)
		}
		if ps.list[p].segments[i] != "**" {
			break
		}
	}
	return spots
}

// beside returns where the companions begin: in a directory with a transcript.
func (ps *patterns) beside() []spot {
	var spots []spot
	for p := ps.companions; p < len(ps.list); p++ {
		spots = ps.from(spots, p, 0)
	}
	return spots
}

// split parts spots into those of the transcripts and those of the companions.
func (ps *patterns) split(at []spot) (transcripts, companions []spot) {
	for _, s := range at {
		if int(s.pattern) < ps.companions {
			transcripts = append(transcripts, s)
		} else {
			companions = append(companions, s)
		}
	}
	return transcripts, companions
}

// union returns the spots that are in a or in b.
func union(a, b []spot) []spot {
	a = slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// step returns the spots of the directory of that name, none when nothing below
// it can match, and what a file of that name is.
func (ps *patterns) step(at []spot, name string) (next []spot, m match) {
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
			if int(s.pattern) >= ps.companions {
				m |= accompanies
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

// covers reports whether the patterns name path as a file to tail.
func (ps *patterns) covers(path string) bool {
	if ps.excluded(path) {
		return false
	}
	var at []spot
	for p := range ps.companions {
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
