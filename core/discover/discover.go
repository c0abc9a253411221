// Package discover finds the agents of this machine by their traces, without touching
// the agents: the folders in which they keep their transcripts, servers that listen on an agent
// server's usual port, and base URLs in the environment.
package discover

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Agent is a program that keeps transcripts here.
type Agent struct {
	Name          string    `json:"name"`
	Type          string    `json:"type"` // of the source that reads it: file or sqlite
	Format        string    `json:"format"`
	Paths         []string  `json:"paths"`              // globs of the source
	Conversations int       `json:"conversations"`      // transcripts that are not a sub-agent's; of a database they are not counted
	Files         int       `json:"files"`              // all transcripts, or databases
	Projects      int       `json:"projects,omitempty"` // folders of transcripts, where the program has one for each project
	Bytes         int64     `json:"bytes"`
	Newest        time.Time `json:"newest,omitzero"` // last change of a transcript
}

// Server is a process that listens on the usual port of an agent server.
type Server struct {
	Name    string `json:"name"`
	Format  string `json:"format"`
	Address string `json:"address"` // host:port
}

// Endpoint is a provider's base URL that the environment names.
type Endpoint struct {
	Variable string `json:"variable"`
	URL      string `json:"url"` // without user and password
	Format   string `json:"format"`
}

// Report lists the findings.
type Report struct {
	Agents    []Agent    `json:"agents"` // also those without a transcript so far
	Servers   []Server   `json:"servers"`
	Endpoints []Endpoint `json:"endpoints"`
}

// Machine is where to look.
type Machine struct {
	Home   string
	Data   string // of Earshot: earshot wrap records there
	Getenv func(string) string
	Proc   string // /proc
}

// place is where a program keeps its transcripts.
type place struct {
	name, format string
	env          string // a folder that replaces home, or data
	inside       string // where it is in that folder
	home         string // below the home directory
	wrap         string // below Earshot's data, in the place of home
	data         string // instead of home: below the directory of a person's data
	database     bool   // the transcripts are SQLite databases
	globs        []string
	below        string // the folder that is walked
	is           func(rel string) (transcript, conversation bool)
	projects     bool   // each folder in below is a project
	extension    string // of editors, instead of home: the transcripts are below it in the folder of each editor
	listed       string // a file in data that lists the folders of all projects, each with a database
	before       *place // of versions without the database, or of a program without it: read where there is none
}

