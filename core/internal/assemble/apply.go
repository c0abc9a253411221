package assemble

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// apply gives the message its place and moves the group on. It reports whether
// the message's trace is final.
func (g *group) apply(out Emitter, m *msg.Message, stream uint64) (linked bool) {
	if m.Run == "" {
		return g.applySession(out, m, stream)
	}
	g.yield(m)
	r := g.runOf(out, m, stream)
	r.Stream = stream
	h := &m.Host
	h.TraceID = g.trace(r.Root)
	h.SpanID = g.span(msg.SpanRun, r.ID)
	g.name(out, m)
	g.describe(r, m)
	if m.Agent.Name == "" && m.Kind != msg.User { // of a user message it is who spoke
		m.Agent.Name = g.nameOf(r)
	}
	if r.Sure && m.Complete == msg.Summary {
		g.summed(m)
		return r.Linked
	}
	g.watchSilence(out, r, m)
	r.touch(m.Time)
	r.Alive = max(r.Alive, g.alive)

	switch m.Kind {
	case msg.User:
		g.input(out, r, m.Time)
	case msg.Assistant, msg.Reasoning:
		if r.byModel(m) {
			h.Chat = g.span(msg.SpanChat, g.output(out, r, m).ID)
			h.SpanID = h.Chat
		}
	case msg.ToolCall, msg.Delegation:
		if id, again := g.completes(out, m); again {
			h.SpanID = id
			break
		}
		if r.byModel(m) {
			h.Chat = g.span(msg.SpanChat, g.output(out, r, m).ID)
		}
		h.SpanID = g.begin(out, r, m)
	case msg.ToolResult, msg.DelegationResult:
		if id, again := g.completes(out, m); again {
			h.SpanID = id
			break
		}
		h.SpanID = g.end(out, r, m)
		g.input(out, r, m.Time)
	case msg.Usage:
		h.SpanID = g.usage(out, r, m)
	case msg.Error:
		r.Outcome, r.Error, r.Message = msg.OutcomeError, errorType(m), head(m.Content)
		r.event(m.Time, "error", msg.Attr{Key: "error.type", Value: r.Error})
	}
	g.signal(out, r, m)
	return r.Linked
}

// summed gives a message its span that a poorer form has of a run which was told to its
// end: it says nothing new of the run's spans, and its times are rougher.
func (g *group) summed(m *msg.Message) {
	switch m.Kind {
	case msg.ToolCall, msg.ToolResult:
		m.Host.SpanID = g.span(msg.SpanTool, m.Tool.CallID)
	case msg.Delegation, msg.DelegationResult:
		m.Host.SpanID = g.span(msg.SpanDelegation, m.Tool.CallID)
	}
}

// applySession takes a message that belongs to no run. It gets no trace: which
// turn is going on depends on the order in which streams are read.
func (g *group) applySession(out Emitter, m *msg.Message, stream uint64) bool {
	if m.Attr("type") == msg.History {
		return g.history(m, stream)
	}
	if !m.Hidden && m.Precision != msg.Inferred { // bookkeeping is written to sessions that are over, too
		g.Alive = max(g.Alive, g.alive)
	}
	if m.Signal == msg.Link {
		g.link(out, m.Tool.CallID, m.Delegation)
	}
	g.named(out, m)
	return true
}

// runOf returns the message's run, begun if need be.
func (g *group) runOf(out Emitter, m *msg.Message, stream uint64) *run {
	r := g.Runs[m.Run]
	if r == nil {
		id := strings.Clone(m.Run)
		r = &run{ID: id, Root: id}
		g.add(out, r)
		g.supersede(out)
		g.place(out, r, m, stream)
		g.adopt(out, r)
	}
	if r.Start == 0 {
		r.Start, r.Last, r.Input = m.Time, m.Time, m.Time
		r.Source = strings.Clone(m.Host.Source)
		r.Server, r.Unnamed = strings.Clone(m.Host.Server), unnamed(m)
		g.remember(r)
		r.Inferred = m.Precision == msg.Inferred
	}
	if r.Inferred && m.Precision != msg.Inferred {
		g.dated(r, m.Time)
	}
	if !r.Linked && (m.ParentCall != "" || m.ParentRun != "" && m.ParentRun != msg.UnknownRun) {
		g.join(out, r, m.ParentRun, m.ParentCall, m.Delegation.Link, m.Delegation.Confidence)
	}
	return r
}

// remember notes that a run has a story again.
func (g *group) remember(r *run) {
	if r.Forgotten {
		r.Forgotten = false
		g.Places--
	}
}

// dated takes the first time that the protocol says of a run. What was inferred before is
// when the run was read: if that is later by more than clocks may be apart, it is history.
func (g *group) dated(r *run, t int64) {
	r.Inferred = false
	if t >= r.Start-slack {
		return
	}
	r.Start, r.Last, r.Input = t, t, t
	for _, c := range g.Open {
		if c.Run == r.ID && c.Inferred {
			c.Start, c.Last, c.changed = t, t, true
		}
	}
	if c := r.Chat; c != nil {
		c.Start, c.Last, c.FirstToken = t, t, 0
	}
}

