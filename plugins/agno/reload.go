package agno

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A session is reloaded as a list of runs (GET /sessions/{id}/runs), one run, or a
// stored session with its runs. Children come before their parents, and the events
// of a run are there up to three times: in the run, in every run above it, and in
// the child runs that a team's last event embeds. Each tree of runs is told once,
// from its top:
//
//	runs: [child {events: c…}, top {events: t c… t}]    told: t c… t

// reloads reports whether an object is something that a session is reloaded from.
func reloads(v jsonv.Value) bool {
	return isRun(v) || v.Get("runs").Is(jsonv.Array) || v.Get("chat_history").Is(jsonv.Array)
}

// isRun reports whether an object is a stored run.
func isRun(v jsonv.Value) bool {
	if len(chars(v.Get("run_id"))) == 0 {
		return false
	}
	for _, field := range [...]string{"run_input", "input", "messages", "status", "metrics", "events", "run_response_format"} {
		if v.Get(field).Kind() != jsonv.Missing {
			return true
		}
	}
	return false
}

// book is what a reloaded body says beside its events.
type book struct {
	objects  map[string]jsonv.Value   // runs by id
	children map[string][]jsonv.Value // of the list, by parent
	untold   map[string][]jsonv.Value // of those, the ones that no call was found for yet
	inEvents map[string]bool          // runs of which another run of the list has events
	says     map[string]jsonv.Value   // the first event of each run
	order    []jsonv.Value            // the runs of the list
	pieces   map[string]*pieces       // texts of runs, as far as they were needed
	placed   map[string]bool          // runs that were told
	woven    map[string]bool          // runs whose events are told among their parent's
	answers  map[string]assigned      // the calls of those
	metrics  map[string]map[string]jsonv.Value
	embeds   map[string]jsonv.Value // runs that others embed: with names and models, which the list has not
	until    stamp                  // when the run that is told was over at the latest, where its caller says so
	summary  bool                   // what is told is rebuilt from messages
	depth    int
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
		leave(root, "chat_history")
		s.sessionNote(root)
	case root.Get("chat_history").Is(jsonv.Array):
		s.sessionNote(root)
		s.history(root)
		return
	}
	// What goes on in the stream is nothing to the body, which is whole.
	runs, ended, text := s.runs, s.ended, s.text
	s.runs, s.ended, s.text = make(map[string]*run), recent{}, 0
	s.book = newBook(list)
	for _, v := range s.book.order {
		if s.learnSession(v) {
			break
		}
	}
	for v := range list.Elems() {
		if !isRun(v) {
			s.stray(v)
		}
	}
	for _, v := range s.book.order {
		if s.book.isTop(v) {
			s.tree(v)
		}
	}
	for _, v := range s.book.order { // whose parents go in a circle
		s.object(v, nil)
	}
	s.book = nil
	s.runs, s.ended, s.text = runs, ended, text
	s.release(false)
}

// stray keeps an element of a list that is no run.
func (s *stream) stray(v jsonv.Value) {
	if v.Is(jsonv.Object) {
		s.unknown("", v)
	} else {
		s.problem(msg.ReasonWrongType, "expected a run, got "+v.Kind().String())
	}
}

func newBook(list jsonv.Value) *book {
	b := &book{
		objects: make(map[string]jsonv.Value), children: make(map[string][]jsonv.Value),
		untold: make(map[string][]jsonv.Value), inEvents: make(map[string]bool), says: make(map[string]jsonv.Value), pieces: make(map[string]*pieces), placed: make(map[string]bool),
		woven: make(map[string]bool), answers: make(map[string]assigned), metrics: make(map[string]map[string]jsonv.Value), embeds: make(map[string]jsonv.Value),
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
		id := glance(v.Get("run_id"))
		if _, ok := b.objects[id]; !ok {
			b.objects[id] = v
		}
		if p := glance(v.First("parent_run_id", "workflow_run_id")); p != "" && p != id {
			b.children[p] = append(b.children[p], v)
		}
		for e := range v.Get("events").Elems() {
			of := cmp.Or(glance(e.Get("run_id")), id)
			if b.says[of].Kind() == jsonv.Missing {
				b.says[of] = e
			}
			if of != "" && of != id {
				b.inEvents[of] = true
			}
		}
	}
	for _, v := range b.order {
		b.embedded(v)
	}
	return b
}

