// Package trace runs a program under ptrace and shows each of its system calls on files and
// sockets, before it happens and after, so that the program can be killed exactly there. Only
// the process itself is traced, with all its threads, and none of its children.
//
// PTRACE_GET_SYSCALL_INFO, which distinguishes the beginning of a call from its end, exists
// since Linux 5.3.
package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a system call that changes, or reads from, a file or a socket.
type Call struct {
	Name string // read, write, sync, truncate, rename, remove
	// File is the object of the call: a path, or socket:[inode].
	File string
	// After is set when the call has succeeded.
	After bool
}

var names = map[uint64]string{
	unix.SYS_READ: "read", unix.SYS_PREAD64: "read",
	unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "write", unix.SYS_WRITEV: "write",
	unix.SYS_FSYNC: "sync", unix.SYS_FDATASYNC: "sync", unix.SYS_FTRUNCATE: "truncate",
	unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename", unix.SYS_UNLINKAT: "remove",
}

// Program is a program to trace.
type Program struct {
	Path   string
	Args   []string // without the path
	Output *os.File // standard output and error
	// See is shown each call; it returns whether to kill the program there. It is called by one
	// goroutine.
	See func(pid int, c Call) bool
	// Stop, when it is closed, kills the program wherever it is.
	Stop <-chan struct{}
}

// Run runs a program to its end. It reports whether See has killed it.
func Run(p Program) (killed bool, err error) {
	// ptrace is of a thread, not of a process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	proc, err := os.StartProcess(p.Path, append([]string{p.Path}, p.Args...), &os.ProcAttr{
		Files: []*os.File{nil, p.Output, p.Output},
		// A group of its own: waiting for the group leaves other children to their parents.
		Sys: &unix.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return false, err
	}
	defer proc.Release()
	t := &tracer{Program: p, pid: proc.Pid, calls: make(map[int]Call)}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-p.Stop:
			_ = unix.Kill(t.pid, unix.SIGKILL)
		case <-ended:
		}
	}()
	if err := t.attach(); err != nil {
		_ = unix.Kill(t.pid, unix.SIGKILL)
		_, _ = unix.Wait4(-t.pid, nil, unix.WALL, nil)
		return false, fmt.Errorf("trace: %w", err)
	}
	if err := t.follow(); err != nil {
		return t.killed, fmt.Errorf("trace: %w", err)
	}
	return t.killed, nil
}

type tracer struct {
	Program
	pid    int
	calls  map[int]Call // in flight, by thread
	killed bool
}

func (t *tracer) attach() error {
	if _, err := unix.Wait4(t.pid, nil, unix.WALL, nil); err != nil {
		return err
	}
	err := unix.PtraceSetOptions(t.pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL)
	if err != nil {
		return err
	}
	return unix.PtraceSyscall(t.pid, 0)
}

// follow handles every stop of every thread until the process has ended.
func (t *tracer) follow() error {
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-t.pid, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if status.Exited() || status.Signaled() {
			if delete(t.calls, tid); tid == t.pid {
				return nil
			}
			continue
		}
		pass := 0
		switch sig := status.StopSignal(); sig {
		case unix.SIGTRAP | 0x80:
			if !t.killed && t.stopped(tid) {
				t.killed = true
				_ = unix.Kill(t.pid, unix.SIGKILL)
			}
		case unix.SIGTRAP, unix.SIGSTOP: // a thread that begins
		default:
			pass = int(sig)
		}
		_ = unix.PtraceSyscall(tid, pass) // fails when it has been killed
	}
}

// info is struct ptrace_syscall_info.
type info struct {
	op      uint8
	_       [3]byte
	_       uint32
	_, _    uint64
	number  uint64 // at the end of a call its result
	args    [6]uint64
	_, _, _ uint64
}

const (
	entry = 1
	exit  = 2
)

// stopped handles a call that begins or has ended; it returns whether to kill here.
func (t *tracer) stopped(tid int) bool {
	var i info
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(i), uintptr(unsafe.Pointer(&i)), 0, 0)
	if errno != 0 {
		return false
	}
	switch i.op {
	case entry:
		c := Call{Name: names[i.number]}
		if c.Name == "" {
			return false
		}
		if c.Name == "rename" || c.Name == "remove" {
			c.File = t.text(i.args[1])
		} else {
			c.File, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.pid, int32(i.args[0])))
		}
		t.calls[tid] = c
		return t.See(t.pid, c)
	case exit:
		c, ok := t.calls[tid]
		delete(t.calls, tid)
		result := int64(i.number)
		if !ok || result < 0 || c.Name == "read" && result == 0 {
			return false
		}
		c.After = true
		return t.See(t.pid, c)
	}
	return false
}

// text reads a string from the program's memory.
func (t *tracer) text(at uint64) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, int64(at))
	s, _, _ := bytes.Cut(b[:n], []byte{0})
	return string(s)
}

// Sockets returns the peers of this machine's sockets: by inode, "unix", or the two ports of a
// TCP connection, "7801>8123".
func Sockets() map[string]string {
	out := make(map[string]string)
	if b, err := os.ReadFile("/proc/net/unix"); err == nil {
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 6 {
				out[f[6]] = "unix"
			}
		}
	}
	port := func(s string) uint16 {
		_, s, _ = strings.Cut(s, ":")
		var b [2]byte
		_, _ = fmt.Sscanf(s, "%02X%02X", &b[0], &b[1])
		return binary.BigEndian.Uint16(b[:])
	}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 9 && f[9] != "inode" {
				out[f[9]] = fmt.Sprintf("%d>%d", port(f[1]), port(f[2]))
			}
		}
	}
	return out
}
