package pipeline

import (
	"log/slog"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// rewind has the source deliver again from the decoder's last snapshot.
func (c *core) rewind(a *account) {
	a.generation++
	a.decoded = a.record.SnapPos
	if rewound := a.stream.cursor.rewindTo(a.generation, a.resume()); rewound != nil {
		go rewound(a.decoded)
	}
}

// failedAt has a stream delivered again, without the frame at which its decoder failed.
func (c *core) failedAt(a *account, pos int64, f *wire.Failure) {
	countFailure(c.log, c.metrics, a, f)
	c.quarantine(a, pos, msg.ReasonDecoderFailed)
	c.rewind(a)
}

// failed has a stream delivered again whose decoder failed at no frame, without its
// snapshot, which another version of the decoder may have written. One that fails without a
// snapshot too would fail again: the stream stalls.
func (c *core) failed(a *account, f *wire.Failure) {
	if a.record.Snapshot != nil {
		// After an upgrade of a decoder this is the rule: its state has another form.
		format := a.stream.feed.format.name
		c.log.Warn("decoder failed with its saved state; decoding the stream from its beginning", "format", format, "origin", a.record.Origin, "error", f.Error)
		c.metrics.DecoderFailures.With(format).Inc()
		c.dropSnapshot(a)
		c.rewind(a)
		return
	}
	countFailure(c.log, c.metrics, a, f)
	a.stalled = true
	c.unreadable(a.stream.feed, a.record.Origin, msg.ReasonDecoderFailed, f.Error)
}

func countFailure(log *slog.Logger, metrics *telemetry.Metrics, a *account, f *wire.Failure) {
	format := a.stream.feed.format.name
	log.Error("decoder failed", "format", format, "origin", a.record.Origin, "error", f.Error, "permanent", f.Permanent)
	metrics.DecoderFailures.With(format).Inc()
}

// dropSnapshot has a stream decoded from its beginning. Its account stays as it is.
func (c *core) dropSnapshot(a *account) {
	a.record.SnapPos, a.record.Snapshot = 0, nil
	c.commits.touch(a)
}

// processEnded looks for the cause in the unfinished attempts of a format's process, and has
// the format's streams delivered again.
func (c *core) processEnded(f *format, e exit, attempts []attempt) {
	c.findPoison(attempts, e)
	for s, a := range c.accounts.of {
		if s.feed.format == f {
			c.rewind(a)
		}
	}
}

// asleep takes the last results of a format's process that has ended because all of its decoders
// were closed. A stream whose decoder was opened meanwhile is delivered again.
func (c *core) asleep(f *format) error {
	for {
		select {
		case r := <-c.inbox.results:
			err := c.take(r)
			c.results.put(r.decoded)
			if err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	for s, a := range c.accounts.of {
		if s.feed.format == f && !a.decoderClosed {
			c.rewind(a)
		}
	}
	return nil
}

// ReplayChildren implements assemble.Emitter; it is done after the batch at hand.
func (c *core) ReplayChildren(stream uint64, r assemble.RunRef) { c.replays.ask(replay{stream, r}) }

// Replayable implements assemble.Emitter.
func (c *core) Replayable(stream uint64) bool { return c.accounts.named[stream] != nil }

// Flush implements assemble.Emitter.
func (c *core) Flush(stream uint64) {
	if a := c.accounts.named[stream]; a != nil {
		a.record.FlushPos = -1
		c.accounts.wake(a)
		c.commits.touch(a)
	}
}

// rejoin moves the runs of a stream that is open now into the traces of their parents, which
// were found before it was.
func (c *core) rejoin(stream uint64) error {
	for _, r := range c.replays.take(stream) {
		if r.Run == "" { // the messages without a run
			c.ReplayChildren(stream, r)
			continue
		}
		if err := c.assembler.Rejoin(r, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// replay has the streams decoded again that the assembler has asked for.
func (c *core) replay() error {
	for _, r := range c.replays.pending {
		a := c.accounts.named[r.stream]
		if a == nil {
			if !c.replays.await(r) {
				c.log.Warn("a link was found too late: its stream is gone", "session", r.run.Session, "run", r.run.Run)
			}
			continue
		}
		if err := c.assembler.ResetRun(r.run); err != nil {
			return err
		}
		rec := &a.record
		var next checkpoint.Replay
		if rec.Replay != nil {
			next = *rec.Replay
		}
		next.Runs = append(slices.Clone(next.Runs), r.run.Named(r.stream))
		next.Until = max(next.Until, rec.Pos)
		rec.Replay = &next
		rec.Pos, rec.SnapPos, rec.Snapshot, rec.Clock, rec.FlushPos = 0, 0, nil, checkpoint.Clock{}, 0
		c.commits.touch(a)
		c.rewind(a)
	}
	c.replays.done()
	c.replays.askSources(c.accounts.files, time.Now())
	return nil
}