// embedded notes the runs that a run embeds.
func (b *book) embedded(v jsonv.Value) {
	for e := range v.Get("events").Elems() {
		b.members(e)
	}
	b.members(v)
}

func (b *book) members(v jsonv.Value) {
	for _, field := range [...]string{"member_responses", "step_executor_runs"} {
		for m := range v.Get(field).Elems() {
			id := glance(m.Get("run_id"))
			if b.embeds[id].Kind() == jsonv.Missing {
				b.embeds[id] = m
			}
			if _, known := b.objects[id]; id != "" && !known {
				b.objects[id] = m
				b.embedded(m)
			}
		}
	}
}

// isTop reports whether a run of the list stands at the top: nothing above it is
// here, and no other run has its events.
func (b *book) isTop(v jsonv.Value) bool {
	if b.inEvents[glance(v.Get("run_id"))] {
		return false
	}
	_, here := b.objects[glance(v.First("parent_run_id", "workflow_run_id"))]
	return !here
}

// learnSession takes the session from a run or its events. The runs of the API do
// not name it.
func (s *stream) learnSession(v jsonv.Value) bool {
	if id := v.Get("session_id"); id.Is(jsonv.String) {
		s.session = glance(id)
		return true
	}
	for e := range v.Get("events").Elems() {
		if id := e.Get("session_id"); id.Is(jsonv.String) {
			s.session = glance(id)
			return true
		}
	}
	if s.session == "" {
		s.session = s.origin
	}
	return false
}

// sessionNote gives what a stored session says of itself.
func (s *stream) sessionNote(v jsonv.Value) {
	m := s.out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Session = s.sessionFor(v.Get("session_id"))
	name := ident(v.Get("session_name"))
	summary := useful(v.First("session_summary", "summary"))
	m.Content = summary
	updated := stampOf(v.First("updated_at", "created_at"))
	m.Time, m.Precision = updated.NS, updated.Precision
	m.Key = "session:" + msg.HashKey(name, summary.String(), string(v.First("updated_at", "created_at").Peek()))
	m.SetAttr("type", "session")
	m.SetAttr("session_name", name)
	m.SetAttr("total_tokens", number(v.Get("total_tokens")))
}

// history gives the messages of a stored session that comes without its runs:
//
//	{"session_id":"…","team_id":"…","chat_history":[{"role":"user","content":"…","created_at":1770000000}, …]}
//
// They repeat those of runs and do not say of which, so that they yield to the runs where
// those are told.
func (s *stream) history(v jsonv.Value) {
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

// digests are hashes of trees of runs that were told, so that a body that is
// fetched again and again gives only what is new.
type digests struct {
	Of    map[string]hash `json:",omitempty"`
	Order []string        `json:",omitempty"`
}

// maxDigests is how many trees are remembered.
const maxDigests = 4096

// seen notes the tree, and reports whether it was told before as it is now.
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

// tree tells the run at the top of a tree, and what is below it.
func (s *stream) tree(v jsonv.Value) {
	h := noText.add([]byte(s.session))
	all := s.book.below(v)
	for _, r := range all {
		h = h.add(r.Peek())
	}
	if s.told.seen(glance(v.Get("run_id")), h) {
		for _, r := range all {
			s.book.placed[glance(r.Get("run_id"))] = true
			r.MarkRead()
		}
		return
	}
	s.object(v, nil)
	for _, r := range s.inOrder() { // those that go on
		s.unfinished(r)
		s.forget(r)
	}
	for _, r := range all {
		s.copies(r)
	}
}

// below returns the run and those of the list below it. An id may come any number of
// times, and parents may go in a circle.
func (b *book) below(top jsonv.Value) []jsonv.Value {
	all := []jsonv.Value{top}
	seen := make(map[string]bool)
	for i := 0; i < len(all); i++ {
		if id := glance(all[i].Get("run_id")); !seen[id] {
			seen[id] = true
			all = append(all, b.children[id]...)
		}
	}
	return all
}
