//go:build unix && !linux

package host

import (
	"io"
	"os"
	"syscall"
)

// processAttributes put a decoder process into a session of its own. Where the
// kernel does not end it with us, it ends when its connection breaks.
func processAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// private is a program in a directory of our own, which fill writes.
func private(dir string, fill func(io.Writer) error) (*os.File, error) { return copied(dir, fill) }

// here is how a child runs an open file.
func here(f *os.File) string { return f.Name() }

// resident is not known here: a Go decoder keeps to its limit by itself.
func resident(int) (n int64, ok bool) { return 0, false }

// ofSession is not known here.
func ofSession(int) (n int64, ok bool) { return 0, false }
