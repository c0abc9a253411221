package sse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/sse"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/timing"
)

// stream is one recording, of one connection or of many.
type stream struct {
	*Client
	recording source.Recording
	ledger    source.Recording // has no frames; its State marks that the stream is over
	over      bool
	state     state

	// Of the connection.
	parser *sse.Parser
	batch  frame.Batch
	meter  *timing.Meter
	events int64
	done   bool // its last event was the sentinel
	hash   maphash.Hash
	at     int64
}

// begin returns the stream of the next connection. A resumed stream continues from the
// State of its recording; the recording of any other begins with its response.
func (c *Client) begin(ctx context.Context) (*stream, error) {
	s := &stream{Client: c}
	s.hash.SetSeed(seed)
	if !c.resumes() {
		return s, nil
	}
	var err error
	if s.ledger, err = c.rec.Begin(ctx, c.Format, source.ID{Key: c.key() + "-over", Origin: c.origin}); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if s.over = len(s.ledger.State()) > 0; s.over {
		return s, nil
	}
	if err := s.record(ctx, c.key()); err != nil {
		return nil, err
	}
	if b := s.recording.State(); len(b) > 0 {
		if err := json.Unmarshal(b, &s.state); err != nil {
			c.Logger.Warn("the state of a stream is not readable; it is not resumed", "origin", c.origin, "error", err)
			s.state = state{}
		}
	}
	return s, nil
}

// record begins the recording.
func (s *stream) record(ctx context.Context, key string) error {
	recording, err := s.rec.Begin(ctx, s.Format, source.ID{Key: key, Origin: s.origin, Anchor: time.Now().UnixNano()})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	s.recording = recording
	return nil
}

// startConnection resets the fields of the connection.
func (s *stream) startConnection(at int64) {
	s.parser, s.meter, s.events, s.done, s.at = sse.New(0, s.MaxEvent), timing.Start(at), 0, false, at
	s.batch.Reset()
	s.hash.Reset()
}

// seed is one for the process, since only hashes of one run are compared.
var seed = maphash.MakeSeed()

// feed parses and records the next bytes.
func (s *stream) feed(ctx context.Context, chunk []byte, at int64) error {
	s.at = at
	s.parser.Feed(&s.batch, chunk, at)
	s.meter.Chunk(at, len(chunk), len(s.batch.Frames))
	if len(s.batch.Frames) == 0 {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.mark()
}

// flush records the frames of the batch and empties it.
func (s *stream) flush(ctx context.Context) error {
	defer s.batch.Reset()
	for i := range s.batch.Frames {
		f := &s.batch.Frames[i]
		if err := s.recording.Record(ctx, f); err != nil {
			if ctx.Err() != nil {
				return err
			}
			// The server sends the event again only if the stream can be resumed here.
			s.recording.Gap(source.ReasonRefused, 1, recorded(f))
			return fmt.Errorf("record: %w", err)
		}
		if f.Kind == frame.Event {
			s.done = isDone(f)
			s.events++
			if s.resume != nil {
				s.resume.Advance(&s.state.Position, f.Data)
			}
			_, _ = s.hash.Write(f.Data)
		}
	}
	return nil
}

func (s *stream) mark() error {
	if !s.resumes() {
		return nil
	}
	s.state.LastID = lastID(s.parser, s.state.LastID)
	if err := s.recording.Mark(s.state.marshal()); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	return nil
}

// lastID returns the id to resume after: the last one of this connection, or before when
// the connection has none.
func lastID(p *sse.Parser, before string) string {
	if id := p.LastEventID(); id != "" {
		return id
	}
	return before
}

// endConnection ends a connection; why is nil when the server did it by the protocol. stopped
// means that the client ended it, to continue after a restart.
func (s *stream) endConnection(ctx context.Context, why error, stopped bool) error {
	if pause := min(s.parser.Retry(), s.RetryMax); pause > 0 {
		s.pause = pause
	}
	over := !stopped && s.isOver(why)
	// An event without its blank line is complete only when the response ends by the
	// protocol. The server sends it again in a stream that is resumed.
	if !s.resumes() || over {
		s.parser.Finish(&s.batch, s.at)
		if why == nil {
			s.batch.Append(frame.Frame{Kind: frame.Close, At: s.at}, nil)
		} else {
			for i := range s.batch.Frames {
				s.batch.Frames[i].Reason = source.ReasonBroken
			}
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.state.Timing = new(s.meter.Pace())
	if err := s.recording.Mark(s.state.marshal()); err != nil {
		return errors.Join(why, fmt.Errorf("mark: %w", err))
	}
	if over {
		return errOver
	}
	// A server that repeats the same events is requested less and less often.
	if h := s.hash.Sum64(); s.events > 0 && (s.resumes() || h != s.last) {
		s.backoff.Reset()
		s.last = h
	}
	return why
}

// isOver reports whether the end of a connection is the end of the stream.
func (s *stream) isOver(why error) bool {
	switch {
	case s.done:
		return true
	case s.resume != nil:
		if !s.state.Known() {
			return why == nil || s.events > 0
		}
		return why == nil && (s.resume.End == source.EndClose || s.events == 0)
	}
	return false
}

// finish ends the stream for good. A closed recording loses its State, so the ledger
// keeps the mark.
func (s *stream) finish() {
	if s.ledger != nil && !s.over {
		if err := s.ledger.Mark([]byte("over")); err != nil {
			s.Logger.Warn("the end of a stream is not recorded", "origin", s.origin, "error", err)
		}
	}
	s.close()
}

func (s *stream) close() {
	if s.recording == nil {
		return
	}
	if err := s.recording.Close(); err != nil {
		s.Logger.Warn("a recording is not closed", "origin", s.origin, "error", err)
	}
}
