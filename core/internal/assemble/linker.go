package assemble

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// linker links the runs of a session. The decisions are those of package link, which reads the
// session as a link.Tree; the linker applies them, marks the changes and requests replays.
type linker struct{ *group }

// Place implements link.Tree. Of a run that was evicted, the calls that are remembered have the trace.
func (g linker) Place(run string) *link.Place {
	if r := g.Runs[run]; r != nil {
		return &r.Place
	}
	for _, d := range g.Done {
		if d.Run == run {
			return &link.Place{Root: d.Root, Linked: true}
		}
	}
	return nil
}

// Places implements link.Tree.
func (g linker) Places(f func(run string, p *link.Place) bool) {
	for id, r := range g.Runs {
		if !f(id, &r.Place) {
			return
		}
	}
}

// Call implements link.Tree.
func (g linker) Call(id string) (link.Call, bool) {
	if c := g.Open[id]; c != nil {
		return link.Call{ID: id, Run: c.Run, Delegate: c.To, Edge: c.Edge}, true
	}
	d, ok := g.Done[id]
	return link.Call{ID: id, Run: d.Run, Delegate: d.To, Edge: d.Edge}, ok
}

// CauseOf implements link.Tree.
func (g linker) CauseOf(run string) (link.Call, bool) {
	for _, c := range g.Open {
		if c.Child == run {
			return link.Call{ID: c.ID, Run: c.Run, Edge: c.Edge}, true
		}
	}
	for id, d := range g.Done {
		if d.Child == run {
			return link.Call{ID: id, Run: d.Run, Edge: d.Edge}, true
		}
	}
	for _, f := range g.Facts {
		if f.Child == run {
			return link.Call{ID: f.Call, Edge: f.Edge}, true
		}
	}
	return link.Call{}, false
}

// resolve finds the place of a new run: a turn of its stream, below a parent that is known,
// or for now an orphan in a trace of its own.
func (g linker) resolve(r *run, m *msg.Message, stream uint64) {
	if link.Resolve(g, r.ID, &r.Place, m.ParentRun, m.ParentCall, m.Delegation.Link, m.Delegation.Confidence) {
		g.endByCall(r)
		return
	}
	r.Linked = true
	prev := g.Runs[g.Turns[stream]]
	if late := g.late(m); prev != nil && prev != r && (late || precedes(m, prev)) {
		if late || !begins(m) {
			r.Late = true
			r.end(byTurn)
		}
		return
	}
	if prev != nil && prev != r {
		r.Previous, r.PreviousRoot = prev.ID, prev.Root
		r.AskedModel = prev.AskedModel // until a message of this turn names another
		g.endRun(prev, byTurn)
	}
	g.Turns[stream] = r.ID
}

// begins reports whether a message may be the first of its run.
func begins(m *msg.Message) bool { return m.Kind == msg.User || m.Signal == msg.RunStart }

// precedes reports whether a message is of an earlier turn than the last one of its stream: a database writes an old record again, or
// telemetry comes late. It ends no turn.
func precedes(m *msg.Message, last *run) bool {
	return m.Precision != msg.Inferred && !last.Inferred && m.Time < last.Start-link.Slack
}

// adopt attaches the orphans that waited for r.
func (g linker) adopt(r *run) {
	for _, c := range g.Runs {
		if !c.Linked && c != r && c.Parent == r.ID {
			g.attach(c)
		}
	}
}

// join adds the parent that a message names to an orphan, and attaches it.
func (g linker) join(r *run, parent, call string, by msg.LinkMethod, confidence uint8) {
	r.Join(parent, call, by, confidence)
	g.attach(r)
}

// attach moves an orphan, and the runs below it, into its parent's trace, if the parent is
// known and in its place. Their streams are decoded again.
func (g linker) attach(r *run) {
	for _, id := range link.Attach(g, r.ID) {
		c := g.Runs[id]
		c.touch()
		g.endByCall(c)
		if c.Start != 0 || c.Stub {
			g.replay(c)
		}
	}
}

