// Package frame holds the unit that a source hands to a decoder: one line of a
// file, one event of an SSE stream, one message of a WebSocket, one body of a
// request. It imports the standard library only.
//
// Frames travel in batches. The bytes of a batch lie in one buffer that the
// source filled with its own read call, and a frame is a range of it; nothing
// is copied between the read and the process boundary.
package frame

import "fmt"

// Lost is the Name of the Close frame that the host appends to every live stream: the
// connection may have been lost. After a Close frame of the protocol it is redundant.
const Lost = "lost"

// Kind is how a frame was delimited.
type Kind uint8

// The kinds.
const (
	Line    Kind = iota // a line of a file, without its \n
	Event               // an SSE event: Name is its type, Data its joined data lines
	Text                // a WebSocket text message
	Binary              // a WebSocket binary message
	Body                // a whole HTTP response body, or a whole file that is one document
	Request             // a whole HTTP request body: the prompt; Name is "METHOD path"
	Close               // the stream ended here; no data. Name is Lost when its protocol did not end it
)

var kindNames = [...]string{"line", "event", "text", "binary", "body", "request", "close"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("invalid(%d)", uint8(k))
}

// ParseKind returns the kind with that name.
func ParseKind(s string) (Kind, error) {
	for i, n := range kindNames {
		if n == s {
			return Kind(i), nil
		}
	}
	return 0, fmt.Errorf("frame kind %q: not one of %v", s, kindNames)
}

// Frame is one unit of a stream. Data lies in its batch's buffer and is valid
// only until the batch is released.
type Frame struct {
	Kind Kind
	// FromClient: the client sent it, for transports that carry both directions.
	FromClient bool
	// Clean: its data were searched for secrets, and have none.
	Clean bool
	Name  string // SSE event type; "METHOD path" of a request; empty otherwise
	// ID is the id of an SSE event. Of a request it is the headers in which the agent identifies it, a JSON object of their
	// names in lower case, without credentials, and with them the provider's request-id of the response. Empty when there is none.
	// A request that was recorded before its response began has that id in a second frame, without data.
	ID   string
	At   int64 // Unix ns at which its last byte was read
	Data []byte

	// Pos and End are the range of the stream that the frame takes, delimiters
	// and skipped bytes before it included, so that the ranges of a stream's
	// frames cover it without gaps: byte offsets of a file or of a journalled
	// stream. End is where a reader resumes after it.
	Pos, End int64
	// Dropped are bytes of this range that the source did not keep (the tail of a
	// line beyond the limit), and Reason is why. A frame with a Reason is not
	// decoded but quarantined.
	Dropped int64
	Reason  string
}

// CutOff reports whether the data may end in the middle of a word.
func (f *Frame) CutOff() bool { return f.Reason != "" }

// Batch is a run of frames of one stream, in order.
type Batch struct {
	// Data is the buffer in which the Data of all frames lie.
	Data   []byte
	Frames []Frame
	// Written is when the frames were written at the latest, Unix ns: the last change of
	// their file. Zero: when they were read.
	Written int64
	// Backlog: the frames existed before their source listened.
	Backlog bool
	// Release returns the buffer to its pool; nil when it has none. It is called once,
	// when no Text aliases the buffer any more.
	Release func()
}

// Done releases the batch's buffer.
func (b *Batch) Done() {
	if r := b.Release; r != nil {
		b.Release = nil
		r()
	}
}

// End is the position at which a reader resumes after the batch.
func (b *Batch) End() int64 {
	if len(b.Frames) == 0 {
		return 0
	}
	return b.Frames[len(b.Frames)-1].End
}

// Offset returns where sub lies in data. Both must be slices of one array, as a
// frame's Data and any part of it are; ok is false when they are not.
func Offset(data, sub []byte) (off int, ok bool) {
	if len(sub) == 0 {
		return 0, true
	}
	off = cap(data) - cap(sub)
	if off < 0 || off+len(sub) > len(data) || &data[off] != &sub[0] {
		return 0, false
	}
	return off, true
}