var places = []place{
	{
		name: "Claude Code", format: "claude-code", env: "CLAUDE_CONFIG_DIR", home: ".claude",
		globs: []string{"projects/**/*.jsonl", "teams/*/config.json", "teams/*/inboxes/*.json", "tasks/*/*.json"}, below: "projects", projects: true,
		is: func(rel string) (bool, bool) {
			return strings.HasSuffix(rel, ".jsonl"), strings.HasSuffix(rel, ".jsonl") && strings.Count(rel, "/") == 1 && !strings.Contains(rel, "/agent-")
		},
	},
	{
		name: "Codex", format: "codex", env: "CODEX_HOME", home: ".codex",
		globs: []string{"sessions/**/rollout-*.jsonl{,.zst}", "archived_sessions/**/rollout-*.jsonl{,.zst}"},
		is: func(rel string) (bool, bool) {
			ok := strings.HasPrefix(filepath.Base(rel), "rollout-") && strings.HasSuffix(strings.TrimSuffix(rel, ".zst"), ".jsonl") &&
				(strings.HasPrefix(rel, "sessions/") || strings.HasPrefix(rel, "archived_sessions/"))
			return ok, ok
		},
	},
	{
		name: "Gemini CLI", format: "gemini-cli", env: "GEMINI_CLI_HOME", inside: ".gemini", home: ".gemini", globs: []string{"tmp/*/chats/**/*.jsonl", "tmp/*/chats/session-*.json"}, below: "tmp", projects: true,
		is: func(rel string) (bool, bool) {
			_, chat, ok := strings.Cut(rel, "/chats/")
			document, _ := filepath.Match("session-*.json", chat)
			ok = ok && (document || strings.HasSuffix(chat, ".jsonl"))
			return ok, ok && !strings.Contains(chat, "/") // those of sub-agents are below
		},
	},
	{
		name: "Qwen Code", format: "gemini-cli", env: "QWEN_HOME", home: ".qwen", globs: []string{"projects/**/*.jsonl"}, below: "projects", projects: true,
		is: lines(func(rel string) bool { return strings.HasSuffix(rel, ".jsonl") }),
	},
	{
		name: "Copilot CLI", format: "copilot", env: "COPILOT_HOME", home: ".copilot", globs: []string{"session-state/*/events.jsonl"}, below: "session-state",
		is: lines(func(rel string) bool { return strings.Count(rel, "/") == 1 && strings.HasSuffix(rel, "/events.jsonl") }),
	},
	{
		name: "Cline", format: "cline", env: "CLINE_DATA_DIR", home: ".cline/data", globs: []string{"sessions/*/*.json"}, below: "sessions",
		is: func(rel string) (bool, bool) {
			session, file, ok := strings.Cut(rel, "/")
			ok = ok && strings.HasSuffix(file, ".json") && !strings.Contains(file, "/")
			return ok, ok && file == session+".json" // the others are its messages, and those of sub-agents
		},
	},
	{
		name: "Droid", format: "droid", home: ".factory", globs: []string{"sessions/**/*.jsonl", "sessions/**/*.settings.json"}, below: "sessions",
		is: func(rel string) (bool, bool) {
			lines := strings.HasSuffix(rel, ".jsonl")
			return lines || strings.HasSuffix(rel, ".settings.json"), lines
		},
	},
	{
		name: "Grok Build", format: "grok", env: "GROK_HOME", home: ".grok", below: "sessions", projects: true,
		globs: []string{"sessions/*/*/updates.jsonl", "sessions/*/*/summary.json"},
		is: func(rel string) (bool, bool) {
			parts := strings.Split(rel, "/")
			lines := len(parts) == 3 && parts[2] == "updates.jsonl"
			return lines || len(parts) == 3 && parts[2] == "summary.json", lines
		},
	},
	{
		name: "Kimi CLI", format: "kimi", env: "KIMI_SHARE_DIR", home: ".kimi", below: "sessions", projects: true,
		globs: []string{"sessions/*/*/wire.jsonl", "sessions/*/*/subagents/*/wire.jsonl", "sessions/*/*/state.json", "sessions/*/*/subagents/*/meta.json"},
		is: func(rel string) (bool, bool) {
			parts := strings.Split(rel, "/")
			switch len(parts) {
			case 3:
				return parts[2] == "wire.jsonl" || parts[2] == "state.json", parts[2] == "wire.jsonl"
			case 5:
				return parts[2] == "subagents" && (parts[4] == "wire.jsonl" || parts[4] == "meta.json"), false
			}
			return false, false
		},
	},
	{
		name: "Kimi Code", format: "kimi-code", env: "KIMI_CODE_HOME", home: ".kimi-code", below: "sessions", projects: true,
		globs: []string{"sessions/*/*/agents/*/wire.jsonl", "sessions/*/*/state.json"},
		is: func(rel string) (bool, bool) {
			parts := strings.Split(rel, "/")
			wire := len(parts) == 5 && parts[2] == "agents" && parts[4] == "wire.jsonl"
			return wire || len(parts) == 3 && parts[2] == "state.json", wire && parts[3] == "main"
		},
	},
	extension("Cline before version 4", "saoudrizwan.claude-dev", "tasks/*/ui_messages.json", "state/taskHistory.json"),
	extension("Roo Code", "rooveterinaryinc.roo-cline", "tasks/*/{ui_messages,history_item}.json"),
	extension("Kilo Code before OpenCode", "kilocode.kilo-code", "tasks/*/{ui_messages,history_item}.json"),
	{
		name: "Pi", format: "pi", env: "PI_CODING_AGENT_DIR", home: ".pi/agent", globs: []string{"sessions/**/*.jsonl"}, below: "sessions", projects: true,
		is: lines(func(rel string) bool { return strings.HasSuffix(rel, ".jsonl") }),
	},
	{
		name: "OpenClaw", format: "openclaw", env: "OPENCLAW_STATE_DIR", home: ".openclaw", globs: []string{"agents/*/sessions/*.jsonl"}, below: "agents", projects: true,
		is: lines(func(rel string) bool { return strings.Count(rel, "/") == 2 && strings.HasSuffix(rel, ".jsonl") }),
	},
	{
		name: "Cursor", format: "cursor", home: cursorHome(), globs: []string{"state.vscdb"}, database: true, is: file("state.vscdb"),
		before: &place{
			home: ".cursor", globs: []string{"projects/*/agent-transcripts/**/*.jsonl"}, below: "projects", projects: true,
			is: func(rel string) (bool, bool) {
				_, chat, ok := strings.Cut(rel, "/agent-transcripts/")
				ok = ok && strings.HasSuffix(chat, ".jsonl")
				return ok, ok && !strings.Contains(chat, "/subagents/")
			},
		},
	},
	{
		name: "OpenCode", format: "opencode", data: "opencode", globs: []string{"opencode*.db"}, database: true, is: file("opencode*.db"),
		before: &place{
			data: "opencode/storage", globs: []string{"{session,message,part}/**/*.json"},
			is: func(rel string) (bool, bool) {
				kind, _, ok := strings.Cut(rel, "/")
				ok = ok && strings.HasSuffix(rel, ".json") && (kind == "session" || kind == "message" || kind == "part")
				return ok, ok && kind == "session"
			},
		},
	},
	{name: "Kilo Code", format: "opencode", data: "kilo", globs: []string{"kilo*.db"}, database: true, is: file("kilo*.db")}, // made of OpenCode
	{name: "Crush", format: "crush", env: "CRUSH_GLOBAL_DATA", data: "crush", home: ".crush", listed: "projects.json", globs: []string{"crush.db"}, database: true, is: file("crush.db")},
	{
		name: "Goose", format: "goose", env: "GOOSE_PATH_ROOT", inside: "data/sessions", data: "goose/sessions", globs: []string{"sessions.db"}, database: true, is: file("sessions.db"),
		before: &place{env: "GOOSE_PATH_ROOT", inside: "data/sessions", data: "goose/sessions", globs: []string{"*.jsonl"}, is: lines(below("", ".jsonl"))},
	},
	{
		name: "Hermes", format: "hermes", env: "HERMES_HOME", home: ".hermes", globs: []string{"state.db"}, database: true, is: file("state.db"),
		before: &place{
			env: "HERMES_HOME", home: ".hermes", globs: []string{"sessions/*.jsonl"}, is: lines(below("sessions/", ".jsonl")),
		},
	},
	recordings("Wrapped MCP", "mcp"),
	recordings("Wrapped ACP", "acp"),
	recordings("Wrapped Codex", "codex-app-server"),
}

