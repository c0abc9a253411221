package app

import "io/fs"

// openTo does not know the access lists of this system: a program's pinned hash is the check.
func openTo(fs.FileInfo, bool) string { return "" }
