package checkpoint

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrDamaged means that the file cannot be read. Its text names the remedy.
var ErrDamaged = errors.New("the file is damaged. It is safe to delete it: files are then read again from their beginning and live traffic from " +
	"what the journal keeps, into the same rows; nothing that is stored is lost")

// ErrLayout means that another build wrote the file. Its text has the remedy.
var ErrLayout = errors.New("another build wrote it. That build delivers what waits in this directory; without it, it is safe to delete " +
	"this file: files are then read again from their beginning, into the same rows")

// guarded calls f, which reads the file. bbolt panics on a page that is none, and a read of the
// mapped file behind its end is a fault of memory.
func guarded(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("checkpoint: %s: %w (%v)", path, ErrDamaged, why)
		}
	}()
	return f()
}
