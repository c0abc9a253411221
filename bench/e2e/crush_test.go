package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// TestCrushDatabase follows a database that Crush writes, row by row: a message that grows is there once, the sub-agent is below its call,
// and no tokens count, for the database has none of the responses.
func TestCrushDatabase(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: crush, type: sqlite, format: crush, paths: ["DIR/crush.db"], interval: 50ms}`)
	db, err := sql.Open("sqlite", "file:"+h.path("crush.db")+"?_pragma=journal_mode(WAL)")
	h.must(err)
	defer func() { h.must(db.Close()) }()
	_, err = db.Exec(`
		CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, updated_at INTEGER, created_at INTEGER,
			summary_message_id TEXT, todos TEXT);
		CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL, model TEXT, created_at INTEGER, updated_at INTEGER, finished_at INTEGER, provider TEXT, is_summary_message INTEGER);`)
	h.must(err)
	rows, err := os.ReadFile("../../plugins/crush/testdata/session/in.jsonl")
	h.must(err)
	for i, line := range bytes.Split(bytes.TrimSpace(rows), []byte("\n")) {
		var r struct {
			Table string
			Row   map[string]json.RawMessage
		}
		h.must(json.Unmarshal(line, &r))
		value := func(name string) any {
			var v any
			h.must(json.Unmarshal(r.Row[name], &v))
			if _, list := v.([]any); list {
				return string(r.Row[name])
			}
			return v
		}
		columns := []string{"id", "session_id", "role", "parts", "model", "created_at", "updated_at", "finished_at", "provider", "is_summary_message"}
		if r.Table == "sessions" {
			columns = []string{"id", "parent_session_id", "title", "message_count", "prompt_tokens", "completion_tokens", "cost", "updated_at", "created_at", "summary_message_id", "todos"}
		}
		names, marks, sets, values := "", "", "", []any(nil)
		for _, c := range columns {
			names, marks, sets, values = names+","+c, marks+",?", sets+","+c+"=excluded."+c, append(values, value(c))
		}
		_, err := db.Exec("INSERT INTO "+r.Table+" ("+names[1:]+") VALUES ("+marks[1:]+") ON CONFLICT (id) DO UPDATE SET "+sets[1:], values...)
		h.must(err)
		if i == 3 || i == 9 { // in the middle of the first response, and while the sub-agent works
			h.drain()
		}
	}
	h.drain()
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning') GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind = 'reasoning'"); fmt.Sprint(got) != "[The list is in a file.]" {
		t.Errorf("thoughts %q", got)
	}
	if got := h.query("SELECT concat(tool_name, ' ', status, ' ', error_type) FROM v_tool_calls ORDER BY ts, tool_name"); fmt.Sprint(got) != "[agent ok  bash ok  edit cancelled denied]" {
		t.Errorf("calls %q", got)
	}
	if got := h.query("SELECT concat(status, ' ', link_method) FROM v_delegations"); fmt.Sprint(got) != "[ok native_id]" {
		t.Errorf("delegations %q", got)
	}
	if got := h.query("SELECT p.kind FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run'"); fmt.Sprint(got) != "[delegation]" {
		t.Errorf("the sub-agent is below %q", got)
	}
	if got := h.query("SELECT status FROM v_spans WHERE kind = 'run' ORDER BY ts"); fmt.Sprint(got) != "[ok ok cancelled]" {
		t.Errorf("runs %q", got)
	}
	if got := h.query("SELECT any(title) FROM v_sessions"); fmt.Sprint(got) != "[Torn nets]" {
		t.Errorf("title %q", got)
	}
	if got := h.query("SELECT sum(input_tokens + output_tokens) FROM v_usage"); fmt.Sprint(got) != "[0]" {
		t.Errorf("tokens %q", got)
	}
}
