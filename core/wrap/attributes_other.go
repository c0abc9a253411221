//go:build !linux

package wrap

import "syscall"

// attributes has nothing: the program sees the end of its input when the wrapper is killed.
func attributes() *syscall.SysProcAttr { return nil }
