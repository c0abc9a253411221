// Package file is the source that tails files: every line that a process appends to a file
// under one of the configured patterns becomes a frame.
//
//	watcher (inotify,    poll
//	         │ fsnotify)  │
//	         ▼            ▼
//	      discovery ──► walk      finds files, notices new names and lost ones
//	       │      ▲
//	 files │      │ requests      look here, it is not at its path
//	       ▼      │
//	       fileset                files by inode and path; rotations, orphans, schedule
//	       │      ▲
//	 turns │      │ results       more, end of file, again later
//	       ▼      │
//	       tailer ──► identifier  which stream has this content (fingerprint)
//	         │    ──► reader      lines of that stream, checked to be its own
//	         ▼
//	       streams ──► sink
//
// One goroutine runs the discovery, a few workers run the tailer. The fileset's mutex is all
// that they share. design.md describes how a file is recognized, and the cases in which it is not.
//
// Invariants:
//
//   - A stream is the content of a file, not its name. It is recognized by device, inode and
//     fingerprint. It continues through renames, restarts, compression and copies, and a new
//     one begins when the content is replaced.
//   - Every whole line is delivered once per run, in byte order; the ranges of the frames
//     leave no gap. A last line without a newline waits for it.
//   - Sink.Open alone decides where reading begins. The state that goes through Save
//     identifies the content of a stream, not how far it was read.
//   - Notifications make it fast, the poll makes it right: every change that they missed is
//     found by the next scan.
//
// Traps:
//
//   - Positions are byte offsets of the content. Only where reading began at the end of a
//     file (StartAt) do they count from there, since a stream begins at 0. Those of an archive
//     are offsets of its unpacked content.
//   - Only \n ends a line. A \r before it, lines of white space alone and NUL bytes at the
//     beginning of a line belong to the range of the next frame and to no frame's data. A
//     writer without O_APPEND leaves such NULs behind when its file is truncated under it.
//   - A file has no end, so its stream stays open. Archives and metadata files are complete:
//     their streams are closed after the last frame.
package file
