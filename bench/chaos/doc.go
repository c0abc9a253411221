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
// The disk is full when the sidecar's limit on the size of files is zero: each write
// to a file fails then, without a file system of its own, which would take root.
//
// A storm hits where the machine's timing has it hit. A sweep leaves nothing to
// timing: the sidecar runs under ptrace, and is killed at each of the system calls by
// which it reads, keeps or passes on what agents wrote.
package chaos
