//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"syscall"
)

// Level is 0: the kernel has no Landlock.
func Level() int { return 0 }

// Exec replaces this process by the program; nothing is restricted here.
func Exec(_ Rules, path string, argv, env []string) error {
	return fmt.Errorf("sandbox: exec %s: %w", path, syscall.Exec(path, argv, env))
}

// Cells reports whether Enter works here.
const Cells = false

// Enter is not used here: a decoder runs as it is.
func Enter(string) error { return errors.New("sandbox: this system has no cells") }

// HideMemory does nothing here.
func HideMemory() {}
