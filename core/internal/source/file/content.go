package file

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Content is the present content of a file, as far as it shows in the keys of streams.
type Content struct {
	Size    int64
	Changed time.Time
	Inode   string // see InodeOf
	line    string // the part of a key that is a hash of the first line
}

// ContentOf looks at a file.
func ContentOf(path string) (c Content, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return c, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	if !info.Mode().IsRegular() {
		return c, fmt.Errorf("%s: not a regular file", path)
	}
	head, _, err := firstLine(f)
	if err != nil {
		return c, err
	}
	id, at, _ := describe(info)
	return Content{at.size, info.ModTime(), fmt.Sprintf("%x-%x", id.dev, id.ino), fmt.Sprintf("%016x", uint64(digestOf(head)))}, nil
}

// InodeOf is the part of a stream's key that names the inode that it was first read from.
func InodeOf(key string) string {
	dev, rest, _ := strings.Cut(key, "-")
	ino, _, _ := strings.Cut(rest, "-")
	return dev + "-" + ino
}

// Is reports whether the stream of a key begins as the file does now: lines with this first line, from any inode, or a
// document of this inode and size.
func (c Content) Is(key string) bool {
	parts := strings.Split(key, "-")
	switch {
	case len(parts) < 3:
		return false
	case len(parts[2]) == len(c.line):
		return parts[2] == c.line
	}
	return InodeOf(key) == c.Inode && parts[2] == strconv.FormatInt(c.Size, 10)
}

// IsRotated reports whether the name is that of a rotated file.
func IsRotated(path string) bool { return rotationBase(path) != path }
