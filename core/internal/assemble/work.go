package assemble

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// input notes that the model got something to answer. A chat that only its order
// names ends with it; one that the protocol names may go on, because tools are
// started while a response is still streaming.
func (g *group) input(out Emitter, r *run, t int64) {
	if c := r.Chat; c != nil && !c.Named {
		g.giveChat(out, r, msg.SpanClosed)
		r.Chat = nil
	}
	r.Input = max(r.Input, t)
	if r.First != nil && r.First.ID == "" { // of a response that never came
		r.First = nil
	}
}

// byModel reports whether a model made what the message says. What a workflow says
// of itself and what the framework calls name neither a model nor a response. Nor does a
// call of which the protocol tells no response: it is a part of the one that is open, if
// there is one, and does not make one up.
func (r *run) byModel(m *msg.Message) bool {
	if m.Model != "" || m.ResponseID != "" {
		return true
	}
	called := m.Kind == msg.ToolCall || m.Kind == msg.Delegation
	return r.Agent.Kind != msg.KindWorkflow && !m.Tool.Internal && (!called || r.Chat != nil)
}

// output adds a part to the response that the message belongs to.
func (g *group) output(out Emitter, r *run, m *msg.Message) *chat {
	c := r.Chat
	if c != nil && m.ResponseID != "" && c.ID != m.ResponseID {
		g.giveChat(out, r, msg.SpanClosed)
		r.Input = max(r.Input, c.Last)
		c = nil
	}
	if c == nil {
		c = r.startChat(m)
	}
	c.Last = max(c.Last, m.Time)
	c.say(m)
	return c
}

// startChat begins a response where the model last got something to answer; one
// that is told again begins where it began.
func (r *run) startChat(m *msg.Message) *chat {
	id := m.ResponseID
	if id == "" {
		id = m.Key
	}
	c := &chat{ID: strings.Clone(id), Named: m.ResponseID != "", Start: min(r.Input, m.Time), Asked: r.Asked, Request: r.Request}
	if c.Named {
		c.Native = strings.Clone(m.Attr(reusedID))
	}
	r.Chat = c
	at := slices.IndexFunc(r.Chats, func(known chatStart) bool { return known.ID == id })
	if at >= 0 {
		known := &r.Chats[at]
		c.Start, c.FirstToken, c.Nth, c.Asked, c.Request, c.Usage = known.Start, known.FirstToken, known.Nth, known.Asked, known.Request, known.Usage
	} else {
		c.Nth = r.responds()
		if len(r.Chats) >= maxChats {
			r.Chats = slices.Delete(r.Chats, 0, maxChats/2)
		}
		r.Chats = append(r.Chats, chatStart{ID: c.ID, Start: c.Start, Nth: c.Nth, Asked: c.Asked, Request: c.Request})
	}
	if f := r.First; f != nil && (f.ID == "" || f.ID == c.ID) {
		r.First = nil
		r.begun(f.Start)
	}
	return c
}

// firstToken notes when a response began to come: the one that is open, or one
// that nothing else is heard of yet.
func (r *run) firstToken(m *msg.Message) {
	if c := r.Chat; c != nil && (m.ResponseID == "" || m.ResponseID == c.ID) {
		r.begun(m.Time)
		return
	}
	r.First = &chatStart{ID: strings.Clone(m.ResponseID), Start: m.Time}
}

// begun sets the time of the first token of the open response, once.
func (r *run) begun(t int64) {
	c := r.Chat
	if c.FirstToken != 0 {
		return
	}
	c.FirstToken = t
	for i := range r.Chats {
		if r.Chats[i].ID == c.ID {
			r.Chats[i].FirstToken = t
		}
	}
}

func (c *chat) say(m *msg.Message) {
	keep(&c.Model, m.Model)
	keep(&c.Provider, m.Provider)
	if m.FinishReason != "" && !ofTheRun(m) {
		c.Finish = strings.Clone(m.FinishReason)
	}
	if m.IsError {
		c.Error = errorType(m)
	}
}

// ofTheRun reports whether the message's finish reason is how the run ended, and not why
// the model stopped.
func ofTheRun(m *msg.Message) bool {
	return m.Signal == msg.RunEnd && m.ResponseID == "" || m.Attr(msg.FinishReasonOf) != ""
}

