package codex

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestTokensAreThoseOfTheThread: what the usage messages of a file sum up to is the
// last total that the CLI itself told, less what was copied from another thread.
func TestTokensAreThoseOfTheThread(t *testing.T) {
	for name, want := range map[string]counts{
		"turn":         {16400, 14720, 0, 250, 64},
		"older":        {4200, 2900, 0, 55, 12},
		"aborted":      {1500, 600, 0, 25, 0},
		"spawn_v1":     {7000, 4400, 0, 160, 0},
		"spawn_v2":     {9800, 6200, 512, 132, 20},
		"compaction":   {487100, 200000, 0, 948, 10},
		"child_forked": {6500, 6100, 0, 31, 5},
		"resumed_copy": {450, 400, 0, 5, 0},
		"forked":       {150, 100, 0, 4, 0},
		"two_turns":    {2000, 0, 0, 20, 0},
	} {
		var sum msg.Tokens
		responses := make(map[string]bool)
		for _, m := range playCase(t, name) {
			if m.Kind != msg.Usage {
				continue
			}
			sum = sum.Add(m.Usage)
			if m.ResponseID != "" && responses[m.ResponseID] {
				t.Errorf("%s: response %s counts twice", name, m.ResponseID)
			}
			responses[m.ResponseID] = true
		}
		got := counts{sum.Input + sum.CacheRead + sum.CacheWrite, sum.CacheRead, sum.CacheWrite, sum.Output + sum.Reasoning, sum.Reasoning}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestExclusive(t *testing.T) {
	for _, c := range []struct {
		in   counts
		want msg.Tokens
	}{
		{counts{Input: 100, CacheRead: 60, CacheWrite: 30, Output: 20, Reasoning: 5}, msg.Tokens{Input: 10, CacheRead: 60, CacheWrite: 30, Output: 15, Reasoning: 5}},
		{counts{Input: 10, CacheRead: 60, CacheWrite: 5, Output: 2, Reasoning: 5}, msg.Tokens{CacheRead: 10, Reasoning: 2}},
		{counts{}, msg.Tokens{}},
	} {
		c.want.Provenance = msg.TranscriptFinal
		if got := c.in.exclusive(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.in, got, c.want)
		}
	}
}

// TestTotalsAlone: a version that tells nothing but the sum is counted by how it
// moves.
func TestTotalsAlone(t *testing.T) {
	var all [][]byte
	for i, total := range []string{"100", "100", "250"} {
		all = append(all, []byte(`{"timestamp":"2026-03-04T09:10:1`+strconv.Itoa(i)+`.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":`+total+`}}}}`))
	}
	var got []uint64
	for _, m := range play(t, "", all...) {
		if m.Kind == msg.Usage {
			got = append(got, m.Usage.Input)
		}
	}
	if d := cmp.Diff([]uint64{100, 150}, got); d != "" {
		t.Error(d)
	}
}
