package msgtest

import (
	"reflect"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestEachField holds for every struct that is counted: each field is changed,
// alone, and the original is left as it is.
func TestEachField(t *testing.T) {
	counts(t, msg.Message{Attrs: make([]msg.Attr, 0, 4)}, "Host.TraceID", "Tool.Arguments", "Usage.Input", "Frame")
	counts(t, msg.Span{}, "Agent.Kind", "FinishReasons", "Events")
	counts(t, msg.DeadLetter{}, "Payload", "Resolved")
	counts(t, msg.Ledger{}, "Read")
	counts(t, msg.Stream{}, "RemoteTrace", "Pace.Buffered")
}

func counts[T any](t *testing.T, base T, want ...string) {
	t.Helper()
	before := base
	seen := make(map[string]bool)
	EachField(base, func(name string, changed T) {
		seen[name] = true
		if reflect.DeepEqual(before, changed) {
			t.Errorf("%s is not changed", name)
		}
	})
	if !reflect.DeepEqual(before, base) {
		t.Error("the original was changed")
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("%s was not visited; %d fields were", name, len(seen))
		}
	}
}
