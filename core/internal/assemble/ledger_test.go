package assemble

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// usageOf is the usage of a response, perhaps not yet complete.
func usageOf(run, resp string, t int64, c msg.Completeness, u msg.Tokens) msg.Message {
	return msg.Message{Key: "usage:" + resp, Kind: msg.Usage, Run: run, ResponseID: resp, Time: t, Complete: c, Usage: u}
}

// runUsage is the tokens on the spans of runs, by run.
func (w *harness) runUsage() map[string]msg.Tokens {
	w.commit()
	out := make(map[string]msg.Tokens)
	for _, s := range w.rows {
		if s.Kind == msg.SpanRun && !s.Tombstone {
			out[s.Run] = s.Usage
		}
	}
	return out
}

// TestTokensAreTrue has the ways in which token counts are known to go wrong.
func TestTokensAreTrue(t *testing.T) {
	in := func(n uint64) msg.Tokens { return msg.Tokens{Input: n} }
	out := func(n uint64) msg.Tokens { return msg.Tokens{Input: 100, Output: n} }
	every := func(n uint64) msg.Tokens {
		return msg.Tokens{Input: n, Output: 2 * n, CacheRead: 3 * n, CacheWrite: 4 * n, Reasoning: 5 * n, CacheWrite1h: 6 * n}
	}
	child := func(run string) msg.Message {
		m := user(run, 2)
		m.ParentRun, m.ParentCall = "a", "d-"+run
		return m
	}
	total := func(key string, t int64, n uint64) msg.Message { // of a store
		m := msg.Message{Key: key, Kind: msg.Usage, Run: "a", Time: t, Complete: msg.Summary, Usage: in(n)}
		m.SetAttr(msg.TotalOf, msg.OfSession)
		return m
	}
	rebuilt := func(n uint64) msg.Message {
		return msg.Message{Key: "rebuilt", Kind: msg.Usage, Run: "a", Time: 9, Complete: msg.Summary, Usage: in(n)}
	}
	for _, c := range []struct {
		name string
		play []msg.Message
		want map[string]msg.Tokens
	}{
		{"the parts of a total that grow", []msg.Message{total("p", 1, 7), total("q", 2, 20), total("p", 3, 9)}, map[string]msg.Tokens{"a": in(29)}},
		{"a total beside responses, which shrinks", []msg.Message{total("p", 1, 30), usageOf("a", "r1", 2, msg.Complete, in(20)), total("p", 3, 10)}, map[string]msg.Tokens{"a": in(30)}},
		{"a total that is written after the end", []msg.Message{{Key: "stop", Kind: msg.Stop, Run: "a", Time: 5, Signal: msg.RunEnd}, total("p", 1, 7)}, map[string]msg.Tokens{"a": in(7)}},
		{"a total that was rebuilt", []msg.Message{usageOf("a", "r1", 2, msg.Complete, in(20)), rebuilt(21)}, map[string]msg.Tokens{"a": in(20)}},
		{"the first snapshot of a stream is not its end", []msg.Message{
			usageOf("a", "r1", 1, msg.Partial, out(1)), usageOf("a", "r1", 2, msg.Partial, out(40)), usageOf("a", "r1", 3, msg.Complete, out(200)),
		}, map[string]msg.Tokens{"a": out(200)}},
		{"snapshots of two responses, mixed", []msg.Message{
			usageOf("a", "r1", 1, msg.Partial, out(1)), usageOf("a", "r2", 2, msg.Partial, out(2)), usageOf("a", "r1", 3, msg.Complete, out(200)), usageOf("a", "r2", 4, msg.Complete, out(300)),
		}, map[string]msg.Tokens{"a": {Input: 200, Output: 500}}},
		{"a snapshot of every class of tokens", []msg.Message{
			usageOf("a", "r1", 1, msg.Partial, every(1)), usageOf("a", "r1", 2, msg.Partial, every(3)), usageOf("a", "r2", 3, msg.Complete, every(5)), usageOf("a", "r1", 4, msg.Complete, every(10)),
		}, map[string]msg.Tokens{"a": every(15)}},
		{"a row for each block of one response", []msg.Message{
			usageOf("a", "r1", 1, msg.Complete, out(200)), usageOf("a", "r1", 1, msg.Complete, out(200)), usageOf("a", "r1", 1, msg.Complete, out(200)),
		}, map[string]msg.Tokens{"a": out(200)}},
		{"rows of one response around another", []msg.Message{
			usageOf("a", "r1", 1, msg.Complete, out(200)), usageOf("a", "r2", 2, msg.Complete, out(10)), usageOf("a", "r1", 3, msg.Complete, out(200)),
		}, map[string]msg.Tokens{"a": {Input: 200, Output: 210}}},
		{"children that cost the same", []msg.Message{
			delegated("a", "d-x", "scout", 1), delegated("a", "d-y", "scout", 1), child("x"), child("y"),
			usageOf("x", "r1", 3, msg.Complete, in(7)), usageOf("y", "r2", 3, msg.Complete, in(7)),
		}, map[string]msg.Tokens{"a": {}, "x": in(7), "y": in(7)}},
		{"classes stay apart", []msg.Message{
			usageOf("a", "r1", 1, msg.Complete, msg.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}),
			usageOf("a", "r2", 2, msg.Complete, msg.Tokens{Input: 10, CacheRead: 30}),
		}, map[string]msg.Tokens{"a": {Input: 11, Output: 2, CacheRead: 33, CacheWrite: 4, Reasoning: 5}}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " restart=", restart), func(t *testing.T) {
				w := newHarness(t)
				w.apply(user("a", 0))
				for _, m := range c.play {
					w.apply(m)
					if restart {
						w.restart()
					}
				}
				for run := range c.want {
					w.apply(msg.Message{Kind: msg.Stop, Run: run, Time: 9, Signal: msg.RunEnd})
				}
				if d := cmp.Diff(c.want, w.runUsage()); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	}
}
