package assemble

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/anomaly"
	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/verdict"
)

// run is one invocation of an agent. Its own stream determines everything but its place,
// which the messages of other runs may change.
type run struct {
	identity
	link.Place
	progress
	usage
	emission

	Before *before `json:"before,omitempty"` // set while the run is provisional

	span msg.SpanID // see ids
}

// identity is whose run it is and where its messages are read.
type identity struct {
	ID      string     `json:"id"`
	Stream  uint64     `json:"stream"`
	Source  string     `json:"source,omitempty"`
	Server  string     `json:"server,omitempty"`
	Unnamed bool       `json:"unnamed,omitempty"` // see unnamed
	Agent   msg.Agent  `json:"agent,omitzero"`
	Client  msg.Client `json:"client,omitzero"`
	// Late is set if the run's beginning was not read since it was evicted: a span of it that was emitted before has more.
	Late bool `json:"late,omitempty"`
	// Copied is set if another session has the run: everything of it is taken back.
	Copied bool `json:"copied,omitempty"`
	// Exchange is the request that began the run.
	Exchange *exchange `json:"begun,omitempty"`
}

// progress has the times, the outcome and the events of the run.
type progress struct {
	Start    int64   `json:"start"`
	Inferred bool    `json:"inferred,omitempty"` // the protocol has stated no time yet
	Last     int64   `json:"last"`
	Alive    int64   `json:"alive,omitempty"` // when its sender was at work last, by Earshot's clock; Unix ns
	End      int64   `json:"end,omitempty"`   // by the protocol
	Ended    endedBy `json:"ended,omitempty"`
	// Full is set when a complete message of the protocol has ended the run.
	Full bool `json:"sure,omitempty"`
	// Stub is set if only the place of the run is remembered.
	Stub bool `json:"forgotten,omitempty"`

	Outcome msg.Outcome `json:"outcome,omitempty"`
	Error   string      `json:"error,omitempty"`
	Message string      `json:"message,omitempty"`
	Finish  string      `json:"finish,omitempty"` // how it ended, in the protocol's words

	Events      []msg.SpanEvent `json:"events,omitempty"`
	Anomalies   anomaly.State   `json:"detect,omitzero"`
	Tentative   *anomaly.State  `json:"tentative,omitempty"` // by results that are not final
	Findings    []msg.SpanEvent `json:"found,omitempty"`
	Delegations int             `json:"delegating,omitempty"` // its delegations that are at work

	Judged runJudged `json:"judged,omitzero"`
}

// runJudged has the facts that the verdicts of a run follow from.
type runJudged struct {
	verdict.Progress
	Began int64 `json:"began,omitempty"` // as Alive
}

// mark is the part that stays when the run's records are read again.
func (j *runJudged) mark() (kept runJudged) {
	kept.Mark, kept.Live, kept.Began = j.Mark, j.Live, j.Began
	return kept
}

// callJudged is the same of a call.
type callJudged struct{ verdict.CallState }

// emission is the state of a run's or a call's span at the Emitter.
type emission struct {
	Emitted bool `json:"given,omitempty"` // as ended, and nothing has changed since
	Shown   bool `json:"shown,omitempty"` // as open
	changed bool // since the last commit
}

// touch marks a change of the run or the call, whose span the next commit emits.
func (e *emission) touch() { e.changed, e.Emitted = true, false }

// touchOpen marks a change that only the open span shows.
func (e *emission) touchOpen() { e.changed = true }

// touchEnded marks a change that only the ended span shows.
func (e *emission) touchEnded() { e.Emitted = false }

// endedBy is the reason why a run ended; a higher reason replaces a lower one.
type endedBy uint8

const (
	running    endedBy = iota
	bySilence          // idle, or the end of its stream
	byTurn             // the next turn began
	byCall             // the delegation that caused it has its result
	byProtocol         // the protocol states it
)

// observe records a message of the run at t.
func (r *run) observe(t, alive int64) {
	r.touch()
	r.Last, r.Alive = max(r.Last, t), max(r.Alive, alive)
	if r.Ended == bySilence {
		r.Ended = running
	}
}

// end ends the run, unless it has ended for a higher reason.
func (r *run) end(by endedBy) {
	if by > r.Ended {
		r.Ended = by
		r.touch()
	}
}

