package assemble

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// recent are ids that were made last. Most messages belong to the run, the response
// and the call of the message before, and hashing their names again was two fifths
// of what assembling costs.
type recent struct {
	root  string
	trace msg.TraceID
	spans [msg.SpanWorkflow + 1]named // by kind
}

type named struct {
	native string
	id     msg.SpanID
}

func (g *group) trace(root string) msg.TraceID {
	if root != g.recent.root || g.recent.trace.IsZero() {
		g.recent.root = strings.Clone(root)
		g.recent.trace = traceOf(g.key, root)
	}
	return g.recent.trace
}

func (g *group) span(kind msg.SpanKind, native string) msg.SpanID {
	if kind == msg.SpanDelegation {
		kind = msg.SpanTool // a call is one span, whatever it turns out to be
	}
	n := &g.recent.spans[kind]
	if n.native != native || n.id.IsZero() {
		*n = named{strings.Clone(native), msg.NewSpanID(g.key.tenant, g.key.format, g.key.session, kind, native)} // native lies in a message
	}
	return n.id
}

// give gives a span of run r, with what every span has, and takes back the one
// that was given under another trace.
func (g *group) give(out Emitter, s msg.Span, r *run) { g.giveMoved(out, s, r, 0) }

// giveCall gives a call's span.
func (g *group) giveCall(out Emitter, s msg.Span, r *run, c *call) { g.giveMoved(out, s, r, c.Moved) }

// giveMoved gives a span that has changed so often beside its run.
func (g *group) giveMoved(out Emitter, s msg.Span, r *run, moved int) {
	s.Tenant, s.Format, s.Session, s.Source = g.key.tenant, g.key.format, g.key.session, r.Source
	s.TraceID = g.trace(r.Root)
	s.Run, s.ParentRun = r.ID, r.Parent
	if s.Agent == (msg.Agent{}) {
		s.Agent = r.Agent
	}
	if s.Agent.Name == "" {
		s.Agent.Name = g.nameOf(r)
	}
	s.Unnamed = r.Unnamed
	if r.Above != nil && s.ParentRun == "" {
		s.ParentRun = r.Above.Run
	}
	s.Ver = uint64(g.Revision&0xff)<<revisionShift | uint64(s.State)<<completeShift | moves(r.Moved+moved) | uint64(max(s.LastSeen, 0)/1000)&(1<<movedShift-1)
	if s.Kind == msg.SpanDelegation || r.Above != nil { // of two links the stronger one stands
		s.Ver += uint64(s.Delegate.Link)
	}
	if s.ResultTokensFrom != msg.NoProvenance {
		s.Ver += 1 << 3 // above every link
	}
	if r.Linked {
		s.Ver |= linkedBit
	}
	s.Shown = s.Shown || g.again && s.State != msg.SpanOpen && !s.Amends
	g.reconcile(out, &s, r)
	out.Span(s)
	if s.Amends {
		return
	}
	if r.Was != "" {
		g.takeBack(out, s, r)
	}
}

// takeBack takes a span back from the traces that its run has left.
func (g *group) takeBack(out Emitter, s msg.Span, r *run) {
	for _, root := range append(r.Left[:len(r.Left):len(r.Left)], r.Was) {
		if root != r.Root {
			s.TraceID, s.Tombstone = g.trace(root), true
			out.Span(s)
		}
	}
}

// leaves moves a run to another root.
func (r *run) leaves(root string) {
	if r.Was != "" && !slices.Contains(r.Left, r.Was) && len(r.Left) < maxLeft {
		r.Left = append(r.Left, r.Was)
	}
	r.Was, r.Root, r.changed, r.Given = r.Root, root, true, false
}

func (g *group) giveChat(out Emitter, r *run, state msg.SpanState) {
	c := r.Chat
	s := msg.Span{
		ID: g.span(msg.SpanChat, c.ID), Parent: g.span(msg.SpanRun, r.ID), Kind: msg.SpanChat, State: state,
		Start: c.Start, End: max(c.Last, c.Start), LastSeen: c.Last, FirstToken: c.FirstToken,
		Model: c.Model, AskedModel: c.Asked, Request: c.Request, Provider: cmp.Or(c.Provider, r.Provider), Usage: c.Usage,
	}
	if c.Named {
		s.ResponseID = cmp.Or(c.Native, c.ID)
	}
	if len(c.Request) > 0 {
		s.Server = r.Server
	}
	r.Stop = c.Finish
	if c.Finish != "" {
		s.FinishReasons = []string{c.Finish}
	}
	s.Outcome = msg.OutcomeOK
	if c.Error != "" {
		s.Outcome, s.ErrorType = msg.OutcomeError, c.Error
	}
	g.give(out, s, r)
}

