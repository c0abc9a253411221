package conformance

import (
	"strings"
	"testing"
	"testing/fstest"
)

func folder(files map[string]string) fstest.MapFS {
	dir := make(fstest.MapFS)
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func TestLoad(t *testing.T) {
	cases, err := Load(folder(map[string]string{
		"b/in.sse": "data: 1\n\n", "b/README.md": "why", "b/options.json": `{"a":1}`,
		"a/frames.jsonl": `{"kind":"body","data":{}}`, "a/want.jsonl": "", "a/origin.txt": " here\n", "a/reload.json": "{}", "a/reload.origin.txt": "there",
		"a/deltas.json": `[{"at":"/x"}]`, "a/reload.lacks.json": `{"reload":{"order":"why"}}`,
		"fuzz/FuzzX/0": "", ".hidden/x": "", "notes.txt": "",
	}))
	if err != nil || len(cases) != 2 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	a, b := cases[0], cases[1]
	if a.Name != "a" || a.Stream.Origin != "here" || a.ReloadStream.Origin != "there" || len(a.Frames) != 1 || len(a.Reload) != 1 || a.Want == nil ||
		a.Deltas[0].At != "/x" || a.Lacks.Reload["order"] != "why" {
		t.Errorf("a: %+v", a)
	}
	if b.Stream.Origin != "b/in.sse" || string(b.Stream.Options) != `{"a":1}` || b.Want != nil || b.Reload != nil || b.Frames[0].Kind.String() != "event" {
		t.Errorf("b: %+v", b)
	}
}

func TestLoadErrors(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"there are none":                      {"x.txt": ""},
		"no input":                            {"a/README.md": ""},
		"both in.json and in.jsonl":           {"a/in.json": "{}", "a/in.jsonl": "{}"},
		"frame 0 is too_long":                 {"a/frames.jsonl": `{"kind":"line","data":"x","dropped":1,"reason":"too_long"}`},
		"no frames":                           {"a/in.jsonl": "\n"},
		"did you mean want.jsonl?":            {"a/in.jsonl": "{}", "a/want.json": ""},
		"did you mean deltas.json?":           {"a/in.jsonl": "{}", "a/deltas.yaml": ""},
		"reload.lacks.json: json: unknown":    {"a/in.jsonl": "{}", "a/reload.lacks.json": `{"lacks":{}}`},
		"deltas.json: json: cannot unmarshal": {"a/in.jsonl": "{}", "a/deltas.json": `["/x"]`},
		"frames.jsonl: description 1":         {"a/frames.jsonl": `{"kind":"x"}`},
	} {
		if _, err := Load(folder(files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
