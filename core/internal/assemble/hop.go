package assemble

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// A hop is a request of one program to another, recorded between the two: a call of an MCP server, a
// message to an agent of A2A, a turn that an ACP client asks for. Its run belongs below the call
// that caused it, which the caller's own records have, and the runs of the program that works in
// a turn belong below that turn. Unlike delegations (correlate.go) neither side names the other: the
// names are made of facts that both have (link.HopName), for calls of every format. Nothing but the
// place of the run that moves changes; the caller's span stays as it is.

// Hops are the kinds of hops that the recordings of a format have: calls of a tool's server (MCP),
// texts that an agent sends to another (A2A), and turns in which another program works (ACP, and
// a task of A2A).
type Hops struct{ Calls, Texts, Turns bool }

// maxTexts is how many arguments of a call are looked for as the text of a hop.
const maxTexts = 8

// hops joins hops with their causes.
type hops struct{ *Assembler }

// begin looks for the cause of the message's run when the run begins.
func (a hops) begin(g *group, m *msg.Message, stream uint64, now time.Time) error {
	r := g.Runs[m.Run]
	if r != nil && r.Hop || g.hops != (Hops{}) && m.Signal != msg.RunStart {
		return nil
	}
	names := a.hopNames(g, m, stream)
	if len(names) == 0 {
		return nil
	}
	fresh := r == nil // before anything of it is emitted
	r = handler{g}.runOf(m, stream)
	r.Stream, r.Hop, r.Correlates = stream, true, true
	if r.Parent != "" || r.Call != "" {
		return nil
	}
	for _, n := range names {
		at, err := a.at(g, n.At(r.Start), n)
		if err != nil {
			return err
		}
		if at.Correlation.HasRun(g.key.Format, g.key.Session, r.ID) {
			if r.Remote != nil {
				continue
			}
		} else {
			lost := at.Correlation.AddHop(link.Candidate{
				Format: g.key.Format, Session: g.key.Session, Run: r.ID, Start: r.Start, Inferred: r.Inferred, Stream: stream, Request: request(m),
			})
			if err := a.crowd(at, lost, now); err != nil {
				return err
			}
		}
		if err := a.pair(at, g, r.ID, fresh, now); err != nil {
			return err
		}
		fresh = fresh && r.Remote == nil
	}
	return nil
}

// request is the key of a hop's arguments or task, which two recordings of it have in common.
func request(m *msg.Message) string {
	switch m.Kind {
	case msg.ToolCall:
		return string(link.ArgumentsHop(m.Tool.Name, "", m.Tool.Arguments))
	case msg.Delegation:
		return string(link.TextHop(m.Delegation.Task))
	}
	return ""
}

// crowd marks hops that were forgotten before they had a cause: too many were alike.
func (a hops) crowd(at *group, forgotten []link.Candidate, now time.Time) error {
	for i := range forgotten {
		r := &forgotten[i]
		g, err := a.group(link.Key{Tenant: at.key.Tenant, Format: r.Format, Session: r.Session})
		if err != nil {
			return err
		}
		g.crowded(r.Run, true, now)
	}
	return nil
}

// crowded records whether too many hops were alike at the time of the run.
func (g *group) crowded(run string, is bool, now time.Time) {
	if r := g.Runs[run]; r != nil && r.Remote == nil && r.Crowded != is {
		r.Crowded = is
		r.touch()
		g.dirty, g.read = true, now
	}
}

// ended passes the end of a hop on to the other recording of it.
func (a hops) ended(g *group, e remoteEnd) (changed []*group, err error) {
	at, err := a.group(link.Key{Tenant: g.key.Tenant, Session: e.hop})
	if err != nil || at.Correlation == nil || !at.Correlation.EndHop(g.key.Format, g.key.Session, e.run, e.end) {
		return nil, err
	}
	if err := a.pair(at, g, "", false, g.read); err != nil {
		return nil, err
	}
	for _, r := range at.Correlation.Runs {
		other, err := a.group(link.Key{Tenant: g.key.Tenant, Format: r.Format, Session: r.Session})
		if err != nil {
			return nil, err
		}
		changed = append(changed, other)
	}
	return changed, nil
}

