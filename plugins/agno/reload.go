package agno

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A session is reloaded as a list of runs (GET /sessions/{id}/runs), one run, or a stored
// session with its runs. Children precede their parents, and the body has the events of a run
// up to three times: in the run, in every run above it, and in the child runs that a team's
// last event embeds. Each tree of runs is decoded once, from its top:
//
//	runs: [child {events: c…}, top {events: t c… t}]    decoded: t c… t

// reloads reports whether an object is something that a session is reloaded from.
func reloads(v jsonv.Value) bool {
	return isRun(v) || v.Get("runs").Is(jsonv.Array) || v.Get("chat_history").Is(jsonv.Array)
}

// isRun reports whether an object is a stored run.
func isRun(v jsonv.Value) bool {
	if len(rawString(v.Get("run_id"))) == 0 {
		return false
	}
	for _, field := range [...]string{"run_input", "input", "messages", "status", "metrics", "events", "run_response_format"} {
		if v.Get(field).Kind() != jsonv.Missing {
			return true
		}
	}
	return false
}

// bodyIndex has the runs of a reloaded body by id, and the state of their replay.
type bodyIndex struct {
	runs       map[string]jsonv.Value   // runs by id
	children   map[string][]jsonv.Value // by parent, of the list
	unmatched  map[string][]jsonv.Value // children that match no call yet, by parent
	inEvents   map[string]bool          // runs whose events another run of the list keeps
	firstEvent map[string]jsonv.Value   // the first event of each run
	order      []jsonv.Value            // the runs of the list
	pieces     map[string]*pieces       // texts of runs, filled when needed
	decoded    map[string]bool          // runs that were decoded
	merged     map[string]bool          // runs whose events are merged into their parent's
	calls      map[string]assigned      // the call of each merged run
	metrics    map[string]map[string]jsonv.Value
	embedded   map[string]jsonv.Value // runs that others embed: with names and models, which the list lacks
	latestEnd  stamp                  // upper bound of the run's end, when its caller has one
	summary    bool                   // the run is decoded from messages, not from events
	depth      int
}

// reload decodes a body.
func (s *stream) reload(root jsonv.Value) {
	if v := root.Get("session_id"); v.Is(jsonv.String) {
		s.session = ident(v)
	}
	list := root
	switch {
	case root.Get("runs").Is(jsonv.Array):
		list = root.Get("runs")
		markCopies(root, "chat_history")
		s.emitSession(root)
	case root.Get("chat_history").Is(jsonv.Array):
		s.emitSession(root)
		s.emitHistory(root)
		return
	}
	// The body is complete and independent of the stream's open runs.
	runs, ended, text := s.runs, s.ended, s.text
	s.runs, s.ended, s.text = make(map[string]*run), recent{}, 0
	s.index = newBodyIndex(list)
	for _, v := range s.index.order {
		if s.learnSession(v) {
			break
		}
	}
	for v := range list.Elems() {
		if !isRun(v) {
			s.stray(v)
		}
	}
	for _, v := range s.index.order {
		if s.index.isTop(v) {
			s.reloadTree(v)
		}
	}
	for _, v := range s.index.order { // whose parents form a cycle
		s.reloadRun(v, nil)
	}
	s.index = nil
	s.runs, s.ended, s.text = runs, ended, text
	s.releasePending(false)
}

// stray keeps an element of a list that is no run.
func (s *stream) stray(v jsonv.Value) {
	if v.Is(jsonv.Object) {
		s.unknown("", v)
	} else {
		s.problem(msg.ReasonWrongType, "expected a run, got "+v.Kind().String())
	}
}

func newBodyIndex(list jsonv.Value) *bodyIndex {
	b := &bodyIndex{
		runs: make(map[string]jsonv.Value), children: make(map[string][]jsonv.Value),
		unmatched: make(map[string][]jsonv.Value), inEvents: make(map[string]bool), firstEvent: make(map[string]jsonv.Value), pieces: make(map[string]*pieces), decoded: make(map[string]bool),
		merged: make(map[string]bool), calls: make(map[string]assigned), metrics: make(map[string]map[string]jsonv.Value), embedded: make(map[string]jsonv.Value),
	}
	if list.Is(jsonv.Object) {
		b.order = append(b.order, list)
	}
	for v := range list.Elems() {
		if isRun(v) {
			b.order = append(b.order, v)
		}
	}
	for _, v := range b.order {
		id := peekID(v.Get("run_id"))
		if _, ok := b.runs[id]; !ok {
			b.runs[id] = v
		}
		if p := peekID(v.First("parent_run_id", "workflow_run_id")); p != "" && p != id {
			b.children[p] = append(b.children[p], v)
		}
		for e := range v.Get("events").Elems() {
			of := cmp.Or(peekID(e.Get("run_id")), id)
			if b.firstEvent[of].Kind() == jsonv.Missing {
				b.firstEvent[of] = e
			}
			if of != "" && of != id {
				b.inEvents[of] = true
			}
		}
	}
	for _, v := range b.order {
		b.addEmbedded(v)
	}
	return b
}

