package agno

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A session is reloaded as a list of runs (GET /sessions/{id}/runs), one run, or a stored
// session with its runs. Children precede their parents, and the body has the events of a run
// up to three times: in the run, in every run above it, and in the child runs that a team's
// last event embeds. Each tree of runs is decoded once, from its top:
//
//	runs: [child {events: c…}, top {events: t c… t}]    decoded: t c… t

// isRun reports whether an object is a stored run.
func isRun(v jsonv.Value) bool {
	return runID(v) != "" && slices.ContainsFunc([]string{"run_input", "input", "messages", "status", "metrics", "events", "run_response_format"},
		func(field string) bool { return v.Get(field).Kind() != jsonv.Missing })
}

// runID returns the id of a stored run, or of the run of an event.
func runID(v jsonv.Value) string { return ident.Peek(v.Get("run_id")) }

// parentID returns the id of the run above a stored one.
func parentID(v jsonv.Value) string {
	return ident.PeekOrNumber(v.First("parent_run_id", "workflow_run_id"))
}

// maxDepth limits how deep runs are nested.
const maxDepth = 256

// body has the runs of a reloaded body, and the state of their replay. Its methods for an open
// run do nothing for a nil body, which is that of a stream.
type body struct {
	s       *stream
	runs    map[string]*storedRun
	order   []jsonv.Value // the runs of the list
	session jsonv.Value   // of the first run or event that names it: the runs of the API do not
}

// storedRun is a run of a body.
type storedRun struct {
	v        jsonv.Value   // of the list, else the embedded one
	embedded jsonv.Value   // as another run embeds it: with names and models, which the list lacks
	first    jsonv.Value   // its first event
	children []jsonv.Value // of the list, and those that it embeds
	under    string        // the run in whose story its own is
	inEvents bool          // another run of the list keeps its events
	told     bool          // its story is, or is part of another one

	call *event         // that caused it, where that has a place in the story
	by   msg.LinkMethod // how the call was found

	says   []*event // its messages, those that its events have not passed
	texts  int      // of its messages, between its events
	gaps   bool     // between two of the texts is a call that no event has
	deltas bool     // its events have the texts

	metrics map[string]jsonv.Value // of its calls, once they were needed
}

// run returns the stored run of that id.
func (b *body) run(id string) *storedRun {
	st := b.runs[id]
	if st == nil {
		st = &storedRun{}
		b.runs[id] = st
	}
	return st
}

// stored returns the stored object of an open run.
func (b *body) stored(r *run) jsonv.Value {
	if b == nil {
		return jsonv.Value{}
	}
	return b.run(r.ID).v
}

// reload decodes a body.
func (s *stream) reload(root jsonv.Value) {
	if v := root.Get("session_id"); v.Is(jsonv.String) {
		s.Session = ident.Of(v)
	}
	list := root
	switch {
	case root.Get("runs").Is(jsonv.Array):
		list = root.Get("runs")
		root.Skip("chat_history")
		s.emitSession(root)
	case root.Get("chat_history").Is(jsonv.Array):
		s.emitSession(root)
		s.emitHistory(root)
		return
	}
	open := s.Runs // the body is complete and independent of them
	s.Runs, s.body = runs{}, newBody(s, list)
	b := s.body
	s.Session = cmp.Or(ident.Peek(b.session), s.Session, s.origin)
	for v := range list.Elems() {
		if !isRun(v) {
			s.stray("", v)
		}
	}
	for _, v := range b.order {
		// The body has no run above it, and no other run keeps its events.
		if !b.run(runID(v)).inEvents && !b.run(parentID(v)).v.Exists() {
			b.decodeTree(v)
		}
	}
	for _, v := range b.order { // whose parents form a cycle
		b.decodeTree(v)
	}
	s.Runs, s.body = open, nil
	s.releasePending(false)
}

func newBody(s *stream, list jsonv.Value) *body {
	b := &body{s: s, runs: make(map[string]*storedRun)}
	learn := func(v jsonv.Value) {
		if !b.session.Is(jsonv.String) {
			b.session = v.Get("session_id")
		}
	}
	for v := range jsonv.Each(list) {
		if !list.Is(jsonv.Object) && !isRun(v) {
			continue
		}
		b.order = append(b.order, v)
		id := runID(v)
		if st := b.run(id); !st.v.Exists() {
			st.v = v
		}
		learn(v)
		if p := parentID(v); p != "" && p != id {
			b.run(p).children = append(b.run(p).children, v)
		}
		for e := range v.Get("events").Elems() {
			learn(e)
			of := b.run(cmp.Or(runID(e), id))
			if of.first.Kind() == jsonv.Missing {
				of.first = e
			}
			of.inEvents = of.inEvents || of != b.run(id)
		}
	}
	for _, v := range b.order {
		b.addEmbedded(runID(v), v)
	}
	return b
}

