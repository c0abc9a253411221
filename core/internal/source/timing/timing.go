// Package timing measures the pace of one response: how long until it began, until its
// first event, how long it stalled. The times depend on the host and the network and never
// reach a decoder, so that replay stays deterministic; a listener keeps them in its own state
// of the stream (source.ResponseInfo).
package timing

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// A response counts as buffered when it has so many events, when the first arrived so late,
// and when all arrived in the last part of its duration (one in burst).
const (
	bufferedEvents = 16
	bufferedWait   = 1e9
	burst          = 20
)

// Meter measures one response. Times are Unix nanoseconds and may not go back: a
// clock that was set back counts as one that stood still. It is not safe for
// concurrent use.
type Meter struct {
	f    msg.Pace
	last int64      // the arrival of the last chunk
	gaps [40]uint32 // by bits.Len of the microseconds
}

// Start begins to measure: the request is sent.
func Start(at int64) *Meter { return &Meter{f: msg.Pace{Start: at}, last: at} }

// Head notes the response's status and headers.
func (m *Meter) Head(at int64) { m.f.FirstByte = m.since(at) }

// End notes that no body follows.
func (m *Meter) End(at int64) { m.f.Total = max(m.f.Total, m.since(at)) }

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

// Pace returns the measurements so far.
func (m *Meter) Pace() msg.Pace {
	f := m.f
	f.GapP50, f.GapP95 = m.quantile(50), m.quantile(95)
	var gaps []byte
	for i, n := range m.gaps {
		if n > 0 {
			gaps = fmt.Appendf(gaps, " %d:%d", i, n)
		}
	}
	f.Gaps = strings.TrimPrefix(string(gaps), " ")
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
