package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// Limits of the state. Beyond them the oldest entry is evicted.
const (
	maxRuns  = 16384 // open
	maxEnded = 1024  // ids of runs that are over
	maxCalls = 1024  // of one run, over
	maxTasks = 256   // of one run
)

// The ends of a run.
const (
	completed = "completed"
	failed    = "error"
	cancelled = "cancelled"
)

// run is an open invocation of an agent, a team or a workflow. Each of its messages names its
// parent; the first one has the link to it.
type run struct {
	conversation.Run // Ended: its end was emitted when its caller continued

	Session   string
	Under     string `json:",omitempty"` // the run of the step that it works in
	Agent     msg.Agent
	Model     string `json:",omitempty"`
	Provider  string `json:",omitempty"`
	Announced bool   `json:",omitempty"` // by an event of its own
	Begun     bool   `json:",omitempty"` // decoded from its first event
	Met       bool   `json:",omitempty"` // the message that it was joined midway was emitted
	Joined    bool   `json:",omitempty"` // its first events are missing

	Leg   string               `json:",omitempty"` // the time at which a paused run continued
	Last  conversation.Time    `json:",omitzero"`  // of the last event
	Index conversation.Numbers `json:",omitempty"` // events of a resumable stream, on the top run
	Below []string             `json:",omitempty"` // runs that name it as their parent, oldest first
	Text  text                 `json:",omitzero"`
	Usage usage                `json:",omitzero"`
	Calls calls                `json:",omitzero"`
	Steps steps                `json:",omitzero"`

	s *stream
}

// runs are the open runs, the oldest first, and the ids of those that are over.
type runs struct {
	Open  []*run              `json:",omitempty"`
	Ended bounded.Set[string] `json:",omitzero"`

	byID map[string]*run
	text int // bytes of text that is not emitted yet
}

func (rs *runs) get(id string) *run { return rs.byID[id] }

// add adds a run, and evicts the oldest ones beyond maxRuns.
func (rs *runs) add(r *run) {
	if len(rs.Open) >= maxRuns {
		rs.evict(maxRuns / 8)
	}
	if rs.byID == nil {
		rs.byID = make(map[string]*run)
	}
	rs.Open = append(rs.Open, r)
	rs.byID[r.ID] = r
}

// evict drops the oldest runs, and emits what is open in them.
func (rs *runs) evict(n int) {
	for _, r := range slices.Clone(rs.Open[:n]) {
		r.emitOpen()
		rs.drop(r)
	}
}

// drop drops a run that is over.
func (rs *runs) drop(r *run) {
	rs.text -= r.Text.size()
	if i := slices.Index(rs.Open, r); i >= 0 {
		rs.Open = slices.Delete(rs.Open, i, i+1)
	}
	delete(rs.byID, r.ID)
	rs.Ended.Add(r.ID, maxEnded)
}

// top returns the highest known run above r, or r.
func (rs *runs) top(r *run) *run {
	for range maxTasks { // parents may form a cycle
		p := rs.get(r.Parent)
		if p == nil {
			break
		}
		r = p
	}
	return r
}

// runOf returns the run of an event, and creates it if need be. It returns nil when the event
// repeats one of a run that is over.
func (s *stream) runOf(e *event) *run {
	r := s.Runs.byID[string(e.run.Chars())]
	if r == nil {
		r = s.Runs.get(ident.Peek(e.run))
	}
	if r != nil {
		r.describe(e)
		return r
	}
	r = &run{Run: conversation.Run{ID: ident.Of(e.run)}, s: s, Session: s.sessionFor(e.session)}
	switch late := s.Runs.Ended.Has(r.ID); {
	case late && e.rule.phase != continues:
		if e.rule.phase != reports || e.index.Is(jsonv.Number) {
			return nil
		}
	default:
		s.Runs.Ended.Remove(r.ID)
		s.Runs.add(r)
	}
	r.describe(e)
	r.Parent = ident.OrNumber(e.parent)
	if e.said {
		r.Parent = cmp.Or(e.of.under, r.Parent)
	}
	if r.Parent == "" && string(e.workflowRun.Chars()) != r.ID {
		r.Parent = ident.OrNumber(e.workflowRun)
	}
	if p := r.parent(); p != nil && p != r {
		p.Below = bounded.Push(p.Below, r.ID, maxCalls)
		if o := p.Steps.of(e.v); o != nil {
			r.Under = o.Run
		}
		p.Calls.link(p, r, e)
		p.Calls.infer(p, r, conversation.TimeOf(e.created))
	}
	if e.rule.phase != starts && e.rule.phase != continues && s.body == nil {
		r.Joined = r.Call == "" && (r.Parent != "" || !slices.ContainsFunc(s.Pending, func(q pending) bool { return q.Kind == request }))
	}
	return r
}

