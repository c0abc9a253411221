// Package erasure has the parts of an erasure that outlive the process that began it, and its
// proof.
//
// A Request names the sessions to be erased. It is a file of the data directory from before the first byte
// is removed until after the last, so that an erasure goes on after a crash: every step can be
// repeated. It names sessions and has pieces of their texts, and is removed with them.
//
// A Set has the sessions that are erased for good: hashes of their names, never the names. Messages
// of them that a source delivers again are refused.
//
// A Scanner looks for names and texts in the files of the data directory, in those that the engine
// has compressed too. The blocks that the file system has freed are not looked at.
package erasure
