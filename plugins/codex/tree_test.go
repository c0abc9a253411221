package codex

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestFilesOfASessionFitTogether: the file of a parent and that of its child name one
// session, one call and one run.
func TestFilesOfASessionFitTogether(t *testing.T) {
	for _, c := range []struct{ parent, child, call, parentRun string }{
		{"spawn_v1", "child_v1", "call_spawn2", msg.UnknownRun},
		{"spawn_v2", "child_forked", "call_shears1", msg.UnknownRun},
		{"child_v1", "grandchild", "", "019d0000-aaaa-7bbb-8ccc-0000000000d2"},
	} {
		parent, child := playCase(t, c.parent), playCase(t, c.child)
		linked := ""
		for _, m := range parent {
			if m.Signal == msg.Link && m.Tool.CallID == c.call {
				linked = m.Delegation.ChildRun
			}
		}
		first := child[0]
		switch {
		case first.Session != parent[0].Session:
			t.Errorf("%s is in session %q, its parent in %q", c.child, first.Session, parent[0].Session)
		case c.call != "" && first.Run != linked:
			t.Errorf("%s is run %q, its call links to %q", c.child, first.Run, linked)
		case first.ParentRun != c.parentRun:
			t.Errorf("%s has the parent run %q, want %q", c.child, first.ParentRun, c.parentRun)
		}
		for _, m := range child {
			if m.Run != first.Run {
				t.Errorf("%s: %s is in run %q", c.child, m.Key, m.Run)
			}
		}
	}
}

// TestAnswersAreGivenOnce: the answer of an agent is in a notice, in the output of the call
// that waits for it and in events, and is one result.
func TestAnswersAreGivenOnce(t *testing.T) {
	results := make(map[string]int)
	for _, m := range playCase(t, "spawn_v1") {
		if m.Kind == msg.DelegationResult {
			results[m.Tool.CallID]++
		}
	}
	for _, id := range []string{"call_spawn1", "call_spawn2", "call_spawn3", "call_spawn4"} {
		if results[id] != 1 {
			t.Errorf("%s has %d results, want 1", id, results[id])
		}
	}
}

// TestOlderPromptsBeginRuns: without records of turns, a prompt begins a run, and its
// repetition does not.
func TestOlderPromptsBeginRuns(t *testing.T) {
	starts := 0
	for _, m := range playCase(t, "older") {
		if m.Signal == msg.RunStart {
			starts++
			if m.Kind != msg.User || m.Run != m.Key {
				t.Errorf("run %q begins with %s %s", m.Run, m.Kind, m.Key)
			}
		}
	}
	if starts != 2 {
		t.Errorf("%d runs, want 2", starts)
	}
}

// TestThreadsInOneFile: a session_meta after other records is of another thread
// that was appended to the file.
func TestThreadsInOneFile(t *testing.T) {
	all, origin := lines(t, "two_turns")
	other, _ := lines(t, "aborted")
	sessions := make(map[string]int)
	for _, m := range play(t, origin, append(all, other...)...) {
		sessions[m.Session]++
	}
	if a, b := len(playCase(t, "two_turns")), len(playCase(t, "aborted")); len(sessions) != 2 || a+b != sessions["019cb81c-a538-7000-8000-0000000000a2"]+sessions["019cb81c-a538-7000-8000-0000000000a4"] {
		t.Errorf("sessions %v, want two of %d and %d messages", sessions, a, b)
	}
}

// TestSessionByName: without a session_meta the file's name names the thread.
func TestSessionByName(t *testing.T) {
	for path, want := range map[string]string{
		"/s/2026/03/04/rollout-2026-03-04T10-10-11-019cb81c-a538-7000-8000-0000000000a2.jsonl": "019cb81c-a538-7000-8000-0000000000a2",
		`C:\s\rollout-2026-03-04T10-10-11-019cb81c-a538-7000-8000-0000000000a2.jsonl.1`:        "019cb81c-a538-7000-8000-0000000000a2",
		"/s/other.jsonl": "other",
		"":               "unknown",
		"/s/\xff.jsonl":  "\uFFFD",
	} {
		m := play(t, path, text(`{"type":"event_msg","payload":{"type":"shutdown_complete"}}`))
		if m[0].Session != want {
			t.Errorf("%s: session %q, want %q", path, m[0].Session, want)
		}
	}
}