// startUnannounced begins a run without a start event, which AgentOS can leave out of its
// streams and stores. The run is whole if the stream has its request or its call; of others
// earlier events may be missing.
func (r *run) startUnannounced(at conversation.Time) {
	if r.Started || r.Met {
		return
	}
	if r.Joined {
		r.Met = true
		r.status(r.key("joined"), "joined", at)
		return
	}
	if r.s.body != nil {
		v := r.s.body.run(r.ID).v
		if !v.Exists() {
			return
		}
		at = conversation.TimeOf(v.Get("created_at")).Or(at)
		r.setModel(v)
	}
	r.begin(at, jsonv.Value{}, msg.Summary)
}

// describe sets the run's agent from an event.
func (r *run) describe(e *event) {
	if r.Agent.Kind == msg.NoAgentKind || (r.Agent.Name == "" || r.Agent.Name == r.Agent.ID) && e.label.Exists() {
		r.Agent = e.actor(r.s.Names)
		r.s.Names.learn(r.Agent)
	}
}

// setModel sets the model that an event names, and its provider by the name that OpenTelemetry has.
func (r *run) setModel(v jsonv.Value) {
	r.Model = cmp.Or(ident.OrNumber(v.Get("model")), r.Model)
	if p := v.Get("model_provider"); p.Exists() {
		name := ident.OrNumber(p)
		r.Provider = cmp.Or(msg.KnownProvider(name), strings.ReplaceAll(strings.ToLower(name), " ", "_"))
	}
}

// parent returns the run above r, if it is open.
func (r *run) parent() *run { return r.s.Runs.get(r.Parent) }

// key returns the key of a message by its part of the run.
func (r *run) key(part string) string { return r.ID + "/" + part }

// own makes the message one of the run.
func (r *run) own(m *msg.Message) {
	m.Session, m.Run, m.ParentRun, m.ParentCall, m.Agent = r.Session, r.ID, cmp.Or(r.Under, r.Parent), r.Call, r.Agent
}

// add adds a message of the run. It is complete when it has all that the current form has.
func (r *run) add(k msg.Kind, key string, at conversation.Time) *msg.Message {
	m := r.s.Out.Add()
	r.own(m)
	at.Set(m)
	m.Kind, m.Key, m.Complete = k, key, msg.Complete
	if r.s.summary {
		m.Complete = msg.Summary
	}
	if !r.Linked {
		r.Linked = true
		m.Delegation.Link, m.Delegation.Confidence = r.Link, r.Confidence
	}
	return m
}

// status adds a hidden message about the run.
func (r *run) status(key, typ string, at conversation.Time) *msg.Message {
	return record.Hide(r.add(msg.Status, key, at), typ)
}

// answered adds a part of the model's answer.
func (r *run) answered(k msg.Kind, key string, at conversation.Time) *msg.Message {
	m := r.add(k, key, at)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Usage.Reply
	return m
}

// start begins a run.
func (r *run) start(e *event) {
	r.setModel(e.v)
	if r.Started {
		return
	}
	r.Joined, r.Announced = false, true
	r.begin(e.at, e.v, msg.Complete)
}

