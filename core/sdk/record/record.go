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
//   - A line has a record, or several where two processes write at a time: each is read, up to what is
//     no JSON (TestRecordsOfALine).
//   - A Close, and a frame without data, as the request of a GET is, has no record: a Framer alone
//     sees it (TestFramesWithoutRecord).
//   - The fields that the Reader does not read are kept, in the session that the Reader names after
//     it has read the record; not of a frame that is a problem, which the host keeps whole
//     (TestUnreadIsKept).
//   - The snapshot is the state alone, in the form of package snapshot: the Reader and Current have
//     nothing that the next record needs (TestSnapshot). A state that is the zero value has none.
//   - Flush has neither a record nor a time (TestFlush).
//   - Options are those of a Configurer; a format without one has none (TestOptions).
//   - A frame whose documents the Reader finds itself (Wrapped) has one problem at most, and the fields of
//     each document are kept as if it were a frame (TestWrapped).
//   - The parsed document is shared by the streams of a factory, most of which are silent: it lasts as long
//     as its frame (TestDocumentsAreShared), and so does the memory that strings of messages are made in (TestMemory).
package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

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
	// Wrapped is set if a frame is no document by itself: Read then sees every frame, a Close included, and
	// finds the documents in it (Current.Parse).
	Wrapped bool
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

// Configurer has options: Configure reads those of the source, which may be empty, before the first frame.
type Configurer interface {
	Configure(options json.RawMessage) error
}

// Options reads options into a struct that has all of them.
func Options(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	return nil
}

// Flusher emits the messages that are not complete (rule D10).
type Flusher interface{ Flush() }

// Restorer builds the parts that the JSON of its state lacks, after a restore.
type Restorer interface{ Restored() }

// Framer looks at every frame before it is parsed, a Close included, and reports whether the frame may
// have a record.
type Framer interface{ Begin() (record bool) }

// Current is the record that is decoded. A reader embeds it.
type Current struct {
	Origin string // of the stream
	Source string // of the same; see decoder.Stream
	Frame  *frame.Frame
	Root   jsonv.Value
	At     conversation.Time // that of its messages: the reader sets it
	Out    *decoder.Output
	*Memory

	reader Reader
	rest   *unknown.Keeper
	doc    *jsonv.Doc // of Root; nil before a document of the frame
	shared *sync.Pool // of Memory
	first  int        // index of its first message
}

// Parse parses the next document of a frame, after it has kept the fields of the one before it, which may have
// wrapped it. That it is no JSON is the frame's problem.
func (r *Current) Parse(data []byte) (root jsonv.Value, ok bool) {
	root, ok = conversation.Parse(r.next(), data, r.Out)
	r.Root = root
	return root, ok
}

// ParseFirst is Parse for data that begins with a document, and reports no problem. The rest, without the space
// before it, is returned.
func (r *Current) ParseFirst(data []byte) (root jsonv.Value, rest []byte, err error) {
	rest, err = r.next().ParseFirst(data)
	r.Root = r.doc.Root()
	return r.Root, rest, err
}

func (r *Current) next() *jsonv.Doc {
	if r.doc == nil {
		r.doc = &r.Memory.doc
	} else {
		r.Keep()
	}
	return r.doc
}

// Keep keeps the fields of the current document that were not read so far. It is for a reader that adds messages which
// do not belong to the document.
func (r *Current) Keep() {
	r.KeepUnread(r.doc, r.first)
	r.first = len(r.Out.Messages)
}

// end keeps the fields of the last document, unless the frame is a problem.
func (r *Current) end(problems int) {
	if r.doc != nil && len(r.Out.Problems) == problems {
		r.Keep()
	}
	if r.idle() {
		r.shared.Put(r.Memory)
	}
	r.Memory, r.doc, r.Root, r.Frame, r.Out = nil, nil, jsonv.Value{}, nil, nil // they are others' again
}

// In is that of a reader without its own: the session is named by the stream.
func (r *Current) In() (session, run string) { return cmp.Or(r.Origin, "unknown"), "" }

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
	m.Key = "unknown:" + string(r.Hash(msg.Raw(v.Peek()), facts...))
	r.own(m)
	r.At.Set(m)
	return m
}

// KeepUnread keeps the fields that were not read of a document that a string of the record has, and whose messages
// are those from the index on.
func (r *Current) KeepUnread(doc *jsonv.Doc, from int) { r.rest.Keep(doc, r.Out, from, r.own) }

