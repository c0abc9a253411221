package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

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

// Failure reports that a decoder cannot go on with a stream.
type Failure struct {
	Error     string
	Permanent bool
	Frame     int32
}

// Response is earshot.decoder.v1.DecodeResponse, as bytes: the decoder process
// appends results to it, the host reads them one by one.
type Response struct{ buf buffer }

// Reset empties the response and keeps its memory, within limits.
func (r *Response) Reset() { r.buf.trim() }

// Bytes returns the encoded response.
func (r *Response) Bytes() []byte { return r.buf }

// Append adds the result of one batch. The texts of the messages may alias the
// batch's data and are then sent as ranges of it. snapshot is nil when none was
// asked for.
func (r *Response) Append(b *Batch, messages []msg.Message, problems []msg.Problem, snapshot []byte, failure *Failure) {
	buf, from := begin(r.buf, respResults, 4)
	buf = appendUint(buf, resultStream, b.Stream)
	var at int
	for i := range messages {
		buf, at = begin(buf, resultMessages, 2)
		buf = appendMessage(buf, b.Data, &messages[i])
		buf = end(buf, at, 2)
	}
	for i := range problems {
		p := &problems[i]
		buf, at = begin(buf, resultProblems, 2)
		buf = appendInt32(buf, problemFrame, p.Frame)
		buf = appendString(buf, problemReason, p.Reason)
		buf = appendString(buf, problemDetail, p.Detail)
		buf = end(buf, at, 2)
	}
	if snapshot != nil {
		buf = protowire.AppendBytes(appendTag(buf, resultSnapshot, protowire.BytesType), snapshot)
	}
	if failure != nil {
		buf, at = begin(buf, resultFailure, 2)
		buf = appendString(buf, failureError, failure.Error)
		buf = appendBool(buf, failurePermanent, failure.Permanent)
		buf = appendInt32(buf, failureFrame, failure.Frame)
		buf = end(buf, at, 2)
	}
	r.buf = end(buf, from, 4)
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

// SetBytes makes the response the one encoded in b, for as long as b is valid.
func (r *Response) SetBytes(b []byte) { r.buf = b }

// Read reads a result; data is that of the batch it answers. The slices of res
// are reused.
func (res *Result) Read(raw, data []byte) error {
	clear(res.Messages)
	*res = Result{Messages: res.Messages[:0], Problems: res.Problems[:0]}
	if n := messagesIn(raw); n > cap(res.Messages) { // growing to it leaves as much again behind
		res.Messages = make([]msg.Message, 0, n+n/8)
	}
	s := text{b: raw, s: string(raw)}
	return fields(raw, func(num protowire.Number, v value) error {
		switch num {
		case resultStream:
			res.Stream = v.num
		case resultMessages:
			n := len(res.Messages)
			res.Messages = res.Messages[:n+1]
			return s.readMessage(&res.Messages[n], v.bytes, data)
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

// messagesIn counts the messages of a result, as far as it can be read.
func messagesIn(raw []byte) (n int) {
	for len(raw) > 0 {
		num, _, size, err := next(raw)
		if err != nil {
			break
		}
		if raw = raw[size:]; num == resultMessages {
			n++
		}
	}
	return n
}