// usage counts a response's tokens, once however often and from wherever they
// are told.
func (g *group) usage(out Emitter, r *run, m *msg.Message) msg.SpanID {
	id := binary.BigEndian.Uint64(m.Host.ID[:])
	if m.ResponseID == "" && m.Complete == msg.Summary && len(r.Seen) > 0 && !r.seen(id) {
		return g.span(msg.SpanRun, r.ID) // the total, rebuilt, of a run that was counted by response
	}
	r.count(id, m.Usage, m.Complete == msg.Complete)
	if m.ResponseID == "" { // of the run as a whole
		return g.span(msg.SpanRun, r.ID)
	}
	c := g.output(out, r, m)
	c.Usage = m.Usage
	span := g.span(msg.SpanChat, c.ID)
	if m.Complete > msg.Partial {
		r.counts(c)
		g.giveChat(out, r, msg.SpanClosed)
		g.measure(out, r, c, m.Usage)
		r.Chat = nil
		r.Input = max(r.Input, c.Last)
	}
	return span
}

// seen reports whether the run has counted the usage message.
func (r *run) seen(id uint64) bool {
	_, ok := slices.BinarySearch(r.Seen, id)
	return ok
}

// counts remembers the tokens of a response: parts of it may still come.
func (r *run) counts(c *chat) {
	for i := range r.Chats {
		if r.Chats[i].ID == c.ID {
			r.Chats[i].Usage = c.Usage
		}
	}
}

// count adds a usage message's tokens to the run's. A later version of one that
// was not complete, or of the last one, takes its place.
func (r *run) count(id uint64, t msg.Tokens, complete bool) {
	at, seen := slices.BinarySearch(r.Seen, id)
	old := slices.IndexFunc(r.Counted, func(c counted) bool { return c.Message == id })
	switch {
	case old >= 0:
		r.Usage = minus(r.Usage, r.Counted[old].Tokens)
		r.Counted = slices.Delete(r.Counted, old, old+1)
	case seen:
		return
	case len(r.Seen) < maxSeen:
		r.Seen = slices.Insert(r.Seen, at, id)
	}
	r.Usage = r.Usage.Add(t)
	r.Counted = slices.DeleteFunc(r.Counted, func(c counted) bool { return c.Complete })
	if len(r.Counted) >= maxCounted {
		r.Counted = slices.Delete(r.Counted, 0, 1)
	}
	r.Counted = append(r.Counted, counted{id, t, complete})
}

func minus(a, b msg.Tokens) msg.Tokens {
	a.Input -= b.Input
	a.Output -= b.Output
	a.CacheRead -= b.CacheRead
	a.CacheWrite -= b.CacheWrite
	a.Reasoning -= b.Reasoning
	return a
}

// begin notes a call; a second telling of it completes the first.
func (g *group) begin(out Emitter, r *run, m *msg.Message) msg.SpanID {
	c := g.Open[m.Tool.CallID]
	if c == nil {
		id := strings.Clone(m.Tool.CallID)
		c = &call{
			ID: id, Run: r.ID, Start: m.Time, Inferred: m.Precision == msg.Inferred, Last: m.Time,
			Delegation: m.Kind == msg.Delegation,
		}
		if d, ok := g.Done[id]; ok && d.Run == r.ID { // told again after its end
			c.Child, c.Link, c.Confidence = d.Child, d.Link, d.Confidence
			if d.Told != nil {
				c.Worked, c.Moved = d.Told.Call.Worked, d.Told.Call.Moved
			}
		}
		if r.Detect.Tool == m.Tool.Name {
			c.Failures = r.Detect.Failed
		}
		c.addressed(&m.Delegation) // before runs that waited for the call take the name over
		g.Open[id] = c
		g.known(out, c)
		g.watchDelegation(out, r, c, m)
	}
	c.changed, c.Given, c.Lost = true, false, false
	c.Alive = max(c.Alive, g.alive)
	keep(&c.Tool, m.Tool.Name)
	keep(&c.Server, m.Tool.Server)
	keep(&c.Model, m.Model)
	c.addressed(&m.Delegation)
	keep(&c.Child, m.Delegation.ChildRun)
	c.Named = c.Named || m.Delegation.ChildRun != ""
	if !ofRun(m) {
		keep(&c.MeetID, m.Delegation.CorrelationID)
		keep(&c.MeetPrompt, m.Delegation.CorrelationPrompt)
	}
	c.Link = max(c.Link, m.Delegation.Link)
	c.Confidence = max(c.Confidence, m.Delegation.Confidence)
	c.identify(m.Tool.ProtocolID)
	c.Internal = c.Internal || m.Tool.Internal
	c.Async = c.Async || m.Delegation.Async
	c.Arguments, c.Hash, c.Shape = uint32(m.Tool.Arguments.Len()), hash(m.Tool.Arguments), g.shapes.of(m.Tool.Arguments)
	id := g.span(c.kind(), c.ID)
	for i, e := range g.Early {
		if e.Call == c.ID && !g.flushing {
			g.Early = slices.Delete(g.Early, i, i+1)
			g.answered(out, c, e)
			break
		}
	}
	return id
}

