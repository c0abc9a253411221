package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Local runs the decoders of a factory in this process. It is the simplest way
// to call them, and the reference for the others.
type Local struct {
	factory decoder.Factory
	desc    Description
}

var _ Subject = (*Local)(nil)

// NewLocal returns a subject for the factory.
func NewLocal(f decoder.Factory) *Local {
	l := &Local{factory: f, desc: Description{Where: "in process", Info: f.Info()}}
	if d, err := f.New(decoder.Stream{}); err == nil {
		_, l.desc.Snapshots = d.(decoder.Snapshotter)
	}
	return l
}

// Describe implements Subject.
func (l *Local) Describe() Description { return l.desc }

// Open implements Subject.
func (l *Local) Open(_ context.Context, s decoder.Stream, snapshot []byte) (Stream, error) {
	d, err := l.factory.New(s)
	if err != nil {
		return nil, fmt.Errorf("new: %w", err)
	}
	if len(snapshot) > 0 {
		r, ok := d.(decoder.Snapshotter)
		if !ok {
			return nil, errors.New("a snapshot for a decoder without snapshots")
		}
		// The decoder must not keep a reference to the snapshot: poison a copy.
		data := append([]byte(nil), snapshot...)
		if err := r.Restore(data); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		poisonBytes(data)
	}
	return &localStream{d: d}, nil
}

type localStream struct{ d decoder.Decoder }

func (s *localStream) Close() {}

func (s *localStream) Decode(_ context.Context, b Batch) (Answer, error) {
	var out decoder.Output
	in := pack(b.Frames)
	for i := range in.Frames {
		out.Begin(int32(i))
		if err := s.frame(&in.Frames[i], &out); err != nil {
			return Answer{}, failure(err, i)
		}
	}
	last := len(in.Frames) - 1
	out.Begin(int32(last))
	if b.Flush {
		if err := s.flush(&out); err != nil {
			return Answer{}, failure(fmt.Errorf("flush: %w", err), last)
		}
	}
	// The messages are read once the whole batch is decoded, as the SDK does.
	a := Answer{Problems: append([]msg.Problem(nil), out.Problems...)}
	for _, m := range out.Messages {
		own(&m)
		a.Messages = append(a.Messages, m)
	}
	if b.Snapshot {
		if sn, ok := s.d.(decoder.Snapshotter); ok {
			state, err := sn.Snapshot()
			if err != nil {
				return Answer{}, failure(fmt.Errorf("snapshot: %w", err), last)
			}
			a.Snapshot = append([]byte(nil), state...)
		}
	}
	if b.Poison {
		poisonBytes(in.Data)
		poisonMessages(out.Messages)
	}
	return a, nil
}

func (s *localStream) frame(f *frame.Frame, out *decoder.Output) (err error) {
	messages, problems := len(out.Messages), len(out.Problems)
	defer func() {
		if p := recover(); p != nil {
			clear(out.Messages[messages:])
			out.Messages, out.Problems = out.Messages[:messages], out.Problems[:problems]
			out.Problem(reasonPanic, fmt.Sprint(p))
			err = nil
		}
	}()
	return s.d.Decode(f, out)
}

func (s *localStream) flush(out *decoder.Output) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return s.d.Flush(out)
}

func failure(err error, i int) *Failure {
	return &Failure{Err: err.Error(), Permanent: decoder.IsPermanent(err), Frame: i}
}

func poisonBytes(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// poisonMessages overwrites messages that the host owns: a decoder that still reads them
// has other output from now on.
func poisonMessages(messages []msg.Message) {
	for i := range messages {
		m := &messages[i]
		for j := range m.Attrs {
			m.Attrs[j] = msg.Attr{Key: "poisoned", Value: "poisoned"}
		}
		for j := range m.Attachments {
			m.Attachments[j] = msg.Attachment{Name: "poisoned"}
		}
		*m = msg.Message{Key: "poisoned", Session: "poisoned"}
	}
}
