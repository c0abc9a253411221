// Package own tells packages of this module from those of others.
package own

import "strings"

const module = "github.com/earshot-dev/earshot"

// External reports whether a package is neither of this module nor of the standard library.
func External(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".") && path != module && !strings.HasPrefix(path, module+"/")
}