// replay requests that the run's stream is decoded again.
func (g *group) replay(r *run) { g.out.replay(r.Stream, g.ref(r.ID)) }

// ref names a run of the session.
func (g *group) ref(run string) RunRef {
	return RunRef{g.key.Tenant, g.key.Format, g.key.Session, run}
}

// linkNew applies the facts that were known of a call before it was made, and attaches the
// orphans that waited for it.
func (g linker) linkNew(c *call) {
	g.Facts = slices.DeleteFunc(g.Facts, func(f link.Fact) bool {
		if f.Call == c.ID {
			c.Edge, c.Delegation = f.Edge, true
		}
		return f.Call == c.ID
	})
	for _, r := range g.Runs {
		switch {
		case !r.Linked && (r.Call == c.ID || r.ID == c.Child):
			g.join(r, "", c.ID, c.Link, c.Confidence)
		case r.Linked && r.Call == c.ID && r.Delegate == "" && c.To != "":
			// Its parent alone linked it, and its messages name no agent.
			r.Delegate = c.To
			r.touchOpen()
			if r.Agent.Name == "" && r.Start != 0 {
				g.replay(r)
			}
		}
	}
}

// link applies a message that states which run a call caused.
func (g linker) link(callID string, d *msg.Delegate) {
	if callID == "" {
		return
	}
	c := g.Open[callID]
	if c != nil && d.Async && !c.Async {
		c.Async = true
		c.touchOpen()
	}
	if c != nil { // its run may be in a session of its own
		fill(field{&c.CorrelationID, d.CorrelationID})
	}
	if d.ChildRun == "" {
		return
	}
	f := link.Fact{Call: strings.Clone(callID), Edge: link.Edge{Child: strings.Clone(d.ChildRun), Link: d.Link, Confidence: d.Confidence}}
	old, completed := g.Done[callID]
	switch {
	case c != nil && c.Edge.Weaker(f.Edge):
		c.Edge, c.Delegation = f.Edge, true
		c.touch()
	case c == nil && completed && old.Edge.Weaker(f.Edge):
		if old.Edge = f.Edge; old.Call != nil { // until now the tool was not known to delegate
			old.Call.Call.Delegation = true
		}
		g.setRecord(callID, old)
	case c == nil && !completed:
		g.addFact(f)
	}
	switch r := g.Runs[d.ChildRun]; {
	case r == nil:
	case !r.Linked:
		g.join(r, "", callID, d.Link, d.Confidence)
	case r.Call == callID && d.Link > r.Link: // whichever message is read first
		r.Link, r.Confidence = d.Link, d.Confidence
		r.touch()
	}
}

// moveBelow puts a top-level run below a call of another session, or back into its own trace
// if up is nil, and with it the runs below it. Their streams are decoded again, except that
// of the run itself if it is fresh: nothing of it was emitted yet.
func (g linker) moveBelow(run, correlation string, up *link.Remote, fresh bool) (changed bool) {
	r := g.Runs[run]
	if r == nil || !r.Accepts(correlation, up) {
		return false
	}
	root := r.ID
	if up != nil {
		root = link.Foreign(up.Trace(g.key.Tenant))
	}
	r.Remote = up
	r.touch()
	r.Linked = r.Linked || up != nil // also one that was known to be a child, and no more
	switch {
	case root == r.Root || up != nil && up.Apart:
	case fresh:
		g.moveTrace(r, root)
		r.PriorRoot, r.OlderRoots, r.Moves = "", nil, 0
	case !g.out.Replayable(r.Stream):
		if up != nil {
			up.Apart = true
			g.replay(r) // as soon as the stream can be
		}
	default:
		g.moveTrace(r, root)
		g.replay(r)
	}
	return true
}

// rejoin requests that a run is decoded again whose stream has become replayable, and moves
// it first if it was apart for that reason alone.
func (g linker) rejoin(run string) bool {
	r := g.Runs[run]
	if r == nil {
		return false
	}
	if r.Remote != nil && r.Remote.Apart {
		r.Remote.Apart = false
		r.touch()
		g.moveTrace(r, link.Foreign(r.Remote.Trace(g.key.Tenant)))
	}
	g.replay(r)
	return true
}