// until is when the run ended, or the time of its last message.
func (r *run) until() int64 {
	if r.End != 0 {
		return max(r.End, r.Start)
	}
	return max(r.Last, r.Start)
}

// event adds an event, and reports whether it is new.
func (r *run) event(t int64, name string, attrs ...msg.Attr) (fresh bool) {
	r.Events, fresh = addEvent(r.Events, msg.SpanEvent{Time: t, Name: name, Attrs: attrs})
	return fresh
}

// addEvent adds an event, unless it is there: a copy of a transcript, or telemetry that is sent again, repeats it.
func addEvent(list []msg.SpanEvent, e msg.SpanEvent) (_ []msg.SpanEvent, fresh bool) {
	same := func(o msg.SpanEvent) bool {
		return o.Time == e.Time && o.Name == e.Name && slices.Equal(o.Attrs, e.Attrs)
	}
	switch {
	case slices.ContainsFunc(list, same):
		return list, false
	case len(list) < maxEvents || endsWait(list, e.Name):
		list = append(list, e)
	}
	return list, true
}

// endsWait reports whether an event ends a wait that is in the list: without its end it would last as long as its span.
func endsWait(list []msg.SpanEvent, name string) bool {
	if name != msg.WaitEnd.String() && name != msg.RunResume.String() {
		return false
	}
	for i := range slices.Backward(list) {
		switch list[i].Name {
		case msg.WaitStart.String(), msg.RunPause.String():
			return true
		case msg.WaitEnd.String(), msg.RunResume.String():
			return false
		}
	}
	return false
}

// moveTo moves the run to another root.
func (r *run) moveTo(root string) {
	r.MoveTo(root)
	r.touch()
}

// describe adds the facts that a message states of its run.
func (r *run) describe(m *msg.Message) {
	if m.Kind != msg.User { // the Agent of a user message is the one that wrote it
		if r.Agent.ID == "" {
			r.Agent.ID = strings.Clone(m.Agent.ID)
		}
		if r.Agent.Name == "" || r.Agent.Name == r.Agent.ID { // the id stood in for the name
			r.Agent.Name = strings.Clone(m.Agent.Name)
		}
		if r.Agent.Kind == 0 {
			r.Agent.Kind = m.Agent.Kind
		}
	}
	if m.Client != (msg.Client{}) {
		r.Client = r.Client.Or(m.Client.Clone())
	}
	if r.Provider == "" {
		r.Provider = strings.Clone(m.Provider)
	}
	switch {
	case m.Model == "":
	case m.ResponseID == "" && (m.Signal == msg.RunStart || m.Signal == msg.ModelStart || m.Kind == msg.Status || m.Kind == msg.Error):
		r.AskedModel = strings.Clone(m.Model) // the message is of a request or of the run
	case r.Model == "" || m.Signal == msg.RunEnd && m.Attr(msg.ModelOf) == "run":
		r.Model = strings.Clone(m.Model)
	}
}

// stub returns the run without its own story: its place, its identity, and how it ended.
func (r *run) stub() *run {
	p := &run{
		identity: r.identity, Place: r.Place,
		progress: progress{Alive: r.Alive, Ended: min(r.Ended, byCall), Judged: r.Judged.mark()}, emission: emission{Shown: r.Shown},
	}
	p.Late = false
	return p
}

// withStory returns the run with another story, in its own place.
func (r *run) withStory(story *run) *run {
	s := *story
	s.ID, s.Exchange, s.Place, s.Alive, s.Shown, s.Before = r.ID, r.Exchange, r.Place, r.Alive, r.Shown, nil
	s.Judged.Mark, s.Judged.Live = r.Judged.Mark, r.Judged.Live
	if s.Stream == 0 {
		s.Stream = r.Stream
	}
	return &s
}

// works reports whether a delegate is at work in the background of a run: the end of its work is shown on the call.
func (cs *calls) works(r *run) bool {
	for _, d := range cs.Done {
		if d.Run == r.ID && d.Call != nil && d.Call.Call.Async && d.Call.Call.Child != "" && d.Call.Call.Worked == 0 {
			return true
		}
	}
	return false
}

