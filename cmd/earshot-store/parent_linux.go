package main

import (
	"fmt"
	"runtime"
	"syscall"
)

// prSetPdeathsig is PR_SET_PDEATHSIG of prctl(2).
const prSetPdeathsig = 1

// The wish belongs to a thread and goes with it, so main keeps the first thread,
// which lives as long as the process.
func init() { runtime.LockOSThread() }

func signalOnParentDeath(sig syscall.Signal) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(sig), 0); errno != 0 {
		return fmt.Errorf("ask for the parent's end: %w", errno)
	}
	return nil
}