// cursorHome is where Cursor keeps its database.
func cursorHome() string { return editorHome("Cursor") }

// editorHome is where an editor keeps the files of its extensions, below the home directory.
func editorHome(editor string) string {
	base := ".config"
	switch runtime.GOOS {
	case "darwin":
		base = "Library/Application Support"
	case "windows":
		base = "AppData/Roaming"
	}
	return filepath.FromSlash(base + "/" + editor + "/User/globalStorage")
}

// editors are where the editors whose extensions are those of VS Code keep them; the last is its server, where it runs on another machine.
var editors = []string{
	editorHome("Code"), editorHome("Code - Insiders"), editorHome("VSCodium"), editorHome("Cursor"), editorHome("Windsurf"),
	filepath.FromSlash(".vscode-server/data/User/globalStorage"),
}

// extension is an extension of editors whose format is that of Roo Code, each in a folder of its own.
func extension(name, id string, globs ...string) place {
	return place{
		name: name, format: "roo-code", extension: id, globs: globs, below: "tasks",
		is: func(rel string) (bool, bool) {
			_, file, _ := strings.Cut(rel, "/")
			return file == "ui_messages.json" || file == "history_item.json", file == "ui_messages.json"
		},
	}
}

// file is a database of that name, which is no conversation by itself.
func file(pattern string) func(string) (bool, bool) {
	return func(rel string) (bool, bool) { ok, _ := filepath.Match(pattern, rel); return ok, false }
}