// identify notes the protocol's id of the call.
func (c *call) identify(id string) {
	if id != "" && (c.ProtocolID == "" || c.ProtocolID == msg.UnknownID) {
		c.ProtocolID = strings.Clone(id)
	}
}

// completes takes a message that tells a call, or the result of one that has ended,
// again, now with the protocol's id: nothing but the call's span changes.
func (g *group) completes(out Emitter, m *msg.Message) (msg.SpanID, bool) {
	id := m.Tool.ProtocolID
	if id == "" || id == msg.UnknownID || m.Complete != msg.Complete {
		return msg.SpanID{}, false
	}
	if c := g.Open[m.Tool.CallID]; c != nil {
		if c.ProtocolID != msg.UnknownID || m.Kind != msg.ToolCall && m.Kind != msg.Delegation {
			return msg.SpanID{}, false
		}
		c.identify(id)
		c.changed = true
		return g.span(c.kind(), c.ID), true
	}
	d, ok := g.Done[m.Tool.CallID]
	if !ok || d.Told == nil || d.Told.Call.ProtocolID == "" {
		return msg.SpanID{}, false
	}
	c := &d.Told.Call
	if c.ProtocolID == msg.UnknownID {
		c.identify(id)
		c.Moved++ // its times have not changed
		g.retell(out, &d)
		g.Done[c.ID] = d
	}
	return g.span(c.kind(), c.ID), true
}

// known applies what was said of the call before it was made, and joins runs
// that were waiting for it.
func (g *group) known(out Emitter, c *call) {
	g.Links = slices.DeleteFunc(g.Links, func(l callLink) bool {
		if l.Call != c.ID {
			return false
		}
		c.Child, c.Link, c.Confidence = l.Child, l.Link, l.Confidence
		return true
	})
	for _, r := range g.Runs {
		switch {
		case !r.Linked && (r.Call == c.ID || r.ID == c.Child):
			g.join(out, r, "", c.ID, c.Link, c.Confidence)
		case r.Linked && r.Call == c.ID && r.To == "" && c.To != "":
			// It was linked by its parent alone, and heard without a name.
			r.To, r.changed = c.To, true
			if r.Agent.Name == "" && r.Start != 0 {
				out.ReplayChildren(r.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, r.ID})
			}
		}
	}
}

func (c *call) kind() msg.SpanKind {
	if c.Delegation {
		return msg.SpanDelegation
	}
	return msg.SpanTool
}

// end gives the span of a call that has its result. One whose call has not been seen
// waits for it: a conversation may be in several streams, which are not read in the
// order in which they were written.
func (g *group) end(out Emitter, r *run, m *msg.Message) msg.SpanID {
	c := g.Open[m.Tool.CallID]
	if c == nil {
		kind := msg.SpanTool
		if m.Kind == msg.DelegationResult {
			kind = msg.SpanDelegation
			g.link(out, m.Tool.CallID, m.Delegation)
		}
		_, known := g.Done[m.Tool.CallID]
		if !known && m.Complete > msg.Partial {
			g.early(m)
		}
		if known || kind == msg.SpanTool {
			return g.span(kind, m.Tool.CallID)
		}
		return m.Host.SpanID
	}
	keep(&c.Tool, m.Tool.Name)
	if m.Delegation.ChildRun != "" {
		g.link(out, c.ID, m.Delegation)
	}
	keep(&c.MeetID, m.Delegation.CorrelationID)
	c.addressed(&m.Delegation)
	c.identify(m.Tool.ProtocolID)
	id := g.span(c.kind(), c.ID)
	if m.Complete == msg.Partial {
		c.Last, c.Alive, c.changed = max(c.Last, m.Time), max(c.Alive, g.alive), true
		return id
	}
	g.answered(out, c, outcomeOf(m))
	return id
}

// early keeps a result whose call has not been seen.
func (g *group) early(m *msg.Message) {
	g.Early = slices.DeleteFunc(g.Early, func(e outcome) bool { return e.Call == m.Tool.CallID })
	if len(g.Early) >= maxEarly {
		g.Early = slices.Delete(g.Early, 0, 1)
	}
	g.Early = append(g.Early, outcomeOf(m))
}

func outcomeOf(m *msg.Message) outcome {
	e := outcome{Call: strings.Clone(m.Tool.CallID), Time: m.Time, Took: m.Tool.Duration, Bytes: uint32(m.Content.Len()), Hash: hash(m.Content), Outcome: msg.OutcomeOK}
	if m.IsError {
		e.Outcome, e.Error, e.Message = msg.OutcomeError, strings.Clone(m.Tool.ErrorType), head(m.Content)
		if e.Error == "" {
			e.Error = "tool_error"
		}
		if e.Error == "cancelled" || e.Error == "interrupted" || e.Error == "denied" { // a person's decision is no failure
			e.Outcome = msg.OutcomeCancelled
		}
	}
	return e
}

