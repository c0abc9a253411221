package claudecode

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxTail is the number of lines of a lane that a later line can name as its parent.
const maxTail = 32

// envelope reads the members that user, assistant, system, progress and attachment
// lines have in common, and finds the lane of the line. It reports whether the line is the second copy that a fork has of a record.
func (d *transcript) envelope(ln *claude.Line) (again bool) {
	session, fork := ln.Root.Get("sessionId"), ln.Root.Get("forkedFrom")
	ln.Time = conversation.TimeOf(ln.Root.Get("timestamp"))
	from := ident.Of(fork.Get("sessionId"))
	switch {
	case from != "" && ident.Of(session) != from:
		ln.Copied, ln.Name = true, from
		d.forked(ln, ident.Of(session), from)
		if id := fork.Get("messageUuid"); id.Is(jsonv.String) {
			ln.UUID = id
		}
	case resumed(d, ln, ident.Of(session)):
		ln.Copied, ln.History, ln.Name = true, true, cmp.Or(d.Resumes, d.SessionOf(session, d.file.session))
	default:
		ln.Name = d.SessionOf(session, d.file.session)
		if l := d.fork(ln.Name); l != nil && ln.Time.Nanos != 0 && ln.Time.Nanos <= l.Until { // without its origin
			ln.Copied, ln.Name, again = true, l.From, true
		}
	}
	parent := ln.Root.First("parentUuid", "logicalParentUuid")
	ln.Lane = d.laneOf(ln, parent)
	if !ln.Lane.Ended {
		ln.Run = ln.Lane.ID
	}
	ln.Parent, _ = find(ln.Lane, claude.Digest(parent.Peek()))
	return again
}

// resumed reports whether the record is a copy in a session that newer versions resume under another name: with the ids and the time that it had,
// and the promptId of the turn that was asked first in the new session, in place of its own. A response names the session of its request. A record without
// that is a copy if it is older than the first prompt of the file, which was queued before.
func resumed(d *transcript, ln *claude.Line, session string) bool {
	if d.file.agent != "" {
		return false
	}
	if of := ident.Of(ln.Root.Get("requestSessionId")); of != "" && of != session {
		d.Resumes = of
		return true
	}
	return ln.Time.Nanos != 0 && ln.Time.Nanos < d.Begun
}

// flat reads the envelope of a record that is part of no chain.
func (d *transcript) flat(ln *claude.Line) {
	ln.Name = d.SessionOf(ln.Root.Get("sessionId"), d.file.session)
	t := ln.Root.Get("timestamp")
	if !t.Exists() {
		t = ln.Root.Path("snapshot", "timestamp")
	}
	ln.Time = conversation.TimeOf(t)
}

// laneOf finds the lane of a line, or begins it.
func (d *transcript) laneOf(ln *claude.Line, parent jsonv.Value) *claude.Lane {
	side, agent := ln.Root.Get("isSidechain").Bool(), d.file.agent
	if id := ln.Root.Get("agentId"); id.Is(jsonv.String) && (side || agent != "") && !id.Equal(agent) {
		agent = ident.Of(id)
	}
	inline := side && agent == ""
	if l := d.Lane(func(l *claude.Lane) bool {
		if l.Session != ln.Name || l.Agent != agent || inline != (l.Root != "") {
			return false
		}
		if !inline {
			return true
		}
		_, ok := find(l, claude.Digest(parent.Peek()))
		return ok
	}); l != nil {
		if l.Name == "" {
			setName(l, ln.Root)
		}
		return l
	}
	l := &claude.Lane{Session: ln.Name, Agent: agent, Name: helper(agent), Tail: make([]claude.Step, 0, maxTail)}
	setName(l, ln.Root)
	switch {
	case agent != "":
		l.Run = conversation.Run{ID: agent, Child: true}
		if l.Copies = !d.Referred && replays(l.Name, ln.Root); l.Copies {
			l.ID, l.Prompted = "", true
		}
		if d.file.workflow != "" {
			l.Parent, l.Link = d.file.workflow, msg.ByParent
		}
		l.CausedBy(d.CallOfChild(agent))
	case inline:
		l.Root = ln.ID()
		l.Run = conversation.Run{ID: l.Root, Child: true}
	}
	d.AddLane(ln, l)
	return l
}

