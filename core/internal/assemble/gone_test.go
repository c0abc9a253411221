package assemble

import (
	"fmt"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestALateMessageOfAnEvictedTurn: it leaves the row of its turn as it is, in whichever hour it is, and does not end the turn that runs.
func TestALateMessageOfAnEvictedTurn(t *testing.T) {
	for _, at := range []int64{50, 5000, 20_000} {
		w := newStage(t, Settings{})
		say := func(list ...msg.Message) {
			for i := range list {
				list[i].Precision = msg.Seconds
			}
			w.say(1, list...)
		}
		w.quietly(func() {
			w.on(1, "f", "s")
			say(user("old", 1), said("old", "r", 2), tokens("old", "r", 3, 7), stop("old", 4))
			for i := range 2 * maxEndedRuns {
				turn, at := fmt.Sprint("turn", i), int64(100+10*i)
				say(user(turn, at), said(turn, "r"+turn, at+1), stop(turn, at+2))
			}
			say(user("last", 10_000), said("last", "l", 10_001))
			w.commit()
			say(status("old", msg.NoSignal, at))
			w.commit()
			say(said("last", "m", 30_000), stop("last", 30_001))
			w.commit()
		})
		rows := 0
		for _, s := range w.stored {
			switch {
			case s.Run == "old" && s.Kind == msg.SpanRun:
				if rows++; s.End != t0+4*sec || s.Usage.Total() != 7 {
					t.Errorf("%d s: the turn ends at %d with %d tokens", at, (s.End-t0)/sec, s.Usage.Total())
				}
			case s.Run == "last" && s.Kind == msg.SpanRun && (s.End != t0+30_001*sec || s.Outcome != msg.OutcomeOK):
				t.Errorf("%d s: the last turn ends at %d: %v", at, (s.End-t0)/sec, s.Outcome)
			}
		}
		if rows != 1 {
			t.Errorf("%d s: the turn has %d rows", at, rows)
		}
	}
}

// TestUsageThatIsReadAgain: the tokens of a run of many responses count once, however often its stream is read.
func TestUsageThatIsReadAgain(t *testing.T) {
	const responses = 3000
	w := newStage(t, Settings{})
	w.quietly(func() {
		w.on(1, "f", "s")
		for range 2 {
			for i := range int64(responses) {
				w.say(1, tokens("a", fmt.Sprint("r", i), i, 10))
			}
		}
		w.say(1, stop("a", responses))
		w.commit()
	})
	for _, s := range w.stored {
		if s.Kind == msg.SpanRun && s.Usage.Total() != 10*responses {
			t.Errorf("the run has %d tokens, want %d", s.Usage.Total(), 10*responses)
		}
	}
}

// TestACallBeforeACrash: an agent ended without the result of a call and goes on with another prompt. No result is waited for once its
// model has answered that; work in the background goes on.
func TestACallBeforeACrash(t *testing.T) {
	w := newHarness(t)
	async := delegated("a", "d", "owl", 2)
	async.Delegation.Async = true
	w.apply(user("a", 0), said("a", "r", 1), in("r", called("a", "c", "Bash", 1)), async)
	w.commit()
	w.apply(user("b", 100))
	if c := w.a.mustGroup(t).Open["c"]; c == nil || !c.pending() {
		t.Errorf("before an answer the call is %+v", c)
	}
	w.apply(said("b", "q", 101))
	w.commit()
	g := w.a.mustGroup(t)
	if c := g.Open["c"]; c.pending() {
		t.Error("the result of the call is waited for")
	}
	if d := g.Open["d"]; !d.pending() {
		t.Error("the work in the background is given up")
	}
	w.apply(result("a", "c", 102), stop("b", 103))
	w.want(`
		run a 0-102
		  chat r 0-2
		  tool Bash 1-102
		run b 100-103
		  chat q 100-101
		`)
}
