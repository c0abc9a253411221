package clickhouse

import (
	"testing"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestAPersonsDecisionIsNoFailure stores results that failed, that a person denied and
// that were interrupted: a conversation has one error.
func TestAPersonsDecisionIsNoFailure(t *testing.T) {
	x, c := exporter(t, nil)
	b := &export.Batch{ID: "failed"}
	for i, errorType := range []string{"timeout", "denied", "interrupted", "cancelled"} {
		m := sampleMessages(1)[0]
		m.Session, m.Key, m.Kind, m.IsError, m.Tool.ErrorType, m.Host.Tombstone = "s", errorType, msg.ToolResult, true, errorType, false
		m.Host.ID = msg.ID{byte(i + 1)}
		b.Messages = append(b.Messages, new(m))
	}
	export1(t, x, b)
	if got := count(t, c, "SELECT concat(toString(errors), ' of ', toString(messages)) FROM v_sessions WHERE session_id = 's'"); got != "1 of 4" {
		t.Errorf("errors: %s, want 1 of 4", got)
	}
}
