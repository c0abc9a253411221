package agno

import (
	"cmp"
	"maps"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of what is remembered. The oldest is given up beyond them.
const (
	maxRuns  = 16384    // that go on
	maxEnded = 1024     // ids of runs that are over
	maxCalls = 1024     // of one run, open, and as many over
	maxTasks = 256      // of one run
	maxText  = 64 << 20 // bytes of text that is still being said, all runs together
)

// run is one invocation of an agent, a team or a workflow that goes on. Exported
// fields are its state.
type run struct {
	ID         string
	Seq        uint64
	Session    string
	Parent     string         `json:",omitempty"` // run
	Call       string         `json:",omitempty"` // of the parent
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`
	Guess      bool           `json:",omitempty"` // which call it is was told by order alone
	Agent      msg.Agent
	Model      string `json:",omitempty"`
	Provider   string `json:",omitempty"`

	Started   bool `json:",omitempty"` // its beginning was given
	Announced bool `json:",omitempty"` // by an event of its own
	Ceased    bool `json:",omitempty"` // its end was given when its caller went on
	Begun     bool `json:",omitempty"` // it was heard from its beginning
	Met       bool `json:",omitempty"` // that it was joined midway was given
	Joined    bool `json:",omitempty"` // its beginning was not heard
	Asked     bool `json:",omitempty"` // what it was asked was given
	Told      bool `json:",omitempty"` // a message of it was given

	Said    said
	Leg     string   `json:",omitempty"` // the time at which a paused run was taken up again
	Reply   string   `json:",omitempty"` // the response that is going on, where requests are told
	Replies int      `json:",omitempty"` // responses that are over, in this leg
	Waits   bool     `json:",omitempty"` // for a response of the model
	Cost    *cost    `json:",omitempty"` // of a response that may still have calls
	Counted bool     `json:",omitempty"` // tokens were told by response
	Thought bool     `json:",omitempty"` // reasoning was given
	Mused   bool     `json:",omitempty"` // so was the piece of it that no call precedes
	Parted  bool     `json:",omitempty"` // a piece of text that a call precedes was given
	Whole   bool     `json:",omitempty"` // so was the one that none precedes
	Index   spans    `json:",omitempty"` // events of a resumable stream, on the top run
	Steps   []hash   `json:",omitempty"` // answers of a workflow's latest agents
	Tasks   []task   `json:",omitempty"`
	Open    []step   `json:",omitempty"` // of a workflow, the outer ones first
	Under   string   `json:",omitempty"` // the run of the step that it works in
	Calls   []*call  `json:",omitempty"` // open, oldest first
	Over    []string `json:",omitempty"` // calls with a result, oldest first
	Early   []string `json:",omitempty"` // results whose call was not told, oldest first
	Handed  []handed `json:",omitempty"` // delegations, oldest first

	Below    []string `json:",omitempty"` // runs that name it as their parent, oldest first
	Nameless int      `json:",omitempty"` // calls without an id so far
	Last     stamp    // time of the last event
}

// runOf returns the run of an event, begun if need be; nil when the event only
// repeats what a run that is over has said.
func (s *stream) runOf(e *event, k kind) *run {
	id := chars(e.run)
	if r := s.runs[string(id)]; r != nil && len(id) <= maxID {
		s.describe(r, e)
		return r
	}
	known := ident(e.run)
	if r := s.runs[known]; r != nil {
		s.describe(r, e)
		return r
	}
	late := s.ended.has(known)
	switch {
	case late && k == isContinued:
		s.ended.remove(known)
		late = false
	case late && (k != isNote || e.index.Is(jsonv.Number)):
		return nil
	}
	r := &run{ID: known}
	if !late {
		r = s.begin(known)
	}
	r.Session = s.sessionFor(e.session)
	s.describe(r, e)
	r.Parent = ident(e.parent)
	if r.Parent == "" && string(chars(e.workflowRun)) != known {
		r.Parent = ident(e.workflowRun)
	}
	if p := s.runs[r.Parent]; p != nil && p != r {
		s.below(p, r)
		r.Under = p.under(e.v)
		s.pair(p, r)
		s.infer(p, r, stampOf(e.created))
	}
	if k != isStarted && k != isContinued && s.book == nil {
		r.Joined = late || r.Call == "" && (r.Parent != "" || !s.expects())
	}
	return r
}

// below notes that r names p as its parent.
func (s *stream) below(p, r *run) {
	if len(p.Below) >= maxCalls {
		p.Below = p.Below[1:]
	}
	p.Below = append(p.Below, r.ID)
}

// unannounced begins a run whose start is not told. AgentOS can leave that out of what it
// streams and stores, so a run whose request or whose call was heard is whole; of others
// nobody knows what came before.
func (s *stream) unannounced(r *run, at stamp) {
	if s.book == nil {
		if r.Joined {
			r.Met = true
			s.status(r, "joined", "joined", at)
		} else {
			s.started(r, at).Complete = msg.Summary
			s.prompted(r, at)
		}
		return
	}
	v, ok := s.book.objects[r.ID]
	if !ok {
		return
	}
	if made := stampOf(v.Get("created_at")); made.NS != 0 && (at.NS == 0 || made.NS < at.NS) {
		at = made
	}
	r.uses(v)
	s.started(r, at).Complete = msg.Summary
	s.prompted(r, at)
}

// begin makes a run.
func (s *stream) begin(id string) *run {
	if len(s.runs) >= maxRuns {
		for _, r := range s.inOrder()[:maxRuns/8] {
			s.unfinished(r)
			s.forget(r)
		}
	}
	s.count++
	r := &run{ID: id, Seq: s.count, Said: said{Hash: noText}}
	s.runs[id] = r
	return r
}

// describe takes over what an event says of its run.
func (s *stream) describe(r *run, e *event) {
	if r.Agent.Kind == msg.NoAgentKind || (r.Agent.Name == "" || r.Agent.Name == r.Agent.ID) && e.label.Exists() {
		r.Agent = s.actor(e)
	}
}

// actor returns who an event is of. One that is known by its id alone has the name that
// it has elsewhere, else its id for a name.
func (s *stream) actor(e *event) msg.Agent {
	a := e.actor()
	s.names.learn(a)
	if a.Name == "" {
		a.Name, _ = s.member(a.ID)
	}
	return a
}

// uses takes over the model that an event names.
func (r *run) uses(v jsonv.Value) {
	if model := ident(v.Get("model")); model != "" {
		r.Model = model
	}
	if p := v.Get("model_provider"); p.Exists() {
		r.Provider = provider(ident(p))
	}
}

// inOrder returns the runs that go on, the oldest first.
func (s *stream) inOrder() []*run {
	return slices.SortedFunc(maps.Values(s.runs), func(a, b *run) int { return cmp.Compare(a.Seq, b.Seq) })
}

// top returns the run at the top of the run's tree, as far as it is here.
func (s *stream) top(r *run) *run {
	for range maxTasks { // parents may go in a circle
		p := s.runs[r.Parent]
		if p == nil {
			break
		}
		r = p
	}
	return r
}

// forget drops a run that is over.
func (s *stream) forget(r *run) {
	s.text -= r.Said.size()
	delete(s.runs, r.ID)
	s.ended.add(r.ID)
	if s.book == nil {
		s.ended.limit(maxEnded)
	}
}

// add adds a message of the run. part is what names it in its run.
func (s *stream) add(r *run, k msg.Kind, part string, at stamp) *msg.Message {
	m := s.out.Add()
	m.Key = r.ID + "/" + part
	m.Session, m.Run, m.ParentRun, m.ParentCall = r.Session, r.ID, r.above(), r.Call
	m.Agent, m.Kind = r.Agent, k
	m.Time, m.Precision = at.NS, at.Precision
	m.Complete = s.whole()
	if !r.Told {
		r.Told = true
		m.Delegation.Link, m.Delegation.Confidence = r.Link, r.Confidence
	}
	return m
}

// above is the run that r stands below: the step that it works in, or its parent.
func (r *run) above() string { return cmp.Or(r.Under, r.Parent) }

// whole is how complete a message is that the current form has to the end.
func (s *stream) whole() msg.Completeness {
	if s.book != nil && s.book.summary {
		return msg.Summary
	}
	return msg.Complete
}

// status adds a hidden message about the run.
func (s *stream) status(r *run, part, typ string, at stamp) *msg.Message {
	m := s.add(r, msg.Status, part, at)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// recent is a set of ids that forgets the oldest.
type recent struct {
	set   map[string]struct{}
	order []string
}

func (r *recent) has(id string) bool { _, ok := r.set[id]; return ok }

func (r *recent) add(id string) {
	if r.set == nil {
		r.set = make(map[string]struct{})
	}
	if _, ok := r.set[id]; !ok {
		r.set[id] = struct{}{}
		r.order = append(r.order, id)
	}
}

func (r *recent) remove(id string) {
	if i := slices.Index(r.order, id); i >= 0 {
		delete(r.set, id)
		r.order = slices.Delete(r.order, i, i+1)
	}
}

func (r *recent) limit(n int) {
	for len(r.order) > n {
		delete(r.set, r.order[0])
		r.order = r.order[1:]
	}
}
