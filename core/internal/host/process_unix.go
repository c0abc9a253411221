//go:build unix && !linux

package host

import "syscall"

// processAttributes put a decoder process into a group of its own. Where the
// kernel does not end it with us, it ends when its connection breaks.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
