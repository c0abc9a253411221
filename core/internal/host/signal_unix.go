//go:build unix

package host

import (
	"os"
	"syscall"
)

// endGroup kills the group that a process leads.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// endedFromOutside reports whether the process was ended by a signal that others
// send.
func endedFromOutside(s *os.ProcessState) bool {
	w, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return false
	}
	switch w.Signal() {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return true
	}
	return false
}