// hopNames are the names of the run that begins with the message, if it may be a hop, or the work
// of a program in a turn.
func (a hops) hopNames(g *group, m *msg.Message, stream uint64) (names []link.HopName) {
	add := func(n link.HopName) {
		if n != "" {
			names = append(names, n)
		}
	}
	if g.hops == (Hops{}) {
		if a.settings.Read.Turns && m.ParentRun == "" && m.ParentCall == "" {
			add(link.SessionHop(g.key.Session))
		}
		return names
	}
	if m.Kind != msg.ToolCall && m.Kind != msg.Delegation {
		return nil
	}
	add(link.CallHop(m.Delegation.CorrelationID))
	if trace := m.Attr("traceparent"); trace != "" {
		add(link.TraceparentHop(trace))
	} else if x, ok := a.exchanges[stream]; ok && x.Remote != nil {
		add(link.SpanHop(x.Remote.TraceID.String(), x.Remote.SpanID.String()))
	}
	switch {
	case m.Delegation.CorrelationID != "": // the caller has it, too
	case m.Kind == msg.ToolCall: // its name is the server's own
		add(link.ArgumentsHop(m.Tool.Name, "", m.Tool.Arguments))
	default:
		add(link.TextHop(m.Delegation.Task))
	}
	return names
}

// madeCall is a call as it was before the message at hand.
type madeCall struct {
	call *call
	end  int64 // of a result that was read before the call
}

func callBefore(g *group, m *msg.Message) (made madeCall) {
	if m.Tool.CallID == "" || g.hops != (Hops{}) {
		return made
	}
	made.call = g.Open[m.Tool.CallID]
	for _, e := range g.Early {
		if e.Call == m.Tool.CallID {
			made.end = e.Time
		}
	}
	return made
}

// causes looks for the hops that the message's call caused, or its turn.
func (a hops) causes(g *group, m *msg.Message, made madeCall, now time.Time) error {
	if g.hops != (Hops{}) {
		return a.turn(g, m, now)
	}
	if at, ok := spanOf(m); ok && m.Signal == msg.RunStart && m.Tool.CallID == "" && (a.settings.Read.Calls || a.settings.Read.Texts) {
		return a.add(g, m.Run, &call{Start: m.Time}, 0, now, at)
	}
	if m.Tool.CallID == "" || m.Complete != msg.Complete {
		return nil
	}
	switch m.Kind {
	case msg.ToolCall, msg.Delegation:
		c := g.Open[m.Tool.CallID]
		if c == nil { // its result was read before it
			c = &call{ID: strings.Clone(m.Tool.CallID), Start: m.Time}
		}
		if len(c.Hops) == 0 {
			c.Hops = a.causeNames(m)
		}
		return a.add(g, m.Run, c, made.end, now, c.Hops...)
	case msg.ToolResult, msg.DelegationResult:
		if c := made.call; c != nil && !c.Async {
			return a.add(g, c.Run, c, max(m.Time, c.Start+m.Tool.Duration), now, c.Hops...)
		}
	}
	return nil
}

// spanOf is the name of a message that telemetry has as a span.
func spanOf(m *msg.Message) (link.HopName, bool) {
	trace, span, ok := strings.Cut(m.Attr("span"), "/")
	n := link.SpanHop(trace, span)
	return n, ok && n != ""
}

// causeNames are the names of a call that may have caused a hop: one of a tool behind a server, or
// of an agent.
func (a hops) causeNames(m *msg.Message) (names []link.HopName) {
	add := func(n link.HopName) {
		if n != "" {
			names = append(names, n)
		}
	}
	read, server := a.settings.Read, m.Tool.Server != ""
	if at, ok := spanOf(m); ok && (read.Calls || read.Texts) {
		add(at)
	}
	if server && read.Calls {
		add(link.CallHop(m.Tool.ID()))
		add(link.ArgumentsHop(m.Tool.Name, m.Tool.Server, m.Tool.Arguments))
	}
	if !read.Texts {
		return names
	}
	if m.Kind == msg.Delegation {
		add(link.TextHop(m.Delegation.Task))
	}
	var arguments map[string]any
	if server && m.Tool.Arguments.Len() <= 64<<10 && json.Unmarshal(m.Tool.Arguments.Append(nil), &arguments) == nil && len(arguments) <= maxTexts {
		for _, name := range slices.Sorted(maps.Keys(arguments)) {
			if text, ok := arguments[name].(string); ok {
				add(link.TextHop(msg.Plain(text)))
			}
		}
	}
	return names
}

// turn looks for the runs of the program that worked in a turn. A run that begins with a call is a
// hop, and no turn.
func (a hops) turn(g *group, m *msg.Message, now time.Time) error {
	if !g.hops.Turns || m.Signal != msg.RunStart && m.Signal != msg.RunEnd {
		return nil
	}
	r := g.Runs[m.Run]
	if r == nil || m.Signal == msg.RunStart && (m.Kind == msg.ToolCall || m.Kind == msg.Delegation) || r.Hop {
		return nil
	}
	return a.add(g, r.ID, &call{Start: r.Start}, r.End, now, link.SessionHop(g.key.Session))
}