func (g *group) callSpan(c *call) msg.Span {
	var to, id string
	if c.Delegation { // of a tool it says what its output looks like
		to, id = c.To, c.ToID
	}
	return msg.Span{
		ID: g.span(c.kind(), c.ID), Parent: g.span(msg.SpanRun, c.Run), Kind: c.kind(), State: msg.SpanOpen,
		Start: c.Start, LastSeen: c.Last, Alive: c.Alive, ArgumentBytes: c.Arguments, ArgumentShape: c.Shape, Attempt: uint16(min(c.Failures+1, 1<<16-1)), Model: c.Model,
		Tool:     msg.Tool{CallID: c.ID, ProtocolID: c.ProtocolID, Name: c.Tool, Server: c.Server, Internal: c.Internal},
		Delegate: msg.Delegate{To: to, ToID: id, ChildRun: c.Child, Link: c.Link, Confidence: c.Confidence, Async: c.Async},
		Events:   slices.Clone(c.Events),
	}
}

func (g *group) toldSpan(t *told) msg.Span {
	s := g.callSpan(&t.Call)
	s.State, s.End, s.LastSeen, s.ResultBytes = msg.SpanClosed, t.End, t.End, t.Result
	s.Outcome, s.ErrorType, s.StatusMessage = t.Outcome, t.Error, t.Message
	s.ResultTokens, s.ResultTokensFrom = t.Tokens, t.From
	if t.Call.Async {
		t.Call.goesOn(&s)
	} else {
		s.Worked = t.Call.Worked
	}
	return s
}

// goesOn notes on the span of an ended delegation that its work went on.
func (c *call) goesOn(s *msg.Span) {
	if c.Worked > s.End {
		s.Worked, s.LastSeen = c.Worked, c.Worked
	}
}

// worked tells a delegation when the run that it caused ended.
func (g *group) worked(out Emitter, id string, end int64) (changed bool) {
	if c := g.Open[id]; c != nil {
		if end <= c.Worked {
			return false
		}
		c.Worked, c.Given = end, false
		return true
	}
	d, ok := g.Done[id]
	if !ok || d.Told == nil || !d.Told.Call.Async || end <= d.Told.Call.Worked {
		return false
	}
	d.Told.Call.Worked = end
	g.retell(out, &d)
	g.Done[id] = d
	return true
}

func (g *group) runSpan(r *run) msg.Span {
	s := msg.Span{
		ID: g.span(msg.SpanRun, r.ID), Kind: msg.SpanRun, State: msg.SpanOpen,
		Start: r.Start, LastSeen: r.Last, Alive: r.Alive, Agent: r.Agent,
		Model: r.Model, AskedModel: r.Asked, Provider: r.Provider, Usage: r.Usage, Ended: r.Finish,
		Outcome: r.Outcome, ErrorType: r.Error, StatusMessage: r.Message,
		Delegate: msg.Delegate{Link: r.Link, Confidence: r.Confidence},
		Events:   slices.Concat(r.Events, r.Found),
	}
	if r.Agent.Kind == msg.KindWorkflow {
		s.Kind = msg.SpanWorkflow
	}
	if r.Stop != "" {
		s.FinishReasons = []string{r.Stop}
	}
	if r.Parent == "" && r.Call == "" && r.Above == nil {
		s.Server = r.Server
	}
	switch {
	case r.Above != nil:
		r.Above.over(g.key.tenant, &s)
	case r.Call != "" && r.Linked:
		s.Parent = g.span(msg.SpanDelegation, r.Call)
	case r.Parent != "" && r.Linked:
		s.Parent = g.span(msg.SpanRun, r.Parent)
	}
	if x := r.Begun; x != nil {
		s.Pace = x.Pace
		if x.Pace.Total > 0 { // more than what was said: an exporter tells the versions apart by it
			s.LastSeen = max(s.LastSeen, x.Pace.End())
		}
		if x.Remote != nil {
			s.Links = append(s.Links, *x.Remote)
		}
	}
	if r.Prev != "" {
		s.Links = append(s.Links, msg.SpanLink{
			TraceID: g.trace(r.PrevRoot), SpanID: g.span(msg.SpanRun, r.Prev),
			Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}},
		})
	}
	return s
}

