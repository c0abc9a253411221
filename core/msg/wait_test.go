package msg

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWaits(t *testing.T) {
	at := func(ns int64, s Signal, attrs ...Attr) SpanEvent {
		return SpanEvent{Time: ns, Name: s.String(), Attrs: attrs}
	}
	outside := Attr{EventWaitsFor, ForOutside}
	for _, c := range []struct {
		name   string
		events []SpanEvent
		want   []Interval
		open   string // WaitsFor while it is open, and of the ended span of 10 to 100
		ended  string
		waited int64
	}{
		{"never", []SpanEvent{at(20, Retry)}, nil, "", "", 0},
		{"asks", []SpanEvent{at(20, WaitStart)}, []Interval{{From: 20}}, ForPerson, ForPerson, 80},
		{"answered", []SpanEvent{at(20, WaitStart), at(50, WaitEnd)}, []Interval{{20, 50}}, "", ForPerson, 30},
		{"asks twice", []SpanEvent{at(20, WaitStart), at(25, WaitStart), at(50, WaitEnd), at(60, RunPause), at(200, RunResume)}, []Interval{{20, 50}, {60, 200}}, "", ForPerson, 70},
		{"answered at once", []SpanEvent{at(20, WaitStart), at(20, WaitEnd)}, []Interval{{20, 21}}, "", ForPerson, 1},
		{"a program outside", []SpanEvent{at(20, WaitStart, outside), at(50, WaitEnd)}, nil, "", "", 0},
		{"a program, then a person", []SpanEvent{at(20, RunPause, outside), at(30, WaitStart)}, []Interval{{From: 30}}, ForPerson, ForPerson, 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, WaitsForPerson(c.events)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			open := Span{State: SpanOpen, Start: 10, Events: c.events}
			ended := Span{State: SpanClosed, Start: 10, End: 100, Events: c.events}
			if open.WaitsFor() != c.open || open.Waited() != 0 || ended.WaitsFor() != c.ended || ended.Waited() != c.waited {
				t.Errorf("open for %q, %d ns; ended for %q, %d ns", open.WaitsFor(), open.Waited(), ended.WaitsFor(), ended.Waited())
			}
		})
	}
}