// add adds a call, or a turn where it has no id, as a cause of hops, unless its run is an orphan: its
// stream will be decoded again.
func (a hops) add(g *group, run string, c *call, end int64, now time.Time, names ...link.HopName) error {
	r := g.Runs[run]
	if r == nil || !r.Linked && (r.Parent != "" || r.Call != "") {
		return nil
	}
	site := link.CallSite{
		Format: g.key.Format, Family: g.Family, Session: g.key.Session, Run: r.ID, Call: c.ID, Root: r.Root, Start: c.Start, End: end, Rank: g.view.Rank,
	}
	for _, n := range names {
		if n == "" {
			continue
		}
		for _, name := range n.During(site.Start, site.End) {
			at, err := a.at(g, name, n)
			if err != nil {
				return err
			}
			if err := a.crowd(at, at.Correlation.AddCause(site), now); err != nil {
				return err
			}
			if err := a.pair(at, g, "", false, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// at returns the correlation of that name.
func (a hops) at(g *group, name string, n link.HopName) (*group, error) {
	at, err := a.group(link.Key{Tenant: g.key.Tenant, Session: name})
	if err != nil {
		return nil, err
	}
	if at.Correlation == nil {
		at.Correlation = &link.Correlation{Link: n.Link(), Hops: true}
	}
	return at, nil
}

// pair moves the hops of a correlation below their causes. fresh is set if nothing was emitted yet of
// g's run of that name.
func (a hops) pair(at, g *group, run string, fresh bool, now time.Time) error {
	at.dirty, at.read = true, now
	t := at.Correlation
	pairs := t.Pairs()
	for i, p := range pairs {
		r := &t.Runs[i]
		child, err := a.group(link.Key{Tenant: at.key.Tenant, Format: r.Format, Session: r.Session})
		if err != nil {
			return err
		}
		var up *link.Remote
		if p.Call >= 0 {
			up = &link.Remote{CallSite: t.Calls[p.Call], Name: at.key.Session, Link: t.Link, Confidence: p.Confidence, Hop: true, Inner: t.Inner(i, pairs)}
			if loops, err := a.loops(at.key.Tenant, r, &up.CallSite); err != nil {
				return err
			} else if loops {
				up = nil
			}
		}
		below := ""
		if up != nil {
			below = up.Session + "\x00" + up.Call + "\x00" + up.Run
		}
		if !child.recall(r, below) {
			continue
		}
		child.crowded(r.Run, up == nil && t.Crowded(r), now)
		r.Below = below
		if (linker{child}).moveBelow(r.Run, at.key.Session, up, fresh && child == g && r.Run == run) {
			child.dirty, child.read = true, now
			if err := a.pairBelow(child, r.Run, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// recall has the place of a hop at hand that was evicted, to put it below another cause than it is. It
// reports whether the run is known: its stream will be decoded again.
func (g *group) recall(r *link.Candidate, below string) bool {
	switch {
	case g.Runs[r.Run] != nil:
		return true
	case below == "" || below == r.Below || len(g.Runs) >= maxRuns:
		return false
	}
	g.Runs[r.Run] = &run{
		identity: identity{ID: r.Run, Stream: r.Stream}, Place: link.Place{Root: r.Run, Linked: true, Hop: true, Correlates: true},
		progress: progress{Stub: true, Ended: byCall}, emission: emission{Emitted: true},
	}
	g.Order = append(g.Order, r.Run)
	g.Stubs++
	return true
}

// showHop shows the parts of a hop's time, as far as they are known. Transport is known where both sides
// were recorded: the turn on the wire and the program's own record of it, or two recordings of a request.
func (r *run) showHop(s *msg.Span) {
	call, whole := &r.Remote.CallSite, r.until()-r.Start
	s.Hop.Server = whole
	switch {
	case r.Remote.Served():
		s.Hop.Transport = max(call.End-call.Start-whole, 0)
	default:
		s.Hop.Queue = max(r.Start-call.Start, 0)
		if call.End != 0 {
			s.Hop.Return = max(call.End-r.until(), 0)
		}
		if r.Remote.Inner != 0 {
			s.Hop.Server, s.Hop.Transport = r.Remote.Inner, max(whole-r.Remote.Inner, 0)
		}
	}
	s.LastSeen = max(s.LastSeen, call.End) // exporters distinguish versions by it
}
