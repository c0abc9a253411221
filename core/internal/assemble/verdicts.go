package assemble

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/verdict"
)

// judgeEvery is how often a session is judged at most. One that just goes on is judged when it
// has been silent for judgeSilent, or after judgeLater: the floors of verdict.Rules are longer,
// or are met by both within 30 s. The learned durations are stored every saveEvery: after a crash the
// durations of that time are missing, and nothing else.
const (
	judgeEvery  = 2 * time.Second
	judgeSilent = 20 * time.Second
	judgeLater  = 45 * time.Second
	saveEvery   = 30 * time.Second
)

// historyKey is the key of the history, which is no session: those have a tenant.
var historyKey = link.Key{Session: "verdict history"}.String()

// learning is the assembler's judge with its samples.
type learning struct {
	verdict.Judge
	loaded bool
	looked int64 // when Earshot looked at its clock last; Unix ns
	saved  time.Time
	due    bool // to be stored with the next commit

	spent  time.Duration // by judging, and how often: for the benchmark
	judged int
}

func (l *learning) load(s Store) error {
	if l.loaded {
		return nil
	}
	state, err := s.Group(historyKey)
	if err == nil && len(state) > 0 {
		err = l.History.Unmarshal(state)
	}
	if err != nil {
		return fmt.Errorf("assemble: verdict history: %w", err)
	}
	l.loaded = true
	return nil
}

// Looks records that Earshot looks at its clock, as it does each second: after a longer pause the machine
// has slept.
func (a *Assembler) Looks(now time.Time) {
	a.learning.Naps.Woke(a.learning.looked, now.UnixNano())
	a.learning.looked = now.UnixNano()
}

// judge judges a session that has changed, or whose verdict may have changed with time.
func (a *Assembler) judge(g *group, now time.Time) {
	t := now.UnixNano()
	since, due := t-g.judged, g.judgeAt != 0 && t >= g.judgeAt
	if since < int64(judgeEvery) || !due && (!g.unjudged || !g.urgent && since < int64(judgeLater) && now.Sub(g.read) < judgeSilent) {
		return
	}
	if g.judged == 0 { // just read: a counter of open verdicts starts here
		reporter{g}.repeatVerdicts()
	}
	began := time.Now()
	defer func() { a.learning.spent, a.learning.judged = a.learning.spent+time.Since(began), a.learning.judged+1 }()
	g.unjudged, g.urgent, g.judged = false, false, t
	j := judging{group: g, settings: &a.settings, now: t}
	s := j.session()
	g.judgeAt = 0
	if s == nil {
		return
	}
	g.judgeAt = a.learning.Session(s, t)
	for _, r := range s.Runs {
		if run := g.Runs[r.ID]; run.Ended == running || r.Verdict.Kind != verdict.Healthy {
			if v, ok := j.mark(&run.Judged.Mark, r.Verdict); ok {
				j.report(run, nil, v)
			}
		}
	}
	for _, c := range s.Calls {
		call := g.Open[c.ID]
		if v, ok := j.mark(&call.Judged.Mark, c.Verdict); ok {
			j.report(g.Runs[call.Run], call, v)
		}
		g.urgent = g.urgent || call.Judged.Mark.Kind != verdict.Healthy
	}
	for _, r := range s.Runs { // the next record may resolve it
		g.urgent = g.urgent || g.Runs[r.ID].Judged.Mark.Kind != verdict.Healthy
	}
}

// judging is the work of judging one session at one time.
type judging struct {
	*group
	settings *Settings
	now      int64
}

