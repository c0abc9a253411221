package file

import (
	"context"
	"os"
)

// Unread is a path that matches and that is not read, and why.
type Unread struct{ Path, Reason, Detail string }

// List returns the files that match now, without companions, in the order in which a
// source reads them, and what of them cannot be read. open says whether a file may be
// read; nil opens it. The error is that of a malformed pattern.
func List(ctx context.Context, paths, exclude []string, open func(path string) error) (files []string, unread []Unread, err error) {
	ps, err := compile(paths, nil, exclude)
	if err != nil {
		return nil, nil, err
	}
	if open == nil {
		open = try
	}
	w := &walk{
		patterns: ps,
		wants:    func(found) bool { return true },
		enter:    func(string, []spot) {},
		trouble:  func(path, reason, detail string) { unread = append(unread, Unread{path, reason, detail}) },
		readDir:  os.ReadDir,
	}
	w.roots(ctx)
	inOrder(w.files)
	for _, f := range w.files {
		switch err := open(f.path); {
		case err == nil:
			files = append(files, f.path)
		case !gone(err):
			unread = append(unread, Unread{f.path, reasonOf(err), err.Error()})
		}
	}
	return files, unread, ctx.Err()
}

// try opens a file and closes it.
func try(path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	return f.Close()
}
