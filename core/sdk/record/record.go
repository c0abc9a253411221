// Package record is the part that decoders of records share, a record being a frame of JSON:
// the description of a format, and everything between the frame and its record. A decoder has the type of
// its state and a Reader, which decodes one record:
//
//	func New() decoder.Factory {
//		return record.Format[state]{
//			Info:      decoder.Info{Name: "tide", Revision: 1, …},
//			LeavesOut: leavesOut,
//			State:     1,
//			Open:      func(r *record.Current, s *state) record.Reader { return &stream{r, s} },
//		}.Factory()
//	}
//
// Invariants, each with a test of that name:
//
//   - A frame that is no JSON, or no object where the format has no lists, is one problem, and
//     no record (TestBadFrames).
//   - A Close, and a request without a body, has no record: a Framer alone sees it
//     (TestFramesWithoutRecord).
//   - The fields that the Reader does not read are kept, in the session that the Reader names after
//     it has read the record; not of a frame that is a problem, which the host keeps whole
//     (TestUnreadIsKept).
//   - The snapshot is the state alone, in the form of package snapshot: the Reader and Current have
//     nothing that the next record needs (TestSnapshot). A state that is the zero value has none.
//   - Flush has neither a record nor a time (TestFlush).
//   - A format of records has no options (TestNoOptions).
package record

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// Format is a format of records. S is the state of a stream: the memory between records,
// as plain data with omitempty or omitzero.
type Format[S any] struct {
	decoder.Info        // Version is 1.0.0 unless it is set
	LeavesOut    []byte // testdata/leaves-out.json
	State        int    // the version of S, see package snapshot
	// Takes reports whether a frame that is no object is a record; nil: none is.
	Takes func(f *frame.Frame, root jsonv.Value) bool
	// Open returns the reader of a stream, whose memory is s.
	Open func(r *Current, s *S) Reader
}

// Reader decodes the records of one stream. One whose messages are not always whole is a Flusher
// too.
type Reader interface {
	// Read decodes the current record.
	Read()
	// In returns the session of the current record, and the run to which its unknown parts
	// belong, if they belong to one. It is asked while the record is read, and after that.
	In() (session, run string)
}

// Flusher emits the messages that are not complete (rule D10).
type Flusher interface{ Flush() }

// Framer looks at every frame before it is parsed, a Close included, and reports whether the frame may
// have a record.
type Framer interface{ Begin() (record bool) }

// Current is the record that is decoded. A reader embeds it.
type Current struct {
	Origin string // of the stream
	Frame  *frame.Frame
	Root   jsonv.Value
	At     conversation.Time // that of its messages: the reader sets it
	Out    *decoder.Output

	reader Reader
	rest   *unknown.Keeper
	first  int // index of its first message
}

// Add adds a message of an agent to the session of the record.
func (r *Current) Add(kind msg.Kind, key string) *msg.Message {
	m := r.Out.Add()
	m.Kind, m.Key, m.Complete, m.Agent.Kind = kind, key, msg.Complete, msg.KindAgent
	m.Session, _ = r.reader.In()
	r.At.Set(m)
	return m
}

// Unknown keeps a value that the reader does not understand. It is named by its content, and by the
// facts that distinguish equal ones.
func (r *Current) Unknown(typ string, v jsonv.Value, facts ...string) *msg.Message {
	m := r.Out.Unknown(cmp.Or(typ, "none"), v.Raw())
	m.Key = "unknown:" + msg.HashKey(append(facts, string(v.Peek()))...)
	r.own(m)
	r.At.Set(m)
	return m
}

// KeepUnread keeps the fields that were not read of a document that a string of the record has.
func (r *Current) KeepUnread(doc *jsonv.Doc) { r.rest.Keep(doc, r.Out, r.first, r.own) }

func (r *Current) own(m *msg.Message) { m.Session, m.Run = r.reader.In() }

// Hide makes a message one that a user would not see, of that type.
func Hide(m *msg.Message, typ string) *msg.Message {
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// Factory makes decoders of the format.
func (f Format[S]) Factory() decoder.Factory {
	f.Info.Version = cmp.Or(f.Info.Version, "1.0.0")
	return &factory[S]{f, unknown.NewKeeper(f.LeavesOut)}
}

type factory[S any] struct {
	format Format[S]
	rest   *unknown.Keeper
}

// Info implements decoder.Factory.
func (f *factory[S]) Info() decoder.Info { return f.format.Info }

// New implements decoder.Factory.
func (f *factory[S]) New(s decoder.Stream) (decoder.Decoder, error) {
	if err := conversation.NoOptions(f.format.Name, s.Options); err != nil {
		return nil, err
	}
	d := &stream[S]{format: &f.format}
	d.Origin, d.rest = strings.ToValidUTF8(s.Origin, "\uFFFD"), f.rest // a path need not be text, but an id must be
	d.reader = f.format.Open(&d.Current, &d.state)
	d.framer, _ = d.reader.(Framer)
	d.flusher, _ = d.reader.(Flusher)
	return d, nil
}

// stream decodes one stream.
type stream[S any] struct {
	Current
	format  *Format[S]
	doc     jsonv.Doc
	state   S
	framer  Framer
	flusher Flusher
}

// Decode implements decoder.Decoder.
func (d *stream[S]) Decode(f *frame.Frame, out *decoder.Output) error {
	d.begin(f, out)
	if (d.framer == nil || d.framer.Begin()) && hasRecord(f) {
		d.record(f, out)
	}
	d.Frame, d.Out = nil, nil // they are the host's again
	return nil
}

// hasRecord reports whether a frame has data: a Close has none, nor has a GET.
func hasRecord(f *frame.Frame) bool {
	return f.Kind != frame.Close && (f.Kind != frame.Request || len(bytes.TrimSpace(f.Data)) > 0)
}

func (d *stream[S]) record(f *frame.Frame, out *decoder.Output) {
	root, ok := conversation.Parse(&d.doc, f.Data, out)
	if !ok {
		return
	}
	if !root.Is(jsonv.Object) && (d.format.Takes == nil || !d.format.Takes(f, root)) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return
	}
	d.Root = root
	problems := len(out.Problems)
	if d.reader.Read(); len(out.Problems) == problems {
		d.KeepUnread(&d.doc)
	}
}

func (d *stream[S]) begin(f *frame.Frame, out *decoder.Output) {
	d.Frame, d.Out, d.Root, d.At, d.first = f, out, jsonv.Value{}, conversation.Time{}, len(out.Messages)
}

// Flush implements decoder.Decoder.
func (d *stream[S]) Flush(out *decoder.Output) error {
	if d.flusher != nil {
		d.begin(nil, out)
		d.flusher.Flush()
	}
	return nil
}

// Snapshot implements decoder.Snapshotter.
func (d *stream[S]) Snapshot() ([]byte, error) { return snapshot.Of(d.format.State, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream[S]) Restore(b []byte) error { return snapshot.Restore(d.format.State, b, &d.state) }
