package msg

import (
	"strconv"
	"strings"
)

// Pace is the timing of one response that was read live: how long until it began, until its
// first event, and how long it stalled. Times are nanoseconds.
type Pace struct {
	Start int64 `json:"start"` // Unix; when the request was sent
	// FirstByte is the time from Start to the response's head, FirstChunk to the first
	// bytes of its body, FirstEvent to its first data event or message, and Total to
	// the last byte.
	FirstByte  int64 `json:"first_byte,omitempty"`
	FirstChunk int64 `json:"first_chunk,omitempty"`
	FirstEvent int64 `json:"first_event,omitempty"`
	Total      int64 `json:"total,omitempty"`

	Chunks int64 `json:"chunks,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
	Events int64 `json:"events,omitempty"`

	// LongestStall is the longest pause between two chunks. GapP50 and GapP95 are
	// quantiles of these pauses, rounded up to a power of two of microseconds.
	LongestStall int64 `json:"longest_stall,omitempty"`
	GapP50       int64 `json:"gap_p50,omitempty"`
	GapP95       int64 `json:"gap_p95,omitempty"`
	// Gaps are how many of these pauses there were, by their length: "13:40 14:2" are 40 of
	// 2^12 to 2^13 microseconds and two of the next power.
	Gaps string `json:"gaps,omitempty"`

	// Buffered means that the events of a slow response arrived all at once at its end:
	// a proxy between the agent and us seems to buffer them, and FirstEvent is not the
	// agent's.
	Buffered bool `json:"buffered,omitempty"`
}

// EachGap calls f for each length of pause, in nanoseconds, with how many there were. The
// length is the middle of its power of two.
func (p *Pace) EachGap(f func(length int64, count int)) {
	for part := range strings.FieldsSeq(p.Gaps) {
		power, count, _ := strings.Cut(part, ":")
		n, err := strconv.Atoi(power)
		c, err2 := strconv.Atoi(count)
		if err == nil && err2 == nil && n >= 0 && n < 50 {
			f(int64(1)<<n*750, c)
		}
	}
}

// End is when the last byte came, in Unix ns.
func (p *Pace) End() int64 { return p.Start + p.Total }

// Stream is one HTTP response, or one connection, that was read live: its request, its
// timing, and the run that it belongs to.
type Stream struct {
	Tenant string
	Source string
	Format string
	Stream string // the recording's identity in its source, as in Ledger
	Origin string // URL

	Method string
	Status int64 // of HTTP; zero when unknown

	// Session and Run are the first in it; Run is a run of the top level.
	Session string
	Run     string
	// Chat is the span of the model's response that it was; zero when it was several, or
	// none that the protocol names.
	Chat SpanID

	// RemoteTrace and RemoteSpan are the traceparent of the request: who asked.
	RemoteTrace TraceID
	RemoteSpan  SpanID
	RemoteState string // tracestate

	Pace Pace
	Ver  uint64
}

// Remote is the link to the span of the caller that sent the request; ok is false when the
// request named none.
func (s *Stream) Remote() (l SpanLink, ok bool) {
	if s.RemoteTrace.IsZero() || s.RemoteSpan.IsZero() {
		return SpanLink{}, false
	}
	return SpanLink{
		TraceID: s.RemoteTrace, SpanID: s.RemoteSpan, State: s.RemoteState,
		Attrs: []Attr{{Key: "earshot.link", Value: "traceparent"}},
	}, true
}

// Starts reports whether the request may have started a run, and did not only ask
// for stored data: a GET is a reload, or a stream that is resumed.
func (s *Stream) Starts() bool {
	return s.Socket() || s.Method != "" && s.Method != "GET" && s.Method != "HEAD"
}

// Socket reports whether it is a WebSocket, whose pace is not that of any one run.
func (s *Stream) Socket() bool { return s.Status == 101 }
