package store

import "syscall"

// ownGroup keeps Ctrl-C of a terminal from the store, which has to outlive the
// draining of the sidecar.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
