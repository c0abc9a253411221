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

// meta decodes session_meta, with which a thread begins. A second one of another thread,
// right after the first, heads a copy of the history of that thread; it is copied itself.
// A later one belongs to another thread that was appended.
func (d *thread) meta(r *record) (copied bool) {
	id := ident.First(r.p.Get("id"), r.p.Get("session_id"))
	if d.ID != "" && id != d.ID {
		if d.Copy != nil || !d.Own {
			d.copying(r)
			return true
		}
		*d.State, *d.memory = codex.State{}, memory{}
		d.Replay.has(r, d.At.Nanos)
	}
	again, base := d.ID != "", r.p.Get("history_base")
	if !again {
		d.identify(r.p, cmp.Or(id, d.Origin))
	}
	d.describe(d.Status(r.id(), "session_meta"), r.p, base)
	if again {
		return false
	}
	if text := jsonv.Or(r.p.Path("base_instructions", "text"), r.p.Get("instructions")); text.Is(jsonv.String) {
		m := d.Add(msg.System, "instructions:"+d.ID)
		m.Role, m.Hidden, m.Content = msg.RoleSystem, true, text.Text()
	}
	if from := r.p.Get("forked_from_id"); from.Is(jsonv.String) && !base.Is(jsonv.Object) {
		d.Copy = &history{From: ident.Of(from)}
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
	path := cmp.Or(ident.Of(p.Get("agent_path")), ident.Peek(spawn.Get("agent_path")))
	d.Name = cmp.Or(ident.First(p.Get("agent_nickname"), spawn.Get("agent_nickname"), p.Get("agent_role"), spawn.Get("agent_role"), sub, sub.Get("other")),
		path[strings.LastIndexByte(path, '/')+1:])
	if job, ok := strings.CutPrefix(d.Name, agentJob+":"); ok {
		d.Name, d.Job = agentJob, job
	}
	d.Provider, d.Dir = codex.Provider(p.Get("model_provider")), ident.Of(p.Get("cwd"))
	d.Client = msg.Client{Project: d.Dir, Branch: ident.Of(p.Path("git", "branch")), Version: ident.Of(p.Get("cli_version"))}
	d.Manual = p.Get("source").In("cli", "vscode")
}

// describe adds the facts of the thread. The history before it may be in another file, the base, and is not copied then.
func (d *thread) describe(m *msg.Message, p, base jsonv.Value) {
	m.Client = d.Client
	codex.SetIDs(m, p, "originator", "thread_source", "history_mode", "forked_from_id", "parent_thread_id", "agent_path", "agent_role", "source")
	if id := ident.Of(p.Get("id")); id != d.SessionID() {
		m.SetAttr("thread_id", id)
	}
	codex.SetIDs(m, base, "history_base=thread_id")
	codex.SetIDs(m, p.Get("git"), "git_commit=commit_hash", "repository=repository_url")
	spawn := p.Path("source", "subagent", "thread_spawn")
	spawn.Get("agent_path").Equal(p.Get("agent_path").PeekStr())
	conversation.AttrsAs(m, base, jsonv.Value.Digits, "history_base_ordinal=end_ordinal_exclusive")
	conversation.AttrsAs(m, spawn, jsonv.Value.Digits, "depth")
}

// context decodes turn_context: the settings of a turn.
func (d *thread) context(r *record) {
	d.Model = cmp.Or(ident.Of(r.p.Get("model")), d.Model)
	d.Dir = cmp.Or(ident.Of(r.p.Get("cwd")), d.Dir)
	d.enter(r)
	m := d.Status(r.id(), "turn_context")
	m.Model, m.Provider = d.Model, d.Provider
	codex.SetIDs(m, r.p, "cwd", "effort", "approval_policy", "personality", "multi_agent_version")
	m.SetAttr("sandbox", ident.Of(r.p.Get("sandbox_policy").First("type", "mode")))
}

// history is the copied history with which a thread begins. Its records have the instant of
// the copy as their time; the first record that was written later ends it.
type history struct {
	From    string // the thread that was copied
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
	if d.Copy == nil {
		d.Copy = &history{From: ident.Of(r.p.Get("id"))}
	}
	d.Copy.Records++
	d.Copy.Instant = cmp.Or(d.At.Nanos, d.Copy.Instant)
	d.Total = cmp.Or(openai.Usage(r.p.Path("info", "total_token_usage")), d.Total)
	if r.typ.Equal("turn_context") {
		d.Model = cmp.Or(ident.Of(r.p.Get("model")), d.Model)
	}
}

// copied reports whether the record is a part of the copied history.
func (d *thread) copied(r *record) bool {
	h := d.Copy
	if h != nil && h.includes(r.turn(), d.ID, d.At.Nanos) {
		d.copying(r)
		return true
	}
	if h != nil && h.Records > 0 {
		m := d.Status("copied:"+d.ID, "copied_history")
		m.SetAttr("from", h.From)
		m.SetAttr("records", strconv.Itoa(h.Records))
	}
	d.Copy, d.Own = nil, true
	return false
}

// includes reports whether a record of that turn and time is a part of the copy.
func (h *history) includes(turn, thread string, at int64) bool {
	of, ours := madeAt(turn), madeAt(thread)
	dated := of > 0 && ours > 0
	older := dated && of < ours
	gap := at - h.Instant
	switch {
	case h.Records == 0: // there was no second session_meta: a record is copied only if it is older than the thread
		return older
	case gap == 0 || at == 0:
		return true
	case gap < 0 || gap > late:
		return false
	}
	return older || !dated && gap <= straddle
}

// madeAt is the time of an id in milliseconds, if the id is a UUID of version 7, which
// begins with it; 0 of any other id.
func madeAt(id string) uint64 {
	const text = 36
	if len(id) != text || id[14] != '7' || id[8] != '-' {
		return 0
	}
	ms, _ := strconv.ParseUint(id[:8]+id[9:13], 16, 64) // 0 if they are no digits
	return ms
}
