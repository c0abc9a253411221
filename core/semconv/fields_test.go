package semconv

import (
	"fmt"
	"maps"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
)

// elsewhere are the fields of a span without an attribute: identity and times, which are
// fields of OTLP, and fields left out on purpose.
var elsewhere = map[string]string{
	"TraceID":         "identity",
	"ID":              "identity",
	"Parent":          "identity",
	"Start":           "time",
	"End":             "time",
	"Events":          "each event: time, EventName, its attributes as they are",
	"Links":           "each link: ids, its attributes as they are",
	"Pace.Start":      "time; a column of streams",
	"Pace.Gaps":       "a metric: time_per_output_chunk",
	"Pace.FirstChunk": "a column of streams; FirstByte and FirstEvent say enough",
	"Ver":             "only a store replaces rows",
	"Tombstone":       "only a store removes rows",
	"Shown":           "only a store shows open spans",
	"Worked":          "the duration in the table delegations",
	"LastSeen":        "equals End once a span has ended; a column of open_spans",
	"Alive":           "only what has not ended needs it; a column of open_spans",
	"Tool.Arguments":  "not kept in a span",
	"Tool.Duration":   "shows in End",
	"Delegate.ToID":   "a column of delegations",
	"Delegate.Task":   "not kept in a span",
	"ArgumentShape":   "a column of tool_calls", "Attempt": "a column of tool_calls",
	"ResultTokens": "known when the span has been sent; a column of tool_calls", "ResultTokensFrom": "as ResultTokens", "Amends": "such a span is not sent",
	"Client.Project": "a column of spans", "Client.Branch": "a column of spans", "Client.Version": "a column of spans", "Client.Host": "a column of spans", "Client.User": "a column of spans",
	"Delegate.CorrelationID": "finds the child run, which the span names", "Delegate.CorrelationPrompt": "as CorrelationID",
	"Usage.CacheWrite1h": "the conventions have no attribute for it; a column of spans, and of Terms",
	"Usage.Tier":         "as CacheWrite1h",
	"Usage.Stated":       "as CacheWrite1h",
	"Tool.ErrorType":     "the span's own ErrorType says it",
	"Seen.By":            "only several formats: TestSeenBy",
	"Request":            "each parameter by its own name: TestRequestParameters",
	"Server":             "only what is host:port: TestServer",
}

// TestEveryFieldIsNamed changes one field of a span at a time and looks for the
// difference in the attributes of the profile.
func TestEveryFieldIsNamed(t *testing.T) {
	p := profile(t, GenAI141)
	elsewhere := maps.Clone(elsewhere)
	say := func(s *msg.Span) string {
		code, text := p.Status(s)
		return fmt.Sprint(p.Name(s), p.Kind(s), code, text, ServiceName(s), rendered(p, s))
	}
	msgtest.EachField(msg.Span{}, func(name string, _ msg.Span) {
		seen := false
		for kind := msg.SpanRun; kind <= msg.SpanWorkflow; kind++ {
			for outcome := msg.OutcomeUnset; outcome <= msg.OutcomeCancelled; outcome++ {
				base := msg.Span{Kind: kind, Outcome: outcome, Session: "s", Usage: msg.Tokens{Input: 1}}
				msgtest.EachField(base, func(n string, changed msg.Span) {
					seen = seen || n == name && say(&base) != say(&changed)
				})
			}
		}
		why, listed := elsewhere[name]
		switch {
		case !seen && !listed:
			t.Errorf("%s is neither mapped nor listed as left out", name)
		case seen && listed:
			t.Errorf("%s is mapped, and listed as left out: %s", name, why)
		}
		delete(elsewhere, name)
	})
	for name := range elsewhere {
		t.Errorf("%s is listed and is no field", name)
	}
}
