package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration file.
type Problem struct {
	File      string // as it was named to Load or Parse
	Line, Col int    // from 1; columns count characters
	Path      string // the key: sources[1].format; empty for the file as a whole
	Message   string
	Hint      string // how to correct it; may be empty
}

// String renders the problem the way compilers do:
//
//	earshot.yaml:12:5: sources[1].formt: unknown key (did you mean "format"?)
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Col)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Error is everything that is wrong with a file, in the order of the file. There
// is at least one problem.
type Error struct {
	Problems []Problem
}

// Error prints one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// asError returns nil when there are no problems.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return &Error{Problems: problems}
}

// Problem makes a problem of a check that needs more than the file: whether a
// format is known, whether an option suits its decoder. Its position is that of
// the path ("sources[0].format") in the file that c was read from or, when the file
// does not have it, that of the nearest key around it.
func (c *Config) Problem(path, message, hint string) Problem {
	at := find(c.at, path)
	return Problem{File: c.file, Line: at.line, Col: at.col, Path: path, Message: message, Hint: hint}
}

// IsSet reports whether the file has a value at the path.
func (c *Config) IsSet(path string) bool {
	_, ok := c.at[path]
	return ok
}

// place is where a value begins.
type place struct{ line, col int }

// find returns the place of a path, or of the nearest path around it.
func find(at map[string]place, path string) place {
	for {
		if p, ok := at[path]; ok {
			return p
		}
		if path == "" {
			return place{1, 1}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}
