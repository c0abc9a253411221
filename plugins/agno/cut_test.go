package agno

import (
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestCutStreams: a connection that breaks is two streams, of which the second begins in the
// middle of runs. The messages of both have all calls and results, and every text, whole or
// in two parts.
func TestCutStreams(t *testing.T) {
	for seed := range uint64(40) {
		g := newGenerator(seed)
		all := play(t, g.frames...)
		for at := 1; at < len(g.frames); at += 1 + len(g.frames)/12 {
			both := msg.Fold(slices.Concat(play(t, g.frames[:at]...), play(t, g.frames[at:]...)))
			if got, want := callsOf(both), callsOf(all); !slices.Equal(got, want) {
				t.Fatalf("seed %d, cut at %d: calls and results %q, want %q", seed, at, got, want)
			}
			for i := range all {
				m := &all[i]
				if (m.Kind == msg.Assistant || m.Kind == msg.Reasoning) && !containsText(both, m.Run, m.Content.String()) {
					t.Fatalf("seed %d, cut at %d: %s is lost: %q", seed, at, m.Key, m.Content)
				}
			}
		}
	}
}

// containsText reports whether messages of a run have the text, or two parts of it.
func containsText(messages []msg.Message, run, text string) bool {
	var texts []string
	for i := range messages {
		if messages[i].Run == run {
			texts = append(texts, messages[i].Content.String())
		}
	}
	has := func(part string, in func(string, string) bool) bool {
		return slices.ContainsFunc(texts, func(s string) bool { return in(s, part) })
	}
	if has(text, strings.Contains) {
		return true
	}
	for i := range text {
		if has(text[:i], strings.HasSuffix) && has(text[i:], strings.HasPrefix) {
			return true
		}
	}
	return false
}