// begin emits the start of a run, which this event announces if there is one, and its prompt: of a person for a
// top-level run, of the parent for a child.
func (r *run) begin(at conversation.Time, announced jsonv.Value, c msg.Completeness) {
	r.Started, r.Begun = true, true
	m := r.status(r.key("start"), "start", at)
	m.Signal, m.Model, m.Provider, m.Complete = msg.RunStart, r.Model, r.Provider, min(c, m.Complete)
	conversation.AttrsAs(m, announced, str, "step_id", "step_name", "step_index")
	switch p := r.parent(); {
	case r.s.body != nil:
		r.s.body.emitPrompt(r, at)
	case r.Parent == "":
		if q, ok := r.s.take(request, ""); ok {
			r.asked(q, at)
		}
	case p != nil && r.Link != msg.ByOrder:
		if c := p.Calls.get(r.Call); c != nil && !c.Over && c.Task != "" {
			// The team may put more before the task; a reload has all of it.
			r.input(at, msg.Plain(c.Task), p.Agent).Complete = msg.Summary
		}
	}
}

// input adds the prompt of the run.
func (r *run) input(at conversation.Time, text msg.Text, by msg.Agent) *msg.Message {
	m := r.add(msg.User, r.key("input"), at)
	m.Role, m.Content, m.Agent = msg.RoleUser, text, by
	m.Hidden = r.Parent != "" // the delegation shows it
	return m
}

// complete ends a run that succeeded. Its last event has all texts of the run.
func (r *run) complete(e *event) {
	t, b := &r.Text, r.s.body
	r.setModel(e.v)
	b.fillLast(r, e)
	if len(t.Thinking) == 0 && !t.Thought {
		t.add(r, msg.Text{}, e.reasoning.Text(), msg.Text{})
	}
	e.reasoning.MarkRead()
	t.markSteps(e)
	last := t.last(r, e)
	if last.IsZero() {
		last = e.v.Path("response_audio", "transcript").Text()
	}
	whole := e.content.Exists()
	if r.Joined && whole && t.After == "" && sameText(t.Text, e.content) && sameText(t.Thinking, e.reasoning) {
		r.Joined = false // no text was missed
	}
	answer := conversation.SumOfText(last)
	if t.Emitted.Len > 0 && e.content.Is(jsonv.String) {
		answer = sumOf(e.content)
	}
	files := attachments(e.v)
	missed := r.Joined && (t.After == "" || t.size() == 0)
	m := t.emit(r, e.at, msg.Complete, last)
	switch {
	case m != nil:
		m.FinishReason, m.Attachments = completed, files
		m.SetAttr(msg.FinishReasonOf, "run")
		if whole && missed || b != nil && !e.said && !b.split(r) {
			m.Complete = msg.Summary // all texts in one
		}
	case len(files) > 0:
		m := r.add(msg.File, r.key("files"), e.at)
		m.Role, m.Attachments = msg.RoleAssistant, files
	}
	for _, extra := range [...]string{"citations", "references", "followups"} {
		if v := e.v.Get(extra); v.Len() > 0 {
			r.status(r.key(extra), extra, e.at).Content = asText(v)
		}
	}
	r.s.reloadEmbedded(r, e.v.Get("member_responses"))
	r.emitPlaceholders(e)
	r.Usage.total(r, e)
	r.ended(answer, e.at)
	r.end(e, completed)
}

// emitPlaceholders takes the keys of the one text that a stored run without events and
// messages has. When the text was emitted in pieces under other keys, a hidden message under
// that key prevents that a reload adds the text again, whichever form is decoded first.
func (r *run) emitPlaceholders(e *event) {
	t := &r.Text
	all := r.Begun || r.Leg == "" && e.content.Is(jsonv.String) && sumOf(e.content) == t.Emitted.Sum // else another stream may have some of the pieces
	if all && t.Parted && !t.Whole {
		r.status(r.key("text"), "text_in_pieces", e.at).Complete = msg.Complete
	}
	if r.Begun && t.Thought && !t.Mused {
		r.status(r.key("thinking"), "thinking_in_pieces", e.at).Complete = msg.Complete
	}
}

// abort ends a run that failed, or that a person stopped.
func (r *run) abort(e *event, reason string) {
	r.Text.close(r, e.at, msg.Partial)
	if reason == failed {
		r.emitError(e)
	}
	if m := r.end(e, reason); m != nil && reason == cancelled {
		m.SetAttr("reason", str(e.v.First("reason", "content")))
	}
}

