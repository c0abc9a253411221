//go:build !unix

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals that a recorded command gets.
func forwarded() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
