package conformance

import (
	"context"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Subject is a decoder under test, wherever it runs.
type Subject interface {
	Describe() Description
	// Open opens a stream, from a snapshot when there is one.
	Open(ctx context.Context, s decoder.Stream, snapshot []byte) (Stream, error)
}

// Description describes a subject.
type Description struct {
	Where     string // "in process", "grpc", "executable"
	Info      decoder.Info
	Snapshots bool // its decoders resume from snapshots
}

// Stream is an open stream.
type Stream interface {
	// Decode decodes a batch. The error is a *Failure when the decoder returned it, and
	// any other when the call itself failed.
	Decode(ctx context.Context, b Batch) (Answer, error)
	Close()
}

// Batch is one request to a stream: the frames to decode, and whether to flush and to take
// a snapshot after them.
type Batch struct {
	Frames   []frame.Frame
	Flush    bool
	Snapshot bool
	// Poison overwrites the frames' bytes once the answer is read.
	Poison bool
}

// Answer is the output of a batch. Messages own their texts.
type Answer struct {
	Messages []msg.Message
	Problems []msg.Problem
	Snapshot []byte
}

// Failure is an error that the decoder returned.
type Failure struct {
	Err       string
	Permanent bool
	Frame     int
}

func (f *Failure) Error() string {
	if f.Permanent {
		return fmt.Sprintf("at frame %d: %s (permanent)", f.Frame, f.Err)
	}
	return fmt.Sprintf("at frame %d: %s", f.Frame, f.Err)
}

// reasonPanic is the reason of the problem that the SDK reports for a panic.
const reasonPanic = "decoder_panic"

// poison is the byte that overwrites released buffers.
const poison = 0xCC

// pack copies the frames into one buffer, as a source would have read them, with
// a delimiter between them.
func pack(in []frame.Frame) frame.Batch {
	var b frame.Batch
	size := 0
	for i := range in {
		size += len(in[i].Data) + 1
	}
	b.Data = make([]byte, 0, size)
	for i := range in {
		b.Append(in[i], in[i].Data)
		b.Data = append(b.Data, '\n')
	}
	return b
}

// own makes a message independent of every buffer and of its decoder.
func own(m *msg.Message) {
	m.Content, m.Tool.Arguments, m.Delegation.Task = m.Content.Own(), m.Tool.Arguments.Own(), m.Delegation.Task.Own()
	m.Attrs = append([]msg.Attr(nil), m.Attrs...)
	m.Attachments = append([]msg.Attachment(nil), m.Attachments...)
}