// addEmbedded adds the runs that a run or its events embed, as its children.
func (b *body) addEmbedded(id string, v jsonv.Value) {
	for e := range v.Get("events").Elems() {
		b.addEmbedded(cmp.Or(runID(e), id), e)
	}
	for _, field := range [...]string{"member_responses", "step_executor_runs"} {
		for x := range v.Get(field).Elems() {
			child := runID(x)
			st := b.run(child)
			if st.embedded.Kind() == jsonv.Missing {
				st.embedded = x
			}
			if child != "" && !st.v.Exists() {
				st.v = x
				b.run(id).children = append(b.run(id).children, x)
				b.addEmbedded(child, x)
			}
		}
	}
}

// emitSession emits the name and the summary of a stored session.
func (s *stream) emitSession(v jsonv.Value) {
	m := s.Out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Session = s.sessionFor(v.Get("session_id"))
	m.Content = summaryText(v.First("session_summary", "summary"))
	name, updated := ident.OrNumber(v.Get("session_name")), v.First("updated_at", "created_at")
	conversation.TimeOf(updated).Set(m)
	m.Key = "session:" + msg.HashKey(name, m.Content.String(), string(updated.Peek()))
	m.SetAttr("type", "session")
	m.SetAttr("session_name", name)
	m.SetAttr("total_tokens", v.Get("total_tokens").Digits())
}

// emitHistory emits the messages of a stored session without runs:
//
//	{"session_id":"…","team_id":"…","chat_history":[{"role":"user","content":"…","created_at":1770000000}, …]}
//
// They repeat the messages of runs without naming a run, so they yield to those of the runs.
func (s *stream) emitHistory(v jsonv.Value) {
	agent, session := s.owner(v), s.sessionFor(v.Get("session_id"))
	for x := range v.Get("chat_history").Elems() {
		text := textOf(x.Get("content"))
		if text.IsZero() {
			continue
		}
		m := s.Out.Add()
		m.Session, m.Content, m.Complete = session, text, msg.Summary
		conversation.TimeOf(x.Get("created_at")).Set(m)
		m.Key = "history:" + msg.HashKey(ident.OrNumber(x.Get("role")), string(x.Get("created_at").Peek()), text.String())
		m.SetAttr("type", msg.History)
		switch role := x.Get("role"); {
		case role.Equal("user"):
			m.Kind, m.Role, m.Agent.Kind = msg.User, msg.RoleUser, msg.KindHuman
		case byModel(x):
			m.Kind, m.Role, m.Agent = msg.Assistant, msg.RoleAssistant, agent
		case role.In("system", "developer"):
			m.Kind, m.Role, m.Hidden = msg.System, msg.RoleSystem, true
		default:
			m.Kind, m.Hidden = msg.Status, true
			m.SetAttr("role", ident.OrNumber(role))
		}
	}
}

// byModel reports whether a stored message is one of the model.
func byModel(m jsonv.Value) bool { return m.Get("role").In("assistant", "model") }

// owner returns the agent, team or workflow of a stored run or session.
func (s *stream) owner(v jsonv.Value) msg.Agent {
	var e event
	e.read(v)
	a := e.actor(s.Names)
	e.markActor(a)
	return a
}

// maxReloaded limits the trees that a body which is fetched again does not repeat.
const maxReloaded = 4096

// decodeTree decodes the run at the top of a tree, and the runs below it, unless the same tree
// was decoded before.
func (b *body) decodeTree(v jsonv.Value) {
	if b.s.known(runID(v)) {
		return
	}
	sum := conversation.SumOf(b.s.Session)
	all := b.subtree(v)
	for _, x := range all {
		sum = sum.Add(x.Peek())
	}
	if !b.s.Reloaded.Add(sum, maxReloaded) {
		for _, x := range all {
			b.run(runID(x)).told = true
			x.MarkRead()
		}
		return
	}
	b.decode(v, all)
	b.s.Runs.evict(len(b.s.Runs.Open))
}

// subtree returns the run and those below it. An id may occur any number of times, and parents may form a cycle.
func (b *body) subtree(top jsonv.Value) []jsonv.Value {
	all := []jsonv.Value{top}
	seen := make(map[string]bool)
	for i := 0; i < len(all); i++ {
		if id := runID(all[i]); !seen[id] && !b.run(id).told {
			seen[id] = true
			all = append(all, b.run(id).children...)
		}
	}
	return all
}

