package assemble

import (
	"strings"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// handler applies messages to a session: it changes the state and marks the changes.
type handler struct{ *group }

// handle applies a message to the session and sets its trace and span. It reports whether
// the message's trace is final.
func (g handler) handle(m *msg.Message, stream uint64) (linked bool) {
	if m.Run == "" {
		return g.handleSession(m, stream)
	}
	if m.ParentCall != "" || m.Delegation.ChildRun != "" {
		linker(g).preferCall(m)
	}
	r := g.runOf(m, stream)
	r.Stream = stream
	h := &m.Host
	h.TraceID = g.ids.trace(r.Root)
	if m.Agent.ID != "" || m.Delegation.To != "" {
		g.name(m)
	}
	r.describe(m)
	if m.Agent.Name == "" && m.Kind != msg.User { // in a user message it is who wrote
		if m.Agent.Name = r.Agent.Name; m.Agent.Name == "" {
			m.Agent.Name = g.names.of(r)
		}
	}
	var id msg.SpanID
	if r.Full && m.Complete == msg.Summary && m.Attr(msg.TotalOf) == "" {
		id = g.summarized(m)
	} else {
		if m.Time-r.Last >= minPause {
			g.detectSilence(r, m)
		}
		r.observe(m.Time, g.alive)
		id = g.handleKind(r, m)
		if m.Signal != msg.NoSignal {
			g.signal(r, m)
		}
		g.observeVerdict(r, m)
	}
	if h.SpanID = id; id.IsZero() {
		h.SpanID = g.ids.run(r)
	}
	return r.Linked
}

// handleKind applies a message by its kind and returns the id of the span that it belongs
// to; zero for that of its run.
func (g handler) handleKind(r *run, m *msg.Message) (id msg.SpanID) {
	h := &m.Host
	switch m.Kind {
	case msg.User:
		r.resume(m)
		g.input(r, m.Time)
	case msg.Assistant, msg.Reasoning:
		if r.byModel(m) {
			r.recover(m)
			h.Chat = g.ids.chat(g.output(r, m))
			return h.Chat
		}
	case msg.ToolCall, msg.Delegation:
		if m.Tool.ProtocolID != "" {
			if id, ok := g.identified(m); ok {
				return id
			}
		}
		if r.byModel(m) {
			r.recover(m)
			h.Chat = g.ids.chat(g.output(r, m))
		}
		return g.startCall(r, m)
	case msg.ToolResult, msg.DelegationResult:
		if m.Tool.ProtocolID != "" {
			if id, ok := g.identified(m); ok {
				return id
			}
		}
		id = g.endCall(r, m)
		g.input(r, m.Time)
	case msg.Usage:
		return g.count(r, m)
	case msg.Error:
		r.Outcome, r.Error, r.Message = msg.OutcomeError, errorType(m), head(m.Content)
		r.event(m.Time, "error", msg.Attr{Key: "error.type", Value: r.Error})
	}
	return id
}

// recover takes an answer that follows an error of the run: a request was tried again. How a run of a protocol that states no end has
// ended is the outcome in its last record.
func (r *run) recover(m *msg.Message) {
	if r.Outcome == msg.OutcomeError && r.Ended < byProtocol && !m.IsError && m.Complete > msg.Partial && m.Time >= r.Last {
		r.Outcome, r.Error, r.Message = msg.OutcomeUnset, "", ""
	}
}

// resume takes new input of a delegate that was stopped, or had failed: it goes on after all. How it ends is not known yet.
func (r *run) resume(m *msg.Message) {
	if r.Ended == byProtocol && r.Outcome > msg.OutcomeOK && (!r.Linked || r.Call != "" || r.Parent != "") && m.Time > r.End && m.Complete == msg.Complete {
		r.End, r.Outcome, r.Error, r.Message, r.Finish = 0, msg.OutcomeUnset, "", "", ""
	}
}

// summarized returns the span of a message in a form with less detail, of a run that the
// full form has ended: it changes none of the run's spans, and its times are rougher.
func (g handler) summarized(m *msg.Message) msg.SpanID {
	switch m.Kind {
	case msg.ToolCall, msg.ToolResult, msg.Delegation, msg.DelegationResult:
		return g.ids.of(msg.SpanTool, m.Tool.CallID)
	}
	return msg.SpanID{}
}

// handleSession applies a message that belongs to no run. It has no trace: the order in
// which streams are read decides which turn is going on.
func (g handler) handleSession(m *msg.Message, stream uint64) (final bool) {
	if m.Attr("type") == msg.History {
		if len(g.Order) > 0 { // the session's runs have the message
			m.Hidden = true
			return true
		}
		g.History = stream
		return false
	}
	if !m.Hidden && m.Precision != msg.Inferred { // sessions that are over get bookkeeping, too
		g.Alive = max(g.Alive, g.alive)
	}
	if m.Signal == msg.Link {
		linker(g).link(m.Tool.CallID, &m.Delegation)
	}
	g.setAgent(m)
	return true
}

// runOf returns the message's run, begun if need be.
func (g handler) runOf(m *msg.Message, stream uint64) *run {
	r := g.Runs[m.Run]
	if r == nil {
		r = g.newRun(m, stream)
	}
	if r.Start == 0 {
		r.Start, r.Last, r.Input = m.Time, m.Time, m.Time
		r.Source = strings.Clone(m.Host.Source)
		r.Server, r.Unnamed = strings.Clone(m.Host.Server), unnamed(m)
		late := g.late(m)
		if began := g.back(r.ID); late {
			r.Start = began
		}
		r.Late = r.Late || late || r.Stub && !begins(m)
		g.revive(r)
		r.Inferred = m.Precision == msg.Inferred
	}
	if r.Inferred && m.Precision != msg.Inferred {
		g.date(r, m.Time)
	}
	if !r.Linked && (m.ParentCall != "" || m.ParentRun != "" && m.ParentRun != msg.UnknownRun) {
		linker(g).join(r, m.ParentRun, m.ParentCall, m.Delegation.Link, m.Delegation.Confidence)
	}
	return r
}

// newRun adds the run of its first message.
func (g handler) newRun(m *msg.Message, stream uint64) *run {
	id := strings.Clone(m.Run)
	r := &run{identity: identity{ID: id}, Place: link.Place{Root: id}}
	g.add(r)
	if g.History != 0 { // the messages without a run are decoded again, now to be hidden
		if g.out.Replayable(g.History) {
			g.out.replay(g.History, g.ref(""))
		}
		g.History = 0
	}
	linker(g).resolve(r, m, stream)
	linker(g).adopt(r)
	return r
}

// date takes the first time that the protocol states in a run. The time that was inferred
// before is when the run was read: if that is later by more than clocks may be apart, the
// run is history.
func (g handler) date(r *run, t int64) {
	r.Inferred = false
	if t >= r.Start-link.Slack {
		return
	}
	r.Start, r.Last, r.Input = t, t, t
	for _, c := range g.Open {
		if c.Run == r.ID && c.Inferred {
			c.Start, c.Last = t, t
			c.touchOpen()
		}
	}
	if c := r.Chat; c != nil {
		c.Start, c.Last, c.FirstToken = t, t, 0
	}
}

// signal applies the signal that a message has beside its kind.
func (g handler) signal(r *run, m *msg.Message) {
	switch m.Signal {
	case msg.RunEnd:
		g.signalEnd(r, m)
	case msg.RunPause, msg.RunResume:
		r.event(m.Time, m.Signal.String(), awaited(m)...)
	case msg.ModelStart:
		g.input(r, m.Time)
		r.Request = m.Params()
		r.Unnamed = r.Unnamed || m.Attr(msg.SessionFrom) != ""
	case msg.ModelEnd:
		g.modelEnd(r, m)
	case msg.FirstToken:
		r.firstToken(m)
	case msg.WaitStart, msg.WaitEnd, msg.Retry:
		if c := g.Open[m.Tool.CallID]; c != nil {
			c.Events, _ = addEvent(c.Events, msg.SpanEvent{Time: m.Time, Name: m.Signal.String(), Attrs: awaited(m)})
			c.observe(m.Time, g.alive)
		} else {
			r.event(m.Time, m.Signal.String(), awaited(m)...)
		}
	case msg.Link:
		linker(g).link(m.Tool.CallID, &m.Delegation)
	case msg.Compaction:
		if r.event(m.Time, m.Signal.String()) {
			r.Prompt, r.Results = prompt{}, nil
		}
	}
}

// signalEnd ends the run by the protocol.
func (g handler) signalEnd(r *run, m *msg.Message) {
	if c := r.Chat; c != nil && m.ResponseID != "" && m.ResponseID == c.ID { // it ends the response with the run
		c.describe(m)
	}
	r.End = max(m.Time, r.Start)
	if m.Complete < msg.Complete { // rebuilt: the messages that were read precede it
		r.End = max(r.End, r.Last)
	}
	if m.FinishReason != "" {
		r.Finish = strings.Clone(m.FinishReason)
	}
	switch {
	case r.Finish == "cancelled" || m.IsError && r.Finish == "interrupted": // no error need be involved
		r.Outcome, r.Error = msg.OutcomeCancelled, r.Finish
		if m.IsError && m.Tool.ErrorType == "" && m.Attr("error_type") == "" {
			m.Tool.ErrorType = r.Finish // the row of the message is no failure either
		}
	case m.IsError:
		r.Outcome = msg.OutcomeError
		if r.Error == "" {
			r.Error, r.Message = errorType(m), head(m.Content)
		}
	default:
		r.Outcome, r.Error, r.Message = msg.OutcomeOK, "", ""
	}
	r.Full = r.Full || m.Complete == msg.Complete
	g.endRun(r, byProtocol)
}

// awaited is the attribute of a wait's event that names the awaited party, unless it is a
// person.
func awaited(m *msg.Message) []msg.Attr {
	if m.Signal != msg.WaitStart && m.Signal != msg.RunPause {
		return nil
	}
	if v := m.Attr(msg.AttrWaitsFor); v != "" && v != msg.ForPerson {
		return []msg.Attr{{Key: msg.EventWaitsFor, Value: strings.Clone(v)}}
	}
	return nil
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
