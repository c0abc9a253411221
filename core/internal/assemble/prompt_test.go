package assemble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// used is the usage of a response, as the provider states it.
func used(resp string, at int64, input, read, output uint64) msg.Message {
	return msg.Message{
		Key: "usage:" + resp, Kind: msg.Usage, Run: "a", ResponseID: resp, Model: "m", Time: at, Complete: msg.Complete,
		Usage: msg.Tokens{Input: input, CacheRead: read, Output: output, Provenance: msg.Provider},
	}
}

func returned(id string, at int64, bytes int) msg.Message {
	m := result("a", id, at)
	m.Content = msg.Plain(fmt.Sprintf("%*s", bytes, "x"))
	return m
}

func asks(resp, id string, at int64) msg.Message {
	m := in(resp, called("a", id, "Read", at))
	m.Model = "m"
	return m
}

// addedBy are the tokens of each call, of its row; "-" when unknown. Only the row of the call
// has them.
func (w *harness) addedBy() map[string]string {
	w.commit()
	out := make(map[string]string)
	for _, s := range w.rows {
		if s.Tool.CallID != "" && !s.Tombstone {
			out[s.Tool.CallID] = "-"
			if s.ResultTokensFrom != msg.NoProvenance {
				out[s.Tool.CallID] = strings.TrimSpace(fmt.Sprint(s.ResultTokens, " ", s.ResultTokensFrom, " ", s.Usage.Tier))
			}
		}
	}
	return out
}

// TestTokensThatResultsAdd: the tokens that the results of a step add to the requests behind
// it, in the order of transcripts (the usage of a response behind its results) and of
// providers (before them), with commits and restarts anywhere.
func TestTokensThatResultsAdd(t *testing.T) {
	first := []msg.Message{user("a", 0), asks("r1", "c1", 1), asks("r1", "c2", 1)}
	one, two, usage := returned("c1", 3, 300), returned("c2", 4, 100), used("r1", 2, 100, 900, 50)
	compact := msg.Message{Kind: msg.Status, Run: "a", Time: 5, Signal: msg.Compaction}
	other := used("r2", 6, 250, 1000, 10)
	other.Model = "small"
	flex := used("r2", 6, 250, 1000, 10)
	flex.Usage.Tier = "flex"
	partial := used("r2", 6, 250, 1000, 10)
	partial.Usage.Provenance = msg.TranscriptPartial
	for name, c := range map[string]struct {
		then []msg.Message
		want map[string]string
	}{
		"usage before results": {[]msg.Message{usage, one, two, said("a", "r2", 6), used("r2", 6, 250, 1000, 10)}, map[string]string{"c1": "150 provider", "c2": "50 provider"}},
		"usage behind results": {[]msg.Message{one, two, usage, said("a", "r2", 6), used("r2", 6, 250, 1000, 10)}, map[string]string{"c1": "150 provider", "c2": "50 provider"}},
		"three steps": {[]msg.Message{one, usage, asks("r2", "c3", 4), two, returned("c3", 5, 40), used("r2", 5, 250, 900, 10), said("a", "r3", 6), used("r3", 6, 1000, 300, 9)},
			// c2 arrived while r2 was streaming, and was first read by r3.
			map[string]string{"c1": "100 provider", "c2": "100 provider", "c3": "40 provider"}},
		"partial counts":          {[]msg.Message{usage, one, two, said("a", "r2", 6), partial}, map[string]string{"c1": "150 transcript_partial", "c2": "50 transcript_partial"}},
		"a tier":                  {[]msg.Message{usage, one, two, said("a", "r2", 6), flex}, map[string]string{"c1": "150 provider flex", "c2": "50 provider flex"}},
		"the last of a run":       {[]msg.Message{usage, one, two}, map[string]string{"c1": "-", "c2": "-"}},
		"no usage before":         {[]msg.Message{one, two, said("a", "r2", 6), used("r2", 6, 250, 1000, 10)}, map[string]string{"c1": "-", "c2": "-"}},
		"no usage between":        {[]msg.Message{usage, one, two, said("a", "r2", 6), said("a", "r3", 7), used("r3", 7, 250, 1000, 10)}, map[string]string{"c1": "-", "c2": "-"}},
		"a compaction":            {[]msg.Message{usage, one, two, compact, said("a", "r2", 6), used("r2", 6, 250, 1000, 10)}, map[string]string{"c1": "-", "c2": "-"}},
		"a context that shrank":   {[]msg.Message{usage, one, two, said("a", "r2", 6), used("r2", 6, 250, 0, 10)}, map[string]string{"c1": "-", "c2": "-"}},
		"another model":           {[]msg.Message{usage, one, two, said("a", "r2", 6), other}, map[string]string{"c1": "-", "c2": "-"}},
		"results that are empty":  {[]msg.Message{usage, returned("c1", 3, 0), returned("c2", 4, 0), said("a", "r2", 6), used("r2", 6, 250, 801, 10)}, map[string]string{"c1": "0 provider", "c2": "1 provider"}},
		"usage that comes to end": {[]msg.Message{usage, one, two, said("a", "r2", 6), used("r2", 6, 250, 1000, 10), used("r2", 7, 250, 1000, 90)}, map[string]string{"c1": "150 provider", "c2": "50 provider"}},
	} {
		for _, restarts := range []bool{false, true} {
			w := newHarness(t)
			for _, m := range append(first[:len(first):len(first)], c.then...) {
				w.apply(m)
				if restarts {
					w.restart()
				}
			}
			if d := cmp.Diff(c.want, w.addedBy()); d != "" {
				t.Errorf("%s, restarts %t: -want +got:\n%s", name, restarts, d)
			}
		}
	}
}

// TestTokensKeepTheChild: the span of a delegation whose child became known behind its result names the child still when the tokens of the
// result are known, later.
func TestTokensKeepTheChild(t *testing.T) {
	for _, by := range []msg.LinkMethod{msg.ByNativeID, msg.ByMetaFile} {
		w := newHarness(t)
		call, end := in("r1", delegated("a", "d", "scout", 1)), answered("a", "d", 3)
		call.Model, end.Content = "m", msg.Plain("all of the harbour")
		w.apply(
			user("a", 0), call, used("r1", 2, 100, 900, 50), end,
			msg.Message{Kind: msg.Status, Time: 4, Signal: msg.Link, Tool: msg.Tool{CallID: "d"}, Delegation: msg.Delegate{ChildRun: "x", Link: by}},
			said("a", "r2", 6), used("r2", 6, 250, 1000, 10),
		)
		w.commit()
		seen := false
		for _, s := range w.rows {
			if s.Tool.CallID != "d" || s.Tombstone {
				continue
			}
			if seen = true; s.Delegate.ChildRun != "x" || s.Delegate.Link != by || s.ResultTokens != 200 {
				t.Errorf("linked by %s: its child is %q by %q, its result has %d tokens", by, s.Delegate.ChildRun, s.Delegate.Link, s.ResultTokens)
			}
		}
		if !seen {
			t.Error("no span of the delegation")
		}
	}
}
