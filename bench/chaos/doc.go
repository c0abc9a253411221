// Package chaos writes traffic while it kills the processes that handle it, and then counts the
// rows.
//
// Traffic flows into files that are renamed, copied and truncated away, into files of another source whose
// lines have the same ids, and over OTLP; some of the texts have a secret. Meanwhile the sidecar,
// its decoder and its store are killed with signal 9, the decoder is stopped until the sidecar
// notices, and the store is down for whole seconds, or for the first half. In the end the
// faults stop, the sidecar catches up, and each line that was written and each record that was accepted
// must be one row, each torn line one dead letter, and the secret in no row and no file.
//
// The seed determines the faults and their order; the instants at which they fire depend on the
// machine. A run goes on until each kind of fault has fired; if one never does, it proves nothing of it and fails.
//
// The disk is full when the sidecar's limit on the size of files is zero: each write to a file
// fails then, without a file system of its own, which would need root.
//
// The instants of a storm depend on the machine's timing. A sweep leaves nothing to timing: the
// sidecar runs under ptrace, and is killed at each of the system calls by which it reads,
// stores or sends the agents' traffic.
package chaos
