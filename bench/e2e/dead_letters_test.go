package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// notesDecoder are the lines of a configuration that has the decoder of the tests.
func (h *home) notesDecoder() string {
	h.Helper()
	h.must(buildNotes())
	return fmt.Sprintf("plugin_dir: %q\nplugins: {notes: {env: [NOTES_REVISION]}}", built)
}

// buildNotes builds that decoder.
var buildNotes = sync.OnceValue(func() error {
	build := exec.Command("go", "build", "-o", filepath.Join(built, "notes"), "./notes")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// notes has the configuration run the decoder of the tests in that revision.
func (h *home) notes(revision int, more ...string) *home {
	h.Helper()
	h.notesRevision(revision)
	return h.configure(append([]string{h.notesDecoder(), "sources:", files("notes", "in/*.jsonl")}, more...)...)
}

func (h *home) notesRevision(n int) { h.env = append(h.env, fmt.Sprint("NOTES_REVISION=", n)) }

func note(n int, more string) string {
	return fmt.Sprintf(`{"n":%d,"s":"s1","text":"note %d"%s}`+"\n", n, n, more)
}

// run runs a command to its end and returns its stdout.
func (h *home) run(args ...string) string {
	h.Helper()
	c := h.earshot(args...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		h.Fatalf("%v: %v\n%s%s", args, err, out, tail(stderr.String()))
	}
	return string(out)
}

// TestUpgrade reads lines with a decoder that does not know some of them, and again with one
// that does: the dead letters become messages, every other row is the same, and no row is
// duplicated.
func TestUpgrade(t *testing.T) {
	h := newHome(t).notes(1)
	var lines strings.Builder
	for i := range 200 {
		switch {
		case i%50 == 7:
			lines.WriteString(note(i, `,"new":1`))
		case i == 100:
			lines.WriteString("{torn\n")
		default:
			lines.WriteString(note(i, ""))
		}
	}
	h.write("in/a.jsonl", lines.String())
	h.drain()
	count := "SELECT count(), uniqExact(message_id) FROM messages"
	if diff := cmp.Diff([]string{"195\t195"}, h.query(count)); diff != "" {
		t.Fatal(diff)
	}
	var list []struct{ ID, Reason, Origin string }
	if err := json.Unmarshal([]byte(h.run("dlq", "list", "-o", "json")), &list); err != nil || len(list) != 5 {
		t.Fatalf("%d letters, %v", len(list), err)
	}
	if out := h.run("dlq", "retry"); out != "5 tried, 0 resolved\n" {
		t.Errorf("a retry without an upgrade: %q", out)
	}
	before := h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages ORDER BY ALL")
	h.notesRevision(2)
	if out := h.run("dlq", "retry"); out != "5 tried, 4 resolved\n" {
		t.Errorf("a retry after an upgrade: %q", out)
	}
	if diff := cmp.Diff([]string{"199\t199"}, h.query(count)); diff != "" {
		t.Error(diff)
	}
	after := make(map[string]bool)
	for _, row := range h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages ORDER BY ALL") {
		after[row] = true
	}
	for _, row := range before {
		if !after[row] {
			t.Errorf("changed: %s", row)
		}
	}
	if diff := cmp.Diff([]string{"false\t1", "true\t4"}, h.query("SELECT resolved, count() FROM dead_letters GROUP BY 1 ORDER BY 1")); diff != "" {
		t.Error(diff)
	}
	if out := h.run("dlq", "list"); strings.Count(out, "invalid_json") != 1 || strings.Contains(out, "wrong_type") {
		t.Errorf("%s", out)
	}
	// The whole again, beside a sidecar that runs: the same.
	h.startRunning()
	h.run("backfill")
	want := h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages ORDER BY ALL")
	if len(want) != 199 {
		t.Errorf("%d messages after a backfill", len(want))
	}
	if diff := cmp.Diff([]string{"0"}, h.query("SELECT sum(unaccounted_bytes) FROM source_ledger")); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedRow has the store refuse one row among many: the others are stored,
// that one is a dead letter in the local file and in the table, and it is stored
// once the store takes it.
func TestRefusedRow(t *testing.T) {
	h := newHome(t).notes(1)
	var lines strings.Builder
	for i := range 300 {
		lines.WriteString(note(i, ""))
	}
	h.write("in/a.jsonl", note(1000, ""))
	h.drain()
	h.admin("ALTER TABLE earshot.messages ADD CONSTRAINT picky CHECK content != 'note 123'")
	h.write("in/b.jsonl", lines.String())
	h.drain()
	if diff := cmp.Diff([]string{"300\t0"}, h.query("SELECT count(), countIf(content = 'note 123') FROM messages")); diff != "" {
		t.Error(diff)
	}
	letter := "SELECT stage, reason, resolved, JSONExtractString(payload, 'content') FROM dead_letters"
	if diff := cmp.Diff([]string{"export\trefused_by_store\tfalse\tnote 123"}, h.query(letter)); diff != "" {
		t.Error(diff)
	}
	if b, err := os.ReadFile(h.path("data/dead-letters.jsonl")); err != nil || strings.Count(string(b), "\n") != 1 {
		t.Errorf("the local file: %v\n%s", err, b)
	}
	h.admin("ALTER TABLE earshot.messages DROP CONSTRAINT picky")
	if out := h.run("dlq", "retry"); out != "1 tried, 1 resolved\n" {
		t.Errorf("%q", out)
	}
	if diff := cmp.Diff([]string{"301\t1"}, h.query("SELECT count(), countIf(content = 'note 123') FROM messages")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"export\trefused_by_store\ttrue\tnote 123"}, h.query(letter)); diff != "" {
		t.Error(diff)
	}
}

// admin runs statements as the store's owner.
func (h *home) admin(statements ...string) {
	h.Helper()
	h.serve()
	for _, sql := range statements {
		h.ask(h.path("data/store/http.sock"), sql)
	}
}

// TestCrashingRecord has records end the decoder's process: each is a dead letter,
// all others are messages.
func TestCrashingRecord(t *testing.T) {
	h := newHome(t).notes(1)
	var lines strings.Builder
	for i := range 5000 {
		more := ""
		if i%1000 == 500 {
			more = `,"crash":true`
		}
		lines.WriteString(note(i, more))
	}
	h.write("in/a.jsonl", lines.String())
	h.drain()
	if diff := cmp.Diff([]string{"4995"}, h.query("SELECT count() FROM messages")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"decode\tdecoder_crash\t5"}, h.query("SELECT stage, reason, count() FROM dead_letters GROUP BY ALL")); diff != "" {
		t.Error(diff)
	}
}

