package codex

import (
	"testing"

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