// seal gives the runs that are over and what is open and has changed.
func (g *group) seal(out Emitter, settings *Settings) {
	bygone := g.bygone(settings)
	for _, r := range g.Runs {
		switch {
		case r.Start == 0:
		case r.Ended != running && !r.Given:
			g.giveRun(out, r)
		case r.Ended == running && r.changed && !bygone[r.ID]:
			g.give(out, g.runSpan(r), r)
			r.Shown = true
		}
	}
	for _, c := range g.Open {
		r := g.Runs[c.Run]
		if r == nil {
			delete(g.Open, c.ID)
			continue
		}
		switch {
		case (!c.Given || r.changed) && (c.Lost || r.Ended != running && r.Ended != byTurn):
			// Nobody will bring its result; if somebody does, it is given again.
			s := g.callSpan(c)
			s.State, s.End = msg.SpanIdle, max(r.Last, c.Start)
			s.LastSeen = s.End // a later end stands
			s.Outcome, s.ErrorType = msg.OutcomeCancelled, "no_result"
			s.Shown, c.Shown = c.Shown, false
			c.goesOn(&s)
			g.giveCall(out, s, r, c)
			c.Given = true
		case r.Ended == running && c.changed && !bygone[r.ID]:
			g.giveCall(out, g.callSpan(c), r, c)
			c.Shown = true
		}
		c.changed = false
	}
	for _, r := range g.Runs {
		r.changed = false
	}
}

// giveRun gives a run that is over, and the chat that it left open.
func (g *group) giveRun(out Emitter, r *run) {
	if r.Chat != nil {
		state := msg.SpanClosed
		if r.Ended == bySilence {
			state = msg.SpanIdle
		}
		g.giveChat(out, r, state)
	}
	s := g.runSpan(r)
	s.State, s.End = msg.SpanClosed, r.until()
	if r.Ended == bySilence {
		s.State = msg.SpanIdle
	}
	s.Shown, r.Shown = r.Shown, false
	g.give(out, s, r)
	r.Given = true
	g.takeBackStale(out, r)
	if r.Call != "" && r.Linked {
		g.worked(out, r.Call, s.End)
	}
	g.endedAbove(r, s.End)
}

// until is when the run ended, or was heard last.
func (r *run) until() int64 {
	if r.End != 0 {
		return max(r.End, r.Start)
	}
	return max(r.Last, r.Start)
}

func (g *group) closeStream(stream uint64) {
	g.commit(stream)
	delete(g.Turns, stream)
	if g.local {
		g.Claims.closed(stream)
		g.dirty = true
	}
	for _, r := range g.Runs {
		if r.Stream == stream {
			g.silence(r)
		}
	}
}

// place is a run without its own story: its place in the tree, who it is of, and how it
// ended.
func (r *run) place() *run {
	return &run{
		ID: r.ID, Parent: r.Parent, Call: r.Call, Link: r.Link, Confidence: r.Confidence, Root: r.Root, Was: r.Was, Left: r.Left,
		Prev: r.Prev, PrevRoot: r.PrevRoot, Alive: r.Alive, Begun: r.Begun, Above: r.Above, Moved: r.Moved, Linked: r.Linked, Meets: r.Meets,
		Agent: r.Agent, To: r.To, Source: r.Source, Server: r.Server, Unnamed: r.Unnamed, Stream: r.Stream, Ended: min(r.Ended, byCall), Shown: r.Shown,
	}
}

// reset forgets a run's own story; its place in the tree stays.
func (g *group) reset(id string) {
	r := g.Runs[id]
	if r == nil {
		return
	}
	g.remember(r)
	g.Runs[id] = r.place()
	for _, c := range g.Open {
		if c.Run == id {
			delete(g.Open, c.ID)
		}
	}
	g.dirty = true
}

// retold returns the run with another story, in its place in the tree.
func (r *run) retold(story *run) *run {
	s := *story
	s.ID, s.Parent, s.Call, s.Link, s.Confidence, s.Root, s.Was, s.Left = r.ID, r.Parent, r.Call, r.Link, r.Confidence, r.Root, r.Was, r.Left
	s.Prev, s.PrevRoot, s.Begun, s.Above, s.Moved, s.Linked, s.To, s.Shown, s.Alive, s.Meets = r.Prev, r.PrevRoot, r.Begun, r.Above, r.Moved, r.Linked, r.To, r.Shown, r.Alive, r.Meets
	s.Before = nil
	if s.Stream == 0 {
		s.Stream = r.Stream
	}
	return &s
}
