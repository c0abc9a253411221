// Package file is the source that tails files: every line that a process
// appends to a file under one of the configured patterns becomes a frame.
//
// What it guarantees, and under which conditions, stands in design.md beside
// the code. In short:
//
//   - A stream is the content of a file, not its name. It is recognized by device,
//     inode and what the content begins and ends with, so that it goes on through
//     renames, restarts, compression and copies, and a new one begins when the
//     content is another one.
//   - Every whole line is delivered once per run, in byte order; the ranges of the
//     frames leave no gap. A last line without a newline waits for it.
//   - Where to begin is what Sink.Open says, nothing else. The state that goes
//     through Save only says which content a stream has, never how far it was read.
//   - Notifications make it fast, the poll makes it right: everything that inotify
//     did not tell is found by the next scan.
//
// Surprises worth knowing:
//
//   - Positions are byte offsets of the content. Only where reading began at the
//     end of a file (StartAt) do they count from there, since a stream begins at 0.
//     For an archive they are offsets of what it decompresses to.
//   - Only \n ends a line. A \r before it, lines of white space alone and NUL bytes
//     at the beginning of a line belong to the range of the next frame and to no
//     frame's data. The NULs are what a writer without O_APPEND leaves behind when
//     its file is truncated under it.
//   - The content of a file says nothing about its end, so streams of files stay
//     open. Archives and companions are whole, and are closed behind the last frame.
package file
