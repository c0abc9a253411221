// Package source is the contract between the sources, which read bytes and cut them into
// frames, and the pipeline, which decodes the frames. The sources are the packages below it.
package source

import (
	"context"
	"errors"

	"github.com/earshot-dev/earshot/core/frame"
)

// Source reads one configured source until its context ends.
type Source interface {
	// Run opens streams at the sink and delivers their frames. It returns nil when
	// ctx ends, and an error only for a permanent mistake of the configuration; it retries
	// after others (a missing file, a refused connection).
	Run(ctx context.Context, sink Sink) error
	// Drained reports whether everything that is there to be read has been
	// delivered: every file is at its end, no connection is open. It is called from
	// another goroutine.
	Drained() bool
}

// Files is a source that is its own journal: what was delivered is there to be delivered again.
type Files interface {
	Source
	// Again delivers those streams again from their beginning that were closed because all of them was delivered.
	// It is called from another goroutine.
	Again(wanted func(key string) bool)
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
	// Trouble reports an origin that cannot be read: a directory where a file was
	// named, a file without permission. It becomes a dead letter and a log line, once
	// per (origin, reason).
	Trouble(origin, reason, detail string)
}

// ID names a stream.
type ID struct {
	// Key is unique in the source and survives restarts and renames.
	Key string
	// Origin is the path or URL as it is known now.
	Origin string
	// Anchor is the time, in Unix ns, that replaces the times of a protocol
	// that has none: the file's modification time when it was first seen. The first
	// Open of a key decides it.
	Anchor int64
	// State is the source's own state of the stream, from the last Save.
	State []byte
	// Gone: delivered frames may not be there to be delivered again, so their rows are sent soon.
	Gone bool
}

// Known is a stream that was open before.
type Known struct {
	ID
	Pos int64 // frames up to here are safe
	// Closed: the stream was closed, and this is safe too: all of its frames, and the
	// messages that its decoder had open at the end.
	Closed bool
}

// Stream takes the frames of one stream, in order and without gaps: the first
// frame's Pos is the position that Open returned or rewind named, every other
// frame's is the End of the one before. It skips frames that it has already, which a
// rewind may lead to.
type Stream interface {
	// Deliver hands a batch over, and its buffer with it. It blocks while the
	// pipeline has as much in flight as it may have.
	Deliver(ctx context.Context, b *frame.Batch) error
	// Save stores the source's state of the stream with its next checkpoint.
	Save(id ID)
	// Mark passes on the state that a listener had at pos (Recording.Mark). It may arrive
	// before the frames up to there are delivered, and again after a restart or a rewind.
	Mark(pos int64, state []byte)
	// Close ends the stream: its decoder emits its open messages as incomplete and its
	// runs are closed. Of the streams of a journal, a batch that is delivered to another one
	// afterwards is decoded after that. forget drops the stream from the checkpoint once
	// everything is safe: there will never be more of it.
	//
	// wait returns when everything that was delivered has been decoded,
	// or with ErrRewound when some of it has to be delivered again: the stream is
	// open as before, and is to be closed again later. ErrAwaited is no failure: the stream
	// may have to be delivered again, and is to be closed again after a while.
	Close(ctx context.Context, forget bool) (wait func() error)
}

// ErrRewound: the stream was rewound instead of closed.
var ErrRewound = errors.New("stream rewound")

// ErrAwaited: the stream cannot be closed yet, since a run of it waits for its parent.
var ErrAwaited = errors.New("stream awaits a parent")
