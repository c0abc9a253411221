//go:build !linux

package chaos

// setDiskFull needs Linux.
func (p *process) setDiskFull(bool) bool { return false }
