package redact

import (
	"context"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Recorder returns a recorder that redacts frames and passes them on to rec.
func (r *Redactor) Recorder(rec source.Recorder) source.Recorder {
	if r == nil {
		return rec
	}
	return recorder{rec, r}
}

type recorder struct {
	source.Recorder
	r *Redactor
}

// Begin implements source.Recorder. The key is the listener's name for the
// stream and stays; the origin may be a URL with a password.
func (c recorder) Begin(ctx context.Context, format string, id source.ID) (source.Recording, error) {
	id.Origin = c.r.String(id.Origin)
	rec, err := c.Recorder.Begin(ctx, format, id)
	if err != nil {
		return nil, err
	}
	return recording{rec, c.r}, nil
}

type recording struct {
	source.Recording
	r *Redactor
}

// Record implements source.Recording.
func (c recording) Record(ctx context.Context, f *frame.Frame) error {
	g := *f
	c.r.frame(&g)
	return c.Recording.Record(ctx, &g)
}

// frame redacts a frame. Its data may then lie elsewhere.
func (r *Redactor) frame(f *frame.Frame) {
	if f.Clean = r.clean(f.Data) && !f.CutOff(); !f.Clean {
		f.Data = r.Bytes(f.Data)
	}
	if f.CutOff() {
		kept := frame.WithoutCutWord(f.Data)
		f.Data, f.Dropped = kept, f.Dropped+int64(len(f.Data)-len(kept))
	}
	r.name(&f.Name)
	r.name(&f.ID)
}

// Sink returns a sink that redacts frames and passes them on to sink.
func (r *Redactor) Sink(sink source.Sink) source.Sink {
	if r == nil {
		return sink
	}
	return redacting{sink, r}
}

type redacting struct {
	source.Sink
	r *Redactor
}

// Open implements source.Sink.
func (k redacting) Open(ctx context.Context, id source.ID, rewind func(int64)) (source.Stream, int64, error) {
	s, pos, err := k.Sink.Open(ctx, id, rewind)
	if err != nil {
		return nil, 0, err
	}
	return stream{s, k.r}, pos, nil
}

// Trouble implements source.Sink. The detail may quote input.
func (k redacting) Trouble(origin, reason, detail string) {
	k.Sink.Trouble(origin, reason, k.r.String(detail))
}

type stream struct {
	source.Stream
	r *Redactor
}

// Deliver implements source.Stream. A batch in which something is found is
// replaced; the positions of its frames stay.
func (s stream) Deliver(ctx context.Context, b *frame.Batch) error {
	return s.Stream.Deliver(ctx, s.r.batch(b))
}

func (r *Redactor) batch(b *frame.Batch) *frame.Batch {
	names := false
	for i := range b.Frames {
		f := &b.Frames[i]
		names = names || f.Name != "" || f.ID != "" || f.CutOff() || encoded(f.Data)
	}
	if !names && !r.mayHold(b.Data) {
		for i := range b.Frames {
			b.Frames[i].Clean = true
		}
		return b
	}
	frames := make([]frame.Frame, len(b.Frames))
	copy(frames, b.Frames)
	changed, size := false, 0
	for i := range frames {
		f := &frames[i]
		data := f.Data
		r.frame(f)
		if first(data) != first(f.Data) || len(data) != len(f.Data) || f.Name != b.Frames[i].Name || f.ID != b.Frames[i].ID {
			changed = true
		}
		size += len(f.Data)
	}
	if !changed {
		copy(b.Frames, frames)
		return b
	}
	out := &frame.Batch{Data: make([]byte, 0, size), Frames: frames, Written: b.Written, Backlog: b.Backlog}
	for i := range frames {
		from := len(out.Data)
		out.Data = append(out.Data, frames[i].Data...)
		frames[i].Data = out.Data[from:]
	}
	b.Done()
	return out
}

// first is where bytes lie.
func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}
