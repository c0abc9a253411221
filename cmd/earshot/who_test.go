package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/inspect"
)

// TestWhoNamesTheZoneOfDays: days are of UTC, and all other times of a command are local.
func TestWhoNamesTheZoneOfDays(t *testing.T) {
	var out bytes.Buffer
	list := []inspect.WhoRow{{Values: []string{"2026-11-30", "pilot"}, Tokens: inspect.Tokens{Input: 9}, CostUSD: 1}}
	if err := writeWho(&out, []string{"day", "agent"}, list); err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(out.String(), "\n"); !strings.HasPrefix(head, "DAY (UTC)   AGENT  COST") {
		t.Errorf("the head is %q", head)
	}
}
