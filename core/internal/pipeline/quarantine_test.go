package pipeline_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// deadLetters are the dead letters of a table.
func (t *table) deadLetters() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, l := range t.letters {
		out = append(out, fmt.Sprintf("%s %s %s", l.Stage, l.Reason, l.Payload))
	}
	slices.Sort(out)
	return out
}

// TestDecoderIsEnded: a record that ends the decoder's process, by a crash, a hang, a stop or
// its memory, is found and quarantined; all others are messages, those of other streams too.
func TestDecoderIsEnded(t *testing.T) {
	for _, c := range []struct {
		do, reason string
		prepare    func(w *world)
	}{
		{"crash", "decoder_crash", func(*world) {}},
		{"hang", "decoder_timeout", func(w *world) { w.deadline = time.Second }},
		{"stop", "decoder_timeout", func(w *world) { w.deadline = time.Second }},
		{"eat", "decoder_memory", func(w *world) { w.limit = 300 << 20 }},
	} {
		t.Run(c.do, func(t *testing.T) {
			all := corpus()
			bad := `{"do":"` + c.do + `"}`
			all[0], all[200], all[201] = []byte(bad), []byte(bad), []byte(bad)
			w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all}, {name: "g", lines: corpus()}}}
			c.prepare(w)
			w.run(nil)
			set := "decode " + c.reason + " " + bad
			want := []string{set, set, set, `decode invalid_json {"broken`, `decode invalid_json {"broken`}
			if d := cmp.Diff(want, w.table.deadLetters()); d != "" {
				t.Error(d)
			}
			if n := len(w.table.messages); n != 2*(400-1-4+2)-3 {
				t.Errorf("%d messages", n)
			}
			for _, l := range w.table.ledger {
				if l.Read == 0 || l.Read != l.Decoded+l.Quarantined+l.Dropped {
					t.Errorf("%+v", l)
				}
			}
			// A quarantined record is not searched for again.
			rows := w.table.rows
			began := time.Now()
			w.run(nil)
			if w.table.rows != rows {
				t.Errorf("a second run added %d rows in %s", w.table.rows-rows, time.Since(began))
			}
		})
	}
}

// TestDecoderIsEndedBetweenFrames: a decoder that crashes when it is flushed is not flushed
// any more.
func TestDecoderIsEndedBetweenFrames(t *testing.T) {
	all := corpus()
	all[30] = []byte(`{"open":"crash "}`)
	all[310] = []byte(`{"n":310,"kind":"user"}`)
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all}, {name: "g", lines: corpus()}}}
	w.run(nil)
	if got := w.table.deadLetters(); !slices.Contains(got, "read decoder_crash ") {
		t.Errorf("%q", got)
	}
	if n := len(w.table.messages); n != 2*(400-1-4)+2+1 {
		t.Errorf("%d messages", n)
	}
}

// TestSnapshotThatKills: a decoder that crashes when it restores its snapshot begins at the
// stream's beginning.
func TestSnapshotThatKills(t *testing.T) { testUnusableSnapshot(t, "trap:", 0) }

// TestSnapshotThatIsRefused: so does a decoder that refuses its snapshot, as one does after an
// upgrade, and the failure is counted.
func TestSnapshotThatIsRefused(t *testing.T) { testUnusableSnapshot(t, "refuse:", 1) }

func testUnusableSnapshot(t *testing.T, effect string, failures float64) {
	trap := t.TempDir() + "/trap"
	all := corpus()
	all[30], all[300], all[310] = []byte(`{"open":"`+effect+trap+`"}`), []byte(`{"n":300,"kind":"user"}`), []byte(`{"n":310,"kind":"user"}`)
	all[399] = []byte(`{"n":399,"kind":"user"}`)
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all}}}
	w.run(nil)
	clean := w.table.dump()
	if err := os.WriteFile(trap, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings.Metrics = telemetry.New()
	w.files[0].lines = append(all, []byte(`{"n":400,"kind":"user"}`))
	w.run(nil)
	if n := strings.Count(w.table.dump(), "message_id"); n != strings.Count(clean, "message_id")+1 {
		t.Errorf("%d messages after %d", n, strings.Count(clean, "message_id"))
	}
	if n := figures(t, w.settings.Metrics)["earshot_decoder_failures_total"]; n != failures {
		t.Errorf("%v failures are counted, want %v", n, failures)
	}
}

// TestCircuit: a decoder that always crashes opens the circuit, and Broken names it; once the
// decoder runs, the circuit is closed and no record is missing.
func TestCircuit(t *testing.T) {
	trap := t.TempDir() + "/trap"
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus()}}, trap: trap}
	if err := os.WriteFile(trap, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := false
	w.during = func(p *pipeline.Pipeline) {
		for end := time.Now().Add(time.Minute); !opened && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			for _, why := range p.Broken() {
				opened = strings.Contains(why, "format notes: its decoder crashed") && strings.Contains(why, "exit status 9")
			}
		}
		if err := os.Remove(trap); err != nil {
			t.Error(err)
		}
	}
	w.after = func(p *pipeline.Pipeline) {
		for end := time.Now().Add(time.Minute); p.Broken() != nil; <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("still open: %q", p.Broken())
			}
		}
	}
	w.run(nil)
	if !opened {
		t.Error("the circuit did not open")
	}
	if n := len(w.table.messages); n != 400-1-4+2 {
		t.Errorf("%d messages", n)
	}
}

// panicking has a panic at one line in a thousand.
func panicking(n int) [][]byte {
	all := lines(`{"n":%d,"run":"r","kind":"user","text":"a message of some length, as people write"}`, n)
	for i := 500; i < n; i += 1000 {
		all[i] = []byte(`{"panic":true}`)
	}
	return all
}

// TestOneInAThousandPanics: a panic costs one record, and neither the process nor the others.
func TestOneInAThousandPanics(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: panicking(10_000)}}}
	w.run(nil)
	if n := len(w.table.messages); n != 9990 {
		t.Errorf("%d messages", n)
	}
	want := slices.Repeat([]string{`decode decoder_panic {"panic":true}`}, 10)
	if d := cmp.Diff(want, w.table.deadLetters()); d != "" {
		t.Error(d)
	}
}

// BenchmarkPanics compares a clean run with one in which one record in a thousand
// makes the decoder panic.
func BenchmarkPanics(b *testing.B) {
	clean := panicking(50_000)
	for i := range clean {
		clean[i] = []byte(strings.Replace(string(clean[i]), `{"panic":true}`, `{"n":0,"kind":"user"}`, 1))
	}
	for _, c := range []struct {
		name  string
		lines [][]byte
	}{{"clean", clean}, {"panicking", panicking(50_000)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				w := &world{t: b, dir: b.TempDir(), table: newTable(), files: []*file{{name: "f", lines: c.lines, most: 200}}, settings: pipeline.Settings{BatchRows: 5000}}
				w.run(nil)
			}
		})
	}
}
