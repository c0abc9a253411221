// Package source is the contract between the sources, which read bytes from the
// world and cut them into frames, and the pipeline, which is all they see of the
// rest. The sources themselves are the packages below it.
package source

import (
	"context"
	"errors"

	"github.com/earshot-dev/earshot/core/frame"
)

// Source reads one configured source until its context ends.
type Source interface {
	// Run opens streams at the sink and delivers their frames. It returns nil when
	// ctx ends, and an error only for what the configuration got wrong for good; what
	// may pass (a missing file, a refused connection) it waits out.
	Run(ctx context.Context, sink Sink) error
	// Drained reports whether everything that is there to be read has been
	// delivered: every file is at its end, no connection is open. It is asked from
	// another goroutine.
	Drained() bool
}

// Sink is the pipeline as one source sees it. It is safe for concurrent use.
type Sink interface {
	// Known returns the streams of this source that the checkpoint remembers.
	Known() []Known
	// Open begins or resumes a stream. The stream's frames are to be delivered from
	// the returned position on. rewind is called when frames have to be delivered
	// again, because a decoder process died with them: from then on the source
	// delivers from pos. It is called from another goroutine, and frames that were
	// read from further on are refused by position, so the source need not wait.
	Open(ctx context.Context, id ID, rewind func(pos int64)) (Stream, int64, error)
	// Forget drops streams from the checkpoint that are not open: there will never be
	// more of them.
	Forget(keys ...string)
	// Trouble reports what could not be read at all: a directory where a file was
	// named, a file without permission. It ends in a dead letter and in the log, once
	// per (origin, reason).
	Trouble(origin, reason, detail string)
}

// ID names a stream.
type ID struct {
	// Key is unique in the source and survives restarts and renames.
	Key string
	// Origin is the path or URL as it is known now.
	Origin string
	// Anchor is the time, in Unix ns, that stands in for the times of a protocol
	// that has none: the file's modification time when it was first seen. The first
	// Open of a key decides it.
	Anchor int64
	// State is the source's own memory of the stream, as Save last gave it.
	State []byte
}

// Known is a stream that was open before.
type Known struct {
	ID
	Pos int64 // frames up to here are safe
	// Closed says that the stream was closed, and that this is safe too: all of its
	// frames, and what its decoder had open at the end.
	Closed bool
}

// Stream takes the frames of one stream, in order and without gaps: the first
// frame's Pos is the position that Open returned or rewind named, every other
// frame's is the End of the one before. Frames that it has already, which is what
// a rewind may lead to, it leaves out.
type Stream interface {
	// Deliver hands a batch over, and its buffer with it. It blocks while the
	// pipeline has as much in flight as it may have.
	Deliver(ctx context.Context, b *frame.Batch) error
	// Save remembers the source's state of the stream with its next checkpoint.
	Save(id ID)
	// Mark tells what the listener knew of a recording (Recording.Mark) when it had
	// come to pos. It may be told before the frames up to there are delivered, and
	// again after a restart or a rewind.
	Mark(pos int64, state []byte)
	// Close ends the stream: what its decoder has open is given as incomplete and its
	// runs are closed. It returns when everything that was delivered has been decoded,
	// or with ErrRewound when some of it has to be delivered again: the stream is
	// open as before, and is to be closed again later. ErrAwaited says that all is well
	// but that it may have to be delivered again: it is to be closed again after a while.
	// forget drops it from the checkpoint once everything is safe: there will never be
	// more of it.
	Close(ctx context.Context, forget bool) error
}

// ErrRewound says that a stream that was to be closed was rewound instead.
var ErrRewound = errors.New("stream rewound")

// ErrAwaited says that a stream that was to be closed has a run whose parent is yet to be
// heard.
var ErrAwaited = errors.New("stream awaits a parent")
