package codex

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// threadOf is the thread that a file's name names:
//
//	rollout-2026-03-04T09-10-11-019c1a2b-....jsonl
func threadOf(path string) string {
	const uuid = 36
	// A path need not be text, but an id that is taken from it must be.
	path = strings.ToValidUTF8(path, "\uFFFD")
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if i := strings.Index(name, ".jsonl"); i >= 0 { // what follows is a rotation's number or .gz
		name = name[:i]
	}
	if strings.HasPrefix(name, "rollout-") && len(name) > uuid {
		return name[len(name)-uuid:]
	}
	return name
}

// meta decodes session_meta, with which a thread begins. A second one of another
// thread, right after the first, heads a copy of that thread's history; it is
// copied itself. One that comes later is of another thread that was appended.
func (d *thread) meta(r *record) (copied bool) {
	p := r.p
	id := ident(p.Get("id"))
	if id == "" {
		id = ident(p.Get("session_id"))
	}
	if d.Thread != "" && id != d.Thread {
		if d.Copy != nil || !d.Own {
			d.copying(r)
			return true
		}
		d.state = state{}
	}
	again := d.Thread != ""
	if !again {
		d.identify(p, id)
	}
	m := d.status(r, r.id(), "session_meta")
	d.describe(m, p)
	if text := p.Get("base_instructions").First("text"); !again && text.Is(jsonv.String) {
		m = d.give(r, msg.System, "instructions:"+d.Thread)
		m.Role, m.Hidden, m.Content = msg.RoleSystem, true, text.Text()
	}
	if from := p.Get("forked_from_id"); !again && from.Is(jsonv.String) {
		d.Copy = &history{From: ident(from)}
	}
	return false
}

// identify takes over who the thread is.
func (d *thread) identify(p jsonv.Value, id string) {
	d.Thread, d.Session = id, ident(p.Get("session_id"))
	if d.Thread == "" {
		d.Thread = d.origin
	}
	spawn := p.Path("source", "subagent", "thread_spawn")
	d.Parent = ident(p.First("parent_thread_id"))
	if d.Parent == "" {
		d.Parent = ident(spawn.Get("parent_thread_id"))
	}
	sub := p.Path("source", "subagent")
	if d.Child = d.Parent != "" || sub.Exists(); d.Child {
		d.Run = d.Thread
		if d.Session == "" { // of versions before session_id
			d.Session = d.Parent
		}
	}
	d.Path = ident(p.First("agent_path"))
	if d.Path == "" {
		d.Path = peek(spawn.Get("agent_path"))
	}
	for _, name := range [...]jsonv.Value{
		p.Get("agent_nickname"), spawn.Get("agent_nickname"), p.Get("agent_role"), spawn.Get("agent_role"), sub, sub.Get("other"),
	} {
		if d.Name = ident(name); d.Name != "" {
			break
		}
	}
	if d.Name == "" {
		d.Name = d.Path[strings.LastIndexByte(d.Path, '/')+1:]
	}
	d.Provider = provider(ident(p.Get("model_provider")))
	d.Dir = ident(p.Get("cwd"))
	d.Manual = p.Get("source").Equal("cli") || p.Get("source").Equal("vscode")
}

func (d *thread) describe(m *msg.Message, p jsonv.Value) {
	for _, name := range [...]string{
		"cwd", "originator", "cli_version", "thread_source", "history_mode", "forked_from_id", "parent_thread_id", "agent_path", "agent_role",
	} {
		m.SetAttr(name, ident(p.Get(name)))
	}
	if id := ident(p.Get("id")); id != d.session() {
		m.SetAttr("thread_id", id)
	}
	m.SetAttr("source", ident(p.Get("source")))
	m.SetAttr("git_branch", ident(p.Path("git", "branch")))
	m.SetAttr("git_commit", ident(p.Path("git", "commit_hash")))
	p.Path("source", "subagent", "thread_spawn", "agent_path").Equal(p.Get("agent_path").PeekStr())
	m.SetAttr("depth", number(p.Path("source", "subagent", "thread_spawn", "depth")))
}

// provider is the name under which the GenAI conventions know a provider of the
// CLI's configuration.
func provider(id string) string {
	switch id {
	case "azure":
		return "azure.ai.openai"
	case "amazon-bedrock":
		return "aws.bedrock"
	}
	return id
}

// context decodes turn_context: under which settings a turn runs.
func (d *thread) context(r *record) {
	if model := ident(r.p.Get("model")); model != "" {
		d.Model = model
	}
	if dir := ident(r.p.Get("cwd")); dir != "" {
		d.Dir = dir
	}
	d.enter(ident(r.p.Get("turn_id")))
	m := d.status(r, r.id(), "turn_context")
	m.Model, m.Provider = d.Model, d.Provider
	for _, name := range [...]string{"cwd", "effort", "approval_policy", "personality", "multi_agent_version"} {
		m.SetAttr(name, ident(r.p.Get(name)))
	}
	m.SetAttr("sandbox", ident(r.p.Get("sandbox_policy").First("type", "mode")))
}
