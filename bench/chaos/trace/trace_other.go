//go:build !linux

// Package trace needs Linux.
package trace

import (
	"errors"
	"os"
)

// Call is described where it can be made.
type Call struct {
	Name, File string
	After      bool
}

// Program is described where it can be run.
type Program struct {
	Path   string
	Args   []string
	Output *os.File
	See    func(pid int, c Call) bool
	Stop   <-chan struct{}
}

// Run fails.
func Run(Program) (bool, error) { return false, errors.New("trace: needs Linux") }

// Sockets knows none.
func Sockets() map[string]string { return nil }
