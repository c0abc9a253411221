package source

import (
	"encoding/hex"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/msg"
)

// ResponseInfo describes a response beside its frames. A listener stores it as fields of the
// JSON object that it marks its recording with (Recording.Mark), beside fields of its own, so
// that it survives a restart like the frames.
type ResponseInfo struct {
	Method      string    `json:"method,omitempty"`
	Status      int64     `json:"status,omitempty"`
	Traceparent string    `json:"traceparent,omitempty"` // W3C trace context of the request
	Tracestate  string    `json:"tracestate,omitempty"`
	Timing      *msg.Pace `json:"timing,omitempty"` // once the response has ended
	// Failure is why there is no response that a decoder reads: one of the Failure* or the HTTP status. Reason is the same in words.
	Failure string `json:"failure,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// The failures of a request beside statuses of HTTP.
const (
	FailureNone    = "no_response"   // the connection ended, or there was none
	FailureTimeout = "timeout"       // of the network
	FailureClosed  = "client_closed" // the client did not wait any longer
)

// Marshal returns the info as the mark of a recording.
func (i *ResponseInfo) Marshal() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		return nil // every field of it has a JSON form
	}
	return b
}

// ParseResponseInfo returns the info in a mark; ok is false when the mark has none.
func ParseResponseInfo(state []byte) (info ResponseInfo, ok bool) {
	if json.Unmarshal(state, &info) != nil {
		return ResponseInfo{}, false
	}
	return info, info.Timing != nil || info.Traceparent != ""
}

// Remote parses the traceparent. Both ids are zero when it is not valid.
//
//	00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
func (i *ResponseInfo) Remote() (trace msg.TraceID, span msg.SpanID) {
	const size = 2 + 1 + 32 + 1 + 16 + 1 + 2
	s := i.Traceparent
	// A later version may have more behind the flags, and ff is none.
	if len(s) < size || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" || len(s) > size && (s[:2] == "00" || s[size] != '-') {
		return msg.TraceID{}, msg.SpanID{}
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], s[:2]}, {trace[:], s[3:35]}, {span[:], s[36:52]}, {flags[:], s[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return msg.TraceID{}, msg.SpanID{}
		}
	}
	if trace.IsZero() || span.IsZero() {
		return msg.TraceID{}, msg.SpanID{}
	}
	return trace, span
}