// session returns the open work of the group; nil when there is none that goes on now.
func (j judging) session() *verdict.Session {
	s := &verdict.Session{Format: j.key.Format, Declared: j.settings.ShowsDelegates != nil && j.settings.ShowsDelegates(j.key.Format)}
	lastBytes := j.settings.LastBytes
	if j.settings.Serves != nil && j.settings.Serves(j.key.Format) {
		lastBytes = nil
	}
	runs := make(map[string]*verdict.Run, len(j.Runs))
	waiting := make(map[uint64]int)
	live := false
	for _, r := range j.Runs {
		if r.Start == 0 || r.Stub || r.Copied {
			continue
		}
		if r.Judged.Live && (r.Ended == running || r.Ended == byTurn && j.calling(r)) {
			live = true
			if r.Ended == running && r.Judged.Awaits == verdict.Model {
				waiting[r.Stream]++
			}
		}
		s.ShowsDelegates = s.ShowsDelegates || r.Call != "" && r.Linked
	}
	if !live {
		return nil
	}
	for _, r := range j.Runs {
		if r.Start == 0 || r.Stub || r.Copied || !r.Judged.Live {
			continue
		}
		v := &verdict.Run{
			ID: r.ID, Agent: j.agentName(r), Format: j.key.Format, Model: j.model(r), State: &r.Judged.Progress,
			Ended: r.Ended != running, Lost: r.Ended == bySilence, Failed: r.Outcome == msg.OutcomeError, Stopped: r.Outcome == msg.OutcomeCancelled,
			Alive: r.Alive, Loop: r.loop(),
		}
		if lastBytes != nil && !v.Ended && waiting[r.Stream] == 1 {
			v.Alive = max(v.Alive, lastBytes(r.Stream))
		}
		runs[r.ID] = v
		s.Runs = append(s.Runs, v)
	}
	for _, c := range j.Open {
		r := runs[c.Run]
		if r == nil || !c.pending() || j.Runs[c.Run].Ended != running && j.Runs[c.Run].Ended != byTurn {
			continue
		}
		s.Calls = append(s.Calls, &verdict.Call{
			ID: c.ID, Tool: c.Tool, To: c.To, Delegation: c.Delegation, Async: c.Async, State: &c.Judged.CallState,
			Caller: r, Child: runs[c.Child], Elsewhere: c.Child != "" && j.Runs[c.Child] == nil, Alive: c.Alive,
		})
	}
	for _, r := range j.Runs {
		v := runs[r.ID]
		if v == nil || r.Call == "" {
			continue
		}
		v.Parent = runs[r.Parent]
		for _, c := range s.Calls {
			if c.ID == r.Call {
				v.Call, c.Child = c, v
			}
		}
		if c := j.Open[r.Call]; v.Call == nil && c != nil { // of a caller that has ended
			v.Call = &verdict.Call{ID: c.ID, Tool: c.Tool, Async: c.Async, State: &c.Judged.CallState}
		}
	}
	return s
}

// model is the model of a run; before its first answer that of the turns before it.
func (j judging) model(r *run) string {
	turn := r
	for range maxRuns {
		if turn.Model != "" || turn.Previous == "" || j.Runs[turn.Previous] == nil {
			break
		}
		turn = j.Runs[turn.Previous]
	}
	return cmp.Or(turn.Model, r.AskedModel)
}

func (j judging) agentName(r *run) string {
	if r.Agent.Name != "" {
		return r.Agent.Name
	}
	return j.names.of(r)
}

// mark makes a verdict the one that was reported last, if it is another. A loop that goes on is the same: between two of them a run
// is healthy, and when it began is reckoned back from when its last record was read.
func (j judging) mark(m *verdict.Mark, v verdict.Verdict) (change, bool) {
	if m.Kind == v.Kind && (m.Kind == verdict.Healthy || m.Kind == verdict.Looping || m.Since == v.Since) {
		return change{}, false
	}
	c := change{was: *m}
	*m = verdict.Mark{}
	if v.Kind != verdict.Healthy {
		*m = verdict.Mark{Kind: v.Kind, Since: v.Since, At: j.now, Evidence: v.Evidence, Cause: v.Cause}
	}
	c.is = *m
	return c, true
}

// change is from one verdict to the next; either may be healthy.
type change struct{ was, is verdict.Mark }

