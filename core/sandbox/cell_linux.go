//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Cells reports whether Enter works here.
const Cells = true

// program is the descriptor of a cell's program.
const program = 3

// Enter makes this process the program of a cell, which is JSON. The program has no standard
// input, no capability and no core dump. It returns only with an error.
func Enter(text string) error {
	var c Cell
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("sandbox: cell: %w", err)
	}
	runtime.LockOSThread()
	if err := followHost(); err != nil {
		return err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Dup3(null, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("sandbox: standard input: %w", err)
	}
	f := os.NewFile(program, c.Path)
	line, script := firstLine(f)
	if !c.Off {
		r, err := c.grants(f, line, script)
		if err != nil {
			return fmt.Errorf("sandbox: %s: %w", c.Path, err)
		}
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
			return fmt.Errorf("sandbox: no core dump: %w", err)
		}
		if err := r.enforce(f); err != nil {
			return err
		}
		// With no_new_privs an exec by root brings none of them back.
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return fmt.Errorf("sandbox: drop capabilities: %w", err)
		}
	}
	argv := append([]string{c.Path}, c.Args...)
	if script && !c.Pinned { // it may look for files beside itself
		unix.CloseOnExec(program)
		return fmt.Errorf("sandbox: exec %s: %w", c.Path, unix.Exec(c.Path, argv, os.Environ()))
	}
	if !script { // an interpreter opens it once more
		unix.CloseOnExec(program)
	}
	return fmt.Errorf("sandbox: exec %s: %w", c.Path, execOpen(program, argv, os.Environ()))
}

// followHost has this process end with its host, however that ends. The kernel keeps the death signal
// for each thread: the host set it for the first one, and the thread that becomes the program need not be that
// one. The first process of a PID namespace cannot see that its parent has gone, and one that went before
// the signal was set sends none: the other end of the standard output is closed then.
func followHost() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: set death signal: %w", err)
	}
	if abandoned(1) {
		return errors.New("sandbox: the host has ended")
	}
	return nil
}

// abandoned reports whether a descriptor is a pipe without a reader.
func abandoned(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLERR != 0
}

// execOpen is exec of an open file.
func execOpen(fd int, argv, env []string) error {
	args, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	vars, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	var empty byte
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&vars[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

// grants are the rules of a cell and the needs of every program: its loader or interpreter, its
// libraries, and the facts of the machine by which runtimes size themselves.
func (c *Cell) grants(f io.ReaderAt, line string, script bool) (Rules, error) {
	r := c.with(nil, []string{
		"/proc/self", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage", "/sys/devices/system/cpu", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat",
		"/proc/sys/vm/overcommit_memory", "/dev/urandom", "/dev/random", "/etc/localtime", "/usr/share/zoneinfo", "/etc/ssl/openssl.cnf",
	})
	r.Write = append(slices.Clone(r.Write), os.DevNull)
	if script {
		return r.with(append(interpreters(line), software...), libraries), nil
	}
	loader, err := interpreter(f)
	if err != nil {
		return r, err
	}
	if loader != "" {
		r = r.with([]string{loader}, libraries)
	}
	return r, nil
}

// software is where a system has the programs and modules of its packages, which are the same for
// everybody.
var software = []string{"/usr", "/bin", "/lib", "/lib64", "/nix/store"}

// firstLine is the first line of a script, without its "#!".
func firstLine(f io.ReaderAt) (line string, script bool) {
	line, _ = bufio.NewReader(io.NewSectionReader(f, 0, 4096)).ReadString('\n')
	return strings.CutPrefix(strings.TrimSpace(line), "#!")
}

// interpreters are the files of the interpreter that a script names: the program, by all its
// names, and the folder lib beside its bin. Another folder around it is no part of it.
func interpreters(line string) []string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	name := words[0]
	if filepath.Base(name) == "env" {
		rest := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
		if len(rest) > 0 {
			name = inPath(rest[0])
		}
	}
	var out []string
	for range 8 { // links: of a virtual environment, then of the system
		out = append(out, name)
		if bin := filepath.Dir(name); filepath.Base(bin) == "bin" {
			prefix := filepath.Dir(bin)
			out = append(out, filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"), filepath.Join(prefix, "pyvenv.cfg"))
		}
		to, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return out
}

func inPath(name string) string {
	for _, dir := range filepath.SplitList(cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")) {
		if path := filepath.Join(dir, name); unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return name
}

// HideMemory keeps other processes of this user from reading the memory and the environment of
// this one.
func HideMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
