package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// TestPackedRollout: Codex compresses a rollout that is no longer written. Lines that were read before are not read
// again, the others are, and a rollout that was compressed before its first read is read as it was.
func TestPackedRollout(t *testing.T) {
	const thread = "019cb81c-a538-7000-8000-0000000000f"
	line := func(second, typ, payload string) string {
		return `{"timestamp":"2026-03-03T06:10:` + second + `.000Z","type":"` + typ + `","payload":` + payload + "}\n"
	}
	rollout := func(n string) (first, rest string) {
		say := func(second, role, kind, text string) string {
			return line(second, "response_item", `{"type":"message","role":"`+role+`","id":"msg_`+n+second+`","content":[{"type":"`+kind+`","text":"`+text+`"}]}`)
		}
		return line("00", "session_meta", `{"id":"`+thread+n+`","cwd":"/srv","originator":"codex_cli_rs","cli_version":"0.151.0","source":"cli"}`) + say("01", "user", "input_text", "Is gate "+n+" shut?"),
			say("05", "assistant", "output_text", "Gate "+n+" is shut.")
	}
	h := newHome(t).configure("sources:", files("codex", "codex/*.jsonl{,.zst}"))
	pack := func(name, text string) {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		h.must(err)
		h.write(name+".zst", string(z.EncodeAll([]byte(text), nil)))
		old := time.Now().Add(-time.Hour) // it is complete
		h.must(os.Chtimes(h.path(name+".zst"), old, old))
	}
	name := func(n string) string { return "codex/rollout-2026-03-03T06-10-00-" + thread + n + ".jsonl" }
	first, rest := rollout("1")
	h.write(name("1"), first)
	h.drain()
	pack(name("1"), first+rest)
	h.must(os.Remove(h.path(name("1"))))
	other, end := rollout("2")
	pack(name("2"), other+end)
	h.drain()
	if d := cmp.Diff([]string{"1\tIs gate 1 shut?", "1\tGate 1 is shut.", "2\tIs gate 2 shut?", "2\tGate 2 is shut."},
		h.query("SELECT substring(session_id, 36), content FROM messages FINAL WHERE kind IN ('user', 'assistant') ORDER BY session_id, ts")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	read := h.query("SELECT read_bytes FROM source_ledger FINAL ORDER BY origin")
	if d := cmp.Diff([]string{fmt.Sprint(len(first + rest)), fmt.Sprint(len(other + end))}, read); d != "" {
		t.Errorf("bytes of each stream (-want +got):\n%s", d)
	}
}

// TestTasksOfATeam: each state of a task of Claude Code is a message of its team's conversation, also where the file was
// rewritten while nothing ran.
func TestTasksOfATeam(t *testing.T) {
	h := newHome(t).configure("sources:", files("claude-code", "claude/tasks/*/*.json"))
	task := func(status, owner string) {
		h.write("claude/tasks/session-5e550000/1.json", `{"id": "1", "subject": "Grease the gate", "description": "Grease both hinges of the gate.", "owner": "`+owner+`", "status": "`+status+`", "blocks": [], "blockedBy": []}`)
	}
	for _, state := range [][2]string{{"pending", ""}, {"in_progress", "smith"}, {"completed", "smith"}} {
		task(state[0], state[1])
		h.drain()
	}
	if d := cmp.Diff([]string{"session-5e550000\tcompleted\tsmith", "session-5e550000\tin_progress\tsmith", "session-5e550000\tpending\t"},
		h.query("SELECT session_id, attributes['status'] AS status, agent_name FROM messages FINAL WHERE kind = 'task' AND content LIKE 'Grease both%' ORDER BY status")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