// place decides where a new run stands: at the top, below a parent that is
// known, or for now in a trace of its own.
func (g *group) place(out Emitter, r *run, m *msg.Message, stream uint64) {
	if m.ParentRun == "" && m.ParentCall == "" {
		if call, d, ok := g.caused(r.ID); ok {
			r.Call, r.Link, r.Confidence = call, d.Link, d.Confidence
		} else {
			r.Linked = true
			if prev := g.Runs[g.Turns[stream]]; prev != nil && prev != r {
				r.Prev, r.PrevRoot = prev.ID, prev.Root
				r.Asked = prev.Asked // until this turn says otherwise
				g.endRun(out, prev, byTurn)
			}
			g.Turns[stream] = r.ID
			return
		}
	}
	if r.Call == "" {
		r.Call = strings.Clone(m.ParentCall)
		r.Link, r.Confidence = m.Delegation.Link, m.Delegation.Confidence
	}
	if r.Call == "" {
		if call, d, ok := g.caused(r.ID); ok {
			r.Call, r.Link, r.Confidence = call, d.Link, d.Confidence
		}
	}
	if m.ParentRun != msg.UnknownRun {
		r.Parent = strings.Clone(m.ParentRun)
		if r.Call == "" {
			r.Link = max(r.Link, msg.ByParent)
		}
	}
	if link, confidence := g.strength(r.Call); link > r.Link {
		r.Link, r.Confidence = link, confidence
	}
	if p := g.parentOf(r); p != nil {
		r.Parent, r.Root, r.Linked, r.To = p.ID, p.Root, p.Linked, g.delegate(r)
	}
	g.ended(r)
}

// ended ends a run whose delegation already has its result.
func (g *group) ended(r *run) {
	if _, ok := g.Done[r.Call]; ok && r.Call != "" {
		r.over(byCall)
	}
}

// caused finds the call of which the protocol said that it caused the run.
func (g *group) caused(id string) (string, done, bool) {
	for _, c := range g.Open {
		if c.Child == id {
			return c.ID, done{Run: c.Run, Link: c.Link, Confidence: c.Confidence}, true
		}
	}
	for call, d := range g.Done {
		if d.Child == id {
			return call, d, true
		}
	}
	for _, l := range g.Links {
		if l.Child == id {
			return l.Call, done{Link: l.Link, Confidence: l.Confidence}, true
		}
	}
	return "", done{}, false
}

// parentOf returns the run that caused r, if it is here.
func (g *group) parentOf(r *run) *run {
	if r.Call != "" {
		if c := g.Open[r.Call]; c != nil {
			return g.Runs[c.Run]
		}
		if d, ok := g.Done[r.Call]; ok {
			return g.Runs[d.Run]
		}
	}
	if r.Parent != "" && r.Parent != r.ID {
		return g.Runs[r.Parent]
	}
	return nil
}

// delegate is the name by which the call that caused r knows its agent.
func (g *group) delegate(r *run) string {
	if c := g.Open[r.Call]; c != nil {
		return c.To
	}
	return g.Done[r.Call].To
}

// strength is the best way in which a call is known to have caused its run.
func (g *group) strength(call string) (msg.LinkMethod, uint8) {
	if c := g.Open[call]; c != nil {
		return c.Link, c.Confidence
	}
	return g.Done[call].Link, g.Done[call].Confidence
}

// join gives an unlinked run its parent, as far as it is named.
func (g *group) join(out Emitter, r *run, parent, callID string, by msg.LinkMethod, confidence uint8) {
	if callID != "" && r.Call == "" {
		r.Call, r.Link, r.Confidence = strings.Clone(callID), by, confidence
	}
	if parent != "" && parent != msg.UnknownRun && r.Parent == "" {
		r.Parent = strings.Clone(parent)
	}
	g.settle(out, r)
}

// link notes that a call caused a run.
func (g *group) link(out Emitter, callID string, d msg.Delegate) {
	if callID == "" {
		return
	}
	c := g.Open[callID]
	if c != nil && d.Async && !c.Async {
		c.Async, c.changed = true, true
	}
	if d.ChildRun == "" {
		return
	}
	l := callLink{Call: strings.Clone(callID), Child: strings.Clone(d.ChildRun), Link: d.Link, Confidence: d.Confidence}
	old, over := g.Done[callID]
	switch {
	case c != nil && l.better(c.Child, c.Link):
		c.Child, c.Link, c.Confidence = l.Child, l.Link, l.Confidence
		c.changed, c.Given = true, false
	case c == nil && over && l.better(old.Child, old.Link):
		old.Child, old.Link, old.Confidence = l.Child, l.Link, l.Confidence
		g.retell(out, &old)
		g.Done[callID] = old
	case c == nil && !over && !slices.Contains(g.Links, l):
		if g.Links = append(g.Links, l); len(g.Links) > maxLinks {
			g.Links = g.Links[1:]
		}
	}
	switch r := g.Runs[d.ChildRun]; {
	case r == nil:
	case !r.Linked:
		g.join(out, r, "", callID, d.Link, d.Confidence)
	case r.Call == callID && d.Link > r.Link: // which way is heard of first does not show
		r.Link, r.Confidence, r.changed, r.Given = d.Link, d.Confidence, true, false
	}
}

