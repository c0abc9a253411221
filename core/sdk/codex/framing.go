package codex

import (
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// Framing is a format that has threads of Codex: how it frames their records. S is what
// it remembers of a stream, the State of its threads included.
type Framing[S any] struct {
	Name       string
	Summary    string
	Revision   uint32
	Transports []frame.Kind
	LeavesOut  []byte // testdata/leaves-out.json
	Version    int    // of S, see package snapshot
	// Thread names a thread that does not name itself, by the origin of the stream.
	Thread func(origin string) string
	// Open returns the reader of the records of one stream, which adds messages through t
	// and makes t.State point into s. The reader reports whether the fields that it did not
	// read are kept.
	Open func(t *Thread, s *S) func(root jsonv.Value) (keep bool)
}

// Factory makes decoders of the format. There are no options.
func (f Framing[S]) Factory() decoder.Factory {
	return &factory[S]{f, unknown.NewKeeper(f.LeavesOut)}
}

type factory[S any] struct {
	format Framing[S]
	rest   *unknown.Keeper
}

// Info implements decoder.Factory.
func (f *factory[S]) Info() decoder.Info {
	return decoder.Info{
		Name: f.format.Name, Version: "1.0.0", Revision: f.format.Revision, Summary: f.format.Summary,
		Transports: f.format.Transports,
	}
}

// New implements decoder.Factory.
func (f *factory[S]) New(s decoder.Stream) (decoder.Decoder, error) {
	if err := conversation.NoOptions(f.format.Name, s.Options); err != nil {
		return nil, err
	}
	d := &stream[S]{factory: f, thread: Thread{Origin: f.format.Thread(s.Origin)}}
	d.read = f.format.Open(&d.thread, &d.state)
	return d, nil
}

// stream decodes the records of one stream.
type stream[S any] struct {
	*factory[S]
	doc    jsonv.Doc
	thread Thread
	state  S
	read   func(root jsonv.Value) (keep bool)
}

// Decode implements decoder.Decoder.
func (d *stream[S]) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := conversation.ParseObject(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	t, before := &d.thread, len(out.Messages)
	t.Out, t.At = out, conversation.Time{}
	if d.read(root) {
		d.rest.Keep(&d.doc, out, before, t.own)
	}
	t.Out = nil
	return nil
}

// Flush implements decoder.Decoder. It adds no message: records are whole.
func (d *stream[S]) Flush(*decoder.Output) error { return nil }

// Snapshot implements decoder.Snapshotter.
func (d *stream[S]) Snapshot() ([]byte, error) { return snapshot.Of(d.format.Version, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream[S]) Restore(b []byte) error { return snapshot.Restore(d.format.Version, b, &d.state) }

// own makes m a message of the active run.
func (t *Thread) own(m *msg.Message) { m.Session, m.Run = t.SessionID(), t.Run }
