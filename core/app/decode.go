package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/source/file"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// Frames reads the frames of one recorded stream in batches; io.EOF ends it.
type Frames interface {
	Next() (*frame.Batch, error)
}

// FileTransport is how a file is cut into frames: as a file source does it that reads the format, and else by the
// end of its name. head is its beginning.
func FileTransport(path string, head []byte, documents []string) (fixture.Transport, error) {
	t, err := fixture.TransportOf(path)
	if (err != nil || t == fixture.JSONL) && file.ShapeOf(path, head, documents) == file.Document {
		return fixture.JSON, nil
	}
	return t, err
}

// Input is one recorded stream to decode.
type Input struct {
	Origin string // path or URL, for formats that read the session's name from it
	Anchor int64  // ns; replaces times that the protocol does not have
	Source string // by whose name the stream was stored; see decoder.Stream
	// Open opens it. documents are the names of files that are one document in the format.
	Open func(documents []string) (Frames, error)
}

// Decoded receives the output of DecodeStreams.
type Decoded struct {
	Message func(*msg.Message) error
	Problem func(origin string, offset int64, p msg.Problem, data []byte)
	Span    func(*msg.Span) // nil: no spans are wanted
}

// DecodeStreams decodes recorded streams with the decoder of a format, in a
// process of its own like everywhere, and emits each message once: those that a
// decoder completes later than it begins them come when they are complete, and
// messages that are open at the end of the stream are the last, as incomplete.
func DecodeStreams(ctx context.Context, d Decoders, c *config.Config, format, options string, inputs []Input, out Decoded) error {
	return d.With(ctx, c, format, func(p *host.Process, _ host.Settings) error {
		rpc, err := p.Decode(ctx)
		if err != nil {
			return err
		}
		defer rpc.Close()
		o := &offline{rpc: rpc, format: format, revision: p.Info().Revision, out: out}
		o.assembler = assemble.New(assemble.Settings{LocalIDs: func(string) bool { return p.Info().LocalIDs }, View: view, Reconciles: reconciled(nil)}, noStore{}, o)
		for i, in := range inputs {
			frames, err := in.Open(p.Info().Documents)
			if err == nil {
				err = o.stream(uint64(i+1), options, in, frames)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", in.Origin, err)
			}
		}
		if out.Span != nil {
			if err := o.assembler.Finish(); err != nil {
				return err
			}
			return o.assembler.Commit(func(string, bool, []byte) {})
		}
		return nil
	})
}

// offline decodes streams one after another, without a store.
type offline struct {
	rpc       *host.RPC
	format    string
	revision  uint32
	assembler *assemble.Assembler
	out       Decoded
	pos       int64
	clock     checkpoint.Clock
	first     int64 // replaces a time that the stream does not have
}

type noStore struct{}

func (noStore) Group(string) ([]byte, error) { return nil, nil }

// Span implements assemble.Emitter.
func (o *offline) Span(s msg.Span) {
	if o.out.Span != nil && s.State != msg.SpanOpen && !s.Amends {
		o.out.Span(&s)
	}
}

// Message implements assemble.Emitter: a recording is one view.
func (o *offline) Message(msg.Message) {}

// Finding implements assemble.Emitter; the spans have the findings.
func (o *offline) Finding(string, string) {}

// Verdict implements assemble.Emitter: a recording has no open work.
func (o *offline) Verdict(msg.Verdict) {}

// ReplayChildren implements assemble.Emitter. Recorded streams are decoded in an order in
// which parents come first; a child that came before its parent stays where it
// is.
func (o *offline) ReplayChildren(uint64, assemble.RunRef) {}

// Flush implements assemble.Emitter.
func (o *offline) Flush(uint64) {}

// Replayable implements assemble.Emitter.
func (o *offline) Replayable(uint64) bool { return false }

func (o *offline) stream(id uint64, options string, in Input, frames Frames) error {
	o.pos, o.clock, o.first = 0, checkpoint.Clock{}, in.Anchor
	open := &wire.Open{Origin: in.Origin, Options: options, Source: in.Source}
	for {
		b, err := frames.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := errors.Is(err, io.EOF)
		if b == nil {
			b = &frame.Batch{}
		}
		good := b.Frames[:0:0]
		for _, f := range b.Frames {
			if f.Reason == "" {
				good = append(good, f)
				continue
			}
			o.out.Problem(in.Origin, f.Pos, msg.Problem{Reason: f.Reason, Detail: fmt.Sprintf("%d bytes left out", f.Dropped)}, f.Data)
		}
		if end { // like the end of a live stream
			pos := o.pos
			if n := len(good); n > 0 {
				pos = good[n-1].End
			}
			good = append(good, frame.Frame{Kind: frame.Close, Name: frame.Lost, Pos: pos, End: pos})
		}
		req := &wire.Request{Batches: []wire.Batch{{Stream: id, Open: open, Data: b.Data, Frames: good, Flush: end, Close: end}}}
		open = nil
		if err := o.exchange(req, in.Origin); err != nil {
			return err
		}
		b.Done()
		if end {
			return nil
		}
	}
}

func (o *offline) exchange(req *wire.Request, origin string) error {
	if err := o.rpc.Send(req); err != nil {
		return err
	}
	var resp wire.Response
	if err := o.rpc.Recv(&resp); err != nil {
		return err
	}
	var r wire.Result
	b := &req.Batches[0]
	return resp.Results(func(raw []byte) error {
		if err := r.Read(raw, b.Data); err != nil {
			return err
		}
		for i := range b.Frames {
			if b.Frames[i].Kind != frame.Line {
				o.clock.Read = max(o.clock.Read, b.Frames[i].At)
			}
		}
		last, nth := int64(-1), int64(0)
		for i := range r.Messages {
			f := frame.Frame{Pos: o.pos, End: o.pos + 1}
			if at := int(r.Messages[i].Frame); at >= 0 && at < len(b.Frames) {
				f = b.Frames[at]
			}
			if nth++; f.Pos != last {
				last, nth = f.Pos, 0
			}
			if err := o.message(&r.Messages[i], &f, nth, origin); err != nil {
				return err
			}
		}
		for _, p := range r.Problems {
			var f frame.Frame
			if at := int(p.Frame); at >= 0 && at < len(b.Frames) {
				f = b.Frames[at]
			}
			o.out.Problem(origin, f.Pos, p, f.Data)
		}
		if n := len(b.Frames); n > 0 {
			o.pos = b.Frames[n-1].End
		}
		if r.Failure != nil {
			return fmt.Errorf("decoder failed: %s", r.Failure.Error)
		}
		return nil
	})
}

func (o *offline) message(m *msg.Message, f *frame.Frame, nth int64, origin string) error {
	if err := m.Validate(); err != nil {
		o.out.Problem(origin, f.Pos, msg.Problem{Reason: msg.ReasonInvalid, Detail: err.Error()}, f.Data)
		return nil
	}
	at := f.At
	switch f.Kind {
	case frame.Line: // the time of reading a file is no time of its lines
		at = 0
	case frame.Close:
		at = o.clock.Read
	}
	pipeline.Date(&o.clock, m, at, o.first)
	m.Host = msg.Host{Tenant: "default", Format: o.format, Seq: uint64(f.Pos + nth), Ver: uint64(f.End), Origin: origin, Offset: f.Pos}
	if _, err := o.assembler.Apply(m, 1, o.revision, time.Time{}, m.Time); err != nil {
		return err
	}
	return o.out.Message(m)
}
