package assemble

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// A conversation that several views show is assembled by each view on its own, with the ids
// of the family. This file merges their output: each fact has one span, made of those of all
// views, and each part of it (the prompt of a run, a text or the tokens of a response, a call,
// its result) one message, that of the strongest view. Views name facts by ids of the protocol:
// of the call, of the response or of its request, of the prompt.
//
// A row that a view emitted before a stronger one was read gets a tombstone; its later ones are
// tombstones. The state of a fact is a record of the store of its own: a session may have any
// number of them, and its views may be read hours apart.

// reconciler merges the views of a family.
type reconciler struct {
	store   Store
	emitter Emitter
	facts   map[string]*fact
	commits int
	err     error // of the store; the message at hand reports it
}

// factKey is the key of a fact in the store: one that is of no format.
func factKey(tenant, family, session string, id msg.SpanID) string {
	return link.Key{Tenant: tenant, Session: factPrefix + family + "\x00" + session + "\x00" + id.String()}.String()
}

const factPrefix = "fact\x00"

// sessionOfFact is the session in the key of a fact.
func sessionOfFact(k link.Key) (session string, ok bool) {
	rest, ok := strings.CutPrefix(k.Session, factPrefix)
	if !ok || k.Format != "" {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, "\x00")
	end := strings.LastIndexByte(rest, 0)
	if !ok || end < 0 {
		return "", false
	}
	return rest[:end], true
}

// unnamedSession is the session of messages whose protocol has named none yet, in many formats: it is no conversation.
const unnamedSession = "unknown"

// maxSame is how often a fact may turn out to be another.
const maxSame = 8

// load returns the record of a fact.
func (x *reconciler) load(key string) *fact {
	f := x.facts[key]
	if f != nil {
		return f
	}
	f = &fact{key: key}
	if err := f.id.UnmarshalText([]byte(key[len(key)-2*len(f.id):])); err != nil && x.err == nil {
		x.err = fmt.Errorf("assemble: fact: %w", err)
	}
	state, err := x.store.Group(key)
	if err == nil && len(state) > 0 {
		err = json.Unmarshal(state, f)
	}
	if err != nil && x.err == nil {
		x.err = fmt.Errorf("assemble: fact: %w", err)
	}
	x.facts[key] = f
	return f
}

// fact returns the fact of a span's id, or the one that it turned out to be.
func (x *reconciler) fact(g *group, id msg.SpanID) *fact {
	f := x.resolve(x.load(factKey(g.key.Tenant, g.view.Family, g.key.Session, id)))
	f.dirty = true
	return f
}

// named returns the fact that the view names so. If it has the name of a weaker view until now, it
// gets this one: the view's facts below it are below this name.
func (x *reconciler) named(g *group, id msg.SpanID) *fact {
	f, own, rank := x.fact(g, id), x.load(factKey(g.key.Tenant, g.view.Family, g.key.Session, id)), g.view.Rank+1
	if f != own && f.Named < rank {
		own.Same = ""
		x.merge(f, own)
		f = own
	}
	if f == own {
		f.Named = max(f.Named, rank)
	}
	f.dirty = true
	return f
}

// resolve returns the fact that f turned out to be.
func (x *reconciler) resolve(f *fact) *fact {
	for range maxSame {
		if f.Same == "" {
			break
		}
		f = x.load(f.Same)
	}
	return f
}

// commit passes the records that changed to the caller.
func (x *reconciler) commit(state func(key string, open bool, state []byte)) error {
	x.commits++
	for _, f := range x.facts {
		if !f.dirty {
			continue
		}
		b, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("assemble: fact: %w", err)
		}
		f.dirty, f.committed = false, x.commits
		state(f.key, false, b)
	}
	return x.err
}

// evict drops the records that the store has.
func (x *reconciler) evict(uncommitted int) {
	for key, f := range x.facts {
		if !f.dirty && f.committed <= x.commits-uncommitted {
			delete(x.facts, key)
		}
	}
}

// failed returns the error of the store since it was called last.
func (x *reconciler) failed() error {
	err := x.err
	x.err = nil
	return err
}