// report emits the rows of a change. The mark is part of the group's state, so that the same
// commit has both.
func (j judging) report(r *run, c *call, v change) {
	j.dirty = true
	if v.was.Kind != verdict.Healthy {
		resolution := "progress"
		if v.is.Kind != verdict.Healthy {
			resolution = v.is.Kind.String()
		}
		reporter{j.group}.emitVerdict(r, c, v.was, j.now, resolution)
		reporter{j.group}.closeVerdict(r, c, v.was, j.now)
	}
	if v.is.Kind != verdict.Healthy {
		reporter{j.group}.emitVerdict(r, c, v.is, 0, "")
	}
}

// reporter emits the verdicts of a session, and adds those that are over to its spans.
type reporter struct{ *group }

// endVerdict resolves the verdict of work that has ended, and adds it to the work's span.
func (g reporter) endVerdict(r *run, c *call) {
	m := &r.Judged.Mark
	if c != nil {
		m = &c.Judged.Mark
	}
	if m.Kind == verdict.Healthy || g.flushing {
		return
	}
	was := *m
	*m = verdict.Mark{}
	at := max(g.alive, g.judged, was.At)
	g.closeVerdict(r, c, was, at)
	g.emitVerdict(r, c, was, at, "ended")
}

// repeatVerdicts emits the verdicts that hold, as they were emitted before.
func (g reporter) repeatVerdicts() {
	for _, r := range g.Runs {
		if m := r.Judged.Mark; m.Kind != verdict.Healthy {
			g.emitVerdict(r, nil, m, 0, "")
		}
	}
	for _, c := range g.Open {
		if m := c.Judged.Mark; m.Kind != verdict.Healthy && g.Runs[c.Run] != nil {
			g.emitVerdict(g.Runs[c.Run], c, m, 0, "")
		}
	}
}

// closeVerdict adds the event of a verdict that holds no longer.
func (g reporter) closeVerdict(r *run, c *call, was verdict.Mark, at int64) {
	attrs := []msg.Attr{
		{Key: msg.VerdictName, Value: was.Kind.String()}, {Key: msg.VerdictEvidence, Value: was.Evidence},
		{Key: msg.VerdictHeld, Value: strconv.FormatInt(max(0, at-was.Since)/int64(time.Second), 10)},
	}
	if c == nil {
		r.event(was.Since, msg.EventVerdict, attrs...)
	} else {
		c.Events, _ = addEvent(c.Events, msg.SpanEvent{Time: was.Since, Name: msg.EventVerdict, Attrs: attrs})
	}
}

func (g reporter) emitVerdict(r *run, c *call, m verdict.Mark, resolved int64, resolution string) {
	now := m.At
	if resolved != 0 {
		now = max(g.judged, g.alive)
	}
	v := msg.Verdict{
		Tenant: g.key.Tenant, Source: r.Source, Format: g.key.Format, Session: g.key.Session, Run: r.ID,
		TraceID: g.ids.trace(r.Root), Span: g.ids.run(r), Kind: msg.SpanRun, Agent: r.Agent.Name,
		Name: m.Kind.String(), Since: m.Since, At: m.At, Resolved: resolved, Resolution: resolution,
		Evidence: m.Evidence, Path: g.path(r, c, now), Words: r.Judged.Words(), Ver: uint64(max(m.At, resolved)),
	}
	if v.Agent == "" {
		v.Agent = g.names.of(r)
	}
	if c != nil {
		v.Span, v.Kind, v.Tool = g.ids.call(c), msg.SpanTool, c.Tool
		if c.Delegation {
			v.Kind = msg.SpanDelegation
		}
	}
	if kind, id := causeOf(m.Cause); kind == "run" {
		v.Cause = g.ids.of(msg.SpanRun, id)
	} else if kind == "call" {
		v.Cause = g.ids.of(msg.SpanTool, id)
	}
	if resolved == 0 && g.reconciles && g.out.views.ended(g.group, v.Span) { // as another view has it
		return
	}
	g.out.emitter.Verdict(v)
}

