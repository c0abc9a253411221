package truth

import (
	"fmt"
	"slices"
	"time"
)

// Conversation is an observer's view of a conversation, or the truth.
type Conversation struct {
	Calls  []Call  `json:"calls"`
	Links  []Link  `json:"links"`
	Tokens *Tokens `json:"tokens,omitempty"`
	Texts  []Text  `json:"texts"`
}

func (c *Conversation) forgetTimes() {
	for i := range c.Calls {
		c.Calls[i].Start, c.Calls[i].End = time.Time{}, time.Time{}
	}
}

// Call is one call of a tool or of another agent.
type Call struct {
	ID     string    `json:"id,omitempty"`
	Name   string    `json:"name"`
	Failed bool      `json:"failed,omitempty"`
	Start  time.Time `json:"start,omitzero"`
	End    time.Time `json:"end,omitzero"`
}

// Link means that something was done in the work that a call handed on.
type Link struct {
	Call  string `json:"call"`
	Holds string `json:"holds"` // the id of a call, or "text:" and an answer
}

// Tokens are classes that do not overlap.
type Tokens struct {
	Input      uint64 `json:"input"`
	Output     uint64 `json:"output"`
	CacheRead  uint64 `json:"cache_read"`
	CacheWrite uint64 `json:"cache_write"`
	Reasoning  uint64 `json:"reasoning"`
}

func (t *Tokens) classes() [5]uint64 {
	if t == nil {
		return [5]uint64{}
	}
	return [5]uint64{t.Input, t.Output, t.CacheRead, t.CacheWrite, t.Reasoning}
}

func (t *Tokens) add(u Tokens) {
	t.Input, t.Output, t.Reasoning = t.Input+u.Input, t.Output+u.Output, t.Reasoning+u.Reasoning
	t.CacheRead, t.CacheWrite = t.CacheRead+u.CacheRead, t.CacheWrite+u.CacheWrite
}

// Text is a prompt, an answer or a result.
type Text struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Count is how many of a kind are right.
type Count struct {
	Scored              bool // the observer has something of the kind
	Right, Wrong, Lacks int
}

// Precision is the share of the observed that is right; 1 if nothing was observed.
func (c Count) Precision() float64 { return share(c.Right, c.Right+c.Wrong) }

// Recall is the share of the true that was observed; 1 if nothing is true.
func (c Count) Recall() float64 { return share(c.Right, c.Right+c.Lacks) }

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

func (c *Count) add(d Count) {
	c.Scored = c.Scored || d.Scored
	c.Right, c.Wrong, c.Lacks = c.Right+d.Right, c.Wrong+d.Wrong, c.Lacks+d.Lacks
}

// Score compares an observer with the truth.
type Score struct {
	Conversations int
	Calls, Links  Count
	Texts         Count // Lacks are missing, Wrong are repeated
	Times         Count // Lacks are off or not there
	Tokens        bool  // the observer counts them
	Error, Sum    uint64
	Notes         []string // the differences
}

// Perfect reports whether nothing differs.
func (s *Score) Perfect() bool { return len(s.Notes) == 0 }

// Add adds the score of another conversation.
func (s *Score) Add(o Score) {
	s.Conversations += o.Conversations
	s.Calls.add(o.Calls)
	s.Links.add(o.Links)
	s.Texts.add(o.Texts)
	s.Times.add(o.Times)
	s.Tokens = s.Tokens || o.Tokens
	s.Error, s.Sum = s.Error+o.Error, s.Sum+o.Sum
	s.Notes = append(s.Notes, o.Notes...)
}

// match pairs two lists by the first that same accepts, and returns for each of want the index in got, or -1.
func match[T any](want, got []T, same func(want, got T) bool) (pairs []int, spare []int) {
	used := make([]bool, len(got))
	for _, w := range want {
		at := -1
		for i := range got {
			if !used[i] && same(w, got[i]) {
				at, used[i] = i, true
				break
			}
		}
		pairs = append(pairs, at)
	}
	for i := range got {
		if !used[i] {
			spare = append(spare, i)
		}
	}
	return pairs, spare
}

// within is how far a time may be off.
const within = time.Millisecond

// Compare scores an observer's view of a conversation.
func Compare(want, got *Conversation) Score {
	s := Score{Conversations: 1}
	note := func(format string, what any) { s.Notes = append(s.Notes, fmt.Sprintf(format, what)) }
	if got.Calls != nil && want.Calls != nil {
		s.Calls.Scored, s.Times.Scored = true, slices.ContainsFunc(got.Calls, func(c Call) bool { return !c.Start.IsZero() })
		calls := slices.SortedStableFunc(slices.Values(got.Calls), func(a, b Call) int { return a.Start.Compare(b.Start) })
		pairs, spare := match(want.Calls, calls, func(w, g Call) bool { return (w.ID == "" || w.ID == g.ID) && w.Name == g.Name && w.Failed == g.Failed })
		for i, at := range pairs {
			if at < 0 {
				s.Calls.Lacks++
				note("lacks call %+v", want.Calls[i])
				continue
			}
			s.Calls.Right++
			if !s.Times.Scored {
				continue
			}
			for _, t := range [][2]time.Time{{want.Calls[i].Start, calls[at].Start}, {want.Calls[i].End, calls[at].End}} {
				switch {
				case t[0].IsZero():
				case t[0].Sub(t[1]).Abs() <= within:
					s.Times.Right++
				default:
					s.Times.Lacks++
					note("time of %v", [3]any{want.Calls[i].ID, t[0], t[1]})
				}
			}
		}
		for _, at := range spare {
			s.Calls.Wrong++
			note("wrong call %+v", calls[at])
		}
	}
	if got.Links != nil && want.Links != nil {
		s.Links = count(want.Links, got.Links, "link", note)
	}
	if got.Texts != nil && want.Texts != nil {
		s.Texts = count(want.Texts, got.Texts, "text", note)
	}
	if got.Tokens != nil && want.Tokens != nil {
		s.Tokens = true
		g := got.Tokens.classes()
		for i, n := range want.Tokens.classes() {
			s.Sum += n
			s.Error += max(n, g[i]) - min(n, g[i])
		}
		if s.Error > 0 {
			note("tokens %+v", [2]Tokens{*want.Tokens, *got.Tokens})
		}
	}
	return s
}

func count[T comparable](want, got []T, name string, note func(string, any)) Count {
	c := Count{Scored: true}
	pairs, spare := match(want, got, func(w, g T) bool { return w == g })
	for i, at := range pairs {
		if at < 0 {
			c.Lacks++
			note("lacks "+name+" %+v", want[i])
			continue
		}
		c.Right++
	}
	for _, at := range spare {
		c.Wrong++
		note("wrong "+name+" %+v", got[at])
	}
	return c
}
