package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestDoctorComparesFiles: the findings on files are true of files that no run has seen, of documents and lines that were
// rewritten, of files that were renamed, and of a source that began at the end of its files.
func TestDoctorComparesFiles(t *testing.T) {
	h := newHome(t)
	h.notesRevision(1)
	h.configure(h.notesDecoder(), "sources:", files("notes", "in/*.jsonl"), files("atif", "trials/*.json"),
		"  - {name: late, type: file, format: notes, start_at: end, paths: [\"DIR/late/*.jsonl\"]}")
	h.write("in/a.jsonl", note(1, "")+note(2, ""))
	h.write("in/b.jsonl", note(3, ""))
	h.write("in/c.jsonl", note(4, "")+note(5, ""))
	h.write("late/d.jsonl", note(6, ""))
	h.write("trials/voyage.json", trajectory(1))
	h.drain()
	h.write("trials/voyage.json", trajectory(3))
	h.write("in/c.jsonl", note(7, "")+note(8, "")+note(9, ""))
	h.drain()
	h.must(os.Rename(h.path("in/b.jsonl"), h.path("in/renamed.jsonl")))
	check := func(when string, want ...string) {
		t.Helper()
		found, well := h.doctor()
		var got []string
		for _, f := range found {
			if strings.HasPrefix(strings.SplitN(f, " ", 2)[1], "files ") {
				got = append(got, f)
			}
		}
		if d := cmp.Diff(want, got); d != "" || !well {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	began := "note files source late began at the end of its files (start_at), so that they are not compared"
	check("all is read", began, "ok files nothing that is there is unread")
	h.write("in/new.jsonl", note(10, "")+note(11, ""))
	unread := func(lines string) string {
		return fmt.Sprintf("note files %d B in 1 files are not read yet, or are last lines without an end", len(lines))
	}
	check("a new file", began, unread(note(10, "")+note(11, "")))
	h.must(os.Remove(h.path("in/new.jsonl")))
	h.write("in/a.jsonl", note(12, ""))
	check("written anew, and shorter", began, unread(note(12, "")), "note files 1 files are shorter than the part that was read: replaced or truncated")
	h.must(os.Remove(h.path("in/a.jsonl")))
	check("deleted", began, "note files 1 files that were read are gone", "ok files nothing that is there is unread")
}

// TestServerThatDoesNotAnswer: a source whose server refuses it is a problem and fails doctor, until the server answers.
func TestServerThatDoesNotAnswer(t *testing.T) {
	var well atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !well.Load() {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close) // after the sidecar has ended
	h := newHome(t).configure(`telemetry: {listen: "127.0.0.1:0"}`, "sources:", "  - {name: remote, type: sse, format: agno, url: "+server.URL+"/events}")
	h.startRunning()
	h.until("the problem", func() bool {
		rows := h.query("SELECT source, reason, error FROM dead_letters")
		return slices.Contains(rows, "remote\tunexpected_answer\tthe server answered 401 Unauthorized")
	})
	const failing = "fail source remote its server did not answer when it was last asked, or not as it should"
	if found, ok := h.doctor(); ok || !has(found, failing) {
		t.Errorf("%q", found)
	}
	well.Store(true)
	h.until("the server to answer", func() bool {
		found, _ := h.doctor()
		return !has(found, failing)
	})
}
