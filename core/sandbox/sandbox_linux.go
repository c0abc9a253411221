//go:build linux && (amd64 || arm64)

package sandbox

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights on files, of include/uapi/linux/landlock.h.
const (
	execute   = unix.LANDLOCK_ACCESS_FS_EXECUTE
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	truncate  = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	ioctl     = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	first     = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // the rights of ABI 1
	ofFiles   = execute | readFile | writeFile | truncate | ioctl
)

// Level is the version of Landlock's interface that the kernel has; 0 without Landlock.
func Level() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Exec replaces this process by a program that is held to the rules. It returns only
// with an error.
func Exec(r Rules, path string, argv, env []string) error {
	loader, err := interpreter(path)
	if err != nil {
		return fmt.Errorf("sandbox: %s: %w", path, err)
	}
	r.Execute = append(r.Execute[:len(r.Execute):len(r.Execute)], path)
	if loader != "" {
		r.Execute = append(r.Execute, loader)
		r.Read = append(r.Read[:len(r.Read):len(r.Read)], libraries...)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: set no_new_privs: %w", err)
	}
	if err := restrict(r, Level()); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := filterCalls(r.Network); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return fmt.Errorf("sandbox: exec %s: %w", path, unix.Exec(path, argv, env))
}

// libraries are where a loader looks.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path"}

// interpreter is the loader that an executable names; empty when it has none.
func interpreter(executable string) (string, error) {
	f, err := elf.Open(executable)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return strings.TrimRight(string(name), "\x00"), err
		}
	}
	return "", nil
}

func restrict(r Rules, level int) error {
	if level == 0 {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: first}
	if level >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if level >= 3 {
		attr.Handled_access_fs |= truncate
	}
	if level >= 4 && !r.Network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if level >= 5 {
		attr.Handled_access_fs |= ioctl
	}
	if level >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if !r.Signals {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("make rules: %w", errno)
	}
	rules := int(fd)
	defer unix.Close(rules)
	for _, g := range []struct {
		paths  []string
		rights uint64
	}{
		{r.Execute, execute | readFile | readDir},
		{r.Read, readFile | readDir},
		{r.Write, attr.Handled_access_fs &^ (execute | ioctl)},
	} {
		for _, path := range g.paths {
			if err := grant(rules, path, g.rights&attr.Handled_access_fs); err != nil {
				return err
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// grant adds the rights on a file, or on all below a directory.
func grant(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("grant %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("grant %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("grant %s: %w", path, errno)
	}
	return nil
}