// better reports whether a call whose child is known like this has more from the
// link: the stronger way stands, in whatever order they come.
func (l callLink) better(child string, by msg.LinkMethod) bool {
	return child == "" || child == l.Child && l.Link > by
}

// retell gives the span of an ended delegation again, because what is known of its
// child has changed.
func (g *group) retell(out Emitter, d *done) {
	r := g.Runs[d.Run]
	if d.Told == nil || r == nil {
		return
	}
	c := &d.Told.Call
	c.Child, c.Link, c.Confidence = d.Child, d.Link, d.Confidence
	g.giveCall(out, g.toldSpan(d.Told), r, c)
	d.forget()
}

// adopt settles the runs that waited for r to appear.
func (g *group) adopt(out Emitter, r *run) {
	for _, c := range g.Runs {
		if !c.Linked && c != r && c.Parent == r.ID {
			g.settle(out, c)
		}
	}
}

// settle moves an unlinked run, and the runs below it, into its parent's trace,
// if the parent is here and is itself in its place.
func (g *group) settle(out Emitter, r *run) {
	p := g.parentOf(r)
	if p == nil || !p.Linked || g.below(p, r) {
		return
	}
	r.Parent, r.To = p.ID, g.delegate(r)
	old := r.Root
	for _, c := range g.Runs {
		if c.Root != old || c.Linked {
			continue
		}
		c.leaves(p.Root)
		c.Linked = true
		g.ended(c)
		if c.Start != 0 {
			out.ReplayChildren(c.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, c.ID})
		}
	}
}

// below reports whether r stands below top, so that a cycle of parents is never
// closed.
func (g *group) below(r, top *run) bool {
	for range maxRuns {
		if r == top {
			return true
		}
		next := g.Runs[r.Parent]
		if next == nil {
			return false
		}
		r = next
	}
	return true
}

// describe takes over what the message says of its run.
func (g *group) describe(r *run, m *msg.Message) {
	if m.Kind != msg.User { // its Agent is who spoke
		keep(&r.Agent.ID, m.Agent.ID)
		if r.Agent.Name == r.Agent.ID { // which stands in for a name that was not known
			r.Agent.Name = ""
		}
		keep(&r.Agent.Name, m.Agent.Name)
		if r.Agent.Kind == 0 {
			r.Agent.Kind = m.Agent.Kind
		}
	}
	keep(&r.Provider, m.Provider)
	switch {
	case m.Model == "":
	case askedOf(m):
		r.Asked = strings.Clone(m.Model)
	default:
		keep(&r.Model, m.Model)
	}
}

// askedOf reports whether the model that the message names is the one that is asked for:
// what speaks of a request or of the run. Any other message is of a response.
func askedOf(m *msg.Message) bool {
	return m.ResponseID == "" && (m.Signal == msg.RunStart || m.Signal == msg.ModelStart || m.Kind == msg.Status || m.Kind == msg.Error)
}

// keep sets a field that is empty to a copy of the value, which lies in a
// response that nobody wants to keep.
func keep(to *string, value string) {
	if *to == "" && value != "" {
		*to = strings.Clone(value)
	}
}

// touch notes a sign of life.
func (r *run) touch(t int64) {
	r.Last = max(r.Last, t)
	r.changed, r.Given = true, false
	if r.Ended == bySilence {
		r.Ended = running
	}
}

// endRun ends a run by what its own stream says: the response that it was giving
// ends with it. What others say of its end (silence, its delegation's result)
// leaves the response open, because it may come before or after the last parts
// of it, as files happen to be read.
func (g *group) endRun(out Emitter, r *run, by endedBy) {
	if r.Chat != nil {
		g.giveChat(out, r, msg.SpanClosed)
		r.Input = max(r.Input, r.Chat.Last)
		r.Chat = nil
	}
	r.over(by)
}

// over ends the run, unless it has ended for a better reason.
func (r *run) over(by endedBy) {
	if by > r.Ended {
		r.Ended, r.changed, r.Given = by, true, false
	}
}

func (r *run) event(t int64, name string, attrs ...msg.Attr) {
	if len(r.Events) < maxEvents {
		r.Events = append(r.Events, msg.SpanEvent{Time: t, Name: name, Attrs: attrs})
	}
}

func errorType(m *msg.Message) string {
	if m.Tool.ErrorType != "" {
		return strings.Clone(m.Tool.ErrorType)
	}
	if t := m.Attr("error_type"); t != "" {
		return strings.Clone(t)
	}
	return "error"
}

// head is the beginning of a text, for a status message.
func head(t msg.Text) string {
	const most = 256
	if raw, quoted := t.Alias(); len(raw) > 6*most { // no escape is longer than six bytes
		if t = msg.Raw(raw[:6*most]); quoted {
			t = msg.Quoted(raw[:6*most])
		}
	}
	s := t.String()
	if len(s) <= most {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:most], "")
}
