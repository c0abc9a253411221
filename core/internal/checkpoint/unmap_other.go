//go:build !linux

package checkpoint

import "go.etcd.io/bbolt"

// unmap does nothing: the system decides.
func unmap(*bbolt.Tx) {}
