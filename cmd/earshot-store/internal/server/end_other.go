//go:build !linux

package server

import "syscall"

// endsWithParent does nothing where the kernel has no such service: the server of a store that was
// killed keeps the lock of its folder until it is stopped by hand.
func endsWithParent() *syscall.SysProcAttr { return nil }