func (r *run) emitError(e *event) {
	m := r.add(msg.Error, r.key("error"), e.at)
	m.IsError = true
	m.Content = asText(e.v.First("content", "error"))
	m.Tool.ErrorType = ident.OrNumber(e.v.Get("error_type"))
	conversation.AttrsAs(m, e.v, ident.OrNumber, "error_id")
}

// end ends a run. It returns the message of the end; nil when that was emitted before.
func (r *run) end(e *event, reason string) (m *msg.Message) {
	r.Usage.flush(r, msg.Complete)
	for _, c := range r.Calls.open() {
		c.delegate(r, true)
	}
	if reason == completed {
		r.closeBelow()
	}
	r.Steps.end(r, e.at, reason)
	if p := r.parent(); p != nil && r.s.body != nil {
		if p.Last.Nanos < e.at.Nanos { // the parent may have no later time of its own
			p.Last = e.at
		}
		p.Calls.inferResult(p, r, reason == failed, e.at)
	}
	if !r.Ended {
		m = r.emitStop(e, reason)
	}
	r.s.Runs.drop(r)
	return m
}

func (r *run) emitStop(e *event, reason string) *msg.Message {
	m := r.add(msg.Stop, r.key("end"), e.at)
	m.Hidden, m.Signal, m.FinishReason = true, msg.RunEnd, reason
	m.Model, m.Provider = r.Model, r.Provider
	if m.IsError = reason == failed; m.IsError { // one that a person stopped did not fail
		m.Tool.ErrorType = ident.OrNumber(e.v.Get("error_type"))
	}
	conversation.AttrsAs(m, e.v.Get("metrics"), jsonv.Value.Digits, "duration", "time_to_first_token")
	return m
}

// closeBelow ends and drops the runs below a completed run, which may have no end event.
func (r *run) closeBelow() {
	list := r.Below
	r.Below = nil // parents may form a cycle
	for _, id := range list {
		child := r.s.Runs.get(id)
		if child == nil || child == r {
			continue
		}
		if child.endUnannounced(conversation.Time{}); r.s.Runs.get(id) == child {
			child.closeBelow()
			child.Text.close(child, child.Last, msg.Complete)
			child.Usage.flush(child, msg.Complete)
			r.s.Runs.drop(child)
		}
	}
}

// endUnannounced ends a run without an end event when its caller continues: with its stored
// object, or with the text so far. A run whose start was announced has its own end event.
func (r *run) endUnannounced(at conversation.Time) {
	if v := r.s.body.stored(r); v.Exists() && !v.Get("status").Equal("PAUSED") {
		r.Last = at.Or(r.Last)
		r.s.body.finish(r, v)
		return
	}
	if r.Joined || r.Announced || r.Ended {
		return
	}
	e := event{at: r.Last}
	r.Text.close(r, e.at, msg.Complete)
	r.ended(r.Text.Emitted.Sum.Add(nil), e.at)
	r.emitPlaceholders(&e)
	r.Usage.flush(r, msg.Complete)
	r.emitStop(&e, completed)
	r.Ended = true
}

// refuse is an error event without a run: AgentOS 2.2 reports the exception of a model
// or a guard so. It ends the newest top-level run, or a pending request.
func (s *stream) refuse(e *event) {
	e.at = conversation.TimeOf(e.created)
	for _, r := range slices.Backward(s.Runs.Open) {
		if r.parent() == nil && (e.session.Kind() == jsonv.Missing || r.Session == s.Session) {
			e.at = e.at.Or(r.Last)
			r.abort(e, failed)
			return
		}
	}
	q, asked := s.take(request, "")
	r := &run{s: s, Session: cmp.Or(q.Session, s.sessionFor(e.session)), Agent: e.actor(s.Names)}
	e.markActor(r.Agent)
	r.ID = msg.HashKey("refused", q.Text, string(e.created.Peek()), ident.OrNumber(e.v.Get("error_id")), str(e.content))
	if asked {
		r.asked(q, e.at)
	}
	r.emitError(e)
	r.end(e, failed)
}
