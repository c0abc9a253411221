package timing

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

func TestPace(t *testing.T) {
	const ms = int64(time.Millisecond)
	m := Start(1000)
	m.Head(1000 + 50*ms)
	m.Chunk(1000+60*ms, 10, 0)
	m.Chunk(1000+100*ms, 10, 1)
	for i := range int64(98) {
		m.Chunk(1000+(110+10*i)*ms, 10, 1)
	}
	m.Chunk(1000+3000*ms, 10, 0)
	m.Chunk(0, 10, 0) // a clock that was set back
	m.Events(1000+3000*ms, 2)
	got := m.Pace()
	want := msg.Pace{
		Start: 1000, FirstByte: 50 * ms, FirstChunk: 60 * ms, FirstEvent: 100 * ms, Total: 3000 * ms,
		Chunks: 102, Bytes: 1020, Events: 101, LongestStall: (3000 - 1080) * ms, GapP50: 16384 * 1000, GapP95: 16384 * 1000, Gaps: "0:1 14:98 16:1 21:1",
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if (Start(5).Pace() != msg.Pace{Start: 5}) {
		t.Errorf("%+v", Start(5).Pace())
	}
}

func TestBuffered(t *testing.T) {
	const s = int64(time.Second)
	for name, c := range map[string]struct {
		first, step int64
		events      int
		want        bool
	}{
		"all at the end":    {10 * s, s / 1000, 100, true},
		"a steady stream":   {s, s / 10, 100, false},
		"a fast one":        {s / 10, s / 1000, 100, false},
		"a short answer":    {10 * s, s / 1000, 10, false},
		"a slow beginning":  {2 * s, s / 20, 100, false},
		"in one chunk":      {3 * s, 0, 100, true},
		"nothing but a few": {10 * s, 0, 1, false},
	} {
		m := Start(0)
		for i := range c.events {
			m.Chunk(c.first+int64(i)*c.step, 100, 1)
		}
		if got := m.Pace().Buffered; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