// TestBackfillOfTheJournal pushes lines to a decoder that does not know some of them, and
// decodes the journal again with one that does, beside the running sidecar: the dead letters
// become messages, and no row is duplicated.
func TestBackfillOfTheJournal(t *testing.T) {
	push := freeAddress(t)
	h := newHome(t).notes(1, fmt.Sprintf("  - {name: pushed, type: http, format: notes, listen: %q}", push), "journal: {keep: 1h, segment_size: 4KiB}")
	h.startRunning()
	var lines strings.Builder
	for i := range 200 {
		more := ""
		if i%50 == 7 {
			more = `,"new":1`
		}
		lines.WriteString(note(i, more))
	}
	for range 2 { // many segments, most of them delivered long ago
		h.post("http://"+push+"/?stream=a", "application/x-ndjson", []byte(lines.String()))
		lines.Reset()
		for i := range 100 {
			lines.WriteString(note(200+i, ""))
		}
	}
	count := "SELECT count(), uniqExact(message_id) FROM messages"
	h.until("the rows", func() bool { return slices.Equal(h.tryQuery(count), []string{"296\t296"}) })
	before := h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages ORDER BY ALL")
	h.notesRevision(2)
	h.run("backfill")
	if diff := cmp.Diff([]string{"300\t300"}, h.query(count)); diff != "" {
		t.Error(diff)
	}
	after := make(map[string]bool)
	for _, row := range h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages ORDER BY ALL") {
		after[row] = true
	}
	for _, row := range before {
		if !after[row] {
			t.Errorf("changed: %s", row)
		}
	}
	if got := h.query("SELECT count() > 0, sum(unaccounted_bytes) FROM source_ledger"); !slices.Equal(got, []string{"1\t0"}) {
		t.Errorf("ledger: %q", got)
	}
}
