//go:build unix && !linux

package host

import "syscall"

// processAttributes put a decoder process into a group of its own. Where the
// kernel does not end it with us, it ends when its connection breaks.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// resident is not known here: a Go decoder keeps to its limit by itself.
func resident(int) (n int64, ok bool) { return 0, false }
