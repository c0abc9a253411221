//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"fmt"
	"syscall"
)

// Level is 0: the kernel has no Landlock.
func Level() int { return 0 }

// Exec replaces this process by the program; nothing is restricted here.
func Exec(_ Rules, path string, argv, env []string) error {
	return fmt.Errorf("sandbox: exec %s: %w", path, syscall.Exec(path, argv, env))
}
