package host

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// processAttributes put a decoder process into a group of its own, so that it does not get Ctrl-C. It
// ends when its connection breaks.
func processAttributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// private is a program in a directory of our own, which fill writes.
func private(dir string, fill func(io.Writer) error) (*os.File, error) { return copied(dir, fill) }

// here is how a child runs an open file.
func here(f *os.File) string { return f.Name() }

// resident is not known here: a Go decoder keeps to its limit by itself.
func resident(int) (n int64, ok bool) { return 0, false }

// ofSession is not known here.
func ofSession(int) (n int64, ok bool) { return 0, false }

// endGroup kills a process. Its children, which a decoder may not have by default, stay.
func endGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// endedFromOutside is not known here: a process that is killed has an exit status like any other.
func endedFromOutside(*os.ProcessState) bool { return false }

// inherit does nothing: a child runs a file by its name.
func inherit(*exec.Cmd, *os.File) {}

// executable is any file: files have no such bit.
func executable(fs.FileInfo) bool { return true }
