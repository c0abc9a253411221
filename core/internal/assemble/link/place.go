package link

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

const (
	// maxDepth is the number of runs that may be above one another in a session.
	maxDepth = 4096
	// maxOlderRoots is the number of traces that a run left and whose spans need tombstones.
	maxOlderRoots = 8
)

// Place is where a run is in its trace. Other runs and other streams change it, so it
// survives a replay of the run's own stream.
type Place struct {
	Parent string `json:"parent,omitempty"` // run
	Call   string `json:"call,omitempty"`   // of the parent that caused it

	Link       msg.LinkMethod `json:"link,omitempty"`
	Confidence uint8          `json:"confidence,omitempty"`

	Root      string `json:"root"`          // the top-level run of its trace
	PriorRoot string `json:"was,omitempty"` // the root under which its spans were emitted before a link
	// OlderRoots are the roots before PriorRoot: some of their spans may need a tombstone yet.
	OlderRoots []string `json:"left,omitempty"`

	Previous     string `json:"prev,omitempty"` // the turn before
	PreviousRoot string `json:"prev_root,omitempty"`

	Linked bool    `json:"linked,omitempty"` // its trace is final, as far as its session knows
	Remote *Remote `json:"above,omitempty"`  // the call of another session that caused it
	// Moves counts how often Remote, or a name that another session has for the agent,
	// changed emitted spans.
	Moves int `json:"moved,omitempty"`
	// Correlates is set if a call of another session may have caused the run, or one of its
	// calls a run there.
	Correlates bool `json:"meets,omitempty"`
	// Crowded is set if too many hops were alike at its time, so that its call is not known.
	Crowded bool `json:"crowded,omitempty"`
	// Hop is set if the run has been looked for as a hop, or as a cause of hops.
	Hop bool `json:"hop,omitempty"`
	// Delegate is the name by which its call knows the agent, which may have none of its own.
	Delegate string `json:"to,omitempty"`
}

// Edge is the run that a call caused, and by which evidence.
type Edge struct {
	Child      string         `json:"child,omitempty"`
	Link       msg.LinkMethod `json:"link,omitempty"`
	Confidence uint8          `json:"confidence,omitempty"`
}

// Weaker reports whether next replaces e: an edge without a child, or the same child by
// weaker evidence. The order in which the two become known does not matter.
func (e Edge) Weaker(next Edge) bool {
	return e.Child == "" || e.Child == next.Child && next.Link > e.Link
}

// Keeps reports whether the edge stays as it is when a correlation pairs its call with
// next; without a child next removes the pair of the same correlation. named reports that the
// protocol names the child.
func (e Edge) Keeps(next Edge, named bool) bool {
	if next.Child == "" {
		return e.Child == "" || e.Link != next.Link || named
	}
	return e.Child != "" && e.Link > next.Link || e == next
}

// Fact is an edge of a call.
type Fact struct {
	Call string `json:"call"`
	Edge
}

// Call has the facts of a call, open or completed, that linking reads.
type Call struct {
	ID, Run  string // Run is the caller
	Delegate string // the agent's name, as the caller wrote it
	Edge
}

// MoveTo moves the run to another root.
func (p *Place) MoveTo(root string) {
	if p.PriorRoot != "" && !slices.Contains(p.OlderRoots, p.PriorRoot) && len(p.OlderRoots) < maxOlderRoots {
		p.OlderRoots = append(p.OlderRoots, p.PriorRoot)
	}
	p.PriorRoot, p.Root = p.Root, root
}

// LeftRoots are the roots of the traces that the run has left.
func (p *Place) LeftRoots() (roots []string) {
	for _, root := range append(p.OlderRoots[:len(p.OlderRoots):len(p.OlderRoots)], p.PriorRoot) {
		if root != p.Root {
			roots = append(roots, root)
		}
	}
	return roots
}

// Join adds the parent that a message names, where none is known yet.
func (p *Place) Join(parent, call string, by msg.LinkMethod, confidence uint8) {
	if call != "" && p.Call == "" {
		p.Call, p.Link, p.Confidence = strings.Clone(call), by, confidence
	}
	if parent != "" && parent != msg.UnknownRun && p.Parent == "" {
		p.Parent = strings.Clone(parent)
	}
}

