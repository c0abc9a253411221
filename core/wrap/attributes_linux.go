package wrap

import "syscall"

// attributes has the program killed when the wrapper is.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
