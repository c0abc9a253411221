package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// TestDecodePrintsEventsAndLinks has a span with both, in each version of the names.
func TestDecodePrintsEventsAndLinks(t *testing.T) {
	s := msg.Span{
		TraceID: msg.TraceID{1}, ID: msg.SpanID{2}, Kind: msg.SpanDelegation, State: msg.SpanClosed, Start: 1e9, End: 2e9,
		Delegate: msg.Delegate{To: "pilot"},
		Events:   []msg.SpanEvent{{Time: 15e8, Name: "retry"}, {Time: 16e8, Name: "error", Attrs: []msg.Attr{{Key: "error.type", Value: "timeout"}}}},
		Links:    []msg.SpanLink{{TraceID: msg.TraceID{3}, SpanID: msg.SpanID{4}, State: "k=v", Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}}}},
	}
	var out bytes.Buffer
	if err := writeSpans(&out, "", []msg.Span{s}); err != nil {
		t.Fatal(err)
	}
	var got span
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	events := []spanEvent{
		{"1970-01-01T00:00:01.500000000Z", "earshot.retry", nil},
		{"1970-01-01T00:00:01.600000000Z", "earshot.error", map[string]string{"error.type": "timeout"}},
	}
	links := []spanLink{{s.Links[0].TraceID.String(), s.Links[0].SpanID.String(), "k=v", map[string]string{"earshot.link": "previous_turn"}}}
	if d := cmp.Diff(events, got.Events) + cmp.Diff(links, got.Links); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	out.Reset()
	if err := writeSpans(&out, config.SemconvLatest, []msg.Span{s}); err != nil || !bytes.Contains(out.Bytes(), []byte(`"gen_ai.transfer.target.name":"pilot"`)) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestSemconvVersionsHaveOneName holds the configuration's names of the versions to those
// of the package that has them.
func TestSemconvVersionsHaveOneName(t *testing.T) {
	if config.SemconvRelease != semconv.GenAI141 || config.SemconvLatest != semconv.GenAILatest {
		t.Errorf("%q %q", config.SemconvRelease, config.SemconvLatest)
	}
}
