package pipeline_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// TestErase erases a session while other files are read on: nothing of it is in the checkpoint, neither the state of a decoder nor of the assembler,
// messages of it that are read later are refused, and the other sessions go on as they were.
func TestErase(t *testing.T) {
	is := func(names ...string) func(tenant, session string) bool {
		return func(tenant, session string) bool { return tenant == "default" && slices.Contains(names, session) }
	}
	streams := func(p *pipeline.Pipeline, names ...string) (out []string) {
		list, err := p.StreamsOf(t.Context(), is(names...))
		if err != nil {
			t.Error(err)
		}
		for _, s := range list {
			out = append(out, s[0]+" "+s[1])
		}
		slices.Sort(out)
		return out
	}
	same := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	say := func(n, session string) []byte {
		return []byte(`{"n":` + n + `,"in":"` + session + `","run":"r","kind":"user","text":"of ` + session + `","t":1700000000}`)
	}
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{
		{name: "absent", lines: [][]byte{say("1", "erased"), []byte(`{"open":"erased in the midst"}`)}},
		{name: "read", lines: [][]byte{say("2", "erased"), []byte(`{"open":"erased in the midst"}`)}},
		{name: "kept", lines: [][]byte{say("3", "kept"), []byte(`{"open":"kept in the midst"}`)}},
		{name: "both", lines: [][]byte{say("4", "kept"), say("5", "erased"), say("6", "kept")}},
	}}
	w.after = func(p *pipeline.Pipeline) {
		same(streams(p, "erased"), "absent absent", "read read")
		same(streams(p, "kept"), "kept kept")
		same(streams(p, "erased", "kept"), "absent absent", "both both", "kept kept", "read read")
	}
	for _, f := range w.files[:3] { // the open text is of the session of the file's name
		f.lines = append(f.lines, say("7", map[bool]string{true: "kept", false: "erased"}[f.name == "kept"]))
	}
	w.settings.FlushIdle = 0
	w.run(nil)

	w.after, w.files = nil, w.files[1:]
	w.settings.Metrics, w.settings.Tenants, w.settings.Erased = telemetry.New(), []string{"default"}, is("erased")
	w.during = func(p *pipeline.Pipeline) {
		eventually(t, func() bool { return p.Drained(t.Context()) })
		same(streams(p, "erased"), "absent absent", "read read")
		same(streams(p, "nobody"))
		if err := p.Erase(t.Context(), pipeline.Erasing{Session: is("erased"), Mentions: func(state []byte) bool { return bytes.Contains(state, []byte("erased")) }}); err != nil {
			t.Error(err)
		}
		same(streams(p, "erased"))
		w.files[2].grow(string(say("8", "erased")), `{"broken`, string(say("9", "kept")), `{"broken`)
		eventually(t, func() bool { return p.Progress().Frames == 4 })
	}
	before := w.table.stored()
	w.run(nil)
	if n := w.table.stored() - before; n != 1 {
		t.Errorf("%d messages more", n)
	}
	// The message and the problem behind it, which is of the same session.
	if n := figures(t, w.settings.Metrics)["earshot_erased_total"]; n != 2 || len(w.table.letters) != 1 {
		t.Errorf("%v were refused, %d dead letters", n, len(w.table.letters))
	}
	for _, l := range w.table.letters {
		if l.Session != "kept" {
			t.Errorf("a dead letter of session %q", l.Session)
		}
	}
	check, err := checkpoint.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	list, err := check.Streams("")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		erased := r.Key != "kept"
		if erased != r.Erased || erased != (len(r.Snapshot) == 0) || erased != (r.SnapPos == 0) || r.Pos == 0 {
			t.Errorf("%s: erased %t, a state of %d bytes at %d of %d", r.Key, r.Erased, len(r.Snapshot), r.SnapPos, r.Pos)
		}
		if session := map[string]string{"both": "kept", "kept": "kept"}[r.Key]; r.Session != session || (r.Run != "") != (session != "") {
			t.Errorf("%s: session %q, run %q", r.Key, r.Session, r.Run)
		}
	}
	var groups []string
	if err := check.Groups(func(key string, state []byte) error {
		k, err := assemble.ParseKey(key)
		groups = append(groups, k.Session)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(groups)
	same(groups, "/absent", "/kept", "/read", "kept")
}
