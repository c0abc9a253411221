// Package sandbox takes rights from a process for good and lets it become a program, which
// reaches the granted parts of the machine and no others, as do its threads and children.
//
// The kernel's part is Landlock (Linux 5.13 and later): files and directories, from 6.7 TCP
// ports, from 6.12 signals and abstract sockets of processes outside. Where the kernel lacks
// one of them, that part is not restricted; Level is the kernel's version of Landlock. A seccomp filter refuses
// the calls that look into other processes or the kernel, and sockets but Unix ones. Landlock
// does not cover the path of a Unix socket: without Connect the filter refuses to connect.
//
// Landlock restricts a thread. The Go library for it restricts every thread through a call that
// the runtime refuses in a program with a C library, which earshot-store loads, so Exec restricts its own
// thread and replaces the process.
//
// A process without Processes stays one process: no child can outlive it, leave its group or
// hold memory that is not counted as its own.
package sandbox

// Rules are the rights that a program keeps, beside itself, its loader and the system's libraries. A path
// that does not exist is skipped.
type Rules struct {
	Execute   []string // files to run, and to read; directories for all below
	Read      []string
	Write     []string // to read, write, make and remove files below
	Network   bool     // sockets that are not Unix ones; implies Connect
	Connect   bool     // Unix sockets that connect, and datagrams on them
	Signals   bool     // signals processes outside
	Processes bool     // starts others, in its own session
}

// Cell is a decoder's program and its rules, as the host hands them to the process that
// becomes it: that process finds the open program as its descriptor 3.
type Cell struct {
	Rules
	Off    bool   // no rules
	Pinned bool   // the descriptor is a copy that was verified, and alone is run
	Path   string // of the program
	Args   []string
}