// asks are the beginnings of the prompts of the helpers that answer from the whole conversation, by
// their names. Versions differ in the words before them.
var asks = map[string]string{
	"compact":       "Your task is to create a detailed summary of the",
	"side_question": "This is a side question from the user",
}

// replays reports whether the first record of a helper's file is the first of a copy of the conversation.
// Versions that leave the copy out begin with the helper's prompt, which names the last record of the
// conversation for its parent.
func replays(helper string, root jsonv.Value) bool {
	return asks[helper] != "" && !root.First("parentUuid").Is(jsonv.String) && !asked(helper, root)
}

// asked reports whether a record is the prompt of a helper, with which its own records begin.
func asked(helper string, root jsonv.Value) bool {
	const most = 1024 // the rest of the prompt, or a conversation, may quote it
	if !root.Get("type").Equal("user") {
		return false
	}
	raw := claude.Opening(root.Path("message", "content")).Escaped()
	return bytes.Contains(raw[:min(len(raw), most)], []byte(asks[helper]))
}

// copied decodes the envelope of a record in a file that began with a copy of the conversation: the
// helper's run begins with its prompt, and what precedes it is of no run.
func (d *transcript) copied(ln *claude.Line) {
	l := ln.Lane
	if !asked(l.Name, ln.Root) {
		ln.Copied = true
		return
	}
	d.Finish(ln, l)
	l.Copies, l.Prompted = false, false
	l.Run = conversation.Run{ID: l.Agent, Child: true}
	ln.Run = l.ID
}

// setName takes the agent's name from a line that has it.
func setName(l *claude.Lane, root jsonv.Value) {
	for _, field := range [...]string{"agentName", "attributionAgent"} {
		if v := root.Get(field); v.Is(jsonv.String) {
			l.Name = ident.Of(v)
			return
		}
	}
}

// forked records that a session is a fork of another, which had the record.
func (d *transcript) forked(ln *claude.Line, session, from string) {
	if session == "" {
		return
	}
	l := d.fork(session)
	if l == nil {
		l = &claude.Lane{Session: session}
		d.AddLane(ln, l)
	}
	l.From, l.Until = from, max(l.Until, ln.Time.Nanos)
}

// fork returns the lane of the main conversation of a session, or nil.
func (d *transcript) fork(session string) *claude.Lane {
	for _, l := range d.Lanes {
		if l.Session == session && !l.Child {
			return l
		}
	}
	return nil
}

// find returns the key of the line of that digest among the last lines of the lane.
func find(l *claude.Lane, digest uint64) (key string, ok bool) {
	for _, s := range slices.Backward(l.Tail) {
		if s.UUID == digest {
			return s.Key, true
		}
	}
	return "", false
}

// remember lets later lines name this one as their parent.
func remember(ln *claude.Line) {
	l := ln.Lane
	if l == nil || !ln.UUID.Is(jsonv.String) {
		return
	}
	ln.Last = cmp.Or(ln.Last, ln.Parent)
	l.Tail = bounded.Push(l.Tail, claude.Step{UUID: ln.Digest(), Key: ln.Last}, maxTail)
}

// Facts implements claude.Form.
func (*transcript) Facts() []string {
	return []string{"type", "subtype", "timestamp", "message", "content", "attachment", "data"}
}

// Cause implements claude.Form: a run that begins with an answer is named by the line that
// it answers.
func (*transcript) Cause(ln *claude.Line, answer bool) string {
	if answer {
		if id := ident.Of(ln.Root.Get("parentUuid")); id != "" {
			return id
		}
	}
	return ln.ID()
}

