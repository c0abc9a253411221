package codex

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
)

// TestTokensAreThoseOfTheThread: the sum of the usage messages of a file is the last total
// of the CLI, less the total that was copied from another thread.
func TestTokensAreThoseOfTheThread(t *testing.T) {
	for name, want := range map[string]conversation.Counts{
		"turn":             {Input: 16400, Output: 250, CacheRead: 14720, CacheWrite: 0, Reasoning: 64},
		"older":            {Input: 4200, Output: 55, CacheRead: 2900, CacheWrite: 0, Reasoning: 12},
		"aborted":          {Input: 1500, Output: 25, CacheRead: 600, CacheWrite: 0, Reasoning: 0},
		"spawn_v1":         {Input: 7000, Output: 160, CacheRead: 4400, CacheWrite: 0, Reasoning: 0},
		"spawn_v2":         {Input: 9800, Output: 132, CacheRead: 6200, CacheWrite: 512, Reasoning: 20},
		"compaction":       {Input: 487100, Output: 948, CacheRead: 200000, CacheWrite: 0, Reasoning: 10},
		"child_forked":     {Input: 6500, Output: 31, CacheRead: 6100, CacheWrite: 0, Reasoning: 5},
		"resumed_copy":     {Input: 450, Output: 5, CacheRead: 400, CacheWrite: 0, Reasoning: 0},
		"forked":           {Input: 150, Output: 4, CacheRead: 100, CacheWrite: 0, Reasoning: 0},
		"two_turns":        {Input: 2000, Output: 20, CacheRead: 0, CacheWrite: 0, Reasoning: 0},
		"forked_paginated": {Input: 9500, Output: 20, CacheRead: 9000, CacheWrite: 0, Reasoning: 5},
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
		got := conversation.Counts{Input: sum.Input + sum.CacheRead + sum.CacheWrite, Output: sum.Output + sum.Reasoning, CacheRead: sum.CacheRead, CacheWrite: sum.CacheWrite, Reasoning: sum.Reasoning}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestTotalsAlone: the usage of a version that writes totals only is their growth.
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

// TestReview: a review counts its own tokens in the records of the thread; the total of the thread, which comes again after it, counts once.
func TestReview(t *testing.T) {
	var all [][]byte
	for i, tokens := range [][2]string{{"9000", "9000"}, {"700", "700"}, {"1600", "900"}, {"9000", "9000"}, {"18500", "9500"}} {
		all = append(all, []byte(`{"timestamp":"2026-03-04T09:10:1`+strconv.Itoa(i)+`.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":`+tokens[0]+`},"last_token_usage":{"input_tokens":`+tokens[1]+`}}}}`))
	}
	var got []uint64
	for _, m := range play(t, "", all...) {
		if m.Kind == msg.Usage {
			got = append(got, m.Usage.Input)
		}
	}
	if d := cmp.Diff([]uint64{9000, 700, 900, 9500}, got); d != "" {
		t.Error(d)
	}
}
