package assemble

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// Bits of a version: the revision of the decoder, how complete the row is, whether its trace
// is final, how often its run moved (up to three), and a position or time. A span that moved
// more often has the number in the place of the time, above every time until 2032: below a call
// it is seen longer than apart, so its time would decide for the call it has left.
const (
	revisionShift = 56
	completeShift = 54
	linkedBit     = 1 << 53
	movesShift    = 51
	maxMoves      = 3
	positionMask  = 1<<movesShift - 1

	movedOften   = 7 << 48
	oftenShift   = 44
	maxOften     = 15
	mostMoves    = maxMoves + maxOften
	millisShift  = 4 // above the links
	millisLength = 40
)

// Version is the Ver of a message's row: the decoder's revision, how complete the message
// is, whether its trace is final, and where in the stream it was completed. A version is the
// same in every replay.
func Version(revision uint32, c msg.Completeness, linked bool, pos int64) uint64 {
	v := uint64(revision&0xff)<<revisionShift | uint64(c)<<completeShift | uint64(pos)&positionMask
	if linked {
		v |= linkedBit
	}
	return v
}

// spanVersion is the Ver of a span's row. Of two versions of a delegation, and of a run below
// a call of another session, the one with the stronger link is the higher.
func spanVersion(revision uint32, s *msg.Span, linked bool, moves int, remote bool) uint64 {
	at := uint64(max(s.LastSeen, 0)) / 1e3
	if moves > maxMoves {
		at = movedOften | uint64(min(moves-maxMoves, maxOften))<<oftenShift | at/1e3&(1<<millisLength-1)<<millisShift
	}
	v := uint64(revision&0xff)<<revisionShift | uint64(s.State)<<completeShift | uint64(min(moves, maxMoves))<<movesShift | at&positionMask
	if s.Kind == msg.SpanDelegation || remote {
		v += uint64(s.Delegate.Link)
	}
	if s.ResultTokensFrom != msg.NoProvenance {
		v += 1 << 3 // above every link
	}
	if linked {
		v |= linkedBit
	}
	return v
}

// order is the part of a span's version that decides between two of its rows of one state, of which the later is shown if
// it is the same, and between an open one and one that silence ended.
func order(ver uint64) uint64 { return ver &^ (3 << completeShift) }

// ids makes the ids of a session's traces and spans. It keeps the last trace, and runs,
// responses and calls keep their span's: most messages belong to those of the message
// before, and hashing their names again was two fifths of the time of assembling.
type ids struct {
	key  link.Key
	root string
	last msg.TraceID
}

// trace is the id of the trace with that root.
func (i *ids) trace(root string) msg.TraceID {
	if root != i.root || i.last.IsZero() {
		i.root = strings.Clone(root)
		i.last = i.key.Trace(root)
	}
	return i.last
}

// of is the id of the span of a run, a response or a call.
func (i *ids) of(kind msg.SpanKind, native string) msg.SpanID {
	return msg.NewSpanID(i.key.Tenant, i.key.Format, i.key.Session, kind, native)
}

// run is the id of a run's span.
func (i *ids) run(r *run) msg.SpanID {
	if r.span.IsZero() {
		r.span = msg.NewSpanID(i.key.Tenant, i.key.Format, i.key.Session, msg.SpanRun, r.ID)
	}
	return r.span
}

// chat is the id of a response's span.
func (i *ids) chat(c *chat) msg.SpanID {
	if c.span.IsZero() {
		c.span = msg.NewSpanID(i.key.Tenant, i.key.Format, i.key.Session, msg.SpanChat, c.ID)
	}
	return c.span
}

// call is the id of a call's span: one, whether it turns out to be a tool or a delegation.
func (i *ids) call(c *call) msg.SpanID {
	if c.span.IsZero() {
		c.span = msg.NewSpanID(i.key.Tenant, i.key.Format, i.key.Session, msg.SpanTool, c.ID)
	}
	return c.span
}

// render renders a response.
func (c *chat) render(ids *ids, r *run, state msg.SpanState) msg.Span {
	s := msg.Span{
		ID: ids.chat(c), Parent: ids.run(r), Kind: msg.SpanChat, State: state,
		Start: c.Start, End: max(c.Last, c.Start), LastSeen: c.Last, FirstToken: c.FirstToken,
		Model: c.Model, AskedModel: c.AskedModel, Request: c.Request, Provider: cmp.Or(c.Provider, r.Provider), Usage: c.Usage,
	}
	if c.Named {
		s.ResponseID = cmp.Or(c.Native, c.ID)
	}
	if len(c.Request) > 0 {
		s.Server = r.Server
	}
	if c.Finish != "" {
		s.FinishReasons = []string{c.Finish}
	}
	s.Outcome = msg.OutcomeOK
	if c.Error != "" {
		s.Outcome, s.ErrorType = msg.OutcomeError, c.Error
	}
	return s
}

