package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// transcript is a Claude Code session of one question and a number of answers, each a response
// of its own with seven tokens.
func transcript(session string, answers int) string {
	var b strings.Builder
	line := func(n int, typ, message string) {
		parent := "null"
		if n > 0 {
			parent = fmt.Sprintf(`"%s-%d"`, session, n-1)
		}
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/tmp","sessionId":%q,"version":"2.1.0","type":%q,"message":%s,"uuid":"%s-%d","timestamp":"2026-11-02T10:00:%02d.000Z"}`+"\n",
			parent, session, typ, message, session, n, n)
	}
	line(0, "user", `{"role":"user","content":"how many?"}`)
	for n := 1; n <= answers; n++ {
		line(n, "assistant", fmt.Sprintf(`{"id":"msg_%s_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"answer %d"}],"stop_reason":"end_turn","usage":{"input_tokens":4,"output_tokens":3}}`, session, n, n))
	}
	return b.String()
}

// committed reports whether the checkpoint has all of a file, with the state of its decoder. It reads
// a copy: the sidecar locks the file, and a copy that is made during a commit is not taken.
func (h *home) committed(path string) bool {
	info, err := os.Stat(path)
	h.must(err)
	b, err := os.ReadFile(h.path("data/checkpoint.db"))
	h.must(err)
	h.must(os.WriteFile(h.path("checkpoint.copy"), b, 0o600))
	done := false
	func() {
		defer func() { _ = recover() }() // bbolt panics at a torn copy
		db, err := bbolt.Open(h.path("checkpoint.copy"), 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			return
		}
		defer db.Close()
		_ = db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("streams")).ForEach(func(_, v []byte) error {
				var s struct {
					Origin  string
					Pos     int64
					SnapPos int64 `json:"snap_pos"`
				}
				err := json.Unmarshal(v, &s)
				done = done || s.Origin == path && s.Pos == info.Size() && s.SnapPos == s.Pos
				return err
			})
		})
	}()
	return done
}

// TestGoneAtTheNextStart stops the sidecar as soon as the last line of three transcripts is stored,
// and removes the files while it is down: the next run stores the usage of the last response of each,
// which the decoder held.
func TestGoneAtTheNextStart(t *testing.T) {
	away := map[string]func(h *home, path string){
		"deleted":   func(h *home, path string) { h.must(os.Remove(path)) },
		"moved":     func(h *home, path string) { h.must(os.Rename(path, h.path("elsewhere"))) },
		"rewritten": func(h *home, path string) { h.must(os.WriteFile(path, []byte(transcript("other", 1)), 0o644)) },
	}
	for _, end := range []string{"interrupted", "killed"} {
		t.Run(end, func(t *testing.T) {
			h := newHome(t).configure("sources:", files("claude-code", "projects/*/*.jsonl"), "delivery: {flush_interval: 100ms}")
			file := func(session string) string { return "projects/p/" + session + ".jsonl" }
			for session := range away {
				h.write(file(session), transcript(session, 2))
			}
			p := h.startRunning()
			for session := range away {
				h.add(file(session), strings.TrimPrefix(transcript(session, 3), transcript(session, 2)))
			}
			h.until("the last answers", func() bool {
				return strings.Join(h.tryQuery("SELECT uniqExact(session_id) FROM messages FINAL WHERE kind = 'assistant' AND content = 'answer 3'"), "") == fmt.Sprint(len(away))
			})
			if end == "killed" {
				// The rows are stored before the checkpoint that has the decoder's state.
				for session := range away {
					h.until("the checkpoint", func() bool { return h.committed(h.path(file(session))) })
				}
				p.kill()
			} else {
				h.must(p.Process.Signal(os.Interrupt))
				h.waitExit(p)
			}
			for session, remove := range away {
				remove(h, h.path(file(session)))
			}
			h.drain()
			for session := range away {
				if got := h.query("SELECT sum(input_tokens), sum(output_tokens) FROM messages FINAL WHERE session_id = '" + session + "'"); got[0] != "12\t9" {
					t.Errorf("%s: tokens: %q, want 12 and 9", session, got)
				}
			}
			if got := h.query("SELECT count() FROM dead_letters"); got[0] != "0" {
				t.Errorf("%s dead letters", got)
			}
		})
	}
}
