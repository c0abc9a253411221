package discover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFind looks at an invented home, with sub-agents, a folder that is no project, a server and a
// base URL.
func TestFind(t *testing.T) {
	home := t.TempDir()
	now := time.Now().Truncate(time.Second)
	for name, age := range map[string]time.Duration{
		".claude/projects/-work-a/11.jsonl":                            3 * time.Hour,
		".claude/projects/-work-a/22.jsonl":                            time.Hour,
		".claude/projects/-work-a/agent-9f.jsonl":                      2 * time.Hour,
		".claude/projects/-work-a/22/subagents/agent-1.jsonl":          2 * time.Hour,
		".claude/projects/-work-b/33.jsonl":                            4 * time.Hour,
		".claude/projects/-work-b/memory.md":                           0,
		".claude/history.jsonl":                                        0,
		"codex/sessions/2026/11/02/rollout-x.jsonl":                    5 * time.Hour,
		"codex/sessions/2026/11/02/other.jsonl":                        0,
		"codex/archived_sessions/rollout-y.jsonl.zst":                  6 * time.Hour,
		"codex/history.jsonl":                                          0,
		".gemini/tmp/ab12/chats/session-1.jsonl":                       7 * time.Hour,
		".gemini/tmp/ab12/chats/session-0.json":                        9 * time.Hour,
		".gemini/tmp/ab12/chats/session-1/agent.jsonl":                 8 * time.Hour,
		".gemini/tmp/ab12/chats/checkpoint.json":                       0,
		".gemini/tmp/ab12/logs.json":                                   0,
		".copilot/session-state/77/events.jsonl":                       8 * time.Hour,
		".cline/data/sessions/178_a/178_a.json":                        12 * time.Hour,
		".cline/data/sessions/178_a/178_a.messages.json":               13 * time.Hour,
		".cline/data/sessions/178_a/agent_1.messages.json":             14 * time.Hour,
		".cline/data/sessions/sessions.index.json":                     0,
		rooCode("Code", "tasks/01a/ui_messages.json"):                  15 * time.Hour,
		rooCode("Code", "tasks/01a/history_item.json"):                 16 * time.Hour,
		rooCode("Code", "tasks/01a/api_conversation_history.json"):     0,
		rooCode("Code", "tasks/01a/checkpoints/ui_messages.json"):      0,
		rooCode("Code", "tasks/_index.json"):                           0,
		rooCode("VSCodium", "tasks/02b/ui_messages.json"):              14 * time.Hour,
		"own/wrap/mcp/20260101T000000Z-7-lamp.jsonl":                   9 * time.Hour,
		".hermes/state.db":                                             9 * time.Hour,
		".hermes/backup/state.db":                                      0,
		".hermes/sessions/1.jsonl":                                     0,
		"data/opencode/opencode-dev.db":                                10 * time.Hour,
		"data/opencode/opencode.db-wal":                                0,
		"data/kilo/kilo.db":                                            11 * time.Hour,
		".factory/sessions/-reef/1.jsonl":                              12 * time.Hour,
		".factory/sessions/-reef/1.settings.json":                      11 * time.Hour,
		".grok/sessions/%2Fsrv/01a2/updates.jsonl":                     9 * time.Hour,
		".grok/sessions/%2Fsrv/01a2/summary.json":                      10 * time.Hour,
		".grok/sessions/%2Fsrv/01a2/chat_history.jsonl":                0,
		".grok/sessions/%2Fsrv/prompt_history.jsonl":                   0,
		".kimi/sessions/0cc1/11/wire.jsonl":                            10 * time.Hour,
		".kimi/sessions/0cc1/11/context.jsonl":                         0,
		".kimi/sessions/0cc1/11/state.json":                            11 * time.Hour,
		".kimi/sessions/0cc1/11/subagents/a1/wire.jsonl":               12 * time.Hour,
		".kimi/sessions/0cc1/11/subagents/a1/meta.json":                13 * time.Hour,
		".kimi/sessions/0cc1/11/uploads/x/y/wire.jsonl":                0,
		".kimi-code/sessions/wd_a/session_1/agents/main/wire.jsonl":    11 * time.Hour,
		".kimi-code/sessions/wd_a/session_1/agents/agent-0/wire.jsonl": 12 * time.Hour,
		".kimi-code/sessions/wd_a/session_1/state.json":                13 * time.Hour,
		".kimi-code/sessions/wd_a/session_1/tasks/b1.json":             0,
		".kimi-code/session_index.jsonl":                               0,
		"data/crush/projects.json":                                     0,
		"dunes/.crush/crush.db":                                        12 * time.Hour,
		"shore/.crush/crush.db":                                        13 * time.Hour,
		"proc/net/tcp":                                                 0,
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		text := "12345"
		if name == "data/crush/projects.json" {
			dir := `{"data_dir":"` + filepath.ToSlash(home)
			text = `{"projects":[` + dir + `/gone/.crush"},` + dir + `/dunes/.crush"},` + dir + `/shore/.crush"}]}`
		}
		if name == "proc/net/tcp" {
			text = "  sl  local_address rem_address   st\n   0: 0100007F:1E61 00000000:0000 0A 00000000:00000000\n   1: 0100007F:205B 0100007F:1E61 01 0:0\n"
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"XDG_DATA_HOME": filepath.Join(home, "data"), "CODEX_HOME": filepath.Join(home, "codex"), "ANTHROPIC_BASE_URL": "https://u:secret@gate.example/v1"}
	got, err := Machine{Home: home, Data: filepath.Join(home, "own"), Getenv: func(k string) string { return env[k] }, Proc: filepath.Join(home, "proc")}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Agents: []Agent{
			{
				Name: "Claude Code", Type: "file", Format: "claude-code", Paths: []string{filepath.Join(home, ".claude/projects/**/*.jsonl"), filepath.Join(home, ".claude/teams/*/config.json"), filepath.Join(home, ".claude/teams/*/inboxes/*.json"), filepath.Join(home, ".claude/tasks/*/*.json")},
				Conversations: 3, Files: 5, Projects: 2, Bytes: 25, Newest: now.Add(-time.Hour),
			},
			{
				Name: "Codex", Type: "file", Format: "codex",
				Paths:         []string{filepath.Join(home, "codex/sessions/**/rollout-*.jsonl{,.zst}"), filepath.Join(home, "codex/archived_sessions/**/rollout-*.jsonl{,.zst}")},
				Conversations: 2, Files: 2, Bytes: 10, Newest: now.Add(-5 * time.Hour),
			},
			{
				Name: "Gemini CLI", Type: "file", Format: "gemini-cli", Paths: []string{filepath.Join(home, ".gemini/tmp/*/chats/**/*.jsonl"), filepath.Join(home, ".gemini/tmp/*/chats/session-*.json")},
				Conversations: 2, Files: 3, Projects: 1, Bytes: 15, Newest: now.Add(-7 * time.Hour),
			},
			{
				Name: "Roo Code", Type: "file", Format: "roo-code", Paths: []string{
					filepath.Join(home, rooCode("Code", "tasks/*/{ui_messages,history_item}.json")), filepath.Join(home, rooCode("VSCodium", "tasks/*/{ui_messages,history_item}.json")),
				},
				Conversations: 2, Files: 3, Bytes: 15, Newest: now.Add(-14 * time.Hour),
			},
			{
				Name: "Copilot CLI", Type: "file", Format: "copilot", Paths: []string{filepath.Join(home, ".copilot/session-state/*/events.jsonl")},
				Conversations: 1, Files: 1, Bytes: 5, Newest: now.Add(-8 * time.Hour),
			},
			{
				Name: "Cline", Type: "file", Format: "cline", Paths: []string{filepath.Join(home, ".cline/data/sessions/*/*.json")},
				Conversations: 1, Files: 3, Bytes: 15, Newest: now.Add(-12 * time.Hour),
			},
			{
				Name: "Droid", Type: "file", Format: "droid", Paths: []string{filepath.Join(home, ".factory/sessions/**/*.jsonl"), filepath.Join(home, ".factory/sessions/**/*.settings.json")},
				Conversations: 1, Files: 2, Bytes: 10, Newest: now.Add(-11 * time.Hour),
			},
			{
				Name: "Grok Build", Type: "file", Format: "grok", Paths: []string{filepath.Join(home, ".grok/sessions/*/*/updates.jsonl"), filepath.Join(home, ".grok/sessions/*/*/summary.json")},
				Conversations: 1, Files: 2, Projects: 1, Bytes: 10, Newest: now.Add(-9 * time.Hour),
			},
			{
				Name: "Kimi CLI", Type: "file", Format: "kimi", Paths: []string{
					filepath.Join(home, ".kimi/sessions/*/*/wire.jsonl"), filepath.Join(home, ".kimi/sessions/*/*/subagents/*/wire.jsonl"),
					filepath.Join(home, ".kimi/sessions/*/*/state.json"), filepath.Join(home, ".kimi/sessions/*/*/subagents/*/meta.json"),
				},
				Conversations: 1, Files: 4, Projects: 1, Bytes: 20, Newest: now.Add(-10 * time.Hour),
			},
			{
				Name: "Kimi Code", Type: "file", Format: "kimi-code", Paths: []string{filepath.Join(home, ".kimi-code/sessions/*/*/agents/*/wire.jsonl"), filepath.Join(home, ".kimi-code/sessions/*/*/state.json")},
				Conversations: 1, Files: 3, Projects: 1, Bytes: 15, Newest: now.Add(-11 * time.Hour),
			},
			{
				Name: "Wrapped MCP", Type: "file", Format: "mcp", Paths: []string{filepath.Join(home, "own/wrap/mcp/*.jsonl")},
				Conversations: 1, Files: 1, Bytes: 5, Newest: now.Add(-9 * time.Hour),
			},
			{Name: "Qwen Code", Type: "file", Format: "gemini-cli", Paths: []string{filepath.Join(home, ".qwen/projects/**/*.jsonl")}},
			{Name: "Cline before version 4", Type: "file", Format: "roo-code", Paths: []string{
				filepath.Join(home, editorHome("Code"), "saoudrizwan.claude-dev/tasks/*/ui_messages.json"), filepath.Join(home, editorHome("Code"), "saoudrizwan.claude-dev/state/taskHistory.json"),
			}},
			{Name: "Kilo Code before OpenCode", Type: "file", Format: "roo-code", Paths: []string{filepath.Join(home, editorHome("Code"), "kilocode.kilo-code/tasks/*/{ui_messages,history_item}.json")}},
			{Name: "Pi", Type: "file", Format: "pi", Paths: []string{filepath.Join(home, ".pi/agent/sessions/**/*.jsonl")}},
			{Name: "OpenClaw", Type: "file", Format: "openclaw", Paths: []string{filepath.Join(home, ".openclaw/agents/*/sessions/*.jsonl")}},
			{Name: "Cursor", Type: "sqlite", Format: "cursor", Paths: []string{filepath.Join(home, cursorHome(), "state.vscdb")}},
			{Name: "OpenCode", Type: "sqlite", Format: "opencode", Paths: []string{filepath.Join(home, "data/opencode/opencode*.db")}, Files: 1, Bytes: 5, Newest: now.Add(-10 * time.Hour)},
			{Name: "Kilo Code", Type: "sqlite", Format: "opencode", Paths: []string{filepath.Join(home, "data/kilo/kilo*.db")}, Files: 1, Bytes: 5, Newest: now.Add(-11 * time.Hour)},
			{Name: "Crush", Type: "sqlite", Format: "crush", Paths: []string{filepath.Join(home, "dunes/.crush/crush.db"), filepath.Join(home, "shore/.crush/crush.db")}, Files: 2, Bytes: 10, Newest: now.Add(-12 * time.Hour)},
			{Name: "Goose", Type: "sqlite", Format: "goose", Paths: []string{filepath.Join(home, "data/goose/sessions/sessions.db")}},
			{Name: "Hermes", Type: "sqlite", Format: "hermes", Paths: []string{filepath.Join(home, ".hermes/state.db")}, Files: 1, Bytes: 5, Newest: now.Add(-9 * time.Hour)},
			{Name: "Wrapped ACP", Type: "file", Format: "acp", Paths: []string{filepath.Join(home, "own/wrap/acp/*.jsonl")}},
			{Name: "Wrapped Codex", Type: "file", Format: "codex-app-server", Paths: []string{filepath.Join(home, "own/wrap/codex-app-server/*.jsonl")}},
		},
		Servers:   []Server{{"AGNO", "agno", "127.0.0.1:7777"}},
		Endpoints: []Endpoint{{"ANTHROPIC_BASE_URL", "https://gate.example/v1", "anthropic-sse"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFindFilesOfOlderVersions: the files of programs that keep a database are read where there is no database.
func TestFindFilesOfOlderVersions(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{
		".cursor/projects/work/agent-transcripts/77/77.jsonl", ".cursor/projects/work/agent-transcripts/77/subagents/88.jsonl", ".cursor/projects/work/rules.jsonl",
		".local/share/opencode/storage/session/p/ses_1.json", ".local/share/opencode/storage/part/msg_1/prt_1.json", ".local/share/opencode/storage/todo/ses_1.json",
		".local/share/goose/sessions/20260101_1.jsonl",
		".hermes/sessions/20260101_1.jsonl", ".hermes/sessions/old/20260101_1.jsonl",
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Machine{Home: home, Getenv: func(string) string { return "" }, Proc: t.TempDir()}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]Agent)
	for _, a := range r.Agents {
		if a.Newest = (time.Time{}); a.Files > 0 {
			got[a.Name] = a
		}
	}
	data := filepath.Join(home, ".local", "share")
	want := map[string]Agent{
		"Cursor":   {Name: "Cursor", Type: "file", Format: "cursor", Paths: []string{filepath.Join(home, ".cursor/projects/*/agent-transcripts/**/*.jsonl")}, Conversations: 1, Files: 2, Projects: 1, Bytes: 10},
		"OpenCode": {Name: "OpenCode", Type: "file", Format: "opencode", Paths: []string{filepath.Join(data, "opencode/storage/{session,message,part}/**/*.json")}, Conversations: 1, Files: 2, Bytes: 10},
		"Goose":    {Name: "Goose", Type: "file", Format: "goose", Paths: []string{filepath.Join(data, "goose/sessions/*.jsonl")}, Conversations: 1, Files: 1, Bytes: 5},
		"Hermes":   {Name: "Hermes", Type: "file", Format: "hermes", Paths: []string{filepath.Join(home, ".hermes/sessions/*.jsonl")}, Conversations: 1, Files: 1, Bytes: 5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFindElsewhere: each program reads the variable that moves its sessions.
func TestFindElsewhere(t *testing.T) {
	for name, c := range map[string]struct{ variable, file string }{
		"Gemini CLI":  {"GEMINI_CLI_HOME", ".gemini/tmp/reef/chats/session-1.jsonl"},
		"Qwen Code":   {"QWEN_HOME", "projects/-reef/chats/1.jsonl"},
		"Copilot CLI": {"COPILOT_HOME", "session-state/1/events.jsonl"},
		"Pi":          {"PI_CODING_AGENT_DIR", "sessions/--reef--/1.jsonl"},
		"OpenClaw":    {"OPENCLAW_STATE_DIR", "agents/main/sessions/1.jsonl"},
		"Goose":       {"GOOSE_PATH_ROOT", "data/sessions/sessions.db"},
		"Kimi Code":   {"KIMI_CODE_HOME", "sessions/wd_a/session_1/agents/main/wire.jsonl"},
	} {
		home := t.TempDir()
		path := filepath.Join(home, "elsewhere", filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{c.variable: filepath.Join(home, "elsewhere"), "XDG_DATA_HOME": filepath.Join(home, "data")}
		got, err := Machine{Home: home, Data: filepath.Join(home, "own"), Getenv: func(k string) string { return env[k] }}.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(got.Agents, func(a Agent) bool { return a.Name == name }); got.Agents[i].Files != 1 || !slices.Contains(Variables(), c.variable) {
			t.Errorf("%s: %d files with %s, want 1", name, got.Agents[i].Files, c.variable)
		}
	}
}

// TestFindNothing looks at an empty home: the agents are named, for later conversations.
func TestFindNothing(t *testing.T) {
	got, err := Machine{Home: t.TempDir(), Getenv: func(string) string { return "" }, Proc: t.TempDir()}.Find(t.Context())
	if err != nil || len(got.Agents) != len(places) || got.Agents[0].Files != 0 || len(got.Servers)+len(got.Endpoints) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

// rooCode is a file of Roo Code in an editor.
func rooCode(editor, file string) string {
	return filepath.ToSlash(editorHome(editor)) + "/rooveterinaryinc.roo-cline/" + file
}