// span takes a view's span and emits that of its fact.
func (x *reconciler) span(g *group, s msg.Span) {
	f := x.named(g, s.ID)
	if !s.Tombstone {
		if old := f.of(s.Format); old != nil && old.State == msg.SpanClosed && s.State != msg.SpanClosed && s.Ver < old.Ver && s.Start == old.Start {
			return // silence ends the run of a response that had ended: the row of before stays valid
		}
		x.raise(f, g.view)
		f.put(g.view, s)
		x.sameRuns(g, f)
		x.emit(f, false)
		return
	}
	x.emitter.Span(s)
	if of := f.of(s.Format); of == nil || s.Ver <= of.Ver { // it was in another trace
		return
	}
	if f.remove(s.Format); len(f.Spans) == 0 {
		f.Emitted = nil
	}
	x.emit(f, true)
}

// emit emits the span of a fact, to replace the one emitted before if again is set.
func (x *reconciler) emit(f *fact, again bool) {
	if len(f.Spans) == 0 {
		return
	}
	if !x.leads(f) {
		x.takeBackSpan(f)
		return
	}
	s := f.merged()
	if s.Seen.Conflict != "" && !f.Disputed {
		f.Disputed = true
		x.emitter.Finding(s.Format, "view_conflict")
	}
	raised := false
	if old := f.Emitted; old != nil {
		if several := len(f.Spans) > 1 || len(s.Seen.Messages) > 0; several || again || old.Raised || old.Gone {
			raised = true
			s.Ver = max(s.Ver, old.Ver+1)
			s.Amends = s.Amends || several && old.State != msg.SpanOpen && old.State >= s.State
		}
		s.Shown = s.Shown || old.State == msg.SpanOpen && s.State != msg.SpanOpen
		if old.Start != s.Start && !old.Gone && (len(f.Spans) > 1 || again) { // a view replaces its own
			gone := s
			gone.Start, gone.Tombstone = old.Start, true
			x.emitter.Span(gone)
		}
	}
	f.Emitted = &emitted{Start: s.Start, Ver: s.Ver, State: s.State, Raised: raised}
	x.emitter.Span(s)
}

// takeBackSpan takes back the span of a fact.
func (x *reconciler) takeBackSpan(f *fact) {
	e := f.Emitted
	if e == nil || e.Gone {
		return
	}
	gone := f.Spans[0].Span
	gone.ID, gone.Start, gone.Ver, gone.Tombstone = f.id, e.Start, e.Ver+1, true
	e.Ver, e.Gone = gone.Ver, true
	x.emitter.Span(gone)
}

// message takes a view's message: of a part of a fact that a stronger view has it makes a
// tombstone, and it takes back the rows of weaker views.
func (x *reconciler) message(g *group, m *msg.Message) {
	if request := m.Attr("request_id"); request != "" && m.ResponseID != "" && request != m.ResponseID {
		x.same(g, g.ids.of(msg.SpanChat, request), g.ids.of(msg.SpanChat, m.ResponseID))
	}
	if g.view.OwnNames {
		x.lead(g, m)
	}
	kind, native, part := partOf(m)
	if part != "" && (m.Run != "" || !g.view.OwnNames) {
		x.seen(g, x.named(g, g.ids.of(kind, native)), part, m)
	}
	switch {
	case x.isRest(m):
		x.rest(g, m)
	case part == usagePart:
		f := x.named(g, g.ids.of(kind, native))
		f.addRow(part, rowOf(g, m))
		x.settleUsage(f, m)
	case part != "" && !g.view.OwnNames:
		f, mine := x.named(g, g.ids.of(kind, native)), rowOf(g, m)
		if !f.addRow(part, mine) {
			return
		}
		if f.Rows[part][0].Format != mine.Format {
			takeBack(m, m.Host.ID, m.Time)
			return
		}
		x.takeBackWeaker(f, f.Rows[part])
	}
}

// rowOf is a message as a row of its fact.
func rowOf(g *group, m *msg.Message) row {
	r := row{Format: strings.Clone(m.Host.Format), Rank: g.view.Rank, ID: m.Host.ID, Time: m.Time, Ver: m.Host.Ver}
	if m.Kind == msg.Usage {
		r.Usage = owned(m)
	}
	return r
}

// takeBackWeaker takes back the rows of a part that are not the strongest view's.
func (x *reconciler) takeBackWeaker(f *fact, rows []row) {
	best := rows[0]
	for _, r := range rows[1:] {
		if r.ID != best.ID || hour(r.Time) != hour(best.Time) {
			r.Ver = best.Ver
			x.takeBackRow(f, r)
		}
	}
}