// moveTrace moves a top-level run, and the runs below it, into another trace.
func (g linker) moveTrace(r *run, root string) {
	old := r.Root
	r.Delegate = ""
	if r.Remote != nil {
		r.Delegate = r.Remote.Delegate
	}
	moves := make(map[string]bool) // beside r there may be runs that other calls of that trace caused
	for id, c := range g.Runs {
		if c.Root == old && link.Below(g, id, r.ID) {
			moves[id] = true
			c.moveTo(root)
			c.Moves++
			if c != r && (c.Start != 0 || c.Stub) {
				g.replay(c)
			}
		}
		if c.Previous == r.ID {
			c.PreviousRoot = root
			c.touch()
		}
	}
	for id, d := range g.Done {
		if moves[d.Run] {
			d.Root = root
			g.Done[id] = d
		}
	}
}

// pairCall sets the run of another session that a call caused; none if the edge has no child.
func (g linker) pairCall(id string, e link.Edge) (changed bool) {
	next := e
	if e.Child == "" {
		next = link.Edge{Confidence: e.Confidence}
	}
	if c := g.Open[id]; c != nil {
		if c.Keeps(e, c.Named) {
			return false
		}
		c.pair(next)
		c.Delegation = c.Delegation || e.Child != ""
		c.touch()
		return true
	}
	d, ok := g.Done[id]
	if !ok || d.Keeps(e, d.Call != nil && d.Call.Call.Named) {
		return false
	}
	if d.Call != nil {
		d.Call.Call.pair(next)
		if e.Child != "" { // until now the tool was not known to delegate
			d.Call.Call.Delegation = true
		}
	}
	d.Edge = next
	g.setRecord(id, d)
	return true
}

// correlated are the calls in the trace of a run that may have caused runs of other
// sessions, by their start.
func (g linker) correlated(r *run) (list []*call) {
	in := func(c *call) bool {
		of := g.Runs[c.Run]
		return c.correlates() && of != nil && of.Root == r.Root
	}
	for _, c := range g.Open {
		if in(c) {
			list = append(list, c)
		}
	}
	for _, d := range g.Done {
		if d.Call != nil && in(d.Call.Call) {
			list = append(list, d.Call.Call)
		}
	}
	slices.SortFunc(list, func(x, y *call) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.ID, y.ID)) })
	return list
}

// preferCall hides an inferred delegation, or its result, whose call another form of the
// conversation has, and puts the child below that call. A form that has runs and no calls
// lets a decoder infer delegations: each child run was handed work (msg.InferredCall).
func (g linker) preferCall(m *msg.Message) {
	if m.ParentCall != "" && m.ParentCall == msg.InferredCall(m.Run) {
		if call, ok := g.statedCause(m.Run); ok {
			m.ParentCall = call
		}
	}
	d := &m.Delegation
	if m.Kind != msg.Delegation && m.Kind != msg.DelegationResult || d.ChildRun == "" || m.Tool.CallID != msg.InferredCall(d.ChildRun) {
		return
	}
	if _, ok := g.statedCause(d.ChildRun); ok || g.Forgot && g.Done[m.Tool.CallID].Run == "" && g.Open[m.Tool.CallID] == nil {
		m.Kind, m.Hidden, m.Tool.CallID = msg.Status, true, ""
		m.SetAttr("type", "inferred_delegation")
	}
}

// statedCause returns the call that caused a run, unless it was inferred.
func (g linker) statedCause(run string) (string, bool) {
	inferred := msg.InferredCall(run)
	if r := g.Runs[run]; r != nil && r.Call != "" && r.Call != inferred {
		return r.Call, true
	}
	for _, c := range g.Open {
		if c.Child == run && c.ID != inferred {
			return c.ID, true
		}
	}
	for id, d := range g.Done {
		if d.Child == run && id != inferred {
			return id, true
		}
	}
	return "", false
}
