// Package standby is the store while it has no engine. An engine that idles costs a third of a percent of a
// core and a hundred megabytes, and the library opens once in a process. So a store without statements
// becomes this program again, by exec: the process, its lock, its socket and its input stay, and the engine
// is gone. The first connection that sends a statement makes it the whole store, in the same way, and that
// connection and the others are answered by it.
//
// A connection is never read here before it is known who answers it: its first bytes are peeked at.
package standby

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// variable has the state in the environment of the program that this one becomes.
const variable = "EARSHOT_STORE_STATE"

// State is handed over by a program to the one that it becomes. The numbers are descriptors.
type State struct {
	Waits       bool     `json:"waits"` // there is no engine until a statement arrives
	Lock        int      `json:"lock"`
	Socket      int      `json:"socket"`
	Connections []int    `json:"connections,omitempty"`
	Asked       uint64   `json:"asked,omitempty"`   // statements that have read, see httpd
	Writers     []string `json:"writers,omitempty"` // that hold rows back
}

// Inherited returns the state that the program before left, and whether it did.
func Inherited() (s State, ok bool, err error) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return s, false, nil
	}
	if err := os.Unsetenv(variable); err != nil {
		return s, true, fmt.Errorf("standby: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, true, fmt.Errorf("standby: inherited state: %w", err)
	}
	for _, fd := range append([]int{s.Lock, s.Socket}, s.Connections...) {
		unix.CloseOnExec(fd)
	}
	return s, true, nil
}

// Listener is the inherited socket. It removes its name when it is closed.
func (s *State) Listener() (*net.UnixListener, error) {
	f := os.NewFile(uintptr(s.Socket), "socket")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("standby: inherited socket: %w", err)
	}
	unixListener, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("standby: the inherited socket is %s", l.Addr().Network())
	}
	unixListener.SetUnlinkOnClose(true)
	return unixListener, nil
}

// Accepted are the inherited connections. One that has ended meanwhile is left out.
func (s *State) Accepted() (out []net.Conn) {
	for _, fd := range s.Connections {
		f := os.NewFile(uintptr(fd), "connection")
		if c, err := net.FileConn(f); err == nil {
			out = append(out, c)
		}
		f.Close()
	}
	return out
}

// Exec becomes this program again, with this state, the same arguments and more variables. It returns only with an error.
func (s *State) Exec(more ...string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("standby: %w", err)
	}
	if err := closeOthers(append([]int{s.Lock, s.Socket}, s.Connections...)); err != nil {
		return fmt.Errorf("standby: descriptors: %w", err)
	}
	env := append(os.Environ(), append(more, variable+"="+string(text))...)
	return fmt.Errorf("standby: become the store again: %w", syscall.Exec(self(), os.Args, env))
}

// self is the name of this program, also after another version has taken its place: with a name of the
// kernel's own, under which the process may run it.
func self() string {
	const running = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return running
	}
	at, err := os.Stat(path)
	own, failed := os.Stat(running)
	if failed == nil && (err != nil || !os.SameFile(at, own)) {
		return running
	}
	return path
}

// closeOthers has all descriptors but these and the standard ones closed by exec: the library may leave some.
func closeOthers(keep []int) error {
	dir := "/proc/self/fd"
	if _, err := os.Stat(dir); err != nil {
		dir = "/dev/fd"
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(filepath.Base(e.Name())); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	for _, fd := range keep {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	return nil
}

// Descriptor is the number of a file's descriptor, which stays open; File.Fd would make it blocking.
func Descriptor(f syscall.Conn) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	if err != nil {
		return 0, fmt.Errorf("standby: %w", err)
	}
	return fd, nil
}
