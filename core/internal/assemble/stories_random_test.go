package assemble

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// randomly plays sessions of agents that work, delegate, ask and fail in any order, as no story would have it.
func randomly(w *stage, seed uint64, formats ...string) {
	r := rand.New(rand.NewPCG(seed, 7))
	for i, f := range formats {
		w.on(uint64(i+1), f, fmt.Sprint("session ", i/2))
	}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	one := func(n int) bool { return r.IntN(n) == 0 }
	second := int64(0)
	for range 120 {
		at := uint64(r.IntN(len(formats)) + 1)
		second += int64(r.IntN(4))
		run, call, resp := pick("a", "b", "c"), pick("c1", "c2", "c3", "c4"), pick("", "r1", "r2", "r3")
		var m msg.Message
		switch r.IntN(12) {
		case 0:
			m = user(run, second)
			if m.Signal = msg.RunStart; one(2) {
				m.Delegation.CorrelationPrompt = pick("prompt 1", "prompt 2")
			}
		case 1, 2:
			m = said(run, resp, second)
			m.Model = pick("", "lamp-1", "lamp-2")
		case 3:
			m = in(resp, called(run, call, pick("Read", "Bash"), second))
		case 4:
			m = in(resp, delegated(run, call, pick("owl", "wren"), second))
			if m.Delegation.Async = one(3); one(2) {
				m.Delegation.CorrelationPrompt = pick("prompt 1", "prompt 2")
			}
		case 5, 6:
			m = result(run, call, second)
			if m.Content = msg.Plain(pick("", "ok", "a long answer")); one(3) {
				m = failed(m)
			}
		case 7:
			m = as(answered(run, call, second), func(m *msg.Message) { m.Delegation.CorrelationID = pick("", "", "thread 1") })
		case 8:
			m = usageOf(run, resp, second, msg.Complete, msg.Tokens{Input: uint64(r.IntN(90)), Output: uint64(r.IntN(9)), Provenance: msg.Provider})
			m.Key = fmt.Sprint("usage of ", run, resp)
			if m.Complete = msg.Partial; one(2) {
				m.Complete = msg.Complete
			}
		case 9:
			m = as(status(run, []msg.Signal{msg.ModelStart, msg.FirstToken, msg.RunPause, msg.RunResume, msg.Retry, msg.Compaction}[r.IntN(6)], second), func(m *msg.Message) { m.ResponseID = resp })
		case 10:
			m = linked(run, call, pick("a", "b", "c", "d"), []msg.LinkMethod{msg.ByPrompt, msg.ByMetaFile, msg.ByNativeID}[r.IntN(3)], uint8(r.IntN(100)), second)
		case 11:
			m = as(stop(run, second), func(m *msg.Message) { m.IsError, m.FinishReason = one(4), pick("done", "cancelled") })
		}
		if run == "c" {
			m.ParentRun, m.ParentCall = pick("", "a", msg.UnknownRun), pick("", "", "c1")
		}
		if m.Run = fmt.Sprint(run, " of ", at); m.ParentRun == "a" {
			m.ParentRun = fmt.Sprint("a of ", at)
		}
		if m.Agent.Name = pick("", "", "Keeper"); one(3) {
			m.Agent.ID = pick("owl", "keeper")
		}
		switch {
		case one(12):
			w.flush(at, m)
		default:
			w.say(at, m)
		}
		for n := 0; len(w.due) > 0 && n < 20; n++ {
			d := w.due[0]
			w.due = slices.DeleteFunc(w.due, func(o due) bool { return o == d })
			w.again(d.stream, d.run)
		}
		if one(5) {
			w.commit()
		}
	}
	w.do("finish", w.a.Finish)
	w.commit()
}

// TestRowsOfRandomSessions compares the tables of random sessions with approved ones: a difference is one that users see in sessions that no
// story has.
func TestRowsOfRandomSessions(t *testing.T) {
	for name, formats := range map[string][]string{"one": {"f"}, "several": {"f", "f", "g", "codex"}} {
		newStage(t, Settings{}).held("random-"+name, func(w *stage) {
			w.quietly(func() { randomly(w, uint64(len(formats)), formats...) })
			w.ends()
		})
	}
}