// path is the way from the top-level run to the work, with the age of each step at a time.
func (g reporter) path(r *run, c *call, now int64) string {
	age := func(since int64) string { return " (" + verdict.Age(now-since) + ")" }
	text := ""
	if c != nil {
		call := verdict.Call{Tool: c.Tool, To: c.To, Delegation: c.Delegation, State: &c.Judged.CallState}
		text = call.Name() + age(c.Judged.Begun)
	}
	for range maxRuns {
		step := r.Agent.Name
		if step == "" {
			step = g.names.of(r)
		}
		if step == "" {
			step = "agent"
		}
		if step += age(r.Judged.Began); text != "" {
			step += " › " + text
		}
		if text = step; g.Runs[r.Parent] == nil || len(text) > 1000 {
			break
		}
		r = g.Runs[r.Parent]
	}
	return text
}

func causeOf(s string) (kind, id string) {
	for _, k := range []string{"run", "call"} {
		if len(s) > len(k) && s[:len(k)] == k {
			return k, s[len(k)+1:]
		}
	}
	return "", ""
}

// observeVerdict takes a record of a run, after the run and its calls have it.
func (g handler) observeVerdict(r *run, m *msg.Message) {
	p := &r.Judged
	if p.Began == 0 {
		p.Began = g.alive
	}
	switch {
	case m.Kind == msg.Error || m.IsError || r.loop().Count >= 5:
		g.urgent = true
	case m.Signal != msg.NoSignal && m.Signal != msg.ModelStart && m.Signal != msg.ModelEnd && m.Signal != msg.FirstToken:
		g.urgent = true
	}
	p.Live = p.Live || g.read.UnixNano()-g.alive < int64(verdict.Recent)
	if l, ok := p.Observe(m, g.alive); ok && !g.flushing {
		g.learned.History.AddAnswer(l)
	}
	if c := g.Open[m.Tool.CallID]; c != nil && m.Tool.CallID != "" {
		c.Judged.Observe(m, g.alive)
		c.Alive = max(c.Alive, g.alive)
		if up := g.Runs[c.Run]; m.Signal == msg.WaitEnd && up != nil && up != r { // it goes on in this run
			up.end(byTurn)
			g.dirty = true
		}
	}
	if m.Signal == msg.RunResume {
		g.answered(r)
	}
}

// answered ends the runs of the session that a person was asked in and that go on in this one.
func (g handler) answered(by *run) {
	for _, r := range g.Runs {
		if r != by && r.Ended == running && r.Parent == "" && r.Start != 0 && !r.Stub && (r.Judged.Awaits == verdict.Person || r.Judged.Awaits == verdict.Permission) {
			r.end(byTurn)
			g.dirty = true
		}
	}
}

// learn takes a call that has its result.
func (g handler) learn(t *completed) {
	c := t.Call
	if g.flushing || t.Outcome != msg.OutcomeOK || g.copied(c.Run) {
		return
	}
	took := t.End - c.Start
	waits := msg.WaitsForPerson(c.Events)
	if c.Inferred { // without times of the protocol, a live call has Earshot's, from the end of the last wait
		took, waits = g.alive-c.Judged.Begun, nil
		if took <= 0 {
			return
		}
	}
	for _, w := range waits { // a person's time is not the tool's
		if w.To == 0 {
			return
		}
		took -= w.To - w.From
	}
	if !c.Async {
		g.learned.History.Add(c.Judged.Key, took)
	}
	switch child := g.Runs[c.Child]; {
	case child != nil && child.Start > 0 && !child.Inferred:
		g.learned.History.Add(verdict.StartKey(g.key.Format), max(0, child.Start-c.Start))
	case c.Delegation && !c.Async && !c.Judged.Old:
		g.learned.History.Add(verdict.HiddenKey(g.key.Format), took)
	}
}
