package clickhouse

import (
	"testing"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestOutputTokensMeanOneThing stores a response with reasoning: output_tokens is
// without it in messages, v_usage and v_spans alike.
func TestOutputTokensMeanOneThing(t *testing.T) {
	x, c := exporter(t, nil)
	used := msg.Tokens{Input: 10, Output: 7, Reasoning: 5}
	m := sampleMessages(1)[0]
	m.Kind, m.Usage, m.Host.Tombstone = msg.Usage, used, false
	s := msg.Span{ID: msg.SpanID{1}, TraceID: msg.TraceID{1}, Kind: msg.SpanChat, State: msg.SpanClosed, Start: 1, End: 2, Usage: used}
	export1(t, x, &export.Batch{ID: "tokens", Messages: exporttest.Records(m), Spans: exporttest.Records(s)})
	for _, from := range []string{"messages FINAL", "v_usage", "v_spans"} {
		if got := count(t, c, "SELECT concat(toString(output_tokens), ' ', toString(reasoning_tokens)) FROM "+from); got != "7 5" {
			t.Errorf("%s: %s, want 7 5", from, got)
		}
	}
}
