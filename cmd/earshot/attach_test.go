package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/config"
)

// person is a new home directory.
type person struct {
	*testing.T
	dir string
}

func newPerson(t *testing.T) *person {
	p := &person{T: t, dir: t.TempDir()}
	for k, v := range map[string]string{
		"HOME": p.dir, "XDG_DATA_HOME": p.path("share"), "XDG_CONFIG_HOME": p.path("config"), "EARSHOT_CONFIG": "", "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": "",
		"ANTHROPIC_BASE_URL": "", "OPENAI_BASE_URL": "", "GOOGLE_GEMINI_BASE_URL": "",
	} {
		t.Setenv(k, v)
	}
	t.Chdir(p.dir)
	return p
}

func (p *person) path(name string) string { return filepath.Join(p.dir, name) }

func (p *person) write(name, text string) {
	p.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// read is the text of a file; empty when there is none.
func (p *person) read(name string) string {
	b, _ := os.ReadFile(p.path(name))
	return string(b)
}

func (p *person) run(args ...string) (string, error) {
	var out bytes.Buffer
	c := newRoot()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(p.Context())
	return out.String(), err
}

func (p *person) must(args ...string) string {
	p.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.Fatalf("earshot %v: %v\n%s", args, err, out)
	}
	return out
}

// TestAttach attaches each agent, again, and detaches it: the configuration has a valid tap to the
// provider that the agent had, the agent the tap's address, and then both files are as they were.
func TestAttach(t *testing.T) {
	agents := []struct {
		agent, file, text, wants, upstream, path string
		flags                                    []string
	}{
		{"claude", ".claude/settings.json", "{\n  \"model\": \"opus\" // mine\n}\n", `"ANTHROPIC_BASE_URL": "@"`, "https://api.anthropic.com", "", nil},
		{"claude", ".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "https://gate.example/a"}}`, `"ANTHROPIC_BASE_URL": "@"`, "https://gate.example", "/a", nil},
		{"codex", ".codex/config.toml", "model = \"gpt\"\n", `openai_base_url = "@"`, "https://api.openai.com", "/v1", nil},
		{"codex", ".codex/config.toml", "model_provider = \"g\"\n[model_providers.g]\nbase_url = \"http://127.0.0.1:9/x\"\n", `base_url = "@"`, "http://127.0.0.1:9", "/x", nil},
		{"gemini", ".gemini/.env", "GEMINI_API_KEY=k\n", "GOOGLE_GEMINI_BASE_URL=@", "https://generativelanguage.googleapis.com", "", nil},
		{"opencode", "config/opencode/opencode.jsonc", "{ /* mine */ }\n", `"baseURL": "@"`, "https://api.anthropic.com", "/v1", nil},
		{"opencode", "config/opencode/opencode.json", "{}", `"baseURL": "@"`, "https://api.openai.com", "/v1", []string{"--provider", "openai"}},
		{"agno", "", "", "", "http://127.0.0.1:7777", "", nil},
	}
	for _, x := range agents {
		t.Run(x.agent+x.upstream, func(t *testing.T) {
			p := newPerson(t)
			if x.file != "" {
				p.write(x.file, x.text)
			}
			if _, err := p.run(append([]string{"attach", x.agent}, x.flags...)...); !isUsage(err) {
				t.Errorf("without a terminal: %v", err)
			}
			p.must(append([]string{"attach", x.agent, "--dry-run"}, x.flags...)...)
			if p.read(x.file) != x.text || p.read("config/earshot/earshot.yaml") != "" {
				t.Fatal("something was changed")
			}
			out := p.must(append([]string{"attach", x.agent, "--yes"}, x.flags...)...)
			listen := regexp.MustCompile(`127\.0\.0\.1:\d{5}`).FindString(out)
			cfg, err := types().Load(p.path("config/earshot/earshot.yaml"), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			var tap *config.Source
			for i := range cfg.Sources {
				if cfg.Sources[i].Name == x.agent+"-api" {
					tap = &cfg.Sources[i]
				}
			}
			if tap == nil || tap.Type != "tap" || !strings.Contains(p.read("config/earshot/earshot.yaml"), `listen: "`+listen+`", upstream: "`+x.upstream+`"`) {
				t.Fatalf("no tap in\n%s", p.read("config/earshot/earshot.yaml"))
			}
			if err := knownFormats(cfg); err != nil {
				t.Error(err)
			}
			if want := strings.ReplaceAll(x.wants, "@", "http://"+listen+x.path); !strings.Contains(p.read(x.file), want) || !strings.Contains(out, want) {
				t.Errorf("no %s in\n%s\nor in\n%s", want, p.read(x.file), out)
			}
			settings := p.read(x.file)
			if out := p.must("attach", x.agent, "--yes"); !strings.Contains(out, "attached already, through "+listen) || p.read(x.file) != settings {
				t.Errorf("again:\n%s", out)
			}
			p.must("detach", x.agent)
			if got := p.read(x.file); got != x.text {
				t.Errorf("%q\nwant %q", got, x.text)
			}
			if got := p.read("config/earshot/earshot.yaml"); got != "" {
				t.Errorf("the configuration is left:\n%s", got)
			}
			if _, err := p.run("detach", x.agent); !isUsage(err) {
				t.Errorf("detached twice: %v", err)
			}
		})
	}
}

// TestAttachSeveral attaches agents to a configuration of one's own, and detaches them in
// the order in which they came.
func TestAttachSeveral(t *testing.T) {
	p := newPerson(t)
	own := "# mine\ndata_dir: data\nsources:\n  # the first\n  - {name: a, type: file, format: claude-code, paths: [\"x/*.jsonl\"]}\n  - {name: g, type: file, format: gemini-cli, paths: [\"y/*.jsonl\"]}\n  - {name: o, type: sqlite, format: opencode, paths: [\"z/*.db\"]}\nlog: {level: warn} # quiet\n"
	p.write("earshot.yaml", own)
	p.write(".claude/settings.json", "{}")
	p.write(".codex/config.toml", "# c")
	p.write(".gemini/settings.json", "{}")
	p.write("config/opencode/opencode.json", "{}")
	for agent, twice := range map[string]bool{"claude": false, "gemini": true, "opencode": true} { // of Claude Code the tap is a view
		if out, err := p.run("attach", agent, "--dry-run"); err != nil || strings.Contains(out, "in the store twice") != twice {
			t.Errorf("%s is in the store twice: %t, not as it says: %v\n%s", agent, twice, err, out)
		}
	}
	p.must("attach", "claude", "--yes")
	p.must("attach", "codex", "--yes")
	if out := p.must("detach", "claude"); !strings.Contains(out, "earshot.yaml was changed since; our change is taken out") {
		t.Errorf("%s", out)
	}
	if got := p.read("earshot.yaml"); strings.Contains(got, "claude-api") || !strings.Contains(got, "codex-api") {
		t.Errorf("%s", got)
	}
	p.must("detach")
	if got := p.read("earshot.yaml"); got != own || p.read(".claude/settings.json") != "{}" || p.read(".codex/config.toml") != "# c" {
		t.Errorf("%s", got)
	}
	if out := p.must("detach"); !strings.Contains(out, "No agent is attached.") {
		t.Errorf("%s", out)
	}
}

// TestAttachLeavesFilesAlone that it cannot change.
func TestAttachLeavesFilesAlone(t *testing.T) {
	p := newPerson(t)
	if out, err := p.run("attach", "claude", "--yes"); err == nil || !strings.Contains(err.Error(), ".claude: the folder is not there") {
		t.Errorf("%v\n%s", err, out)
	}
	p.write(".claude/settings.json", "{\"a\": ")
	if out, err := p.run("attach", "claude", "--yes"); err == nil || !strings.Contains(err.Error(), "settings.json: not valid JSON") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := p.run("attach", "nemo", "--yes"); !isUsage(err) {
		t.Error(err)
	}
	if got := p.read("config/earshot/earshot.yaml") + p.read("share/earshot/attach/claude.json"); got != "" || p.read(".claude/settings.json") != "{\"a\": " {
		t.Errorf("%q", got)
	}
}
