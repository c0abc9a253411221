// Package chaos lets agents write while whatever can die dies, and then counts.
//
// Traffic flows into files that are renamed, copied and truncated away. Meanwhile
// the sidecar, its decoder and its store are killed with signal 9, the decoder is
// stopped until it is missed, and the store is away for whole seconds, or for the
// first half. In the end everything is left alone, the sidecar catches up, and each
// line that was written has to be one row, each torn line one dead letter.
//
// What happens, and in which order, follows from the seed; the instants at which it
// hits are the machine's. A run in which a kind of fault never fired proves nothing
// of it and fails.
//
// A full disk is not among the faults: it takes a file system of its own, which
// takes root. What a disk that refuses does to the spool is a test there.
package chaos
