//go:build unix

package wrap

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// forwarded are the signals that reach the program.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGPIPE,
}

// Exit ends this process as the program ended: with its exit code, or by the same signal.
func Exit(s *os.ProcessState) {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		os.Exit(s.ExitCode())
	}
	number := status.Signal()
	switch number {
	case syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSYS:
		// The Go runtime reports these, and exits with 2. A shell does not.
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("ulimit -c 0; kill -%d $$", int(number))}, os.Environ())
	default:
		signal.Reset(number)
		_ = syscall.Kill(os.Getpid(), number)
		time.Sleep(time.Second) // it is delivered to another thread
	}
	os.Exit(128 + int(number)) // as shells do
}

// lock marks the file as one that is written.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// removeUnlocked removes a file that is not written.
func removeUnlocked(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return err
	}
	return os.Remove(path)
}