// recordings are those that earshot wrap makes of a format, one of each connection.
func recordings(name, format string) place {
	return place{
		name: name, format: format, wrap: "wrap/" + format, globs: []string{"*.jsonl"},
		is: lines(below("", ".jsonl")),
	}
}

// below are the files with that ending in a folder, and not in one below it.
func below(folder, ending string) func(rel string) bool {
	return func(rel string) bool {
		name, ok := strings.CutPrefix(rel, folder)
		return ok && strings.HasSuffix(name, ending) && !strings.Contains(name, "/")
	}
}

// lines are the transcripts of a program that keeps nothing else of that pattern.
func lines(match func(rel string) bool) func(string) (bool, bool) {
	return func(rel string) (bool, bool) { ok := match(rel); return ok, ok }
}

// servers are the usual ports of agent servers.
var servers = []struct {
	name, format string
	port         int
}{
	{"AGNO", "agno", 7777},
	{"Letta", "letta", 8283},
}

// endpoints are the variables by which SDKs and agents take a provider's base URL.
var endpoints = []struct{ variable, format string }{
	{"ANTHROPIC_BASE_URL", "anthropic-sse"},
	{"OPENAI_BASE_URL", "openai-responses"},
}

// Variables are those of the environment by which Find knows where transcripts are.
func Variables() []string {
	out := []string{"XDG_DATA_HOME"}
	for _, p := range places {
		if p.env != "" {
			out = append(out, p.env)
		}
	}
	return out
}

// Find looks at the machine. Folders that may not be read count as empty.
func (m Machine) Find(ctx context.Context) (*Report, error) {
	r := &Report{Agents: []Agent{}, Servers: []Server{}, Endpoints: []Endpoint{}}
	for _, p := range places {
		a, err := m.look(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("discover: %s: %w", p.name, err)
		}
		if p.before != nil && a.Files == 0 {
			before := *p.before
			before.name, before.format = p.name, p.format
			b, err := m.look(ctx, before)
			if err != nil {
				return nil, fmt.Errorf("discover: %s: %w", p.name, err)
			}
			if b.Files > 0 {
				a = b
			}
		}
		r.Agents = append(r.Agents, a)
	}
	slices.SortStableFunc(r.Agents, func(a, b Agent) int { return cmp.Compare(b.Conversations, a.Conversations) })
	listening := m.listening()
	for _, s := range servers {
		if listening[s.port] {
			r.Servers = append(r.Servers, Server{s.name, s.format, "127.0.0.1:" + strconv.Itoa(s.port)})
		}
	}
	for _, e := range endpoints {
		if url := m.Getenv(e.variable); url != "" {
			r.Endpoints = append(r.Endpoints, Endpoint{e.variable, withoutUser(url), e.format})
		}
	}
	return r, nil
}

// extension looks for an extension in all editors. Where none has a transcript, the paths are those of the first.
func (m Machine) extension(ctx context.Context, p place) (all Agent, err error) {
	for _, editor := range editors {
		a, err := m.below(ctx, p, filepath.Join(m.Home, editor, p.extension))
		if err != nil {
			return a, err
		}
		all.add(a)
	}
	return all, nil
}

