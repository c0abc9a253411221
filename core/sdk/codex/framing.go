package codex

import (
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// Framing is a format that has threads of Codex: how it frames their records. S is its
// memory of a stream, the State of its threads included.
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

// Factory makes decoders of the format.
func (f Framing[S]) Factory() decoder.Factory {
	return record.Format[S]{
		Info:      decoder.Info{Name: f.Name, Revision: f.Revision, Summary: f.Summary, Transports: f.Transports},
		LeavesOut: f.LeavesOut,
		State:     f.Version,
		Open: func(r *record.Current, s *S) record.Reader {
			r.Origin = f.Thread(r.Origin)
			t := &Thread{Current: r}
			return &reader{t, f.Open(t, s)}
		},
	}.Factory()
}

// reader reads the records of one stream.
type reader struct {
	*Thread
	read func(root jsonv.Value) (keep bool)
}

func (d *reader) Read() {
	if !d.read(d.Root) {
		d.Root.MarkRead()
	}
}

// In returns the session and the active run.
func (t *Thread) In() (session, run string) { return t.SessionID(), t.Run }
