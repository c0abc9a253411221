// Package timing measures the pace of one response as it is heard: how long until
// it began, until its first event, how long it stalled. What it measures is a fact
// about the host and the network and never reaches a decoder, so that replay stays
// deterministic; a listener keeps it in its own state of the stream.
package timing

import "math/bits"

// Facts are what a Meter has measured. All times are nanoseconds.
type Facts struct {
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

	// Buffered says that the events of a slow response came all at once at its end:
	// something between the agent and us seems to hold them back, and FirstEvent is
	// not the agent's.
	Buffered bool `json:"buffered,omitempty"`
}

// A response of fewer events, or one that began sooner, is not said to be buffered;
// nor is one whose events took longer than one part in burst of the whole.
const (
	bufferedEvents = 16
	bufferedWait   = 1e9
	burst          = 20
)

// Meter measures one response. Times are Unix nanoseconds and may not go back: a
// clock that was set back counts as one that stood still. It is not safe for
// concurrent use.
type Meter struct {
	f    Facts
	last int64      // when the last chunk came
	gaps [40]uint32 // by bits.Len of the microseconds
}

// Start begins to measure: the request is sent.
func Start(at int64) *Meter { return &Meter{f: Facts{Start: at}, last: at} }

// Head notes the response's status and headers.
func (m *Meter) Head(at int64) { m.f.FirstByte = m.since(at) }

// Chunk notes bytes of the body, and how many events or messages they completed.
func (m *Meter) Chunk(at int64, bytes, events int) {
	at = max(at, m.last)
	if m.f.Chunks == 0 {
		m.f.FirstChunk = m.since(at)
	} else {
		gap := at - m.last
		m.f.LongestStall = max(m.f.LongestStall, gap)
		m.gaps[min(bits.Len64(uint64(gap/1000)), len(m.gaps)-1)]++
	}
	m.Events(at, events)
	m.last = at
	m.f.Chunks++
	m.f.Bytes += int64(bytes)
	m.f.Total = m.since(at)
}

// Events notes events that were completed by a chunk noted before.
func (m *Meter) Events(at int64, n int) {
	if m.f.Events == 0 && n > 0 {
		m.f.FirstEvent = m.since(at)
	}
	m.f.Events += int64(n)
}

// Facts returns what has been measured so far.
func (m *Meter) Facts() Facts {
	f := m.f
	f.GapP50, f.GapP95 = m.quantile(50), m.quantile(95)
	f.Buffered = f.Events >= bufferedEvents && f.FirstEvent >= bufferedWait && f.Total-f.FirstEvent <= f.Total/burst
	return f
}

func (m *Meter) since(at int64) int64 { return max(at-m.f.Start, 0) }

func (m *Meter) quantile(percent int64) int64 {
	total := m.f.Chunks - 1
	if total <= 0 {
		return 0
	}
	rank, seen := (total*percent+99)/100, int64(0)
	for i, n := range m.gaps {
		if seen += int64(n); seen >= rank {
			return int64(1) << i * 1000
		}
	}
	return m.f.LongestStall
}