// listed looks into the folders of a list: {"projects": [{"data_dir": folder}]}. Without one the path is that of a project at home.
func (m Machine) listed(ctx context.Context, p place) (all Agent, err error) {
	var list struct {
		Projects []struct {
			Dir string `json:"data_dir"`
		} `json:"projects"`
	}
	if text, err := os.ReadFile(filepath.Join(m.root(p), p.listed)); err == nil {
		_ = json.Unmarshal(text, &list) // a list that is no JSON is empty
	}
	for _, project := range list.Projects {
		if !filepath.IsAbs(project.Dir) {
			continue
		}
		a, err := m.below(ctx, p, project.Dir)
		if err != nil {
			return a, err
		}
		all.add(a)
	}
	if all.Files == 0 {
		return m.below(ctx, p, filepath.Join(m.Home, p.home))
	}
	return all, nil
}

// add adds the transcripts of another folder. One without any counts only as long as there are none.
func (a *Agent) add(b Agent) {
	switch {
	case a.Name == "", a.Files == 0 && b.Files > 0:
		*a = b
	case b.Files > 0:
		a.Paths = append(a.Paths, b.Paths...)
		a.Conversations, a.Files, a.Bytes = a.Conversations+b.Conversations, a.Files+b.Files, a.Bytes+b.Bytes
		if b.Newest.After(a.Newest) {
			a.Newest = b.Newest
		}
	}
}

func (m Machine) look(ctx context.Context, p place) (Agent, error) {
	switch {
	case p.extension != "":
		return m.extension(ctx, p)
	case p.listed != "":
		return m.listed(ctx, p)
	}
	return m.below(ctx, p, m.root(p))
}

// root is the folder of a place.
func (m Machine) root(p place) string {
	root := filepath.Join(m.Home, p.home)
	if p.wrap != "" {
		root = filepath.Join(m.Data, filepath.FromSlash(p.wrap))
	}
	if p.data != "" {
		root = filepath.Join(m.Home, ".local", "share", filepath.FromSlash(p.data))
		if dir := m.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			root = filepath.Join(dir, filepath.FromSlash(p.data))
		}
	}
	if p.env != "" && m.Getenv(p.env) != "" {
		root = filepath.Join(m.Getenv(p.env), filepath.FromSlash(p.inside))
	}
	return root
}

// below looks into a folder.
func (m Machine) below(ctx context.Context, p place, root string) (Agent, error) {
	a := Agent{Name: p.name, Type: "file", Format: p.format}
	if p.database {
		a.Type = "sqlite"
	}
	for _, g := range p.globs {
		a.Paths = append(a.Paths, filepath.Join(root, filepath.FromSlash(g)))
	}
	from := filepath.Join(root, p.below)
	projects := make(map[string]bool)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if p.database && path != from { // it is in the folder itself
				return fs.SkipDir
			}
			if p.extension != "" && path != from && filepath.Dir(path) != from { // a task may have copies of the project
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		transcript, conversation := p.is(rel)
		if !transcript {
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		a.Files++
		a.Bytes += info.Size()
		if info.ModTime().After(a.Newest) {
			a.Newest = info.ModTime()
		}
		if conversation {
			a.Conversations++
			if p.projects {
				project, _, _ := strings.Cut(rel, "/")
				projects[project] = true
			}
		}
		return nil
	})
	a.Projects = len(projects)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return a, err
}

// listening are the TCP ports on which processes listen, where the system lists them.
func (m Machine) listening() map[int]bool {
	ports := make(map[int]bool)
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		f, err := os.Open(filepath.Join(m.Proc, name))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			const listen = "0A" // its state
			if len(fields) < 4 || fields[3] != listen {
				continue
			}
			_, hex, _ := strings.Cut(fields[1], ":")
			if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
				ports[int(port)] = true
			}
		}
		_ = f.Close()
	}
	return ports
}

// withoutUser takes user and password from a URL, however badly it is written.
func withoutUser(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	if i := strings.LastIndexByte(rest[:end], '@'); i >= 0 {
		rest = rest[i+1:]
	}
	return scheme + "://" + rest
}
