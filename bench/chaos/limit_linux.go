package chaos

import "golang.org/x/sys/unix"

// setDiskFull makes every write of p to a file fail, or ends that.
func (p *process) setDiskFull(full bool) bool {
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if full {
		limit.Cur = 0
	}
	return unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil) == nil
}
