package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A writer into a watched tree decides where its names lead, and the sidecar may read more
// than the writer may. So a file is opened beneath the root of its tree, component by component
// (os.Root), and it is read only if its owner may be read.

// trees are the directories in front of the wildcards of a source's patterns.
type trees struct {
	roots  []string // the shortest first
	follow bool     // symbolic links that leave their tree
	owners []uint32 // of files that are read; none: everybody
}

// refusal is the error of a file that is there and is not read by choice.
type refusal struct{ reason, detail string }

func (r refusal) Error() string { return r.detail }

func newTrees(ps *patterns, follow bool, owners []string) (*trees, error) {
	t := &trees{follow: follow}
	for _, p := range ps.tailed() {
		t.roots = append(t.roots, p.root(p.fixed))
	}
	slices.SortFunc(t.roots, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, name := range owners {
		uid, err := lookupOwner(name)
		if err != nil {
			return nil, fmt.Errorf("owners: %w", err)
		}
		t.owners = append(t.owners, uid)
	}
	return t, nil
}

// lookupOwner returns the id of a user, from a name or from the id itself.
func lookupOwner(name string) (uint32, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(id), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(id), err
}

// root returns the tree that a path is in. Those that are in none are the roots themselves with
// the directories above, which the configuration names, and files that were renamed away.
func (t *trees) root(path string) (string, bool) {
	i := slices.IndexFunc(t.roots, func(root string) bool { return within(root, path) })
	if i < 0 {
		return "", false
	}
	return t.roots[i], true
}

// resolve returns where a symbolic link leads. The error is a refusal when that is not in its tree.
func (t *trees) resolve(link string) (target string, err error) {
	if target, err = filepath.EvalSymlinks(link); err != nil {
		return "", err
	}
	root, ok := t.root(link)
	if !ok || t.follow {
		return target, nil
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	if target != root && !within(root, target) {
		return "", refusal{ReasonLink, fmt.Sprintf("a symbolic link leads out of %s, to %s; follow_symlinks: true allows it", root, target)}
	}
	return target, nil
}

// open opens a file for reading. It does not wait for the other side of a named pipe that has
// taken the file's place.
func (t *trees) open(path string) (*os.File, error) {
	f, err := t.beneath(path)
	if err != nil || len(t.owners) == 0 {
		return f, err
	}
	info, err := f.Stat()
	if err == nil {
		err = t.checkOwner(info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (t *trees) beneath(path string) (*os.File, error) {
	const flags = os.O_RDONLY | noWait
	dir, ok := t.root(path)
	switch {
	case t.follow:
		return os.OpenFile(path, flags, 0)
	case !ok:
		return os.OpenFile(path, flags|noFollow, 0)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(strings.TrimPrefix(path[len(dir):], "/"), flags, 0)
	if err == nil || notFound(err) || tooManyOpen(err) || errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	// An absolute link is refused also when it leads to the same tree.
	target, resolved := t.resolve(path)
	if resolved != nil {
		return nil, cmp.Or(resolved, err)
	}
	if dir, resolved = filepath.EvalSymlinks(dir); resolved != nil {
		return nil, resolved
	}
	return root.OpenFile(strings.TrimPrefix(target[len(dir):], "/"), flags, 0)
}

// checkOwner returns a refusal for a file of an owner whose files are not read.
func (t *trees) checkOwner(info fs.FileInfo) error {
	uid, ok := ownerOf(info)
	if len(t.owners) == 0 || ok && slices.Contains(t.owners, uid) {
		return nil
	}
	return refusal{ReasonOwner, fmt.Sprintf("the file belongs to user %d, who is none of owners", uid)}
}
