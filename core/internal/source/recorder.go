package source

import (
	"context"

	"github.com/earshot-dev/earshot/core/frame"
)

// Listener receives traffic that cannot be read a second time: a proxied response, a
// socket, a pushed body. It writes to a Recorder, and the pipeline reads that recording
// like a file.
type Listener interface {
	// Run listens until its context ends. It returns nil then, and an error only for a
	// permanent mistake of the configuration, such as an address in use.
	Run(ctx context.Context, rec Recorder) error
	// Idle reports whether nothing is open and no request is due: `--until-idle` waits for
	// it. It is called from another goroutine.
	Idle() bool
}

// Recorder is the journal as one listener sees it. It is safe for concurrent use.
type Recorder interface {
	// Begin begins a recording, or continues the one of that key, which an earlier process
	// may have begun. The id's State is ignored: see Recording.State.
	//
	// A recording without a key cannot outlive the process, as one connection cannot: it
	// is never continued, the journal names it, and closes it when the process dies before
	// Close.
	Begin(ctx context.Context, format string, id ID) (Recording, error)
}

// Recording takes the frames of one stream, in order. Its methods are for one
// goroutine at a time.
type Recording interface {
	// Record appends a copy of the frame; its Pos and End are ignored, since the
	// journal assigns them. With the policy drop_oldest it never waits for space. With
	// backpressure it waits until there is some or ctx ends: a caller that must not wait
	// passes a context that has ended, and counts the refused frames with Gap. The journal
	// itself counts the frames that it drops.
	Record(ctx context.Context, f *frame.Frame) error
	// Gap records that frames were received and not recorded.
	Gap(reason string, frames, bytes int64)
	// Mark records the listener's own state of the stream, in order with its
	// frames: where to resume after a restart, and the ResponseInfo.
	Mark(state []byte) error
	// State returns the state of the last Mark, in this process or an earlier one.
	State() []byte
	// Sync returns when everything recorded so far survives a power cut, and with an
	// error when some of it since the last Sync was dropped.
	Sync(ctx context.Context) error
	// Close ends the recording: the stream's decoder receives frame.Lost, and emits its open
	// messages as incomplete. A recording that is not closed continues after a restart.
	Close() error
}
