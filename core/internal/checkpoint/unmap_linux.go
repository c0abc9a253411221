package checkpoint

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// unmap takes the file's pages from this process's memory. They stay in the system's cache, where they
// are the first to go when memory is short, and come back one by one as they are read.
func unmap(tx *bbolt.Tx) {
	// The transaction keeps the mapping where it is. bbolt only reads it, and writes the file.
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}
