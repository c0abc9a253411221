package assemble

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestManyOrphans: the transcripts of many sub-agents, and of those below them, are read before that of their caller. They are one trace
// with it all the same.
func TestManyOrphans(t *testing.T) {
	const children = 60
	w := newStage(t, Settings{})
	w.quietly(func() {
		stream := uint64(1)
		w.on(1, "f", "s")
		begun := func(run, parent, call string, at int64) {
			stream++
			w.on(stream, "f", "s")
			m := user(run, at)
			m.Signal, m.ParentRun, m.ParentCall, m.Delegation.Link = msg.RunStart, parent, call, msg.ByNativeID
			w.say(stream, m, said(run, "r"+run, at+1))
		}
		for i := range children {
			at, child, call := int64(20+i*10), fmt.Sprint("child", i), fmt.Sprint("call", i)
			begun(child, "top", call, at)
			if i%3 == 0 {
				w.say(stream, delegated(child, "below "+call, "wren", at+2), answered(child, "below "+call, at+5))
			}
			w.say(stream, stop(child, at+6))
			if i%3 == 0 {
				begun("below "+child, child, "below "+call, at+3)
				w.say(stream, stop("below "+child, at+4))
			}
		}
		w.commit()
		m := user("top", 1)
		m.Signal = msg.RunStart
		w.say(1, m)
		for i := range children {
			w.say(1, delegated("top", fmt.Sprint("call", i), "owl", int64(19+i*10)), answered("top", fmt.Sprint("call", i), int64(27+i*10)))
		}
		w.say(1, stop("top", 5000))
		for n := 0; len(w.due) > 0 && n < 10*children; n++ {
			d := w.due[0]
			w.due = w.due[1:]
			w.again(d.stream, d.run)
		}
		w.do("finish", w.a.Finish)
		w.commit()
	})
	traces := make(map[msg.TraceID]int)
	for _, s := range w.stored {
		if !s.Tombstone {
			traces[s.TraceID]++
		}
	}
	if want := 1 + children*3 + children/3*3; len(traces) != 1 || traces[msg.NewTraceID("default", "f", "s", "top")] != want {
		t.Errorf("%d traces, want one with %d spans: %v", len(traces), want, traces)
	}
}

// TestChildrenOfAnEvictedCaller: the transcripts of sub-agents are read when many turns have followed the one that called them. They are
// in its trace all the same, and the end of work in the background is that of its call.
func TestChildrenOfAnEvictedCaller(t *testing.T) {
	w := newStage(t, Settings{})
	w.quietly(func() {
		w.on(1, "f", "s").on(2, "f", "s").on(3, "f", "s")
		w.say(1, user("top", 1), said("top", "r", 2))
		for i, async := range []bool{false, true} {
			call := fmt.Sprint("call", i)
			m := delegated("top", call, "owl", 3)
			m.Delegation.Async, m.Delegation.ChildRun, m.Delegation.Link = async, fmt.Sprint("child", i), msg.ByNativeID
			w.say(1, m, answered("top", call, int64(10-5*i)))
		}
		w.say(1, stop("top", 20))
		for i := range 3 * maxEndedRuns {
			turn, at := fmt.Sprint("turn", i), int64(100+10*i)
			w.say(1, user(turn, at), said(turn, "r"+turn, at+1), stop(turn, at+2))
		}
		w.commit()
		for i := range 2 {
			stream, child := uint64(i+2), fmt.Sprint("child", i)
			m := user(child, 4)
			m.Signal, m.ParentRun, m.ParentCall, m.Delegation.Link = msg.RunStart, msg.UnknownRun, fmt.Sprint("call", i), msg.ByNativeID
			w.say(stream, m, said(child, "r"+child, 5), stop(child, int64(9+40*i)))
		}
		w.do("finish", w.a.Finish)
		w.commit()
	})
	var worked int64
	spans := 0
	for _, s := range w.stored {
		if s.TraceID == msg.NewTraceID("default", "f", "s", "top") {
			spans++
		}
		worked = cmp.Or(s.Worked, worked)
	}
	if spans != 8 {
		t.Errorf("the turn has %d spans, want 8", spans)
	}
	if want := int64(t0 + 49*sec); worked != want {
		t.Errorf("the work in the background ended at %d, want %d", worked, want)
	}
}
