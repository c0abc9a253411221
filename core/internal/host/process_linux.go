package host

import "syscall"

// processAttributes put a decoder process into a group of its own and tie its
// life to ours.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
