package assemble

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxMet is how many calls, and how many runs, a meeting remembers.
const maxMet = 64

// slack is how far clocks and the writing of files may be apart: a run that a call
// caused begins while the call is open, give or take this much.
const slack = int64(5 * time.Second)

// longestCall is how long a call may be open before nobody is its run any more.
const longestCall = int64(6 * time.Hour)

// meeting is where calls and the runs that they cause in other sessions, of other
// formats, find each other: both give the same name (msg.Delegate.MeetID, MeetPrompt).
// It is a group of its own, without a format. Who belongs to whom follows from the
// set of those who came, not from their order.
type meeting struct {
	Link  msg.LinkMethod `json:"link"` // what the name is worth
	Calls []caller       `json:"calls,omitempty"`
	Runs  []comer        `json:"runs,omitempty"`
}

// caller is a call that runs another agent.
type caller struct {
	Format  string `json:"format"`
	Session string `json:"session"`
	Run     string `json:"run"`
	Call    string `json:"call"`
	Root    string `json:"root"` // of its trace
	To      string `json:"to,omitempty"`
	Start   int64  `json:"start"`
	End     int64  `json:"end,omitempty"`

	Inferred bool `json:"inferred,omitempty"` // the protocol does not tell when
}

// comer is a run that another session's call may have caused.
type comer struct {
	Format   string `json:"format"`
	Session  string `json:"session"`
	Run      string `json:"run"`
	Agent    string `json:"agent,omitempty"` // whose run it is, if the message that names it says so
	Start    int64  `json:"start"`
	Inferred bool   `json:"inferred,omitempty"` // the protocol does not tell when
}

// above is the call of another session that caused a run.
type above struct {
	caller
	Name       string         `json:"name"` // of the meeting
	Link       msg.LinkMethod `json:"link"`
	Confidence uint8          `json:"confidence,omitempty"`
	// Apart says that the run's stream cannot be decoded again: the run stays in its own
	// trace and points to its call by a link.
	Apart bool `json:"apart,omitempty"`
}

// foreign begins a root that is no run of its group: what follows is the trace in hex.
const foreign = "\x00"

func traceOf(k groupKey, root string) msg.TraceID {
	if id, ok := strings.CutPrefix(root, foreign); ok {
		var t msg.TraceID
		if _, err := hex.Decode(t[:], []byte(id)); err == nil {
			return t
		}
	}
	return msg.NewTraceID(k.tenant, k.format, k.session, root)
}

func (c *caller) key(tenant string) groupKey { return groupKey{tenant, c.Format, c.Session} }

// span is the call's.
func (c *caller) span(tenant string) msg.SpanID {
	return msg.NewSpanID(tenant, c.Format, c.Session, msg.SpanTool, c.Call)
}

// over puts the span of a run below the call, or points from one to the other.
func (u *above) over(tenant string, s *msg.Span) {
	s.Delegate = msg.Delegate{Link: u.Link, Confidence: u.Confidence}
	if !u.Apart {
		s.Parent = u.span(tenant)
		return
	}
	s.Links = append(s.Links, msg.SpanLink{
		TraceID: traceOf(u.key(tenant), u.Root), SpanID: u.span(tenant), Attrs: []msg.Attr{{Key: "earshot.link", Value: "delegation"}},
	})
}

// meet notes under which names m's call or run is to be found, and links those who
// are found. fresh says that nothing was given of m's run yet.
func (a *Assembler) meet(g *group, m *msg.Message, fresh bool, now time.Time) error {
	var c *call
	id, prompt := m.Delegation.MeetID, m.Delegation.MeetPrompt
	if !ofRun(m) {
		if c = g.callOf(m.Tool.CallID); c == nil || !c.meets() {
			return nil
		}
		id, prompt = c.MeetID, c.MeetPrompt
	}
	for _, n := range [...]struct {
		name string
		link msg.LinkMethod
	}{{id, msg.ByNativeID}, {prompt, msg.ByPrompt}} {
		if n.name == "" {
			continue
		}
		at, err := a.group(g.key.tenant, "", n.name)
		if err != nil {
			return err
		}
		if at.Meeting == nil {
			at.Meeting = &meeting{Link: n.link}
		}
		if c != nil && !at.Meeting.called(g, c) || c == nil && !at.Meeting.began(g, m) {
			continue
		}
		at.dirty, at.touched = true, now
		if err := a.introduce(at, g, m.Run, fresh, now); err != nil {
			return err
		}
	}
	return nil
}

// ofRun reports whether the names on m are those of its run: a run may begin with a
// call.
func ofRun(m *msg.Message) bool { return m.Signal == msg.RunStart || m.Tool.CallID == "" }

