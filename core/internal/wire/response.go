package wire

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Field numbers of DecodeResponse, Result, Failure and Problem.
const (
	respResults = 1

	resultStream   = 1
	resultMessages = 2
	resultProblems = 3
	resultSnapshot = 4
	resultFailure  = 5

	failureError     = 1
	failurePermanent = 2
	failureFrame     = 3

	problemFrame  = 1
	problemReason = 2
	problemDetail = 3
)

// Failure says that a decoder cannot go on with a stream.
type Failure struct {
	Error     string
	Permanent bool
	Frame     int32
}

// Response is earshot.decoder.v1.DecodeResponse, as bytes: the decoder process
// appends results to it, the host reads them one by one.
type Response struct {
	buf     buffer
	scratch []byte
}

// Reset empties the response and keeps its memory, within limits.
func (r *Response) Reset() {
	r.buf.trim()
	if cap(r.scratch) > keep {
		r.scratch = nil
	}
}

// Bytes returns the encoded response.
func (r *Response) Bytes() []byte { return r.buf }

// Append adds the result of one batch. The texts of the messages may alias the
// batch's data and are then sent as ranges of it. snapshot is nil when none was
// asked for.
func (r *Response) Append(b *Batch, messages []msg.Message, problems []msg.Problem, snapshot []byte, failure *Failure) {
	body := appendUint(r.scratch[:0], resultStream, b.Stream)
	var one []byte
	for i := range messages {
		start := len(body)
		body = protowire.AppendTag(body, resultMessages, protowire.BytesType)
		// Two bytes hold the length of nearly every message; the rare longer one is
		// moved.
		body = append(body, 0, 0)
		from := len(body)
		body = appendMessage(body, b.Data, &messages[i])
		n := len(body) - from
		if n < 1<<14 {
			body[from-2] = byte(n)&0x7f | 0x80
			body[from-1] = byte(n >> 7)
			continue
		}
		one = append(one[:0], body[from:]...)
		body = protowire.AppendTag(body[:start], resultMessages, protowire.BytesType)
		body = protowire.AppendBytes(body, one)
	}
	for i := range problems {
		p := &problems[i]
		one = appendInt32(one[:0], problemFrame, p.Frame)
		one = appendString(one, problemReason, valid(p.Reason))
		one = appendString(one, problemDetail, valid(p.Detail))
		body = protowire.AppendBytes(protowire.AppendTag(body, resultProblems, protowire.BytesType), one)
	}
	if snapshot != nil {
		body = protowire.AppendBytes(protowire.AppendTag(body, resultSnapshot, protowire.BytesType), snapshot)
	}
	if failure != nil {
		one = appendString(one[:0], failureError, valid(failure.Error))
		one = appendBool(one, failurePermanent, failure.Permanent)
		one = appendInt32(one, failureFrame, failure.Frame)
		body = protowire.AppendBytes(protowire.AppendTag(body, resultFailure, protowire.BytesType), one)
	}
	r.buf = protowire.AppendBytes(protowire.AppendTag(r.buf, respResults, protowire.BytesType), body)
	r.scratch = body[:0]
}

// Result is earshot.decoder.v1.Result. Its strings share one allocation; the
// texts of its messages alias the data of the batch it answers.
type Result struct {
	Stream      uint64
	Messages    []msg.Message
	Problems    []msg.Problem
	Snapshot    []byte
	HasSnapshot bool
	Failure     *Failure
}

// Results calls f with the raw bytes of each result of the response, which are
// valid until the next response is received into it.
func (r *Response) Results(f func(raw []byte) error) error {
	return fields(r.buf, func(num protowire.Number, v value) error {
		if num != respResults {
			return nil
		}
		return f(v.bytes)
	})
}

// SetBytes makes the response the one encoded in b, which it keeps.
func (r *Response) SetBytes(b []byte) { r.buf = b }

// Read reads a result; data is that of the batch it answers. The slices of res
// are reused.
func (res *Result) Read(raw, data []byte) error {
	clear(res.Messages)
	*res = Result{Messages: res.Messages[:0], Problems: res.Problems[:0]}
	s := text{b: raw, s: string(raw)}
	return fields(raw, func(num protowire.Number, v value) error {
		switch num {
		case resultStream:
			res.Stream = v.num
		case resultMessages:
			n := len(res.Messages)
			if n < cap(res.Messages) {
				res.Messages = res.Messages[:n+1]
			} else {
				res.Messages = append(res.Messages, msg.Message{})
			}
			return s.message(&res.Messages[n], v.bytes, data)
		case resultProblems:
			var p msg.Problem
			err := fields(v.bytes, func(num protowire.Number, v value) error {
				switch num {
				case problemFrame:
					p.Frame = int32(v.num)
				case problemReason:
					p.Reason = s.of(v.bytes)
				case problemDetail:
					p.Detail = s.of(v.bytes)
				}
				return nil
			})
			res.Problems = append(res.Problems, p)
			return err
		case resultSnapshot:
			res.Snapshot, res.HasSnapshot = append([]byte(nil), v.bytes...), true
		case resultFailure:
			res.Failure = &Failure{}
			return fields(v.bytes, func(num protowire.Number, v value) error {
				switch num {
				case failureError:
					res.Failure.Error = s.of(v.bytes)
				case failurePermanent:
					res.Failure.Permanent = v.num != 0
				case failureFrame:
					res.Failure.Frame = int32(v.num)
				}
				return nil
			})
		}
		return nil
	})
}

// text gives the strings of a result: parts of one string with the same bytes.
type text struct {
	b []byte
	s string
}

func (s text) of(part []byte) string {
	off, ok := frame.Offset(s.b, part)
	if !ok {
		return string(part)
	}
	return s.s[off : off+len(part)]
}

func appendInt32(dst []byte, num protowire.Number, v int32) []byte {
	return appendUint(dst, num, uint64(int64(v)))
}

// valid returns s with invalid UTF-8 replaced: protobuf strings must be valid,
// and a peer with generated code would refuse the whole response.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func rangeError(what string, off, length uint64, size int) error {
	return fmt.Errorf("wire: %s: range %d+%d of %d bytes", what, off, length, size)
}
