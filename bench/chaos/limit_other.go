//go:build !linux

package chaos

// fill needs Linux.
func (p *process) fill(bool) bool { return false }
