package link

import (
	"cmp"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

const (
	// maxCorrelated is the number of calls, and of runs, that a correlation remembers.
	maxCorrelated = 64

	// Slack is how far clocks and the writing of files may be apart: a run that a call caused
	// begins while the call is open, plus or minus this much.
	Slack = int64(5 * time.Second)

	// longestCall is how long a call may be open and still cause a run.
	longestCall = int64(6 * time.Hour)

	// longestWait is how long an agent may be busy before it takes up a message.
	longestWait = int64(10 * time.Minute)

	// promptConfidence is the confidence, in percent, that a run belongs to the only call
	// that asked the same at the time.
	promptConfidence = 80
)

// Correlation is a name that calls and the runs that they cause in other sessions, as a rule
// of other formats, both print (msg.Delegate.CorrelationID, CorrelationPrompt). Which run
// belongs to which call follows from the set of both and not from their order.
type Correlation struct {
	Link  msg.LinkMethod `json:"link"` // of the edges that it makes
	Calls []CallSite     `json:"calls,omitempty"`
	Runs  []Candidate    `json:"runs,omitempty"`
	// Hops is set if its runs are hops: requests of one program to another. See pairHops.
	Hops bool `json:"hops,omitempty"`
	// Lost is until when calls or hops were forgotten because there were too many; Unix ns.
	Lost int64 `json:"lost,omitempty"`
}

// CallSite is a call that runs another agent. One without a call is a turn.
type CallSite struct {
	Format   string `json:"format"`
	Family   string `json:"family,omitempty"` // in whose place of the format ids are hashed
	Session  string `json:"session"`
	Run      string `json:"run"`
	Call     string `json:"call"`
	Root     string `json:"root"` // of its trace
	Delegate string `json:"to,omitempty"`
	Start    int64  `json:"start"`
	End      int64  `json:"end,omitempty"`

	Inferred bool `json:"inferred,omitempty"` // the protocol has no time of it
	Async    bool `json:"async,omitempty"`
	// Rank is that of its view of the conversation, of a cause of hops.
	Rank uint8 `json:"rank,omitempty"`
	// Alias is the name that the call's run has for the caller, while it counts as an alias
	// of the caller's session.
	Alias string `json:"named,omitempty"`
}

// Candidate is a run that a call of another session may have caused.
type Candidate struct {
	Format   string `json:"format"`
	Session  string `json:"session"`
	Run      string `json:"run"`
	Agent    string `json:"agent,omitempty"` // id of the run's agent, if the correlated message names it
	Start    int64  `json:"start"`
	Inferred bool   `json:"inferred,omitempty"` // the protocol has no time of it
	From     string `json:"from,omitempty"`     // the agent that asked
	// Stream and Below are of a hop: where it is read, and the cause that it was put below.
	Stream uint64 `json:"stream,omitempty"`
	Below  string `json:"below,omitempty"`
	// Request and End are of a hop as well: the key of its request, which another recording of it has too, and when
	// the answer came; zero while it has not.
	Request string `json:"asks,omitempty"`
	End     int64  `json:"end,omitempty"`
	// Alias is the name that the run's call has for the agent, while it counts as an alias of
	// the run's session.
	Alias string `json:"named,omitempty"`
}

// Remote is the call of another session that caused a run.
type Remote struct {
	CallSite
	Name       string         `json:"name"` // of the correlation
	Link       msg.LinkMethod `json:"link"`
	Confidence uint8          `json:"confidence,omitempty"`
	// Apart is set if the run's stream cannot be decoded again: the run stays in its own
	// trace, with a span link to the call.
	Apart bool `json:"apart,omitempty"`
	Hop   bool `json:"hop,omitempty"` // see Correlation.Hops
	// Inner is how long the request of a hop took where another recording has it, nearer to the
	// server; zero without one.
	Inner int64 `json:"inner,omitempty"`
}

// Key is the key of the call's session.
func (c *CallSite) Key(tenant string) Key { return Key{tenant, c.Format, c.Session} }

// Span is the id of the call's span, or of the turn's.
func (c *CallSite) Span(tenant string) msg.SpanID {
	if c.Call == "" {
		return msg.NewSpanID(tenant, cmp.Or(c.Family, c.Format), c.Session, msg.SpanRun, c.Run)
	}
	return msg.NewSpanID(tenant, cmp.Or(c.Family, c.Format), c.Session, msg.SpanTool, c.Call)
}

// Trace is the id of the trace that the call is in.
func (c *CallSite) Trace(tenant string) msg.TraceID {
	return c.Key(tenant).As(c.Family).Trace(c.Root)
}

func (c *CallSite) sameSession(r *Candidate) bool {
	return c.Format == r.Format && c.Session == r.Session
}

// excludes reports whether the call cannot have caused the run: a run of its own session, unless that is one of a
// sub-agent whose id is known.
func (c *CallSite) excludes(r *Candidate) bool {
	return c.sameSession(r) && (r.Agent == "" || r.Run == c.Run)
}

// Is reports whether the call is in the candidate's run.
func (c *CallSite) Is(r *Candidate, run string) bool { return c.sameSession(r) && run == r.Run }

// Apply puts the span of the run below the call, or links the two if the run is apart.
func (u *Remote) Apply(tenant string, s *msg.Span) {
	s.Delegate = msg.Delegate{Link: u.Link, Confidence: u.Confidence}
	if !u.Apart {
		s.Parent = u.Span(tenant)
		return
	}
	s.Links = append(s.Links, msg.SpanLink{
		TraceID: u.Trace(tenant), SpanID: u.Span(tenant), Attrs: []msg.Attr{{Key: "earshot.link", Value: "delegation"}},
	})
}

// AddCall adds a call, or replaces the version of it that the correlation has.
func (t *Correlation) AddCall(c CallSite) {
	t.Calls = slices.DeleteFunc(t.Calls, func(old CallSite) bool {
		same := old.Call == c.Call && old.Session == c.Session && old.Format == c.Format
		if same {
			c.Alias = old.Alias
		}
		return same
	})
	t.Calls = append(t.Calls, c)
	slices.SortFunc(t.Calls, func(x, y CallSite) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Call, y.Call))
	})
	if len(t.Calls) > maxCorrelated {
		t.Calls = slices.Delete(t.Calls, 0, 1)
	}
}

