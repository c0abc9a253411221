package source

import (
	"context"

	"github.com/earshot-dev/earshot/core/frame"
)

// Listener hears what cannot be read a second time: a proxied response, a
// socket, a pushed body. It writes to a Recorder, and what is downstream reads
// that recording like a file.
type Listener interface {
	// Run listens until its context ends. It returns nil then, and an error only for
	// what the configuration got wrong for good, such as an address in use.
	Run(ctx context.Context, rec Recorder) error
	// Idle reports whether nothing is open and nothing is to be asked for: what
	// `--until-idle` waits for. It is asked from another goroutine.
	Idle() bool
}

// Recorder is the journal as one listener sees it. It is safe for concurrent use.
type Recorder interface {
	// Begin begins a recording, or continues the one of that key, whatever process
	// began it. The id's State is ignored: see Recording.State.
	//
	// A recording without a key is of something that cannot outlive the process, such
	// as one connection: nobody can continue it, the journal names it, and closes it
	// when the process dies before Close.
	Begin(ctx context.Context, format string, id ID) (Recording, error)
}

// Recording takes the frames of one stream, in order. Its methods are for one
// goroutine at a time.
type Recording interface {
	// Record appends a copy of the frame; its Pos and End are ignored, since the
	// journal gives it its place. With the policy drop_oldest it never waits for room.
	// With backpressure it waits until there is some or ctx ends: a caller that must
	// not wait passes a context that has ended, and counts what was refused with Gap.
	// What the journal itself has to give up it counts itself.
	Record(ctx context.Context, f *frame.Frame) error
	// Gap records that something was heard and not recorded.
	Gap(reason string, frames, bytes int64)
	// Mark remembers the listener's own state of the stream, in order with its
	// frames: where to resume after a restart, and the response's Facts.
	Mark(state []byte) error
	// State is what Mark last gave, in this process or before it.
	State() []byte
	// Sync returns when everything recorded so far survives a power cut, and with an
	// error when some of it since the last Sync was given up.
	Sync(ctx context.Context) error
	// Close ends the recording: the stream's decoder is told (frame.Lost), and gives
	// what it has open as incomplete. A recording that is not closed goes on after a restart.
	Close() error
}