// known reports whether a run was decoded, or is part of a story.
func (s *stream) known(id string) bool {
	return s.Runs.get(id) != nil || s.Runs.Ended.Has(id) || s.body != nil && s.body.run(id).told
}

// decode decodes a stored run and all below it.
func (b *body) decode(top jsonv.Value, all []jsonv.Value) {
	for _, e := range b.storyOf(top, 0) {
		b.s.event(e)
	}
	for _, v := range slices.Backward(all) {
		if r := b.s.Runs.get(runID(v)); r != nil {
			b.finish(r, v)
		}
	}
	for _, v := range all {
		b.markStored(v)
		b.markStored(b.run(runID(v)).embedded)
		b.emitLineage(v)
	}
}

// reloadEmbedded decodes the child runs that a team's last event embeds and whose own events
// are missing: the team does not stream them.
func (s *stream) reloadEmbedded(r *run, list jsonv.Value) {
	for v := range list.Elems() {
		switch id := runID(v); {
		case id == "", s.known(id):
			v.MarkRead() // its own events were decoded
		case s.body == nil:
			s.body = newBody(s, v)
			s.body.run(id).under = r.ID
			s.body.decode(v, s.body.subtree(v))
			s.body = nil
		}
	}
}

// finish ends a run by its stored status, with the texts before its end.
func (b *body) finish(r *run, v jsonv.Value) {
	st, rule := b.run(r.ID), b.s.rules[ending(v)]
	if b.s.Runs.get(r.ID) == r && rule != nil {
		e := partOf(v)
		e.v, e.rule, e.at, e.of = v, rule, r.Last, st
		st.say(r, len(st.says))
		b.s.event(&e)
	}
}

// fillLast sets the fields that the last event of a stored run lacks from the run's object.
func (b *body) fillLast(r *run, e *event) {
	v := b.stored(r)
	if !v.Exists() || e.content.Exists() {
		return
	}
	e.content, e.contentType = v.Get("content"), v.Get("content_type")
	if f := v.Get("run_response_format"); !e.contentType.Exists() && !f.Equal("text") {
		e.contentType = f
	}
	e.reasoning = jsonv.Or(e.reasoning, v.Get("reasoning_content"))
}

// isFork reports whether a stored run is a copy in a forked session: its tokens were counted
// in the original.
func (b *body) isFork(r *run) bool {
	from := ident.OrNumber(b.stored(r).First("forked_from_session_id", "fork_id"))
	return from != "" && from != r.Session
}

// emitLineage emits the origin of a forked or regenerated run, and that another run replaced it.
func (b *body) emitLineage(v jsonv.Value) {
	var m msg.Message
	conversation.AttrsAs(&m, v, ident.OrNumber, "regenerated_from", "forked_from_run_id", "forked_from_session_id", "fork_id")
	if v.Get("status").Equal("REGENERATED") {
		m.SetAttr("superseded", "true")
	}
	if len(m.Attrs) == 0 {
		return
	}
	m.SetAttr("type", "lineage")
	id := runID(v)
	m.SetAttr("run_id", id)
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Key, m.Session, m.Agent = id+"/lineage", b.s.sessionFor(v.Get("session_id")), b.s.owner(v)
	b.s.Out.Emit(m)
}

// markStored marks the values of a stored run that repeat its decoded tree.
func (b *body) markStored(v jsonv.Value) {
	ident.Is(v.Get("session_id"), b.s.Session)
	st := b.run(runID(v))
	if st.inEvents {
		v.Skip("events")
	}
	conversation.TimeOf(v.Get("created_at"))
	for k, x := range st.first.Members() {
		if m := v.Get(k.String()); m.Is(jsonv.String) && m.PeekStr() == x.PeekStr() {
			m.MarkRead()
		}
	}
	if !st.first.Exists() && v.Get("messages").Len() == 0 {
		return
	}
	v.Skip("content", "reasoning_content", "reasoning_steps", "reasoning_messages")
	skip, input := v.Get("forked_from_message_index").Int(), inputOf(v).String()
	for m := range v.Get("messages").Elems() {
		earlier, answer := skip > 0 || m.Get("from_history").Bool(), byModel(m)
		if earlier || st.first.Exists() && (answer || m.Get("role").In("tool", "function")) {
			m.Skip("tool_calls", "tool_call_id")
			if earlier || !answer { // else it was read with an event
				m.Skip("content", "reasoning_content")
			}
		}
		skip--
		m.Skip("tool_name", "tool_args")
		m.Get("content").Equal(input)
	}
	for t := range v.Get("tools").Elems() {
		t.Skip("tool_call_id", "tool_name", "tool_args", "result")
	}
}
