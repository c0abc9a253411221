package sandbox

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// forks are the calls that make a process, beside clone.
var forks = []uint32{unix.SYS_FORK, unix.SYS_VFORK}