// addEmbedded adds the runs that a run embeds.
func (b *bodyIndex) addEmbedded(v jsonv.Value) {
	for e := range v.Get("events").Elems() {
		b.addMembers(e)
	}
	b.addMembers(v)
}

func (b *bodyIndex) addMembers(v jsonv.Value) {
	for _, field := range [...]string{"member_responses", "step_executor_runs"} {
		for m := range v.Get(field).Elems() {
			id := peekID(m.Get("run_id"))
			if b.embedded[id].Kind() == jsonv.Missing {
				b.embedded[id] = m
			}
			if _, known := b.runs[id]; id != "" && !known {
				b.runs[id] = m
				b.addEmbedded(m)
			}
		}
	}
}

// isTop reports whether a run of the list is a root: the body has no run above it, and no
// other run keeps its events.
func (b *bodyIndex) isTop(v jsonv.Value) bool {
	if b.inEvents[peekID(v.Get("run_id"))] {
		return false
	}
	_, here := b.runs[peekID(v.First("parent_run_id", "workflow_run_id"))]
	return !here
}

// learnSession takes the session from a run or its events. The runs of the API lack it.
func (s *stream) learnSession(v jsonv.Value) bool {
	if id := v.Get("session_id"); id.Is(jsonv.String) {
		s.session = peekID(id)
		return true
	}
	for e := range v.Get("events").Elems() {
		if id := e.Get("session_id"); id.Is(jsonv.String) {
			s.session = peekID(id)
			return true
		}
	}
	if s.session == "" {
		s.session = s.origin
	}
	return false
}

// emitSession emits the name and the summary of a stored session.
func (s *stream) emitSession(v jsonv.Value) {
	m := s.out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Session = s.sessionFor(v.Get("session_id"))
	name := ident(v.Get("session_name"))
	summary := summaryText(v.First("session_summary", "summary"))
	m.Content = summary
	updated := stampOf(v.First("updated_at", "created_at"))
	m.Time, m.Precision = updated.NS, updated.Precision
	m.Key = "session:" + msg.HashKey(name, summary.String(), string(v.First("updated_at", "created_at").Peek()))
	m.SetAttr("type", "session")
	m.SetAttr("session_name", name)
	m.SetAttr("total_tokens", number(v.Get("total_tokens")))
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
		at := stampOf(x.Get("created_at"))
		m := s.out.Add()
		m.Session, m.Content, m.Complete = session, text, msg.Summary
		m.Time, m.Precision = at.NS, at.Precision
		m.Key = "history:" + msg.HashKey(ident(x.Get("role")), string(x.Get("created_at").Peek()), text.String())
		m.SetAttr("type", msg.History)
		switch role := x.Get("role"); {
		case role.Equal("user"):
			m.Kind, m.Role, m.Agent.Kind = msg.User, msg.RoleUser, msg.KindHuman
		case role.Equal("assistant"), role.Equal("model"):
			m.Kind, m.Role, m.Agent = msg.Assistant, msg.RoleAssistant, agent
		case role.Equal("system"), role.Equal("developer"):
			m.Kind, m.Role, m.Hidden = msg.System, msg.RoleSystem, true
		default:
			m.Kind, m.Hidden = msg.Status, true
			m.SetAttr("role", ident(role))
		}
	}
}

// digests are hashes of the decoded trees of runs, so that a body that is fetched again emits
// only new trees.
type digests struct {
	Of    map[string]hash `json:",omitempty"`
	Order []string        `json:",omitempty"`
}

// maxDigests limits the digests in the state.
const maxDigests = 4096

// seen notes the tree, and reports whether it was decoded before in the same state.
func (d *digests) seen(top string, h hash) bool {
	old, ok := d.Of[top]
	if ok && old == h {
		return true
	}
	if d.Of == nil {
		d.Of = make(map[string]hash)
	}
	if d.Of[top] = h; !ok {
		d.Order = append(d.Order, top)
	}
	if len(d.Order) > maxDigests {
		delete(d.Of, d.Order[0])
		d.Order = d.Order[1:]
	}
	return false
}

// reloadTree decodes the run at the top of a tree, and the runs below it.
func (s *stream) reloadTree(v jsonv.Value) {
	h := noText.add([]byte(s.session))
	all := s.index.subtree(v)
	for _, r := range all {
		h = h.add(r.Peek())
	}
	if s.reloaded.seen(peekID(v.Get("run_id")), h) {
		for _, r := range all {
			s.index.decoded[peekID(r.Get("run_id"))] = true
			r.MarkRead()
		}
		return
	}
	s.reloadRun(v, nil)
	for _, r := range s.inOrder() { // those that are still open
		s.emitOpen(r)
		s.forget(r)
	}
	for _, r := range all {
		s.markStored(r)
	}
}

// subtree returns the run and those of the list below it. An id may occur any number of
// times, and parents may form a cycle.
func (b *bodyIndex) subtree(top jsonv.Value) []jsonv.Value {
	all := []jsonv.Value{top}
	seen := make(map[string]bool)
	for i := 0; i < len(all); i++ {
		if id := peekID(all[i].Get("run_id")); !seen[id] {
			seen[id] = true
			all = append(all, b.children[id]...)
		}
	}
	return all
}
