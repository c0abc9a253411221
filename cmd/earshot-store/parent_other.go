//go:build !linux

package main

import "syscall"

// signalOnParentDeath does nothing where the kernel has no such service: the
// poll finds out within a second.
func signalOnParentDeath(syscall.Signal) error { return nil }