// takeBackRow takes back a row of a fact.
func (x *reconciler) takeBackRow(f *fact, r row) {
	tenant, session := f.conversationKey()
	gone := msg.Message{Session: session, Host: msg.Host{Tenant: tenant, Format: r.Format, Ver: r.Ver + 1}}
	takeBack(&gone, r.ID, r.Time)
	x.emitter.Message(gone)
}

// settleUsage emits the tokens of a response if they have changed, and takes back those that are not valid any more. m is
// the message at hand, if it has tokens of the response.
func (x *reconciler) settleUsage(f *fact, m *msg.Message) {
	rows, old := f.Rows[usagePart], f.Counted
	var now *row
	if len(rows) > 0 && x.leads(f) {
		now = &row{Format: rows[0].Format, Rank: rows[0].Rank, ID: rows[0].ID, Time: rows[0].Time, Ver: rows[0].Ver, Usage: new(msg.Message)}
		*now.Usage = *rows[0].Usage
		now.Usage.Usage = bestTokens(rows)
	}
	own := m != nil && now != nil && now.ID == m.Host.ID && hour(now.Time) == hour(m.Time) && now.Format == m.Host.Format
	moved := old != nil && (now == nil || old.ID != now.ID || hour(old.Time) != hour(now.Time))
	if moved {
		gone := *old
		if now != nil {
			gone.Ver = max(gone.Ver, now.Ver)
		}
		x.takeBackRow(f, gone)
		gone.Ver++
	}
	switch {
	case now == nil:
	case own:
		if m.Usage = now.Usage.Usage; m.Usage != rows[0].Usage.Usage || old != nil && old.Ver >= m.Host.Ver && old.Usage.Usage != m.Usage {
			m.Host.Ver = max(m.Host.Ver, 1) + 1
		}
		now.Ver = m.Host.Ver
	case old == nil || moved || old.Format != now.Format || old.Usage.Usage != now.Usage.Usage:
		if old != nil {
			now.Ver = max(now.Ver, old.Ver)
		}
		now.Ver++
		again := *now.Usage
		again.Host.Ver = now.Ver
		x.emitter.Message(again)
	default:
		now.Ver = old.Ver
	}
	if m != nil && !own {
		takeBack(m, m.Host.ID, m.Time)
	}
	f.Counted, f.dirty = now, true
	x.exceed(f, now)
}

// exceed records the valid tokens of a response beyond the own counts of each view.
func (x *reconciler) exceed(f *fact, now *row) {
	for _, r := range f.Rows[usagePart] {
		var beyond classes
		if now != nil {
			beyond = classesOf(now.Usage.Usage).less(classesOf(r.Usage.Usage))
		}
		if beyond == f.Beyond[r.Format] {
			continue
		}
		c := x.conversationOf(f)
		if c.Excess == nil {
			c.Excess = make(map[string]classes)
		}
		if f.Beyond == nil {
			f.Beyond = make(map[string]classes)
		}
		key := r.Format + "\x00" + r.Usage.Run
		c.Excess[key] = c.Excess[key].less(f.Beyond[r.Format].less(beyond))
		f.Beyond[r.Format], c.dirty = beyond, true
		x.settleRest(c)
	}
}

// owned returns a copy of a message that has tokens, which shares no memory with its batch.
func owned(m *msg.Message) *msg.Message {
	kept := *m
	for _, s := range [...]*string{
		&kept.Key, &kept.ParentKey, &kept.Session, &kept.Run, &kept.ParentRun, &kept.ParentCall, &kept.Agent.ID, &kept.Agent.Name, &kept.Title,
		&kept.Model, &kept.Provider, &kept.ResponseID, &kept.FinishReason, &kept.Host.Tenant, &kept.Host.Source, &kept.Host.Format, &kept.Host.Server, &kept.Host.Origin,
	} {
		*s = strings.Clone(*s)
	}
	kept.Client, kept.Content, kept.Attachments = m.Client.Clone(), msg.Text{}, nil
	kept.Attrs = make([]msg.Attr, len(m.Attrs))
	for i, a := range m.Attrs {
		kept.Attrs[i] = msg.Attr{Key: strings.Clone(a.Key), Value: strings.Clone(a.Value)}
	}
	return &kept
}

