package attach

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tap = "http://127.0.0.1:17801"

func setting(t *testing.T, s Syntax, text string, keys ...string) Setting {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return Setting{Path: path, Syntax: s, Keys: keys}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var claude = []string{"env", "ANTHROPIC_BASE_URL"}

// texts are settings files: one before and with the change, and the same with a change of the user's
// made to either.
var texts = []struct {
	name             string
	syntax           Syntax
	keys             []string
	value            string
	before, after    string
	edit, with       string // of the user: with replaces edit
	takenOut, oldURL string
}{
	{name: "empty object", syntax: JSON, keys: claude, before: "{}\n",
		after: "{\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"" + tap + "\"\n  }\n}\n",
		edit:  "\n  }\n}", with: "\n  },\n  \"model\": \"opus\"\n}", takenOut: "{\n  \"model\": \"opus\"\n}\n"},
	{name: "comments", syntax: JSON, keys: claude, before: "{\n  // mine\n  \"zeal\": 1, /* keep */\n  \"env\": {\n    \"A\": \"1\", // a\n  },\n}\n",
		after: "{\n  // mine\n  \"zeal\": 1, /* keep */\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"" + tap + "\",\n    \"A\": \"1\", // a\n  },\n}\n",
		edit:  `"zeal": 1`, with: `"zeal": 2`, takenOut: "{\n  // mine\n  \"zeal\": 2, /* keep */\n  \"env\": {\n    \"A\": \"1\", // a\n  },\n}\n"},
	{name: "a gateway", syntax: JSON, keys: claude, before: `{"env":{"ANTHROPIC_BASE_URL":"https:\/\/gate.example"},"a":1}`,
		after: `{"env":{"ANTHROPIC_BASE_URL":"` + tap + `"},"a":1}`, oldURL: "https://gate.example",
		edit: `"a":1`, with: `"a":2`, takenOut: `{"env":{"ANTHROPIC_BASE_URL":"https:\/\/gate.example"},"a":2}`},
	{name: "one line", syntax: JSON, keys: claude, before: `{"model": "opus"}` + "\n",
		after: `{"env": {"ANTHROPIC_BASE_URL": "` + tap + `"}, "model": "opus"}` + "\n",
		edit:  "opus", with: "haiku", takenOut: `{"model": "haiku"}` + "\n"},
	{name: "tabs", syntax: JSON, keys: []string{"provider", "anthropic", "options", "baseURL"}, before: "{\n\t\"theme\": \"x\"\n}",
		after: "{\n\t\"provider\": {\n\t\t\"anthropic\": {\n\t\t\t\"options\": {\n\t\t\t\t\"baseURL\": \"" + tap + "\"\n\t\t\t}\n\t\t}\n\t},\n\t\"theme\": \"x\"\n}",
		edit:  `"x"`, with: `"y"`, takenOut: "{\n\t\"theme\": \"y\"\n}"},
	{name: "toml", syntax: TOML, keys: []string{"openai_base_url"}, before: "# mine\nmodel = \"gpt\" # m\n\n[tools]\nopenai_base_url = \"other\"\n",
		after: "openai_base_url = \"" + tap + "\"\n# mine\nmodel = \"gpt\" # m\n\n[tools]\nopenai_base_url = \"other\"\n",
		edit:  "gpt", with: "gpt2", takenOut: "# mine\nmodel = \"gpt2\" # m\n\n[tools]\nopenai_base_url = \"other\"\n"},
	{name: "toml table", syntax: TOML, keys: []string{"model_providers", "gate", "base_url"}, before: "model_provider = \"gate\"\r\n[model_providers.gate]\r\nname = \"G\"\r\nbase_url = 'https://gate.example/v1' # g\r\n",
		after: "model_provider = \"gate\"\r\n[model_providers.gate]\r\nname = \"G\"\r\nbase_url = \"" + tap + "\" # g\r\n", oldURL: "https://gate.example/v1",
		edit: `"G"`, with: `"H"`, takenOut: "model_provider = \"gate\"\r\n[model_providers.gate]\r\nname = \"H\"\r\nbase_url = 'https://gate.example/v1' # g\r\n"},
	{name: "env", syntax: Env, keys: []string{"GOOGLE_GEMINI_BASE_URL"}, before: "# k\nGEMINI_API_KEY=k",
		after: "GOOGLE_GEMINI_BASE_URL=" + tap + "\n# k\nGEMINI_API_KEY=k", edit: "=k", with: "=l", takenOut: "# k\nGEMINI_API_KEY=l"},
	{name: "env with a gateway", syntax: Env, keys: []string{"U"}, before: "export U=\"https://gate.example\"\nA=1\n",
		after: "U=" + tap + "\nA=1\n", oldURL: "https://gate.example", edit: "A=1", with: "A=2", takenOut: "export U=\"https://gate.example\"\nA=2\n"},
	{name: "yaml", syntax: List, keys: []string{"sources"}, value: "{name: claude-api, type: tap}",
		before: "data_dir: x\nsources:\n    # mine\n    - name: a\n      paths: [b]\n\n    # about the log\nlog: {level: info}\n",
		after:  "data_dir: x\nsources:\n    # mine\n    - name: a\n      paths: [b]\n    - {name: claude-api, type: tap}\n\n    # about the log\nlog: {level: info}\n",
		edit:   "[b]", with: "[c]", takenOut: "data_dir: x\nsources:\n    # mine\n    - name: a\n      paths: [c]\n\n    # about the log\nlog: {level: info}\n"},
}

// TestChange changes files, undoes it at once, undoes it after the user changed something else, and
// leaves the user's own value alone.
func TestChange(t *testing.T) {
	for _, x := range texts {
		t.Run(x.name, func(t *testing.T) {
			value := tap
			if x.value != "" {
				value = x.value
			}
			s := setting(t, x.syntax, x.before, x.keys...)
			records := Records{filepath.Join(t.TempDir(), "attach")}
			attach := func() *Record {
				c, err := s.Plan(value, nil)
				if err != nil {
					t.Fatal(err)
				}
				if old := c.Was; (old == nil) != (x.oldURL == "") || old != nil && *old != x.oldURL {
					t.Errorf("the value was %v, want %q", old, x.oldURL)
				}
				if err := records.Apply(&Record{Agent: "a", Changes: []*Change{c}}); err != nil {
					t.Fatal(err)
				}
				r, err := records.Load("a") // as another process does
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			undo := func(r *Record, want Undone, text string) {
				t.Helper()
				if got, err := r.Changes[0].Undo(); err != nil || got != want {
					t.Errorf("undone %v, want %v: %v", got, want, err)
				}
				if got := content(t, s.Path); got != text {
					t.Errorf("%q\nwant %q", got, text)
				}
			}
			r := attach()
			if got := content(t, s.Path); got != x.after {
				t.Fatalf("%q\nwant %q", got, x.after)
			}
			if info, _ := os.Stat(s.Path); info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v", info.Mode())
			}
			undo(r, Restored, x.before)
			undo(r, Restored, x.before)

			r = attach()
			users := strings.Replace(x.after, x.edit, x.with, 1)
			if err := os.WriteFile(s.Path, []byte(users), 0o640); err != nil {
				t.Fatal(err)
			}
			undo(r, TakenOut, x.takenOut)
			users = strings.Replace(users, value, "{name: own}", 1)
			if err := os.WriteFile(s.Path, []byte(users), 0o640); err != nil {
				t.Fatal(err)
			}
			undo(r, Absent, users)
		})
	}
}

// TestFileThatWasNotThere is made, and removed again.
func TestFileThatWasNotThere(t *testing.T) {
	s := Setting{Path: filepath.Join(t.TempDir(), "settings.json"), Syntax: JSON, Keys: claude}
	c, err := s.Plan(tap, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := s.Read(); v != tap || !ok || err != nil {
		t.Errorf("%q %v %v", v, ok, err)
	}
	if how, err := c.Undo(); how != Restored || err != nil {
		t.Errorf("%v %v", how, err)
	}
	if _, err := os.Stat(s.Path); err == nil {
		t.Error("the file is left")
	}
}

// TestFilesThatStay have an error, and their content.
func TestFilesThatStay(t *testing.T) {
	for want, x := range map[string]struct {
		syntax Syntax
		text   string
		keys   []string
		mode   fs.FileMode
	}{
		"not valid JSON":                 {JSON, "{\"env\": ", claude, 0o600},
		"no object":                      {JSON, "[1]", claude, 0o600},
		"env is no object":               {JSON, "{\"env\": 1}", claude, 0o600},
		"no text but 7":                  {JSON, "{\"env\": {\"ANTHROPIC_BASE_URL\": 7}}", claude, 0o600},
		"read-only: chmod u+w":           {JSON, "{}", claude, 0o400},
		"not valid TOML":                 {TOML, "a = ", []string{"openai_base_url"}, 0o600},
		"changed safely: set openai":     {TOML, "openai_base_url = \"\"\"x\"\"\"\n", []string{"openai_base_url"}, 0o600},
		"not valid YAML":                 {List, "sources: [", []string{"sources"}, 0o600},
		"add this item yourself: - http": {List, "sources: [{name: a}]\n", []string{"sources"}, 0o600},
	} {
		s := setting(t, x.syntax, x.text, x.keys...)
		if err := os.Chmod(s.Path, x.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Plan(tap, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), s.Path) {
			t.Errorf("%q: %v, want %q", x.text, err, want)
		}
		if got := content(t, s.Path); got != x.text {
			t.Errorf("%q became %q", x.text, got)
		}
	}
	s := setting(t, JSON, "{}", claude...)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := (Setting{Path: link, Syntax: JSON, Keys: claude}).Plan(tap, nil); err == nil || !strings.Contains(err.Error(), "symbolic link: name the file itself, "+s.Path) {
		t.Error(err)
	}
	if _, err := (Setting{Path: filepath.Join(t.TempDir(), "none", "f"), Syntax: JSON, Keys: claude}).Plan(tap, nil); err == nil || !strings.Contains(err.Error(), "the folder is not there") {
		t.Error(err)
	}
	c, err := s.Plan(tap, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path, []byte("{ }"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The record goes with the change that was not made.
	records := Records{filepath.Join(t.TempDir(), "attach")}
	if err := records.Apply(&Record{Agent: "a", Changes: []*Change{c}}); err == nil || content(t, s.Path) != "{ }" {
		t.Errorf("%v, %s", err, content(t, s.Path))
	}
	if r, err := records.Load("a"); r != nil || err != nil {
		t.Errorf("%v %v", r, err)
	}
}
