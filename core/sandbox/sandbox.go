// Package sandbox takes rights from a process for good and lets it become a program, which
// reaches the granted parts of the machine and no others, as do its threads and children.
//
// The kernel's part is Landlock (Linux 5.13 and later): files and directories, from 6.7 TCP
// ports, from 6.12 signals and abstract sockets of processes outside. Where the kernel lacks
// one of them, that part is not restricted; Level is the kernel's version of Landlock. A seccomp filter refuses
// the calls that look into other processes or the kernel, and sockets but Unix ones.
//
// Landlock restricts a thread. The Go library for it restricts every thread through a call that
// the runtime refuses in a program with a C library, which earshot-store loads, so Exec restricts its own
// thread and replaces the process.
package sandbox

// Rules are the rights that a program keeps, beside itself, its loader and the system's libraries. A path
// that does not exist is skipped.
type Rules struct {
	Execute []string // files to run, and to read; directories for all below
	Read    []string
	Write   []string // to read, write, make and remove files below
	Network bool     // sockets that are not Unix ones
	Signals bool     // signals processes outside
}