// Accepts reports whether the place changes when the correlation puts its run below the
// call of another session, or below none if up is nil. A run whose own session names its
// parent never moves, and of two correlations the stronger one wins.
func (p *Place) Accepts(correlation string, up *Remote) bool {
	old := p.Remote
	switch {
	case p.Parent != "" || p.Call != "":
		return false
	case up == nil:
		return old != nil && old.Name == correlation
	case old == nil:
		return true
	case old.Name != correlation && old.Link >= up.Link:
		return false
	}
	up.Apart = old.Apart
	return *up != *old
}

// Tree has the runs and calls of a session, for linking to read.
type Tree interface {
	// Place returns the place of a run; nil when the run is not known.
	Place(run string) *Place
	// Places calls f for each run, until f returns false.
	Places(f func(run string, p *Place) bool)
	// Call returns a call that is open or that completed lately.
	Call(id string) (Call, bool)
	// CauseOf returns the call that is known to have caused the run.
	CauseOf(run string) (Call, bool)
}

// ParentOf returns the run that caused the one at p, and its place; nil when it is not here.
func ParentOf(t Tree, run string, p *Place) (string, *Place) {
	if p.Call != "" {
		if c, ok := t.Call(p.Call); ok {
			return c.Run, t.Place(c.Run)
		}
	}
	if p.Parent != "" && p.Parent != run {
		return p.Parent, t.Place(p.Parent)
	}
	return "", nil
}

// Resolve finds the place of a run whose first message names parent and call, each empty
// where it names none. It returns false for a run that nothing is known to have caused: a
// top-level run.
func Resolve(t Tree, run string, p *Place, parent, call string, by msg.LinkMethod, confidence uint8) bool {
	p.Call, p.Link, p.Confidence = strings.Clone(call), by, confidence
	if p.Call == "" {
		c, ok := t.CauseOf(run)
		if !ok && parent == "" {
			p.Link, p.Confidence = msg.NoLink, 0
			return false
		}
		if ok {
			p.Call, p.Link, p.Confidence = c.ID, c.Link, c.Confidence
		}
	}
	if parent != msg.UnknownRun {
		p.Parent = strings.Clone(parent)
		if p.Call == "" {
			p.Link = max(p.Link, msg.ByParent)
		}
	}
	c, _ := t.Call(p.Call)
	if c.Link > p.Link {
		p.Link, p.Confidence = c.Link, c.Confidence
	}
	if id, up := ParentOf(t, run, p); up != nil {
		p.Parent, p.Root, p.Linked, p.Delegate = id, up.Root, up.Linked, c.Delegate
	}
	return true
}

// Attach moves an orphan, and the runs below it, into the trace of its parent, if the parent
// is here and is itself in its place. It returns the runs that moved.
func Attach(t Tree, run string) (moved []string) {
	p := t.Place(run)
	parent, up := ParentOf(t, run, p)
	if up == nil || !up.Linked || Below(t, parent, run) {
		return nil
	}
	c, _ := t.Call(p.Call)
	p.Parent, p.Delegate = parent, c.Delegate
	old := p.Root
	t.Places(func(id string, q *Place) bool {
		if q.Root == old && !q.Linked {
			q.MoveTo(up.Root)
			q.Linked = true
			moved = append(moved, id)
		}
		return true
	})
	return moved
}

// Below reports whether run is top or below it. Parents never form a cycle.
func Below(t Tree, run, top string) bool {
	for range maxDepth {
		if run == top {
			return true
		}
		p := t.Place(run)
		if p == nil || t.Place(p.Parent) == nil {
			return false
		}
		run = p.Parent
	}
	return true
}

// Top returns the top-level run above run, and its place; nil when it is not here.
func Top(t Tree, run string) (string, *Place) {
	p := t.Place(run)
	for range maxDepth {
		if p == nil || p.Parent == "" {
			break
		}
		run = p.Parent
		p = t.Place(run)
	}
	return run, p
}
