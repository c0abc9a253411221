package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes put a decoder process into a session of its own and tie its life to ours.
// With namespace it is the first process of a PID namespace: its children end with it,
// however it ends and in whichever session they are.
func processAttributes(namespace bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if !namespace {
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWPID
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	return a
}

// private is a program in memory that cannot be changed, which fill writes.
func private(dir string, fill func(io.Writer) error) (*os.File, error) {
	fd, err := unix.MemfdCreate("decoder", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("decoder", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil { // vm.memfd_noexec
		return copied(dir, fill)
	}
	f := os.NewFile(uintptr(fd), "decoder")
	err = fill(f)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// here is how a child that has an open file as its descriptor 3 runs it.
func here(*os.File) string { return "/proc/self/fd/3" }

// resident is how much memory of a process is resident, in bytes.
func resident(pid int) (n int64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	var mapped, pages int64
	_, err = fmt.Sscan(string(b), &mapped, &pages)
	return pages * int64(os.Getpagesize()), err == nil
}

// ofSession is resident of all processes of the session that a process began.
func ofSession(leader int) (n int64, ok bool) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if session, err := unix.Getsid(pid); err != nil || session != leader {
			continue
		}
		if one, has := resident(pid); has {
			n, ok = n+one, true
		}
	}
	return n, ok
}