// render renders an open call of the run.
func (c *call) render(ids *ids, r *run) msg.Span {
	s := msg.Span{
		ID: ids.call(c), Parent: ids.run(r), Kind: msg.SpanTool, State: msg.SpanOpen,
		Start: c.Start, LastSeen: c.Last, Alive: c.Alive, ArgumentBytes: c.Arguments, ArgumentShape: c.Signature, Attempt: uint16(min(c.Failures+1, 1<<16-1)), Model: c.Model,
		Tool:     msg.Tool{CallID: c.ID, ProtocolID: c.ProtocolID, Name: c.Tool, Server: c.Server, Internal: c.Internal},
		Delegate: msg.Delegate{ChildRun: c.Child, Link: c.Link, Confidence: c.Confidence, Async: c.Async},
		Events:   slices.Clone(c.Events),
	}
	if c.Delegation { // a tool's To is only the form of its output
		s.Kind, s.Delegate.To, s.Delegate.ToID = msg.SpanDelegation, c.To, c.ToID
	}
	return s
}

// renderLost renders a call of a run that ended without its result.
func (c *call) renderLost(ids *ids, r *run) msg.Span {
	s := c.render(ids, r)
	s.State, s.End = msg.SpanIdle, max(r.Last, c.Start)
	s.LastSeen = s.End // a later end has a higher version
	if !c.Unrecorded { // else it is not known
		s.Outcome, s.ErrorType = msg.OutcomeCancelled, "no_result"
	}
	s.Shown = c.Shown
	c.showWork(&s)
	return s
}

// render renders a completed call of the run.
func (t *completed) render(ids *ids, r *run) msg.Span {
	s := t.Call.render(ids, r)
	s.State, s.End, s.LastSeen, s.ResultBytes = msg.SpanClosed, t.End, t.End, t.Result
	s.Outcome, s.ErrorType, s.StatusMessage = t.Outcome, t.Error, t.Message
	s.ResultTokens, s.ResultTokensFrom, s.Usage.Tier = t.Tokens, t.From, t.Tier
	if t.Call.Async {
		t.Call.showWork(&s)
	} else {
		s.Worked = t.Call.Worked
	}
	return s
}

// showWork shows on the span of a call how long its delegate worked after the call's end.
func (c *call) showWork(s *msg.Span) {
	if c.Worked > s.End {
		s.Worked, s.LastSeen = c.Worked, c.Worked
	}
}

// render renders an open run.
func (r *run) render(ids *ids) msg.Span {
	s := msg.Span{
		ID: ids.run(r), Kind: msg.SpanRun, State: msg.SpanOpen,
		Start: r.Start, LastSeen: r.Last, Alive: r.Alive, Agent: r.Agent,
		Model: r.Model, AskedModel: r.AskedModel, Provider: r.Provider, Usage: r.Usage, Ended: r.Finish,
		Outcome: r.Outcome, ErrorType: r.Error, StatusMessage: r.Message,
		Delegate: msg.Delegate{Link: r.Link, Confidence: r.Confidence},
		Events:   slices.Concat(r.Events, r.Findings),
	}
	if r.Agent.Kind == msg.KindWorkflow {
		s.Kind = msg.SpanWorkflow
	}
	if r.StopReason != "" {
		s.FinishReasons = []string{r.StopReason}
	}
	if r.Parent == "" && r.Call == "" && r.Remote == nil {
		s.Server = r.Server
	}
	switch {
	case r.Remote != nil:
		r.Remote.Apply(ids.key.Tenant, &s)
		if r.Remote.Hop && r.Ended != running {
			r.showHop(&s)
		}
	case r.Crowded:
		s.Hop.Crowded = true
	case r.Call != "" && r.Linked:
		s.Parent = ids.of(msg.SpanTool, r.Call)
	case r.Parent != "" && r.Linked:
		s.Parent = ids.of(msg.SpanRun, r.Parent)
	}
	if x := r.Exchange; x != nil {
		s.Pace = x.Pace
		if x.Pace.Total > 0 { // later than the last message: exporters distinguish versions by it
			s.LastSeen = max(s.LastSeen, x.Pace.End())
		}
		if x.Remote != nil {
			s.Links = append(s.Links, *x.Remote)
		}
	}
	if r.Previous != "" {
		s.Links = append(s.Links, msg.SpanLink{
			TraceID: ids.trace(r.PreviousRoot), SpanID: ids.of(msg.SpanRun, r.Previous),
			Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}},
		})
	}
	return s
}