// ended is when the call ended: as long after its start as it took, if that was
// measured, else when its result was reported.
func (c *call) ended(e *outcome) int64 {
	if e.Took > 0 {
		return c.Start + e.Took
	}
	return max(e.Time, c.Start)
}

// answered gives the span of a call with its result.
func (g *group) answered(out Emitter, c *call, e outcome) {
	t := told{Call: *c, End: c.ended(&e), Result: e.Bytes, Outcome: e.Outcome, Error: e.Error, Message: e.Message}
	if c.Delegation && !c.Async {
		t.Call.Worked = g.doneBefore(c, t.End)
	}
	s := g.toldSpan(&t)
	s.Shown = c.Shown
	g.giveCall(out, s, g.Runs[c.Run], c)
	g.watchResult(out, g.Runs[c.Run], c, e)
	if r := g.Runs[c.Run]; r != nil {
		r.carry(&t)
	}
	if c.Delegation || c.meets() || c.ProtocolID == msg.UnknownID {
		kept := t // on the heap, where the others are not
		g.finished(&kept)
		for _, child := range g.Runs {
			if child.Call == c.ID || child.ID == c.Child {
				child.over(byCall)
			}
		}
	}
	delete(g.Open, c.ID)
}

// doneBefore is when the run that a delegation caused ended, if the protocol said so
// before it told the result, which came later: results of calls that were made together
// are often told together. Only what came before in the same stream counts: a replay
// may read streams in another order.
func (g *group) doneBefore(c *call, result int64) (at int64) {
	caller := g.Runs[c.Run]
	for _, r := range g.Runs {
		if caller != nil && r.Linked && r.Call == c.ID && r.Stream == caller.Stream && c.Start < r.End && r.End < result {
			at = max(at, r.End)
		}
	}
	return at
}

// signal does what the message says beyond its kind.
func (g *group) signal(out Emitter, r *run, m *msg.Message) {
	switch m.Signal {
	case msg.RunEnd:
		if c := r.Chat; c != nil && m.ResponseID != "" && m.ResponseID == c.ID { // it ends the response with the run
			c.say(m)
		}
		r.End = max(m.Time, r.Start)
		if m.Complete < msg.Complete { // rebuilt; what was heard was not after it
			r.End = max(r.End, r.Last)
		}
		if m.FinishReason != "" {
			r.Finish = strings.Clone(m.FinishReason)
		}
		switch {
		case r.Finish == "cancelled" || m.IsError && r.Finish == "interrupted": // which need be nobody's error
			r.Outcome, r.Error = msg.OutcomeCancelled, r.Finish
		case m.IsError:
			r.Outcome = msg.OutcomeError
			if r.Error == "" {
				r.Error, r.Message = errorType(m), head(m.Content)
			}
		default:
			r.Outcome, r.Error, r.Message = msg.OutcomeOK, "", ""
		}
		r.Sure = r.Sure || m.Complete == msg.Complete
		g.endRun(out, r, byProtocol)
	case msg.RunPause, msg.RunResume:
		r.event(m.Time, m.Signal.String(), awaited(m)...)
	case msg.ModelStart:
		g.input(out, r, m.Time)
		r.Request = m.Params()
		r.Unnamed = r.Unnamed || m.Attr(msg.SessionFrom) != ""
	case msg.ModelEnd:
		if r.Chat != nil {
			r.Chat.Last = max(r.Chat.Last, m.Time)
			r.Chat.say(m)
		}
	case msg.FirstToken:
		r.firstToken(m)
	case msg.WaitStart, msg.WaitEnd, msg.Retry:
		if c := g.Open[m.Tool.CallID]; c != nil {
			if len(c.Events) < maxEvents {
				c.Events = append(c.Events, msg.SpanEvent{Time: m.Time, Name: m.Signal.String(), Attrs: awaited(m)})
			}
			c.Last, c.Alive, c.changed = max(c.Last, m.Time), max(c.Alive, g.alive), true
		} else {
			r.event(m.Time, m.Signal.String(), awaited(m)...)
		}
	case msg.Link:
		g.link(out, m.Tool.CallID, m.Delegation)
	case msg.Compaction:
		r.Spent, r.Carried = spent{}, nil
		r.event(m.Time, m.Signal.String())
	}
}

// awaited says on the event of a wait what is waited for, unless it is a person.
func awaited(m *msg.Message) []msg.Attr {
	if m.Signal != msg.WaitStart && m.Signal != msg.RunPause {
		return nil
	}
	if v := m.Attr(msg.AttrWaitsFor); v != "" && v != msg.ForPerson {
		return []msg.Attr{{Key: msg.EventWaitsFor, Value: strings.Clone(v)}}
	}
	return nil
}
