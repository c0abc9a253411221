package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// doctor runs the doctor and returns its findings, "status check detail" each, and whether it
// passed.
func (h *home) doctor(args ...string) (found []string, well bool) {
	h.Helper()
	out, err := h.earshot(append([]string{"doctor", "-o", "json"}, args...)...).Output()
	var list []struct{ Status, Check, Detail string }
	if e := json.Unmarshal(out, &list); e != nil {
		h.Fatalf("%v, %v: %s", e, err, out)
	}
	for _, f := range list {
		found = append(found, f.Status+" "+f.Check+" "+f.Detail)
	}
	return found, err == nil
}

func has(found []string, prefix string) bool {
	for _, f := range found {
		if strings.HasPrefix(f, prefix) {
			return true
		}
	}
	return false
}

// TestDoctor: the doctor passes a healthy installation, explains data that is not read yet, and
// finds each thing that is broken.
func TestDoctor(t *testing.T) {
	h := newHome(t).notes(1)
	var lines strings.Builder
	for i := range 100 {
		lines.WriteString(note(i, ""))
	}
	h.write("in/a.jsonl", lines.String()+"{torn\n")
	h.drain()
	found, well := h.doctor("--deep")
	if !well || has(found, "fail") {
		t.Errorf("%q", found)
	}
	for _, want := range []string{"ok data_dir", "ok decoders", "ok schema", "ok clock", "ok books notes", "note books notes 1 dead letters", "ok checkpoint", "ok files", "ok deep notes all 100 messages"} {
		if !has(found, want) {
			t.Errorf("no %q in %q", want, found)
		}
	}
	h.add("in/a.jsonl", "not read yet\n")
	if found, well = h.doctor(); !well || !has(found, "note files 13 B in 1 files are not read yet") {
		t.Errorf("%q", found)
	}
	for _, c := range []struct{ sql, undo, want, deep string }{
		{sql: "ALTER TABLE earshot.messages DELETE WHERE content = 'note 42' SETTINGS mutations_sync = 2", want: "fail deep notes 1 of 100"},
		{sql: "INSERT INTO earshot.source_ledger SELECT * REPLACE (decoded_bytes - 5 AS decoded_bytes, ver + 1 AS ver) FROM earshot.source_ledger FINAL", want: "fail books notes"},
		{sql: "ALTER TABLE earshot.messages DROP COLUMN finish_reason", want: "fail schema"},
	} {
		h.admin(c.sql)
		args := []string{}
		if c.deep != "" {
			args = append(args, c.deep)
		}
		if found, well := h.doctor(args...); well || !has(found, c.want) {
			t.Errorf("after %s: %q", c.sql, found)
		}
	}
	h.stopStore()
	h.must(os.RemoveAll(h.path("data")))
	if found, well := h.doctor(); well || !has(found, "fail data_dir") {
		t.Errorf("%q", found)
	}
}
