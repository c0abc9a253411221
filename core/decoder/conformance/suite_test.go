package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/decoder/conformance/internal/mutants"
)

const (
	live = `{"type":"user","chat":"c","id":"u-1","at":"2026-03-01T10:00:00.25Z","text":"a"}
{"type":"call","chat":"c","id":"t-1","at":"2026-03-01T10:00:01.75Z","tool":"x","args":{}}
{"type":"result","chat":"c","id":"t-1","at":"2026-03-01T10:00:02Z","text":"b"}
`
	coarse = `{"type":"user","chat":"c","id":"u-1","at":"2026-03-01T10:00:00Z","text":"a"}
{"type":"call","chat":"c","id":"t-1","at":"2026-03-01T10:00:01Z","tool":"x","args":{}}
{"type":"result","chat":"c","id":"t-1","at":"2026-03-01T10:00:02Z","text":"b"}
`
)

// A difference between the two forms of a conversation must be listed in
// reload.lacks.json, and each entry of the list must be true.
func TestReloadLacks(t *testing.T) {
	drop := func(s, line string) string {
		var out string
		for l := range strings.Lines(s) {
			if !strings.Contains(l, line) {
				out += l
			}
		}
		return out
	}
	lines := strings.SplitAfter(coarse, "\n")
	for name, c := range map[string]struct{ reload, lacks, want string }{
		"coarser times":              {coarse, ``, ""},
		"other times":                {strings.Replace(coarse, "01Z", "03Z", 1), ``, "ts: want"},
		"missing message":            {drop(coarse, "result"), ``, "- {"},
		"missing kind, listed":       {drop(coarse, "result"), `{"reload":{"tool_result":"why"}}`, ""},
		"missing key, listed":        {drop(coarse, "result"), `{"reload":{"key:result:t-1":"why"}}`, ""},
		"missing column":             {strings.Replace(coarse, `,"text":"a"`, "", 1), ``, "content: want"},
		"missing column, listed":     {strings.Replace(coarse, `,"text":"a"`, "", 1), `{"reload":{"user.content":"why"}}`, ""},
		"missing times, listed":      {strings.ReplaceAll(strings.ReplaceAll(coarse, `"at":"2026-03-01T10:00:0`, `"no":"`), "", ""), `{"reload":{"*.ts":"why"}}`, ""},
		"more than the stream":       {coarse + `{"type":"call","chat":"c","id":"t-2","tool":"y"}`, ``, "+ {"},
		"more, listed":               {coarse + `{"type":"call","chat":"c","id":"t-2","tool":"y"}`, `{"live":{"key:call:t-2":"why"}}`, ""},
		"another order":              {lines[0] + lines[2] + lines[1], ``, "the order differs"},
		"another order, listed":      {lines[0] + lines[2] + lines[1], `{"reload":{"order":"why"}}`, ""},
		"listed, and yet the same":   {coarse, `{"reload":{"order":"why"}}`, "the order is the same"},
		"listed, and nothing of it":  {coarse, `{"reload":{"delegation":"why"}}`, "does not have it either"},
		"listed, and yet there":      {coarse, `{"reload":{"tool_result":"why"}}`, "+ {"},
		"a bad frame in the reload":  {coarse + "{", ``, "has the problem invalid_json"},
		"other keys in the reloaded": {strings.ReplaceAll(coarse, "u-1", "u-2"), ``, "u-2"},
	} {
		dir := fstest.MapFS{"c/in.jsonl": {Data: []byte(live)}, "c/reload.jsonl": {Data: []byte(c.reload)}}
		if c.lacks != "" {
			dir["c/reload.lacks.json"] = &fstest.MapFile{Data: []byte(c.lacks)}
		}
		cases, err := conformance.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := &conformance.Suite{Subject: conformance.NewLocal(mutants.Reference{}), Cases: cases, Checks: []string{"C4"}}
		s.Run(t.Context(), func(r conformance.Result) {
			got := r.Reason + "\n" + r.Detail
			if (r.Status == conformance.Fail) != (c.want != "" && r.Case != "") || r.Status == conformance.Fail && !strings.Contains(got, c.want) {
				t.Errorf("%s: %s %s, want %q", name, r.Status, got, c.want)
			}
		})
	}
}

// A process that exits or never answers fails the check in which it does so, and the next
// check starts a new process.
func TestProcessesThatDie(t *testing.T) {
	server := filepath.Join(t.TempDir(), "servemutant")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", server, "./internal/servemutant")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cases, err := conformance.Load(fstest.MapFS{"c/in.jsonl": {Data: []byte(live)}})
	if err != nil {
		t.Fatal(err)
	}
	for mutant, want := range map[string]string{"exits": "exits, as it must", "never-answers": "no answer: context deadline exceeded"} {
		e, err := conformance.NewExec(t.Context(), server, mutant)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		s := &conformance.Suite{Subject: e, Cases: cases, Checks: []string{"C7", "C9", "C12"}, Timeout: 2 * time.Second}
		s.Run(t.Context(), func(r conformance.Result) {
			got = append(got, r.Check+" "+string(r.Status))
			if r.Status == conformance.Fail && (r.Rule != "D7" || !strings.Contains(r.Reason, want)) {
				t.Errorf("%s: %s %s", mutant, r.Rule, r.Reason)
			}
		})
		e.Close()
		if s := strings.Join(got, ", "); s != "C7 pass, C9 fail, C12 pass" {
			t.Errorf("%s: %s", mutant, s)
		}
	}
}

// A decoder that ends at once is reported with its own words, once, and without advice on
// executables.
func TestDecoderThatDoesNotStart(t *testing.T) {
	_, err := conformance.NewExec(t.Context(), "sh", "-c", "echo there is no table of tides >&2; exit 3")
	if err == nil || strings.Count(err.Error(), "there is no table of tides") != 1 || strings.Contains(err.Error(), "This usually means") {
		t.Errorf("%v", err)
	}
	if _, err = conformance.NewExec(t.Context(), "sh", "-c", "exit 3"); err == nil || !strings.Contains(err.Error(), "This usually means") {
		t.Errorf("a silent one: %v", err)
	}
}