// callOf returns the call with that id, open or ended; nil when it is not remembered.
func (g *group) callOf(id string) *call {
	if c := g.Open[id]; c != nil {
		return c
	}
	if d := g.Done[id]; d.Told != nil {
		return &d.Told.Call
	}
	return nil
}

// meets reports whether the run that the call caused may be of another session.
func (c *call) meets() bool { return c.MeetID != "" || c.MeetPrompt != "" }

// called notes a call as it is now, unless its run waits for a parent of its own session:
// then its stream will be decoded again.
func (t *meeting) called(g *group, c *call) bool {
	r := g.Runs[c.Run]
	if r == nil || !r.Linked && (r.Parent != "" || r.Call != "") {
		return false
	}
	n := caller{Format: g.key.format, Session: g.key.session, Run: r.ID, Call: c.ID, Root: r.Root, To: c.To, Start: c.Start, Inferred: c.Inferred}
	if d := g.Done[c.ID]; d.Told != nil {
		n.End = d.Told.End
	}
	t.Calls = slices.DeleteFunc(t.Calls, func(o caller) bool { return o.Call == n.Call && o.Session == n.Session && o.Format == n.Format })
	t.Calls = append(t.Calls, n)
	slices.SortFunc(t.Calls, func(x, y caller) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Call, y.Call))
	})
	if len(t.Calls) > maxMet {
		t.Calls = slices.Delete(t.Calls, 0, 1)
	}
	return true
}

// began notes a run.
func (t *meeting) began(g *group, m *msg.Message) bool {
	r := g.Runs[m.Run]
	if r == nil || r.Parent != "" || r.Call != "" { // its own session says whose it is
		return false
	}
	if slices.ContainsFunc(t.Runs, func(c comer) bool {
		return c.Run == r.ID && c.Session == g.key.session && c.Format == g.key.format
	}) {
		return false
	}
	c := comer{Format: g.key.format, Session: g.key.session, Run: r.ID, Start: r.Start, Inferred: m.Precision == msg.Inferred}
	if m.Kind != msg.User { // its Agent is who spoke
		c.Agent = strings.Clone(m.Agent.ID)
	}
	t.Runs = append(t.Runs, c)
	slices.SortFunc(t.Runs, func(x, y comer) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Format, y.Format), cmp.Compare(x.Run, y.Run))
	})
	if len(t.Runs) > maxMet {
		t.Runs = slices.Delete(t.Runs, 0, 1)
	}
	return true
}

// pairs are, for each run, the index of its call, or -1, and how sure that is in
// percent, 0 for as sure as the name. A run belongs to the last call in whose time it
// began; where many may have the name, to the first that has no run of its agent yet: one
// call may ask many agents the same, and each of them once. A name that is
// of one thread alone also joins those whose times are unknown: by their order.
func (t *meeting) pairs() (calls []int, confidence []uint8) {
	type taking struct {
		call  int
		agent string
	}
	taken := make(map[taking]bool)
	for n, r := range t.Runs {
		found, fit := -1, 0
		for i, c := range t.Calls {
			end := c.End
			if end == 0 {
				end = c.Start + longestCall
			}
			if c.Format == r.Format && c.Session == r.Session || r.Start < c.Start-slack || r.Start > end+slack {
				continue
			}
			fit++
			if t.Link != msg.ByPrompt || found < 0 && !taken[taking{i, r.Agent}] {
				found = i
			}
		}
		for i, c := range t.Calls[:min(n+1, len(t.Calls))] {
			if fit == 0 && t.Link != msg.ByPrompt && (r.Inferred || c.Inferred) && (c.Format != r.Format || c.Session != r.Session) {
				found = i
			}
		}
		sure := uint8(0)
		if t.Link == msg.ByPrompt && found >= 0 {
			taken[taking{found, r.Agent}] = true
			sure = uint8(max(1, 80/fit))
		}
		calls, confidence = append(calls, found), append(confidence, sure)
	}
	return calls, confidence
}

// introduce tells the runs and the calls of a meeting of each other. fresh says that
// nothing was given yet of g's run of that name.
func (a *Assembler) introduce(at, g *group, run string, fresh bool, now time.Time) error {
	t := at.Meeting
	calls, confidence := t.pairs()
	for i, r := range t.Runs {
		child, err := a.group(at.key.tenant, r.Format, r.Session)
		if err != nil {
			return err
		}
		var up *above
		if calls[i] >= 0 {
			up = &above{caller: t.Calls[calls[i]], Name: at.key.session, Link: t.Link, Confidence: confidence[i]}
			if loops, err := a.loops(at.key.tenant, &r, &up.caller); err != nil {
				return err
			} else if loops {
				up = nil
			}
		}
		if child.under(a.out, r.Run, at.key.session, up, fresh && child == g && r.Run == run) {
			child.dirty, child.touched = true, now
		}
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		parent, err := a.group(at.key.tenant, c.Format, c.Session)
		if err != nil {
			return err
		}
		link := callLink{Call: c.Call, Link: t.Link}
		if at := slices.Index(calls, i); at >= 0 {
			link.Child, link.Confidence = t.Runs[at].Run, confidence[at]
		}
		if parent.causes(a.out, link) {
			parent.dirty, parent.touched = true, now
		}
	}
	return nil
}

