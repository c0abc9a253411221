package assemble

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// maxChain is the number of runs of other sessions that may be above one another.
const maxChain = 1 << 14

// ofRun reports whether the correlation of a message belongs to its run: a run may begin
// with a call.
func ofRun(m *msg.Message) bool { return m.Signal == msg.RunStart || m.Tool.CallID == "" }

// correlateRun adds the message's run to its correlations and links the runs and calls that
// they pair. fresh is set if nothing was emitted of the run yet.
func (a *Assembler) correlateRun(g *group, m *msg.Message, fresh bool, now time.Time) error {
	d := &m.Delegation
	return a.correlate(g, m.Run, d.CorrelationID, d.CorrelationPrompt, fresh, now, func(t *link.Correlation) bool {
		return addRun(t, g, m)
	})
}

// correlateCall adds a call to its correlations, and to that of the message, and links the runs and calls that they pair: a call that makes
// several agents run has a message for each.
func (a *Assembler) correlateCall(g *group, m *msg.Message, c *call, now time.Time) error {
	if r := g.Runs[c.Run]; r != nil {
		r.Correlates = true
	}
	return a.correlate(g, m.Run, cmp.Or(m.Delegation.CorrelationID, c.CorrelationID), c.CorrelationPrompt, false, now, func(t *link.Correlation) bool {
		return addCall(t, g, c)
	})
}

func (a *Assembler) correlate(g *group, run, id, prompt string, fresh bool, now time.Time, add func(*link.Correlation) bool) error {
	for _, n := range [...]struct {
		name string
		link msg.LinkMethod
	}{{id, msg.ByNativeID}, {prompt, msg.ByPrompt}} {
		if n.name == "" {
			continue
		}
		at, err := a.group(link.Key{Tenant: g.key.Tenant, Session: n.name})
		if err != nil {
			return err
		}
		if at.Correlation == nil {
			at.Correlation = &link.Correlation{Link: n.link}
		}
		if !add(at.Correlation) {
			continue
		}
		at.dirty, at.read = true, now
		if len(at.Correlation.Calls) == 0 {
			continue
		}
		if err := a.pair(at, g, run, fresh, now); err != nil {
			return err
		}
	}
	return nil
}

// addCall adds a call as it is now, unless its run is an orphan: its stream will be decoded
// again.
func addCall(t *link.Correlation, g *group, c *call) bool {
	r := g.Runs[c.Run]
	if r == nil || !r.Linked && (r.Parent != "" || r.Call != "") {
		return false
	}
	site := link.CallSite{
		Format: g.key.Format, Family: g.Family, Session: g.key.Session, Run: r.ID, Call: c.ID, Root: r.Root, Delegate: c.To, Start: c.Start, Inferred: c.Inferred, Async: c.Async,
	}
	if d := g.Done[c.ID]; d.Call != nil {
		site.End = d.Call.End
	}
	t.AddCall(site)
	return true
}

// addRun adds the run of a message, unless its own session has its parent.
func addRun(t *link.Correlation, g *group, m *msg.Message) bool {
	r := g.Runs[m.Run]
	if r == nil || r.Parent != "" || r.Call != "" {
		return false
	}
	if t.HasRun(g.key.Format, g.key.Session, r.ID) {
		return r.Remote == nil // one that was evicted and is decoded again
	}
	c := link.Candidate{Format: g.key.Format, Session: g.key.Session, Run: r.ID, Start: r.Start, Inferred: m.Precision == msg.Inferred}
	switch {
	case m.Kind != msg.User: // the Agent of a user message is the one that wrote it
		c.Agent = strings.Clone(m.Agent.ID)
	case m.Agent.Kind == msg.KindAgent:
		c.From = strings.Clone(m.Agent.Name)
	}
	t.AddRun(c)
	return true
}

