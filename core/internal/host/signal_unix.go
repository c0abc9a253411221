//go:build unix

package host

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// inherit lets a child have an open file, as its descriptor 3.
func inherit(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = []*os.File{f} }

// executable reports whether a user may run a file.
func executable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// endGroup kills the group that a process leads.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// endedFromOutside reports whether the process was ended by a signal that others
// send.
func endedFromOutside(s *os.ProcessState) bool {
	switch s.Sys().(syscall.WaitStatus).Signal() {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return true
	}
	return false
}