// First is the index of the first message of the record.
func (r *Current) First() int { return r.first }

func (r *Current) own(m *msg.Message) { m.Session, m.Run = r.reader.In() }

// Hide makes a message one that a user would not see, of that type.
func Hide(m *msg.Message, typ string) *msg.Message {
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// Signal sets the signal of a message, unless it begins the run.
func Signal(m *msg.Message, s msg.Signal) {
	if m.Signal == msg.NoSignal {
		m.Signal = s
	}
}

// Factory makes decoders of the format.
func (f Format[S]) Factory() decoder.Factory {
	f.Info.Version = cmp.Or(f.Info.Version, "1.0.0")
	return &factory[S]{f, unknown.NewKeeper(f.LeavesOut), sync.Pool{New: func() any { return new(Memory) }}}
}

type factory[S any] struct {
	format Format[S]
	rest   *unknown.Keeper
	shared sync.Pool
}

// Info implements decoder.Factory.
func (f *factory[S]) Info() decoder.Info { return f.format.Info }

// New implements decoder.Factory.
func (f *factory[S]) New(s decoder.Stream) (decoder.Decoder, error) {
	d := &stream[S]{format: &f.format}
	d.Origin, d.rest, d.shared = strings.ToValidUTF8(s.Origin, "\uFFFD"), f.rest, &f.shared // a path need not be text, but an id must be
	d.Source = s.Source
	d.reader = f.format.Open(&d.Current, &d.state)
	if c, ok := d.reader.(Configurer); !ok {
		if err := conversation.NoOptions(f.format.Name, s.Options); err != nil {
			return nil, err
		}
	} else if err := c.Configure(s.Options); err != nil {
		return nil, fmt.Errorf("%s: %w", f.format.Name, err)
	}
	d.framer, _ = d.reader.(Framer)
	d.flusher, _ = d.reader.(Flusher)
	return d, nil
}

// stream decodes one stream.
type stream[S any] struct {
	Current
	format  *Format[S]
	state   S
	framer  Framer
	flusher Flusher
}

// Decode implements decoder.Decoder.
func (d *stream[S]) Decode(f *frame.Frame, out *decoder.Output) error {
	problems := len(out.Problems)
	d.begin(f, out)
	switch {
	case d.format.Wrapped:
		d.reader.Read()
		out.Problems = out.Problems[:min(len(out.Problems), problems+1)]
	case (d.framer == nil || d.framer.Begin()) && hasRecord(f):
		d.record(f, out)
	}
	d.end(problems)
	return nil
}

// hasRecord reports whether a frame has data.
func hasRecord(f *frame.Frame) bool { return f.Kind != frame.Close && len(bytes.TrimSpace(f.Data)) > 0 }

// record reads the records of a frame: one, or each of a line.
func (d *stream[S]) record(f *frame.Frame, out *decoder.Output) {
	for data := f.Data; len(data) > 0; {
		root, more, err := d.ParseFirst(data)
		switch {
		case err != nil, len(more) > 0 && (f.Kind != frame.Line || more[0] != '{'):
			root.MarkRead()
			d.Parse(data) // it is no JSON, which is the frame's problem
			return
		case !root.Is(jsonv.Object) && (d.format.Takes == nil || !d.format.Takes(f, root)):
			root.MarkRead()
			out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
			return
		}
		d.At = conversation.Time{}
		d.reader.Read()
		data = more
	}
}

func (d *stream[S]) begin(f *frame.Frame, out *decoder.Output) {
	d.Frame, d.Out, d.At, d.first = f, out, conversation.Time{}, len(out.Messages)
	d.Memory = d.shared.Get().(*Memory)
}

// Flush implements decoder.Decoder.
func (d *stream[S]) Flush(out *decoder.Output) error {
	if d.flusher != nil {
		d.begin(nil, out)
		d.flusher.Flush()
		d.end(0)
	}
	return nil
}

// Snapshot implements decoder.Snapshotter.
func (d *stream[S]) Snapshot() ([]byte, error) { return snapshot.Of(d.format.State, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream[S]) Restore(b []byte) error {
	if err := snapshot.Restore(d.format.State, b, &d.state); err != nil {
		return err
	}
	if r, ok := d.reader.(Restorer); ok {
		r.Restored()
	}
	return nil
}
