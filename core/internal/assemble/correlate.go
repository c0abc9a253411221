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

// maxChain is how many runs of other sessions may stand above one another.
const maxChain = 1 << 14

// longestWait is how long an agent may be busy before it takes up what it was sent.
const longestWait = int64(10 * time.Minute)

// sureOfPrompt is how sure it is, in percent, that a run belongs to the only call that
// asked the same at the time.
const sureOfPrompt = 80

// meeting is where calls and the runs that they cause in other sessions, as a rule of
// other formats, find each other: both give the same name (msg.Delegate.MeetID, MeetPrompt).
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

	Inferred bool   `json:"inferred,omitempty"` // the protocol does not tell when
	Async    bool   `json:"async,omitempty"`
	Named    string `json:"named,omitempty"` // what its run calls the caller, if that counts for the caller's session
}

// comer is a run that another session's call may have caused.
type comer struct {
	Format   string `json:"format"`
	Session  string `json:"session"`
	Run      string `json:"run"`
	Agent    string `json:"agent,omitempty"` // whose run it is, if the message that names it says so
	Start    int64  `json:"start"`
	Inferred bool   `json:"inferred,omitempty"` // the protocol does not tell when
	From     string `json:"from,omitempty"`     // the agent that it was asked by
	Named    string `json:"named,omitempty"`    // what its call calls it, if that counts for its session
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
	id, prompt := m.Delegation.CorrelationID, m.Delegation.CorrelationPrompt
	if !ofRun(m) {
		if c = g.callOf(m.Tool.CallID); c == nil || !c.meets() {
			return nil
		}
		id, prompt = c.MeetID, c.MeetPrompt
		if r := g.Runs[c.Run]; r != nil {
			r.Meets = true
		}
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
	n := caller{
		Format: g.key.format, Session: g.key.session, Run: r.ID, Call: c.ID, Root: r.Root, To: c.To, Start: c.Start, Inferred: c.Inferred, Async: c.Async,
	}
	if d := g.Done[c.ID]; d.Told != nil {
		n.End = d.Told.End
	}
	t.Calls = slices.DeleteFunc(t.Calls, func(o caller) bool {
		same := o.Call == n.Call && o.Session == n.Session && o.Format == n.Format
		if same {
			n.Named = o.Named
		}
		return same
	})
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
		return r.Above == nil // one that was forgotten and is decoded again
	}
	c := comer{Format: g.key.format, Session: g.key.session, Run: r.ID, Start: r.Start, Inferred: m.Precision == msg.Inferred}
	switch {
	case m.Kind != msg.User: // whose Agent is who spoke
		c.Agent = strings.Clone(m.Agent.ID)
	case m.Agent.Kind == msg.KindAgent:
		c.From = strings.Clone(m.Agent.Name)
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
// of one thread alone also joins those whose times are unknown: by their order. A run
// that many may have caused and that began in no call's time is of the first
// asynchronous one before it that is left: its agent was busy.
func (t *meeting) pairs() (calls []int, confidence []uint8) {
	taken := make(map[taking]bool)
	for n, r := range t.Runs {
		found, fit := -1, 0
		for i, c := range t.Calls {
			end := max(c.End, c.Start)
			if c.End == 0 && !c.Async {
				end = c.Start + longestCall
			}
			if c.sameSession(&r) || r.Start < c.Start-slack || r.Start > end+slack {
				continue
			}
			fit++
			if t.Link != msg.ByPrompt || found < 0 && !taken[taking{i, r.Agent}] {
				found = i
			}
		}
		for i, c := range t.Calls[:min(n+1, len(t.Calls))] {
			if fit == 0 && t.Link != msg.ByPrompt && (r.Inferred || c.Inferred) && !c.sameSession(&r) {
				found = i
			}
		}
		sure := uint8(0)
		if t.Link == msg.ByPrompt && found >= 0 {
			taken[taking{found, r.Agent}] = true
			sure = uint8(max(1, sureOfPrompt/fit))
		}
		calls, confidence = append(calls, found), append(confidence, sure)
	}
	if t.Link == msg.ByPrompt {
		t.late(calls, confidence, taken)
	}
	return calls, confidence
}

// taking is an agent that has taken up a call.
type taking struct {
	call  int
	agent string
}

// late pairs runs that began in no call's time.
func (t *meeting) late(calls []int, confidence []uint8, taken map[taking]bool) {
	for n := range t.Runs {
		r := &t.Runs[n]
		for i := range t.Calls {
			c := &t.Calls[i]
			if calls[n] >= 0 {
				break
			}
			if !taken[taking{i, r.Agent}] && c.Async && !c.sameSession(r) && c.Start <= r.Start && r.Start <= c.Start+longestWait {
				taken[taking{i, r.Agent}], calls[n], confidence[n] = true, i, sureOfPrompt/2
			}
		}
	}
}

func (c *caller) sameSession(r *comer) bool { return c.Format == r.Format && c.Session == r.Session }

// introduce tells the runs and the calls of a meeting of each other. fresh says that
// nothing was given yet of g's run of that name.
func (a *Assembler) introduce(at, g *group, run string, fresh bool, now time.Time) error {
	t := at.Meeting
	callers, children, err := a.members(at)
	if err != nil {
		return err
	}
	calls, confidence := t.pairs()
	for i := range t.Runs {
		r, child := &t.Runs[i], children[i]
		var up *above
		if calls[i] >= 0 {
			up = &above{caller: t.Calls[calls[i]], Name: at.key.session, Link: t.Link, Confidence: confidence[i]}
			if loops, err := a.loops(at.key.tenant, r, &up.caller); err != nil {
				return err
			} else if loops {
				up, calls[i] = nil, -1
			}
		}
		if !child.under(a.out, r.Run, at.key.session, up, fresh && child == g && r.Run == run) {
			continue
		}
		child.dirty, child.touched = true, now
		if err := a.spread(child, r.Run, now); err != nil {
			return err
		}
	}
	for i := range t.Calls {
		c, parent := &t.Calls[i], callers[i]
		link := callLink{Call: c.Call, Link: t.Link}
		at := slices.Index(calls, i)
		if at >= 0 {
			link.Child, link.Confidence = t.Runs[at].Run, confidence[at]
		}
		changed := parent.causes(a.out, link)
		if at >= 0 {
			if r := children[at].Runs[link.Child]; r != nil && r.Ended > running {
				changed = parent.worked(a.out, c.Call, r.until()) || changed
			}
		}
		if changed {
			parent.dirty, parent.touched = true, now
		}
	}
	first := ""
	if fresh {
		first = run
	}
	a.nameEachOther(t, callers, children, calls, confidence, first)
	return nil
}

// members are the groups of a meeting's calls and of its runs. The calls' traces are
// brought up to date: a run above may have moved since.
func (a *Assembler) members(at *group) (callers, children []*group, err error) {
	t := at.Meeting
	for i := range t.Calls {
		c := &t.Calls[i]
		g, err := a.group(at.key.tenant, c.Format, c.Session)
		if err != nil {
			return nil, nil, err
		}
		if r := g.Runs[c.Run]; r != nil && r.Linked {
			c.Root = r.Root
		}
		callers = append(callers, g)
	}
	for i := range t.Runs {
		g, err := a.group(at.key.tenant, t.Runs[i].Format, t.Runs[i].Session)
		if err != nil {
			return nil, nil, err
		}
		children = append(children, g)
	}
	return callers, children, nil
}

// spread moves what stands below the calls of a run that has moved, in whatever
// sessions, so that a long chain is decoded again once and not once for each of its
// links.
func (a *Assembler) spread(g *group, run string, now time.Time) error {
	r := g.Runs[run]
	for _, c := range g.meetingCalls(r) {
		for _, name := range [...]string{c.MeetID, c.MeetPrompt} {
			if name == "" {
				continue
			}
			at, err := a.group(g.key.tenant, "", name)
			if err != nil {
				return err
			}
			if at.Meeting == nil {
				continue
			}
			at.dirty, at.touched = true, now
			if err := a.introduce(at, g, "", false, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// meetingCalls are the calls in the trace of a run that may have caused runs of other
// sessions, by their start.
func (g *group) meetingCalls(r *run) (list []*call) {
	in := func(c *call) bool {
		of := g.Runs[c.Run]
		return c.meets() && of != nil && of.Root == r.Root
	}
	for _, c := range g.Open {
		if in(c) {
			list = append(list, c)
		}
	}
	for _, d := range g.Done {
		if d.Told != nil && in(&d.Told.Call) {
			list = append(list, &d.Told.Call)
		}
	}
	slices.SortFunc(list, func(x, y *call) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.ID, y.ID)) })
	return list
}

// loops reports whether the call stands below the run.
func (a *Assembler) loops(tenant string, r *comer, c *caller) (bool, error) {
	at := *c
	for range maxChain {
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
		if at.sameSession(r) && top.ID == r.Run {
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
		out.ReplayChildren(r.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, r.ID})
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
			if c != r && (c.Start != 0 || c.Forgotten) {
				out.ReplayChildren(c.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, c.ID})
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
		c.pair(l.Child)
		c.Link, c.Confidence, c.Delegation = by, l.Confidence, c.Delegation || l.Child != ""
		c.changed, c.Given = true, false
		return true
	}
	d, ok := g.Done[l.Call]
	if !ok || known(d.Child, d.Link, d.Confidence, d.Told != nil && d.Told.Call.Named) {
		return false
	}
	if d.Told != nil {
		d.Told.Call.pair(l.Child)
		if l.Child != "" { // nobody could tell before what the tool is
			d.Told.Call.Delegation = true
		}
	}
	d.Child, d.Link, d.Confidence = l.Child, by, l.Confidence
	g.retell(out, &d)
	g.Done[l.Call] = d
	return true
}

// pair notes which run the call has caused. What was given of another one no longer
// counts, so that the span gets a higher version.
func (c *call) pair(child string) {
	if c.Child != "" && c.Child != child {
		c.Worked = 0
		c.Moved++
	}
	c.Child = child
}

// ending is the end of a run that a call of another session caused.
type ending struct {
	caller caller
	end    int64
}

// endedAbove notes that a run has ended, for the call of another session that caused it.
func (g *group) endedAbove(r *run, end int64) {
	if r.Above != nil {
		g.endings = append(g.endings, ending{r.Above.caller, end})
	}
}

// tellCallers tells the calls of other sessions how long their work went on.
func (a *Assembler) tellCallers(g *group) error {
	for len(g.endings) > 0 {
		e := g.endings[0]
		g.endings = g.endings[1:]
		parent, err := a.group(g.key.tenant, e.caller.Format, e.caller.Session)
		if err != nil {
			return err
		}
		if parent.worked(a.out, e.caller.Call, e.end) {
			parent.dirty = true
		}
	}
	g.endings = nil
	return nil
}
