//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused are the calls that no program in a sandbox makes: they read or change other processes, reach
// the kernel's inside, make other calls that a filter does not see (io_uring), or leave the
// session and group by which a process is ended with its children.
var refused = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SETSID, unix.SYS_SETPGID,
}

// namespaces are the flags of clone that make one.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

const (
	allow  = unix.SECCOMP_RET_ALLOW
	deny   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24
)

func load(off uint32) bpf.Instruction      { return bpf.LoadAbsolute{Off: off, Size: 4} }
func answer(action uint32) bpf.Instruction { return bpf.RetConstant{Val: action} }
func unlessSet(mask uint32) bpf.Instruction {
	return bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: mask, SkipTrue: 1}
}
func unlessEqual(v uint32) bpf.Instruction {
	return bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: 1}
}
func onlyEqual(v uint32) []bpf.Instruction { return []bpf.Instruction{unlessEqual(v), answer(deny)} }

// calls is a filter in the making: the number of the call is loaded, and a call that no rule
// answers is allowed.
type calls []bpf.Instruction

// on answers a call by instructions, of which each path must answer.
func (c *calls) on(number uint32, then ...bpf.Instruction) {
	*c = append(append(*c, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(then))}), then...)
}

// filter refuses the refused calls, and others that r does not grant. Without a network that is every
// socket but a Unix one: Landlock covers TCP alone, while Go listens with MPTCP. Without Connect a
// Unix socket can only listen and accept: a connection, or a datagram's address, leads to any
// server that this user may use. pid is the process, by its own number. A call of another
// architecture's table kills the process.
func filter(r Rules, pid int) ([]bpf.RawInstruction, error) {
	c := calls{
		load(offArch), unlessEqual(arch), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNumber), bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1}, answer(deny), // x32
	}
	for _, n := range refused {
		c.on(n, answer(deny))
	}
	c.on(unix.SYS_CLONE3, answer(absent)) // its flags are in memory; C libraries use clone then
	self := []bpf.Instruction{load(offArg0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2}, unlessEqual(uint32(pid)), answer(deny), answer(allow)}
	if r.Processes {
		c.on(unix.SYS_CLONE, load(offArg0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, answer(deny), answer(allow))
	} else {
		for _, n := range forks {
			c.on(n, answer(deny))
		}
		c.on(unix.SYS_CLONE, load(offArg0), unlessSet(unix.CLONE_THREAD), answer(deny), answer(allow))
		c.on(unix.SYS_PRLIMIT64, self...)
	}
	if !r.Signals && !r.Processes {
		for _, n := range []uint32{unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO} {
			c.on(n, self...)
		}
		for _, n := range []uint32{unix.SYS_TKILL, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL} {
			c.on(n, answer(deny))
		}
	}
	if !r.Network {
		socket := append([]bpf.Instruction{load(offArg0)}, onlyEqual(unix.AF_UNIX)...)
		if !r.Connect {
			c.on(unix.SYS_CONNECT, answer(deny))
			kind := append([]bpf.Instruction{load(offArg1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}}, onlyEqual(unix.SOCK_STREAM)...)
			socket = append(socket, kind...)
			c.on(unix.SYS_SOCKETPAIR, append(kind, answer(allow))...)
		}
		c.on(unix.SYS_SOCKET, append(socket, answer(allow))...)
	}
	return bpf.Assemble(append(c, answer(allow)))
}

// filterCalls holds this thread, and its next program, to the filter. It needs no_new_privs.
func filterCalls(r Rules) error {
	raw, err := filter(r, unix.Getpid())
	if err != nil {
		return fmt.Errorf("filter of system calls: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EINVAL { // a kernel without filters
		return fmt.Errorf("filter of system calls: %w", errno)
	}
	return nil
}
