package assemble

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// A call that a person denied, interrupted or cancelled did not fail.
func TestDeniedIsNoFailure(t *testing.T) {
	for errorType, want := range map[string]msg.Outcome{
		"denied": msg.OutcomeCancelled, "interrupted": msg.OutcomeCancelled, "cancelled": msg.OutcomeCancelled, "timeout": msg.OutcomeError, "": msg.OutcomeError,
	} {
		w := newHarness(t)
		var span msg.Span
		w.emitted = func(s msg.Span) {
			if s.Tool.CallID == "c1" {
				span = s
			}
		}
		answer := failed(result("a", "c1", 2))
		answer.Tool.ErrorType = errorType
		w.apply(user("a", 0), called("a", "c1", "Bash", 1), answer)
		w.commit()
		if span.Outcome != want {
			t.Errorf("%q: %s, want %s", errorType, span.Outcome, want)
		}
	}
}