// pair links the runs and the calls of a correlation. fresh is set if nothing was emitted
// yet of g's run of that name.
func (a *Assembler) pair(at, g *group, run string, fresh bool, now time.Time) error {
	t := at.Correlation
	callers, children, err := a.members(at)
	if err != nil {
		return err
	}
	pairs := t.Pairs()
	for i := range t.Runs {
		r, child := &t.Runs[i], children[i]
		var up *link.Remote
		if p := pairs[i]; p.Call >= 0 {
			up = &link.Remote{CallSite: t.Calls[p.Call], Name: at.key.Session, Link: t.Link, Confidence: p.Confidence}
			if loops, err := a.loops(at.key.Tenant, r, &up.CallSite); err != nil {
				return err
			} else if loops {
				up, pairs[i].Call = nil, -1
			}
		}
		if !(linker{child}).moveBelow(r.Run, at.key.Session, up, fresh && child == g && r.Run == run) {
			continue
		}
		child.dirty, child.read = true, now
		if err := a.pairBelow(child, r.Run, now); err != nil {
			return err
		}
	}
	for i := range t.Calls {
		c, parent := &t.Calls[i], callers[i]
		e := link.Edge{Link: t.Link}
		at := slices.IndexFunc(pairs, func(p link.Pair) bool { return p.Call == i })
		if at >= 0 {
			e.Child, e.Confidence = t.Runs[at].Run, pairs[at].Confidence
		}
		changed := linker{parent}.pairCall(c.Call, e)
		if at >= 0 {
			if r := children[at].Runs[e.Child]; r != nil && r.Ended > running {
				changed = parent.worked(c.Call, r.until()) || changed
			}
		}
		if changed {
			parent.dirty, parent.read = true, now
		}
	}
	if !fresh {
		run = ""
	}
	setAliases(t, pairs, callers, children, run)
	return nil
}

// setAliases names the agents of the callers and of the runs by their names for each other,
// where the pair is certain enough. Of the run fresh nothing was emitted yet.
func setAliases(t *link.Correlation, pairs []link.Pair, callers, children []*group, fresh string) {
	byCall := make([]string, len(t.Calls))
	for i := range t.Runs {
		r, name := &t.Runs[i], ""
		if p := pairs[i]; p.Sure() && children[i] != callers[p.Call] { // the name is that of the agent of another session
			name, byCall[p.Call] = t.Calls[p.Call].Delegate, r.From
		}
		if name != r.Alias {
			children[i].setAlias(fresh, r.Alias, name)
			children[i].dirty, r.Alias = true, name
		}
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Alias != byCall[i] {
			callers[i].setAlias("", c.Alias, byCall[i])
			callers[i].dirty, c.Alias = true, byCall[i]
		}
	}
}

// members are the groups of a correlation's calls and of its runs. It updates the traces of
// the calls: a run above may have moved since.
func (a *Assembler) members(at *group) (callers, children []*group, err error) {
	t := at.Correlation
	for i := range t.Calls {
		c := &t.Calls[i]
		g, err := a.group(c.Key(at.key.Tenant))
		if err != nil {
			return nil, nil, err
		}
		if r := g.Runs[c.Run]; r != nil && r.Linked {
			c.Root = r.Root
		}
		callers = append(callers, g)
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		g, err := a.group(link.Key{Tenant: at.key.Tenant, Format: r.Format, Session: r.Session})
		if err != nil {
			return nil, nil, err
		}
		children = append(children, g)
	}
	return callers, children, nil
}

// pairBelow moves the runs below the calls of a run that has moved, in all sessions, so
// that a long chain is decoded again once and not once for each of its links.
func (a *Assembler) pairBelow(g *group, run string, now time.Time) error {
	for _, c := range (linker{g}).correlated(g.Runs[run]) {
		for _, name := range [...]string{c.CorrelationID, c.CorrelationPrompt} {
			if name == "" {
				continue
			}
			at, err := a.group(link.Key{Tenant: g.key.Tenant, Session: name})
			if err != nil {
				return err
			}
			if at.Correlation == nil {
				continue
			}
			at.dirty, at.read = true, now
			if err := a.pair(at, g, "", false, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// loops reports whether the call is below the run.
func (a *Assembler) loops(tenant string, r *link.Candidate, c *link.CallSite) (bool, error) {
	at := *c
	for range maxChain {
		g, err := a.group(at.Key(tenant))
		if err != nil {
			return false, err
		}
		top, p := link.Top(linker{g}, at.Run)
		if p == nil {
			return false, nil
		}
		if at.Is(r, top) {
			return true, nil
		}
		if p.Remote == nil {
			return false, nil
		}
		at = p.Remote.CallSite
	}
	return true, nil
}

// passEnds passes the ends of a group's runs on to the calls of other sessions that caused
// them, and those of hops to the other recording of them. It returns the groups that have them.
func (a *Assembler) passEnds(g *group) (passed []*group, err error) {
	ends := g.ends
	g.ends = nil
	for _, e := range ends {
		if e.hop != "" {
			others, err := (hops{a}).ended(g, e)
			if err != nil {
				return nil, err
			}
			passed = append(passed, others...)
			continue
		}
		parent, err := a.group(e.call.Key(g.key.Tenant))
		if err != nil {
			return nil, err
		}
		if parent.worked(e.call.Call, e.end) {
			parent.dirty = true
		}
		passed = append(passed, parent)
	}
	return passed, nil
}
