package file

import "os"

// inode identifies a file under all its names. It may be reused once the file is gone.
type inode struct{ dev, ino uint64 }

// stamp changes when a file is written to.
type stamp struct{ size, mtime int64 }

// statFile returns the regular file at a path.
func statFile(path string) (found, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return found{}, false
	}
	x := found{path: path}
	x.id, x.stamp, _ = describe(info)
	return x, true
}
