package server

import "syscall"

// endsWithParent has the kernel end the server with the thread that started it, which is the first one of
// this process and lives as long.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