// loops reports whether the call stands below the run.
func (a *Assembler) loops(tenant string, r *comer, c *caller) (bool, error) {
	at := *c
	for range 16 {
		g, err := a.group(tenant, at.Format, at.Session)
		if err != nil {
			return false, err
		}
		top := g.Runs[at.Run]
		for range maxRuns {
			if top == nil || top.Parent == "" {
				break
			}
			top = g.Runs[top.Parent]
		}
		if top == nil {
			return false, nil
		}
		if at.Format == r.Format && at.Session == r.Session && top.ID == r.Run {
			return true, nil
		}
		if top.Above == nil {
			return false, nil
		}
		at = top.Above.caller
	}
	return true, nil
}

// under puts a top-level run below a call of another session, or back where it was
// if up is nil, and with it everything below it. What was given under the old trace
// is decoded again, unless the run is fresh.
func (g *group) under(out Emitter, run, meeting string, up *above, fresh bool) (changed bool) {
	r := g.Runs[run]
	switch {
	case r == nil || r.Parent != "" || r.Call != "":
		return false
	case up == nil && (r.Above == nil || r.Above.Name != meeting):
		return false
	case up != nil && r.Above != nil && r.Above.Name != meeting && r.Above.Link >= up.Link: // which is heard of first does not show
		return false
	case up != nil && r.Above != nil:
		if up.Apart = r.Above.Apart; *up == *r.Above {
			return false
		}
	}
	root := r.ID
	if up != nil {
		root = foreign + traceOf(up.key(g.key.tenant), up.Root).String()
	}
	r.Above, r.changed, r.Given = up, true, false
	r.Linked = r.Linked || up != nil // also one that was known to be a child, and no more
	switch {
	case root == r.Root || up != nil && up.Apart:
	case fresh:
		g.move(out, r, root)
		r.Was, r.Left, r.Moved = "", nil, 0
	case !out.Replayable(r.Stream):
		if up != nil {
			up.Apart = true
		}
	default:
		g.move(out, r, root)
		out.Relink(r.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, r.ID})
	}
	return true
}

// move moves a top-level run, and what is below it, into another trace.
func (g *group) move(out Emitter, r *run, root string) {
	old := r.Root
	r.To = ""
	if r.Above != nil {
		r.To = r.Above.To
	}
	for _, c := range g.Runs {
		if c.Root == old {
			c.leaves(root)
			c.Moved++
			if c != r && c.Start != 0 {
				out.Relink(c.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, c.ID})
			}
		}
		if c.Prev == r.ID {
			c.PrevRoot, c.changed, c.Given = root, true, false
		}
	}
	for id, d := range g.Done {
		if d.Root == old {
			d.Root = root
			g.Done[id] = d
		}
	}
}

// causes notes which run of another session a call caused; none if l names none.
func (g *group) causes(out Emitter, l callLink) (changed bool) {
	known := func(child string, by msg.LinkMethod, confidence uint8, named bool) bool {
		if l.Child == "" { // only what this meeting said is taken back
			return child == "" || by != l.Link || named
		}
		return child != "" && by > l.Link || child == l.Child && by == l.Link && confidence == l.Confidence
	}
	by := l.Link
	if l.Child == "" {
		by = msg.NoLink
	}
	if c := g.Open[l.Call]; c != nil {
		if known(c.Child, c.Link, c.Confidence, c.Named) {
			return false
		}
		c.Child, c.Link, c.Confidence, c.Delegation = l.Child, by, l.Confidence, c.Delegation || l.Child != ""
		c.changed, c.Given = true, false
		return true
	}
	d, ok := g.Done[l.Call]
	if !ok || known(d.Child, d.Link, d.Confidence, d.Told != nil && d.Told.Call.Named) {
		return false
	}
	d.Child, d.Link, d.Confidence = l.Child, by, l.Confidence
	if d.Told != nil && l.Child != "" { // nobody could tell before what the tool is
		d.Told.Call.Delegation = true
	}
	g.retell(out, &d)
	g.Done[l.Call] = d
	return true
}