// HasRun reports whether the run was added.
func (t *Correlation) HasRun(format, session, run string) bool {
	return slices.ContainsFunc(t.Runs, func(c Candidate) bool {
		return c.Run == run && c.Session == session && c.Format == format
	})
}

// AddRun adds a run that the correlation does not have.
func (t *Correlation) AddRun(r Candidate) {
	t.insert(r)
	if len(t.Runs) > maxCorrelated {
		t.Runs = slices.Delete(t.Runs, 0, 1)
	}
}

// insert adds a run in its place: in the order of time.
func (t *Correlation) insert(r Candidate) {
	t.Runs = append(t.Runs, r)
	slices.SortFunc(t.Runs, func(x, y Candidate) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Format, y.Format), cmp.Compare(x.Run, y.Run))
	})
}

// Pair is the call of a run.
type Pair struct {
	Call       int   // index in Calls; -1 if the run has none
	Confidence uint8 // percent; 0 if the correlation's own name identifies the call
}

// Sure reports whether the name that one side of the pair has for the other is reliable.
func (p Pair) Sure() bool {
	return p.Call >= 0 && (p.Confidence == 0 || p.Confidence >= promptConfidence)
}

// Pairs returns the call of each run. A run belongs to the last call in whose time it began;
// where many may have the name, to the first that has no run of its agent yet: one call may
// ask many agents the same, and each of them once. A name that belongs to one thread alone
// also joins those whose times are unknown, by their order. A run that many may have caused
// and that began in no call's time belongs to the first asynchronous one before it that is
// left: its agent was busy.
func (t *Correlation) Pairs() (pairs []Pair) {
	if t.Hops {
		return t.pairHops()
	}
	taken := make(map[taking]bool)
	for n, r := range t.Runs {
		found, fit := -1, 0
		for i, c := range t.Calls {
			end := max(c.End, c.Start)
			if c.End == 0 && !c.Async {
				end = c.Start + longestCall
			}
			if c.excludes(&r) || r.Start < c.Start-Slack || r.Start > end+Slack {
				continue
			}
			fit++
			if t.Link != msg.ByPrompt || found < 0 && !taken[taking{i, r.Agent}] {
				found = i
			}
		}
		for i, c := range t.Calls[:min(n+1, len(t.Calls))] {
			if fit == 0 && t.Link != msg.ByPrompt && (r.Inferred || c.Inferred) && !c.excludes(&r) {
				found = i
			}
		}
		p := Pair{Call: found}
		if t.Link == msg.ByPrompt && found >= 0 {
			taken[taking{found, r.Agent}] = true
			p.Confidence = uint8(max(1, promptConfidence/fit))
		}
		pairs = append(pairs, p)
	}
	if t.Link == msg.ByPrompt {
		t.pairLate(pairs, taken)
	}
	return pairs
}

// taking is an agent that has taken up a call.
type taking struct {
	call  int
	agent string
}

// pairLate pairs the runs that began in no call's time.
func (t *Correlation) pairLate(pairs []Pair, taken map[taking]bool) {
	for n := range t.Runs {
		r := &t.Runs[n]
		for i := range t.Calls {
			c := &t.Calls[i]
			if pairs[n].Call >= 0 {
				break
			}
			if !taken[taking{i, r.Agent}] && c.Async && !c.excludes(r) && c.Start <= r.Start && r.Start <= c.Start+longestWait {
				taken[taking{i, r.Agent}], pairs[n] = true, Pair{i, promptConfidence / 2}
			}
		}
	}
}
