package codex

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// identity is that of a thread.
type identity struct {
	Path string   `json:",omitempty"` // of the thread in the tree: /root/reviewer
	Line string   `json:",omitempty"` // the key of the last record that had no payload
	Own  bool     `json:",omitempty"` // a record beside session_meta was read that is no copy
	Copy *history `json:",omitempty"` // the copied history that the records belong to
}

// meta decodes session_meta, with which a thread begins. A second one of another thread,
// right after the first, heads a copy of the history of that thread; it is copied itself.
// A later one belongs to another thread that was appended.
func (d *thread) meta(r *record) (copied bool) {
	p := r.p
	id := ident.First(p.Get("id"), p.Get("session_id"))
	if d.ID != "" && id != d.ID {
		if d.s.Copy != nil || !d.s.Own {
			d.copying(r)
			return true
		}
		*d.s = state{}
	}
	again := d.ID != ""
	if !again {
		d.identify(p, cmp.Or(id, d.Origin))
	}
	d.describe(d.Status(r.id(), "session_meta"), p)
	text := jsonv.Or(p.Path("base_instructions", "text"), p.Get("instructions"))
	if !again && text.Is(jsonv.String) {
		m := d.Add(msg.System, "instructions:"+d.ID)
		m.Role, m.Hidden, m.Content = msg.RoleSystem, true, text.Text()
	}
	if from := p.Get("forked_from_id"); !again && from.Is(jsonv.String) && !p.Get("history_base").Is(jsonv.Object) { // which is not copied
		d.s.Copy = &history{From: ident.Of(from)}
	}
	return false
}

// identify reads the identity of the thread.
func (d *thread) identify(p jsonv.Value, id string) {
	d.ID, d.Session = id, ident.Of(p.Get("session_id"))
	sub := p.Path("source", "subagent")
	spawn := sub.Get("thread_spawn")
	d.Parent = ident.First(p.Get("parent_thread_id"), spawn.Get("parent_thread_id"))
	if d.Parent != "" || sub.Exists() {
		d.Below(d.Parent, "") // which leads the tree, before session_id was added
	}
	d.s.Path = cmp.Or(ident.Of(p.Get("agent_path")), ident.Peek(spawn.Get("agent_path")))
	d.Name = cmp.Or(ident.First(p.Get("agent_nickname"), spawn.Get("agent_nickname"), p.Get("agent_role"), spawn.Get("agent_role"), sub, sub.Get("other")),
		d.s.Path[strings.LastIndexByte(d.s.Path, '/')+1:])
	switch d.Provider = ident.Of(p.Get("model_provider")); d.Provider { // by the names of the GenAI conventions
	case "azure":
		d.Provider = "azure.ai.openai"
	case "amazon-bedrock":
		d.Provider = "aws.bedrock"
	}
	d.Dir = ident.Of(p.Get("cwd"))
	d.Client = msg.Client{Project: d.Dir, Branch: ident.Of(p.Path("git", "branch")), Version: ident.Of(p.Get("cli_version"))}
	d.Manual = p.Get("source").In("cli", "vscode")
}

func (d *thread) describe(m *msg.Message, p jsonv.Value) {
	m.Client = d.Client
	codex.SetIDs(m, p, "originator", "thread_source", "history_mode", "forked_from_id", "parent_thread_id", "agent_path", "agent_role")
	if id := ident.Of(p.Get("id")); id != d.SessionID() {
		m.SetAttr("thread_id", id)
	}
	codex.SetIDs(m, p, "source")
	if base := p.Get("history_base"); base.Is(jsonv.Object) { // the history before, in another file
		m.SetAttr("history_base", ident.Of(base.Get("thread_id")))
		m.SetAttr("history_base_ordinal", base.Get("end_ordinal_exclusive").Digits())
	}
	m.SetAttr("git_commit", ident.Of(p.Path("git", "commit_hash")))
	m.SetAttr("repository", ident.Of(p.Path("git", "repository_url")))
	spawn := p.Path("source", "subagent", "thread_spawn")
	spawn.Get("agent_path").Equal(p.Get("agent_path").PeekStr())
	m.SetAttr("depth", spawn.Get("depth").Digits())
}

// context decodes turn_context: the settings of a turn.
func (d *thread) context(r *record) {
	d.Model = cmp.Or(ident.Of(r.p.Get("model")), d.Model)
	d.Dir = cmp.Or(ident.Of(r.p.Get("cwd")), d.Dir)
	d.enter(ident.Of(r.p.Get("turn_id")))
	m := d.Status(r.id(), "turn_context")
	m.Model, m.Provider = d.Model, d.Provider
	codex.SetIDs(m, r.p, "cwd", "effort", "approval_policy", "personality", "multi_agent_version")
	m.SetAttr("sandbox", ident.Of(r.p.Get("sandbox_policy").First("type", "mode")))
}

// history is the copied history with which a thread begins. Its records have the instant of
// the copy as their time; the first record that was written later ends it.
type history struct {
	From    string // the thread that was copied
	Begun   bool   `json:",omitempty"`
	Instant int64  `json:",omitempty"` // of the last copied record
	Records int    `json:",omitempty"`
}

const (
	// straddle is the longest time between two records of a copy: it is written at once, but
	// a millisecond may end meanwhile.
	straddle = 5e6
	// late is how long after the copy a record still counts as a part of it if its turn is
	// older than the thread.
	late = 1e9
)

// copying counts a copied record, and keeps the total and the model that it has.
func (d *thread) copying(r *record) {
	if d.s.Copy == nil {
		d.s.Copy = &history{From: ident.Of(r.p.Get("id"))}
	}
	h := d.s.Copy
	h.Begun, h.Records = true, h.Records+1
	if d.At.Nanos != 0 {
		h.Instant = d.At.Nanos
	}
	if info := r.p.Get("info"); info.Is(jsonv.Object) && r.p.Get("type").Equal("token_count") {
		if total := openai.Usage(info.Get("total_token_usage")); total != (conversation.Counts{}) {
			d.Total = total
		}
	}
	if model := r.p.Get("model"); model.Is(jsonv.String) && r.typ.Equal("turn_context") {
		d.Model = ident.Of(model)
	}
}

// copied reports whether the record is a part of the copied history.
func (d *thread) copied(r *record) bool {
	h := d.s.Copy
	if h == nil {
		return false
	}
	if h.includes(r.turn(), d.ID, d.At.Nanos) {
		d.copying(r)
		return true
	}
	if h.Begun {
		m := d.Status("copied:"+d.ID, "copied_history")
		m.SetAttr("from", h.From)
		m.SetAttr("records", strconv.Itoa(h.Records))
	}
	d.s.Copy = nil
	return false
}

// includes reports whether a record of that turn and time is a part of the copy.
func (h *history) includes(turn, thread string, at int64) bool {
	of, dated := madeAt(turn)
	ours, known := madeAt(thread)
	dated = dated && known
	older := dated && of < ours
	if !h.Begun { // there was no second session_meta: a record is copied only if it is older than the thread
		return older
	}
	switch gap := at - h.Instant; {
	case gap == 0 || at == 0:
		return true
	case gap < 0 || gap > late:
		return false
	case dated:
		return older
	default:
		return gap <= straddle
	}
}

// madeAt is the time of an id in milliseconds, if the id is a UUID of version 7, which
// begins with it.
func madeAt(id string) (ms uint64, ok bool) {
	const text = 36
	if len(id) != text || id[14] != '7' || id[8] != '-' {
		return 0, false
	}
	ms, err := strconv.ParseUint(id[:8]+id[9:13], 16, 64)
	return ms, err == nil
}