// Started implements claude.Form.
func (*transcript) Started(ln *claude.Line, m *msg.Message) {
	m.Client = msg.Client{Project: ident.Of(ln.Root.Get("cwd")), Branch: ident.Of(ln.Root.Get("gitBranch")), Version: ident.Of(ln.Root.Get("version"))}
	for _, field := range [...]string{"entrypoint", "permissionMode", "teamName"} {
		m.SetAttr(field, ln.Root.Get(field).Str())
	}
	if v := ln.Root.Get("session_id"); !v.Equal(ln.Lane.Session) {
		m.SetAttr("resumed_from", v.Str())
	}
	m.SetAttr("forked_from", ln.Lane.From)
	if l := ln.Lane; !l.Joined { // a later run of a teammate is of the message that woke it
		l.Joined = true
		m.Delegation.CorrelationID = claude.Teammate(member(ident.Of(ln.Root.Get("agentName")), ident.Of(ln.Root.Get("teamName"))))
	}
	if ln.Lane.Child {
		m.SetAttr("sidechain", "true")
	}
}

// Finishing implements claude.Form.
func (*transcript) Finishing(*claude.Line, *claude.Lane) {}

// Interrupted implements claude.Form: the interrupt ends the run.
func (d *transcript) Interrupted(ln *claude.Line, text jsonv.Value) {
	l := ln.Lane
	ln.Finish(ln, l)
	m := ln.Emit(msg.Stop, ln.ID())
	m.Role, m.Run = msg.RoleUser, l.ID
	m.Content = text.Text()
	m.IsError, m.FinishReason = true, "interrupted"
	if m.Run != "" {
		m.Signal = msg.RunEnd
	}
	l.Ended = true
}

// Launched implements claude.Form: it begins the run of a workflow script, whose agents have
// files of their own that name it and nothing else.
func (d *transcript) Launched(ln *claude.Line, extra jsonv.Value, c *claude.Call) {
	if c.Name != claude.WorkflowTool || c.Run == "" {
		return
	}
	if c.To == "" {
		c.To = ident.Of(extra.Get("workflowName"))
	}
	m := ln.About(c, "", msg.Status, "workflow:"+c.Child)
	m.Hidden = true
	m.SetAttr("type", "workflow")
	m.Run, m.ParentRun, m.ParentCall = c.Child, c.Run, c.ID
	m.Delegation.Link, m.Signal, m.Agent = msg.ByNativeID, msg.RunStart, workflow(c)
}

// workflow is the actor of the run that a workflow call caused.
func workflow(c *claude.Call) msg.Agent {
	return msg.Agent{ID: c.Child, Name: c.To, Kind: msg.KindWorkflow}
}

// metadata decodes agent-<id>.meta.json, which names the call that caused the
// sub-agent:
//
//	{"agentType":"Explore","description":"…","toolUseId":"toolu_…","spawnDepth":1,"parentAgentId":"…"}
//
// The agents of a workflow have an agentType and nothing else: their parent is
// the workflow's run, which their path names. The message belongs to no run,
// because it has no time of its own and must not begin one.
func (d *transcript) metadata(ln *claude.Line) {
	root := ln.Root
	call, typ := ident.Of(root.Get("toolUseId")), root.Get("agentType")
	if d.file.agent == "" || call == "" && !typ.Is(jsonv.String) {
		ln.Unknown(cmp.Or(root.Get("type").Str(), "companion"), root)
		return
	}
	m := ln.Status("link:"+d.file.agent, "agent_meta")
	m.Content = root.Get("description").Text()
	m.Delegation.To, m.Delegation.ChildRun = ident.Of(typ), d.file.agent
	m.ParentRun = ident.Of(root.Get("parentAgentId"))
	switch {
	case call != "":
		m.Signal, m.Tool.CallID, m.Delegation.Link = msg.Link, call, msg.ByMetaFile
	case d.file.workflow != "":
		m.ParentRun, m.Delegation.Link = d.file.workflow, msg.ByParent
	}
	m.SetAttr("spawn_depth", root.Get("spawnDepth").Digits())
}