// takeBack makes m the tombstone of a row.
func takeBack(m *msg.Message, id msg.ID, at int64) {
	m.Host.ID, m.Time, m.Host.Tombstone = id, at, true
	m.Content, m.Tool.Arguments, m.Delegation.Task = msg.Text{}, msg.Text{}, msg.Text{}
	m.Usage, m.Attachments, m.Attrs = msg.Tokens{}, nil, nil
}

// hour is the part of a row's time that identifies it in the store.
func hour(ns int64) int64 { return ns / int64(time.Hour) }

// same makes one fact of two: some views name by other the work that the rest name by id.
func (x *reconciler) same(g *group, other, id msg.SpanID) {
	x.merge(x.fact(g, other), x.fact(g, id))
}

// merge makes one fact of two, under the name of the second.
func (x *reconciler) merge(from, to *fact) {
	if from == to {
		return
	}
	from.Same, from.dirty, to.dirty = to.key, true, true
	to.Seen.merge(from.Seen)
	from.Seen = nil
	to.Ranked = max(to.Ranked, from.Ranked)
	for _, s := range from.Spans {
		if to.of(s.Span.Format) == nil {
			to.put(s.View, s.Span)
		}
	}
	usage := from.Counted
	from.Counted = nil
	x.exceed(from, nil)
	for part, rows := range from.Rows {
		for _, r := range rows {
			to.addRow(part, r)
		}
		if part != usagePart {
			x.takeBackWeaker(to, to.Rows[part])
		}
	}
	from.Rows = nil
	if len(to.Rows[usagePart]) > 0 {
		if to.Counted == nil {
			to.Counted = usage
		} else if usage != nil && (usage.ID != to.Counted.ID || hour(usage.Time) != hour(to.Counted.Time)) {
			x.takeBackRow(to, *usage)
		}
		x.settleUsage(to, nil)
	}
	if len(from.Spans) > 0 {
		x.takeBackSpan(from)
		x.emit(to, true)
	}
	from.Spans, from.Emitted = nil, nil
}

// ended reports whether the span has ended by another view than the group's.
func (x *reconciler) ended(g *group, id msg.SpanID) bool {
	f := x.fact(g, id)
	for i := range f.Spans {
		if s := &f.Spans[i].Span; s.Format != g.key.Format && s.State == msg.SpanClosed {
			return true
		}
	}
	return false
}

// sameRuns makes one run of those in which the views of a response or a call have it, where
// they name the turn by ids of their own. A sub-agent has one id in all of them, and a view
// that cannot distinguish one has its work in the turn: so only work of the main agent counts.
func (x *reconciler) sameRuns(g *group, f *fact) {
	if len(f.Spans) < 2 || ofRunKind(f.Spans[0].Span.Kind) {
		return
	}
	best := &f.Spans[0].Span
	for i := range f.Spans[1:] {
		s := &f.Spans[1+i].Span
		if s.Run != best.Run && subAgent(s) == subAgent(best) && (!subAgent(s) || g.view.OwnNames) {
			from, to := x.fact(g, g.ids.of(msg.SpanRun, s.Run)), x.fact(g, g.ids.of(msg.SpanRun, best.Run))
			if from.Named > to.Named { // by a view that is stronger than both and does not have this response
				from, to = to, from
			}
			x.merge(from, to)
		}
	}
}

// subAgent reports whether the work of a span is that of an agent below another.
func subAgent(s *msg.Span) bool { return s.ParentRun != "" || s.Agent.ID != "" }

// usagePart are the tokens of a response.
const usagePart = "usage"

// partOf returns the fact that a message states a part of, and which; no part for a message that
// only its own view has.
func partOf(m *msg.Message) (kind msg.SpanKind, native, part string) {
	switch m.Kind {
	case msg.User:
		if m.Run != "" && !m.Hidden {
			return msg.SpanRun, m.Run, "prompt"
		}
	case msg.ToolCall, msg.Delegation:
		return msg.SpanTool, m.Tool.CallID, "call"
	case msg.ToolResult, msg.DelegationResult:
		return msg.SpanTool, m.Tool.CallID, "result"
	case msg.Usage:
		if m.ResponseID != "" {
			return msg.SpanChat, m.ResponseID, usagePart
		}
	case msg.Assistant, msg.Reasoning:
		if rest, ok := strings.CutPrefix(m.Key, m.ResponseID); ok && m.ResponseID != "" {
			return msg.SpanChat, m.ResponseID, rest
		}
	}
	return 0, "", ""
}
