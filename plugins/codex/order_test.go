package codex

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestTokensBeforeTheItems: a response whose usage precedes its items, as up to 0.40, is one
// response with all of both.
func TestTokensBeforeTheItems(t *testing.T) {
	parts, tokens := make(map[string]int), make(map[string]msg.Tokens)
	var all msg.Tokens
	for _, m := range playCase(t, "counted_first") {
		switch {
		case m.Kind == msg.Usage:
			if m.ResponseID == "" {
				t.Errorf("%s belongs to no response", m.Key)
			}
			tokens[m.ResponseID], all = m.Usage, all.Add(m.Usage)
		case m.ResponseID != "":
			parts[m.ResponseID]++
		}
	}
	if len(parts) != 3 || len(tokens) != 3 {
		t.Errorf("%d responses have parts, %d have tokens, want 3", len(parts), len(tokens))
	}
	for id := range parts {
		if tokens[id].IsZero() {
			t.Errorf("response %s has no tokens", id)
		}
	}
	if want := (msg.Tokens{Input: 3400, CacheRead: 6200, Output: 86, Reasoning: 64, Provenance: msg.TranscriptFinal}); all != want {
		t.Errorf("got %+v, want %+v", all, want)
	}
}

// TestFileIsThereTwice: a file that was appended to itself, or of which a shipper of logs sent a part and then all of
// it, has each line once. Lines of the first rollouts have no times.
func TestFileIsThereTwice(t *testing.T) {
	for _, name := range cases(t) {
		all, origin := lines(t, name)
		if !bytes.Contains(all[0], []byte(`"session_meta"`)) {
			continue
		}
		want := play(t, origin, all...)
		for _, n := range []int{1, len(all) / 3, len(all)} {
			if d := cmp.Diff(want, play(t, origin, slices.Concat(all[:n], all)...), cmp.AllowUnexported(msg.Text{})); d != "" {
				t.Errorf("%s, after %d lines of it (-once +twice):\n%s", name, n, d)
			}
		}
	}
}
