package conversation

import (
	"maps"
	"testing"
)

// TestRules: each type has the rule whose key names it, and a type of two rules is a mistake of the table.
func TestRules(t *testing.T) {
	got := Rules(map[string]int{"ebb": 1, "flood spring_flood": 2})
	if want := map[string]int{"ebb": 1, "flood": 2, "spring_flood": 2}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a type has two rules")
		}
	}()
	Rules(map[string]int{"ebb": 1, "flood ebb": 2})
}
