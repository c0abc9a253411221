package decoder

import (
	"encoding/json"
	"errors"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Decoder decodes one stream.
//
// A decoder whose open state is worth more than a replay of the stream also
// implements Snapshotter.
type Decoder interface {
	// Decode decodes the next frame and adds the messages that it completes to out.
	// Most frames of a delta stream complete none. The error is for a decoder that
	// cannot continue (D9); a frame that cannot be decoded is reported by out.Problem.
	Decode(f *frame.Frame, out *Output) error
	// Flush adds the open messages, as incomplete, and changes no state.
	Flush(out *Output) error
}

// Snapshotter lets the host resume a stream in its middle. Snapshot returns the
// open state, in any encoding that its own Restore reads; nil when nothing is
// open and a fresh decoder would continue just as well. Restore is called at most
// once, on a fresh decoder, before the first frame. A snapshot that it cannot
// read is an error, and the host then replays the stream from its beginning.
type Snapshotter interface {
	Snapshot() ([]byte, error)
	Restore(snapshot []byte) error
}

// Factory makes decoders of one format.
type Factory interface {
	Info() Info
	// New returns a decoder for the stream, or an error that names the bad option.
	New(Stream) (Decoder, error)
}

// Stream describes a stream to its decoder before the first frame.
type Stream struct {
	// Origin is the path of the file or the URL, as the source knows it now. A
	// format whose sessions are named by their file reads the name from here.
	Origin string
	// Source is the name of the source of the stream; empty in a recording that
	// is decoded without one. Only a format that has no name for a conversation makes it
	// part of an id, because two agents may begin with the same words.
	Source string
	// Options are the source's options: a JSON object, or nil.
	Options json.RawMessage
}

// Info describes a decoder.
type Info struct {
	Name    string // the format's name
	Version string // the decoder's own version, for people
	// Revision rises whenever the same frames decode to other messages; rows of a
	// higher revision replace those of a lower one when a stream is decoded again.
	Revision uint32
	Summary  string // one sentence
	// Transports are the frame kinds it understands, for `plugin list`.
	Transports []frame.Kind
	// MetadataFiles are patterns of file names, relative to a transcript's directory,
	// that belong to it and are delivered as streams of one Body frame each
	// ("*.meta.json"). Only file sources have them.
	MetadataFiles []string
	// Documents are patterns of the names of files that are one JSON document each ("*.json"),
	// on one line or on several. Such a file, which a file source has among its paths, is a
	// stream of one Body frame, and a new stream with the same origin when it has changed:
	// messages of both must have the same keys. A file of any other name is one too if the
	// format has a pattern and the first line of the file is { or [ alone.
	Documents []string
	// Options is the JSON Schema of the options; nil when there are none.
	Options json.RawMessage
	// Reload is set when the format has a reloaded form: the suite then checks that
	// the stream and its reload fold to the same messages.
	Reload bool
	// LocalIDs is set when a stream is one exchange, a request and its response, and
	// ids of responses and calls are unique in it and not beyond: servers of the format
	// repeat them. The host then keeps exchanges that repeat an id distinct.
	LocalIDs bool
	// Resume is how a server of the format continues the stream of a run after a broken
	// connection: a JSON object with the keys that resume_request has in the configuration
	// of an sse source; nil when it cannot.
	Resume json.RawMessage
	// Pages is how a server of the format divides a list into pages: a JSON object with the
	// keys that page_request has in the configuration of a poll source; nil when it does not.
	Pages json.RawMessage
	// Tables are those that a database of the format has, of which each row is a Line frame
	// {"table": ..., "row": {...}}: a JSON object with the key tables of a sqlite source in the
	// configuration; nil when the format has no database.
	Tables json.RawMessage
}

// Output collects the messages and problems of a call of Decode or Flush.
type Output struct {
	Messages []msg.Message
	Problems []msg.Problem
	frame    int32
}

// Begin sets the index, in its batch, of the frame that the next calls belong to.
// The SDK calls it; decoders do not.
func (o *Output) Begin(frame int32) { o.frame = frame }

// Reset empties the output and keeps its memory.
func (o *Output) Reset() {
	clear(o.Messages)
	o.Messages, o.Problems, o.frame = o.Messages[:0], o.Problems[:0], 0
}

// Add appends a message and returns it to be filled in; the pointer is valid
// until the next call of Add.
func (o *Output) Add() *msg.Message {
	if n := len(o.Messages); n < cap(o.Messages) {
		o.Messages = o.Messages[:n+1]
	} else {
		o.Messages = append(o.Messages, msg.Message{})
	}
	m := &o.Messages[len(o.Messages)-1]
	m.Frame = o.frame
	return m
}

// Emit appends a message.
func (o *Output) Emit(m msg.Message) {
	m.Frame = o.frame
	o.Messages = append(o.Messages, m)
}

// Problem reports that the current frame could not be decoded. The reason is a
// short code of a bounded set (msg.ReasonInvalidJSON, ...); the detail is for a
// person and never holds the payload, which is kept by the host.
func (o *Output) Problem(reason, detail string) {
	o.Problems = append(o.Problems, msg.Problem{Reason: reason, Detail: detail, Frame: o.frame})
}

// Unknown keeps a frame that the decoder does not understand (D7). The caller
// sets Key, Session and any other field that it knows.
func (o *Output) Unknown(typ string, data []byte) *msg.Message {
	m := o.Add()
	m.Kind, m.Complete, m.Hidden = msg.Unknown, msg.Complete, true
	m.Content = msg.Raw(data)
	m.SetAttr("type", typ)
	return m
}

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error after which a replay would fail in the same way.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether err, or one it wraps, was marked by Permanent.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}