// runs are the runs of a session.
type runs struct {
	Turns map[uint64]string `json:"turns,omitempty"` // by stream: the latest top-level run
	Runs  map[string]*run   `json:"runs,omitempty"`
	Order []string          `json:"order,omitempty"`  // of Runs, oldest first
	Stubs int               `json:"places,omitempty"` // the number of stubs among Runs
	// Gone are the latest runs that were evicted, oldest first.
	Gone []goneRun `json:"gone,omitempty"`
}

// goneRun is when a run began that was evicted: the start is part of a row's identity, and a late message of it has another time.
type goneRun struct {
	ID    string `json:"id"`
	Start int64  `json:"start"`
}

// gone remembers the start of a run that is evicted.
func (rs *runs) gone(r *run) {
	if r.Start == 0 || r.Inferred {
		return
	}
	rs.back(r.ID)
	if len(rs.Gone) >= maxGone {
		rs.Gone = slices.Delete(rs.Gone, 0, 1)
	}
	rs.Gone = append(rs.Gone, goneRun{r.ID, r.Start})
}

// back returns when an evicted run began, once; 0: that is not known.
func (rs *runs) back(id string) (start int64) {
	if at := slices.IndexFunc(rs.Gone, func(g goneRun) bool { return g.ID == id }); at >= 0 {
		start = rs.Gone[at].Start
		rs.Gone = slices.Delete(rs.Gone, at, at+1)
	}
	return start
}

// late reports whether a message is of an evicted run, and not its first one, with which it is read again.
func (rs *runs) late(m *msg.Message) bool {
	return m.Precision != msg.Inferred && slices.ContainsFunc(rs.Gone, func(g goneRun) bool { return g.ID == m.Run && g.Start < m.Time })
}

// revive ends a run's state of being a stub.
func (rs *runs) revive(r *run) {
	if r.Stub {
		r.Stub = false
		rs.Stubs--
	}
}

// drop forgets a run.
func (rs *runs) drop(id string) {
	delete(rs.Runs, id)
	rs.Order = slices.DeleteFunc(rs.Order, func(other string) bool { return other == id })
}

// begunBy reports whether a run is of the stream, which is decoded again.
func (rs *runs) begunBy(run string, stream uint64) bool {
	r := rs.Runs[run]
	return r != nil && r.Stream == stream
}

// copied reports whether another session has a run.
func (rs *runs) copied(run string) bool {
	r := rs.Runs[run]
	return r != nil && r.Copied
}

// isolated reports whether no other run and no other session depends on the place of r.
func (rs *runs) isolated(r *run) bool {
	if r.Remote != nil || r.PriorRoot != "" {
		return false
	}
	for _, c := range rs.Runs {
		if c != r && (c.Parent == r.ID || c.Root == r.ID) {
			return false
		}
	}
	return true
}

// correlates reports whether the run, or one above it, is correlated with other sessions.
func (rs *runs) correlates(r *run) bool {
	for range maxRuns {
		if r == nil || r.Correlates {
			break
		}
		r = rs.Runs[r.Parent]
	}
	return r != nil && r.Correlates
}

// orphaned reports whether the run, or one above it, is known to be a child whose caller has not been read.
func (rs *runs) orphaned(r *run) bool {
	for range maxRuns {
		if r == nil || !r.Linked && (r.Parent != "" || r.Call != "") {
			break
		}
		r = rs.Runs[r.Parent]
	}
	return r != nil
}

// stubbed reports whether an old run is to be kept as a stub: another session, which is read
// later, may yet refer to it or to its calls, its caller may be read later, a delegate works in its background, or its stream is about to
// be decoded again.
// It drops the oldest stubs when there are too many.
func (rs *runs) stubbed(r *run, works bool) bool {
	switch {
	case r.Stub && rs.Stubs > maxStubs:
		rs.Stubs--
		return false
	case r.Stub:
		return true
	case r.Start != 0 && !rs.correlates(r) && !rs.orphaned(r) && !works || rs.Stubs > maxStubs:
		return false
	}
	p := r.stub()
	p.End, p.Ended = r.until(), r.Ended
	p.Stub, p.Emitted = true, true
	rs.Runs[r.ID] = p
	rs.Stubs++
	return true
}

// field is a string field and a value for it.
type field struct {
	to    *string
	value string
}

// fill sets the fields that are empty to copies of the values, whose memory belongs to the
// message.
func fill(fields ...field) {
	for _, f := range fields {
		if *f.to == "" && f.value != "" {
			*f.to = strings.Clone(f.value)
		}
	}
}
