package assemble

import (
	"slices"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// endByCall ends a run whose delegation has its result.
func (g *group) endByCall(r *run) {
	if _, ok := g.Done[r.Call]; ok && r.Call != "" {
		r.end(byCall)
	}
}

// endRun ends a run by a message of its own stream: its open response ends with it. Another
// reason, silence or the result of its delegation, leaves the response open, because the
// order in which files are read decides whether the last parts of it precede or follow.
func (g *group) endRun(r *run, by endedBy) {
	if c := r.Chat; c != nil {
		g.closeChat(r)
		r.Input = max(r.Input, c.Last)
	}
	r.end(by)
}

// giveUp stops the wait for results of calls of a turn, when the model has answered the prompt of the next one: it would have had them
// before. The agent has ended in between, or was stopped. Work in the background goes on.
func giveUp(g *group, r *run) {
	if r == nil || r.Ended != byTurn {
		return
	}
	for _, c := range g.Open {
		if c.Run == r.ID && !c.Async && c.pending() {
			g.lose(c)
		}
	}
}

// passEnd passes the end of a run on to the call that caused it.
func (g *group) passEnd(r *run) {
	if r.Chat != nil {
		r.stops(r.Chat)
	}
	if r.Call != "" && r.Linked {
		g.worked(r.Call, r.until())
	}
	switch u := r.Remote; {
	case u == nil:
	case !u.Hop:
		g.ends = append(g.ends, remoteEnd{call: u.CallSite, end: r.until()})
	case u.Link != msg.ByPrompt: // its span has its times; another recording may have it too
		g.ends = append(g.ends, remoteEnd{hop: u.Name, run: r.ID, end: r.until()})
	}
}

// endRuns passes the ends of the runs on that ended since they were emitted, and drops the
// open calls of runs that were evicted.
func (g *group) endRuns() {
	for _, r := range g.Runs {
		if r.Start != 0 && r.Ended != running && !r.Emitted {
			g.passEnd(r)
		}
	}
	for _, c := range g.Open {
		if g.Runs[c.Run] == nil {
			delete(g.Open, c.ID)
		}
	}
}

// remoteEnd is the end of a run that a call of another session caused.
type remoteEnd struct {
	call link.CallSite
	end  int64
	hop  string // the correlation, of a hop
	run  string
}

// add adds a run, and evicts the oldest that ended.
func (g *group) add(r *run) {
	g.Runs[r.ID] = r
	g.Order = append(g.Order, r.ID)
	if g.flushing { // a replay evicts with the run's first message
		return
	}
	ended := max(len(g.Order)-g.Stubs-maxEndedRuns, 0) + g.Stubs
	var waits map[string]bool
	kept := 0
	for i, id := range g.Order[:ended] {
		old := g.Runs[id]
		if waits == nil && old.Ended > bySilence {
			waits = g.waiting(false)
		}
		settled := old.Stub && g.Stubs <= maxStubs
		if !settled && (old.Ended > bySilence && !waits[id] || len(g.Order)-i > maxRuns) && !g.evict(old) {
			continue
		}
		g.Order[kept] = id
		kept++
	}
	g.Order = slices.Delete(g.Order, kept, ended)
}

// evict drops a run, whose span is emitted if it was not. It reports whether a stub stays.
func (g *group) evict(r *run) bool {
	g.gone(r)
	if !r.Emitted && r.Start != 0 {
		g.passEnd(r)
		last := *r
		g.out.pending = append(g.out.pending, pending{kind: runEvicted, group: g, run: &last})
		r.Emitted, r.Shown = true, false
		if g.unique {
			g.over = append(g.over, r)
		}
	}
	if !g.stubbed(r, g.works(r)) {
		delete(g.Runs, r.ID)
		return false
	}
	return true
}
