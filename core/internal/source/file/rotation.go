package file

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// rotations groups the tracked files into rotation sets: files whose names differ only
// by the suffixes of rotation. A set narrows the search for copies and orphans; the
// contents decide. Two files of different sets that begin alike are never compared.
//
// One file of a set is identified at a time, and none while the content of another one
// is unknown. The fileset's mu guards it.
type rotations struct {
	rotated     map[string][]*file // by base, the files with another name than it
	blocked     map[string]int     // by base, the files whose content is unknown
	identifying map[string]bool    // by base; true: the result is invalid
}

func newRotations() rotations {
	return rotations{rotated: make(map[string][]*file), blocked: make(map[string]int), identifying: make(map[string]bool)}
}

func (r rotations) add(f *file) {
	if base := rotationBase(f.path); base != f.path {
		r.rotated[base] = append(r.rotated[base], f)
	}
}

func (r rotations) remove(f *file) {
	base := rotationBase(f.path)
	if base == f.path {
		return
	}
	r.rotated[base] = slices.DeleteFunc(r.rotated[base], func(o *file) bool { return o == f })
	if len(r.rotated[base]) == 0 {
		delete(r.rotated, base)
	}
}

// block has the set of f wait until it is known which content f has: another file of
// the set may have it now.
func (r rotations) block(f *file) {
	if f.blocks == "" {
		path := f.path
		if len(f.previous) > 0 { // of an inode that may be another file's now
			path = cmp.Or(f.previous[0].origin, path)
		}
		f.blocks = rotationBase(path)
		r.blocked[f.blocks]++
		r.invalidate(f.blocks)
	}
}

// unblock ends the waiting for f. A file whose name is lost has to be traced first.
func (r rotations) unblock(f *file) {
	if f.blocks == "" || f.lost {
		return
	}
	if r.blocked[f.blocks]--; r.blocked[f.blocks] == 0 {
		delete(r.blocked, f.blocks)
	}
	f.blocks = ""
}

// free reports whether a file of the set can be identified now.
func (r rotations) free(base string) bool {
	_, busy := r.identifying[base]
	return !busy && r.blocked[base] == 0
}

func (r rotations) begin(base string) { r.identifying[base] = false }

// valid reports whether the running identification is still valid.
func (r rotations) valid(base string) bool { return !r.identifying[base] }

// end ends the identification, and reports whether its result is valid.
func (r rotations) end(base string) (valid bool) {
	valid = r.valid(base)
	delete(r.identifying, base)
	return valid
}

// invalidate discards the result of the identification that runs in a set, since one of
// its files may have another content or name now.
func (r rotations) invalidate(base string) {
	if _, ok := r.identifying[base]; ok {
		r.identifying[base] = true
	}
}

// rotationBase returns the path that names a rotation set, which its files had before
// the first rotation: x.jsonl for x.jsonl.1, x.jsonl-20260102 and x.jsonl.3.gz. A number
// without an extension before it is part of the name.
func rotationBase(path string) string {
	path = unpackedName(path)
	base := strings.TrimRight(path, "0123456789.:_TZ-")
	rest := path[len(base):]
	if len(rest) < 2 || rest[0] != '.' && rest[0] != '-' || rest[1] < '0' || rest[1] > '9' || filepath.Ext(base) == "" {
		return path
	}
	return base
}

// originals returns the paths that path may be a rotated copy of, the nearest
// first: x.jsonl.1 and x.jsonl for x.jsonl.1.gz.
func originals(path string) []string {
	var out []string
	if p := unpackedName(path); p != path {
		out = append(out, p)
	}
	if p := rotationBase(path); p != path && !slices.Contains(out, p) {
		out = append(out, p)
	}
	return out
}

// stem returns the beginning that the names of a file keep through any rotation.
func stem(name string) string {
	dots := len(name) - len(strings.TrimLeft(name, "."))
	if i := strings.IndexByte(name[dots:], '.'); i >= 0 {
		return name[:dots+i]
	}
	return name
}
