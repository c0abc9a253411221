package agno

import (
	"cmp"
	"maps"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of the state. Beyond them the oldest entry is evicted.
const (
	maxRuns  = 16384    // open
	maxEnded = 1024     // ids of runs that are over
	maxCalls = 1024     // of one run, open, and as many over
	maxTasks = 256      // of one run
	maxText  = 64 << 20 // bytes of text that is not emitted yet, all runs together
)

// run is an open invocation of an agent, a team or a workflow. Exported fields are its state.
type run struct {
	ID         string
	Seq        uint64
	Session    string
	Parent     string         `json:",omitempty"` // run
	Call       string         `json:",omitempty"` // of the parent
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`
	Guess      bool           `json:",omitempty"` // the order alone decided which call it is
	Agent      msg.Agent
	Model      string `json:",omitempty"`
	Provider   string `json:",omitempty"`

	Started   bool `json:",omitempty"` // its start was emitted
	Announced bool `json:",omitempty"` // by an event of its own
	Ceased    bool `json:",omitempty"` // its end was emitted when its caller continued
	Begun     bool `json:",omitempty"` // decoded from its first event
	Met       bool `json:",omitempty"` // the message that it was joined midway was emitted
	Joined    bool `json:",omitempty"` // its first events are missing
	Asked     bool `json:",omitempty"` // its prompt was emitted
	Told      bool `json:",omitempty"` // a message of it was emitted

	Said    runText
	Leg     string          `json:",omitempty"` // the time at which a paused run continued
	Reply   string          `json:",omitempty"` // the open response, where the stream has requests
	Replies int             `json:",omitempty"` // responses that are over, in this leg
	Waits   bool            `json:",omitempty"` // for a response of the model
	Cost    *cost           `json:",omitempty"` // of a response that may still have calls
	Counted bool            `json:",omitempty"` // tokens were counted by response
	Thought bool            `json:",omitempty"` // reasoning was emitted
	Mused   bool            `json:",omitempty"` // reasoning before the first call was emitted
	Parted  bool            `json:",omitempty"` // a piece of text after a call was emitted
	Whole   bool            `json:",omitempty"` // the text before the first call was emitted
	Index   spans           `json:",omitempty"` // events of a resumable stream, on the top run
	Steps   []hash          `json:",omitempty"` // answers of a workflow's latest agents
	Tasks   []task          `json:",omitempty"`
	Open    []step          `json:",omitempty"` // of a workflow, the outer ones first
	Under   string          `json:",omitempty"` // the run of the step that it works in
	Calls   []*call         `json:",omitempty"` // open, oldest first
	Over    []string        `json:",omitempty"` // calls with a result, oldest first
	Early   []string        `json:",omitempty"` // results whose call did not arrive, oldest first
	Handed  []delegationRef `json:",omitempty"` // delegations, oldest first

	Below    []string `json:",omitempty"` // runs that name it as their parent, oldest first
	Nameless int      `json:",omitempty"` // calls without an id so far
	Last     stamp    // time of the last event
}

// runOf returns the run of an event, and creates it if need be. It returns nil when the event
// repeats one of a run that is over.
func (s *stream) runOf(e *event, k kind) *run {
	id := rawString(e.run)
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
		r = s.addRun(known)
	}
	r.Session = s.sessionFor(e.session)
	s.describe(r, e)
	r.Parent = ident(e.parent)
	if r.Parent == "" && string(rawString(e.workflowRun)) != known {
		r.Parent = ident(e.workflowRun)
	}
	if p := s.runs[r.Parent]; p != nil && p != r {
		s.addBelow(p, r)
		r.Under = p.stepRun(e.v)
		s.linkCall(p, r)
		s.inferDelegation(p, r, stampOf(e.created))
	}
	if k != isStarted && k != isContinued && s.index == nil {
		r.Joined = late || r.Call == "" && (r.Parent != "" || !s.expects())
	}
	return r
}

// addBelow notes that r names p as its parent.
func (s *stream) addBelow(p, r *run) {
	if len(p.Below) >= maxCalls {
		p.Below = p.Below[1:]
	}
	p.Below = append(p.Below, r.ID)
}

// startUnannounced begins a run without a start event, which AgentOS can leave out of its
// streams and stores. The run is whole if the stream has its request or its call; of others
// earlier events may be missing.
func (s *stream) startUnannounced(r *run, at stamp) {
	if s.index == nil {
		if r.Joined {
			r.Met = true
			s.addStatus(r, "joined", "joined", at)
		} else {
			s.emitStart(r, at).Complete = msg.Summary
			s.emitPrompt(r, at)
		}
		return
	}
	v, ok := s.index.runs[r.ID]
	if !ok {
		return
	}
	if made := stampOf(v.Get("created_at")); made.NS != 0 && (at.NS == 0 || made.NS < at.NS) {
		at = made
	}
	r.setModel(v)
	s.emitStart(r, at).Complete = msg.Summary
	s.emitPrompt(r, at)
}

// addRun adds a run, and evicts the oldest runs beyond maxRuns.
func (s *stream) addRun(id string) *run {
	if len(s.runs) >= maxRuns {
		for _, r := range s.inOrder()[:maxRuns/8] {
			s.emitOpen(r)
			s.forget(r)
		}
	}
	s.count++
	r := &run{ID: id, Seq: s.count, Said: runText{Hash: noText}}
	s.runs[id] = r
	return r
}

// describe sets the run's agent from an event.
func (s *stream) describe(r *run, e *event) {
	if r.Agent.Kind == msg.NoAgentKind || (r.Agent.Name == "" || r.Agent.Name == r.Agent.ID) && e.label.Exists() {
		r.Agent = s.actor(e)
	}
}

// actor returns the agent, team or workflow of an event. One with an id and no name has the
// name of an earlier event, else its id as a name.
func (s *stream) actor(e *event) msg.Agent {
	a := e.actor()
	s.agents.learn(a)
	if a.Name == "" {
		a.Name, _ = s.memberName(a.ID)
	}
	return a
}

// setModel sets the model and the provider that an event names.
func (r *run) setModel(v jsonv.Value) {
	if model := ident(v.Get("model")); model != "" {
		r.Model = model
	}
	if p := v.Get("model_provider"); p.Exists() {
		r.Provider = provider(ident(p))
	}
}

// inOrder returns the open runs, the oldest first.
func (s *stream) inOrder() []*run {
	return slices.SortedFunc(maps.Values(s.runs), func(a, b *run) int { return cmp.Compare(a.Seq, b.Seq) })
}

// top returns the highest known run above r, or r.
func (s *stream) top(r *run) *run {
	for range maxTasks { // parents may form a cycle
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
	if s.index == nil {
		s.ended.limit(maxEnded)
	}
}

// addMessage adds a message of the run. part is its key within the run.
func (s *stream) addMessage(r *run, k msg.Kind, part string, at stamp) *msg.Message {
	m := s.out.Add()
	m.Key = r.ID + "/" + part
	m.Session, m.Run, m.ParentRun, m.ParentCall = r.Session, r.ID, r.parentRun(), r.Call
	m.Agent, m.Kind = r.Agent, k
	m.Time, m.Precision = at.NS, at.Precision
	m.Complete = s.completeness()
	if !r.Told {
		r.Told = true
		m.Delegation.Link, m.Delegation.Confidence = r.Link, r.Confidence
	}
	return m
}

// parentRun returns the run above r: the step that it works in, or its parent.
func (r *run) parentRun() string { return cmp.Or(r.Under, r.Parent) }

// completeness returns the completeness of a message that has all the current form has of it.
func (s *stream) completeness() msg.Completeness {
	if s.index != nil && s.index.summary {
		return msg.Summary
	}
	return msg.Complete
}

// addStatus adds a hidden message about the run.
func (s *stream) addStatus(r *run, part, typ string, at stamp) *msg.Message {
	m := s.addMessage(r, msg.Status, part, at)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// recent is a bounded set of ids that evicts the oldest.
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
