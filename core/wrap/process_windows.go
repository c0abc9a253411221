package wrap

import (
	"os"
	"syscall"
)

// forwarded are the signals that reach the program.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// Exit ends this process with the exit code of the program.
func Exit(s *os.ProcessState) { os.Exit(s.ExitCode()) }

// lock does nothing: Windows removes no file that is open.
func lock(*os.File) error { return nil }

// removeUnlocked removes a file that is not written.
func removeUnlocked(path string) error { return os.Remove(path) }
