package ident

import (
	"slices"
	"strings"
)

// Path is where a stream is from, taken apart: the folders, with slashes of either kind between them, and the file.
type Path struct {
	Dirs []string
	File string
}

// PathOf takes a path apart.
func PathOf(path string) Path {
	parts := strings.FieldsFunc(text(path), func(c rune) bool { return c == '/' || c == '\\' })
	if n := len(parts) - 1; n >= 0 && !strings.HasSuffix(path, "/") && !strings.HasSuffix(path, `\`) {
		return Path{parts[:n], parts[n]}
	}
	return Path{Dirs: parts}
}

// Dir is the folder of the file.
func (p Path) Dir() string { return p.at(len(p.Dirs) - 1) }

// After returns the folder in the last folder with one of these names, Before the folder that has it.
func (p Path) After(names ...string) string { return p.beside(1, names) }

// Before is described with After.
func (p Path) Before(names ...string) string { return p.beside(-1, names) }

func (p Path) beside(step int, names []string) string {
	for i, dir := range slices.Backward(p.Dirs) {
		if slices.Contains(names, dir) && p.at(i+step) != "" {
			return p.at(i + step)
		}
	}
	return ""
}

func (p Path) at(i int) string {
	if i < 0 || i >= len(p.Dirs) {
		return ""
	}
	return p.Dirs[i]
}

// Name is that of the file, as OfFile has it.
func (p Path) Name(ends ...string) string { return OfFile(p.File, ends...) }

// text is a path as text: it need not be, but an id that is taken from it must.
func text(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }
