package truth

import (
	"maps"
	"slices"
	"time"
)

// Began is when every scenario begins.
var Began = time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)

// at is the time that is so many seconds after the beginning.
func at(seconds float64) time.Time {
	return Began.Add(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
}

// Scenario is an invented conversation. Times are seconds since it began.
type Scenario struct {
	Name    string
	Format  string // that it is written in, so that no two formats have the same ids of sessions
	Turns   []Turn
	Twice   bool // the agent wrote, or the server sent, all of it again
	Compact bool // the context was replaced by a summary after the first turn
	Forked  bool // the second turn is in a session of its own, which begins with a copy of the first
}

// Turn is a prompt and the work on it.
type Turn struct {
	At        float64
	Prompt    string
	Responses []Response
}

// Response is one answer of a model, which is complete at To.
type Response struct {
	From, To    float64
	Retried     bool // the provider refused the request first
	Think, Text string
	Work        []*Work
	Tokens      Tokens
}

// Work is a call and its result.
type Work struct {
	ID, Name, Argument, Result string
	From, To                   float64
	Failed                     bool
	Open                       bool // no result ever came
	Delegate                   *Delegate
}

// Delegate is the work of another agent on a call.
type Delegate struct {
	ID, Agent, Task string
	Responses       []Response
}

// feature is something that a format must be able to express.
type feature string

const (
	parallel    feature = "parallel"
	failure     feature = "failure"
	delegation  feature = "delegation"
	retry       feature = "retry"
	repetition  feature = "repetition"
	thoughts    feature = "thoughts"
	interrupted feature = "interrupted"
	compaction  feature = "compaction"
	turns       feature = "turns"
	calls       feature = "calls"
	forking     feature = "forking"
	numbering   feature = "numbering" // ids of calls count from 0 in each turn
)

// needs are the features of a scenario.
func (s *Scenario) needs() []feature {
	f, ids := map[feature]bool{}, map[string]bool{}
	f[repetition], f[compaction], f[forking], f[turns] = s.Twice, s.Compact, s.Forked, len(s.Turns) > 1
	s.each(func(r *Response, up *Work) {
		f[retry] = f[retry] || r.Retried
		f[thoughts] = f[thoughts] || r.Think != ""
		f[parallel] = f[parallel] || len(r.Work) > 1
		for _, w := range r.Work {
			f[calls], f[numbering], ids[w.ID] = true, f[numbering] || ids[w.ID], true
			f[failure] = f[failure] || w.Failed
			f[interrupted] = f[interrupted] || w.Open
			f[delegation] = f[delegation] || w.Delegate != nil
		}
	})
	maps.DeleteFunc(f, func(_ feature, has bool) bool { return !has })
	return slices.Sorted(maps.Keys(f))
}

// each visits every response, with the call that it is below.
func (s *Scenario) each(visit func(r *Response, up *Work)) {
	for i := range s.Turns {
		s.Turns[i].each(visit)
	}
}

func (t *Turn) each(visit func(r *Response, up *Work)) {
	var list func(rs []Response, up *Work)
	list = func(rs []Response, up *Work) {
		for i := range rs {
			visit(&rs[i], up)
			for _, w := range rs[i].Work {
				if w.Delegate != nil {
					list(w.Delegate.Responses, w)
				}
			}
		}
	}
	list(t.Responses, nil)
}

// lens is how much of a scenario the traffic of a format has, by its protocol.
type lens struct {
	can       []feature
	noPrompts bool // of people
	noTasks   bool // of delegates
	noAnswers bool
	noIDs     bool // of calls
	noTokens  bool
	noTimes   bool
	heard     bool // the times of calls are those at which they are read
	// calledAt is when a call begins by the traffic, if not at its From; endedAt likewise.
	calledAt func(r *Response, w *Work) float64
	endedAt  func(r *Response, w *Work) float64
	tokens   func(Tokens) Tokens
	tool     func(w *Work) string // the name of a call
	result   func(w *Work) string // its result as the model reads it
}

// truth is the truth of a scenario as far as the traffic has it.
func (s *Scenario) truth(l *lens) *Conversation {
	c := &Conversation{Calls: []Call{}, Links: []Link{}, Texts: []Text{}, Tokens: &Tokens{}}
	if l.noTokens {
		c.Tokens = nil
	}
	say := func(role, text string) {
		if text != "" {
			c.Texts = append(c.Texts, Text{role, text})
		}
	}
	for _, t := range s.Turns {
		if !l.noPrompts {
			say("user", t.Prompt)
		}
	}
	s.each(func(r *Response, up *Work) {
		if !l.noAnswers {
			say("assistant", r.Text)
			if up != nil && r.Text != "" {
				c.Links = append(c.Links, Link{up.ID, "text:" + r.Text})
			}
		}
		if c.Tokens != nil {
			t := r.Tokens
			if l.tokens != nil {
				t = l.tokens(t)
			}
			c.Tokens.add(t)
		}
		for _, w := range r.Work {
			call := Call{ID: w.ID, Name: w.Name, Failed: w.Failed, Start: at(w.From), End: at(w.To)}
			if l.tool != nil {
				call.Name = l.tool(w)
			}
			if l.calledAt != nil {
				call.Start = at(l.calledAt(r, w))
			}
			if l.endedAt != nil {
				call.End = at(l.endedAt(r, w))
			}
			if l.noIDs {
				call.ID = ""
			}
			if l.noTimes || w.Open {
				call.End = time.Time{}
			}
			if l.noTimes {
				call.Start = time.Time{}
			}
			c.Calls = append(c.Calls, call)
			if up != nil {
				c.Links = append(c.Links, Link{up.ID, w.ID})
			}
			switch {
			case w.Open:
			case l.result != nil:
				say("tool", l.result(w))
			default:
				say("tool", w.Result)
			}
			if w.Delegate != nil && !l.noTasks {
				say("user", w.Delegate.Task)
			}
		}
	})
	return c
}

// lastResult is when the last of a response's results came.
func lastResult(r *Response, _ *Work) (to float64) {
	for _, w := range r.Work {
		to = max(to, w.To)
	}
	return to
}

// completed is when a response was complete.
func completed(r *Response, _ *Work) float64 { return r.To }

// unsplit are the tokens where reasoning is part of the output.
func unsplit(t Tokens) Tokens {
	t.Output, t.Reasoning = t.Output+t.Reasoning, 0
	return t
}

// uncharged are the tokens where writing to a cache is input like other.
func uncharged(t Tokens) Tokens {
	t.Input, t.CacheWrite = t.Input+t.CacheWrite, 0
	return t
}

// Scenarios returns the conversations that are written in each format.
func Scenarios() []Scenario {
	level := func(id string, from, to float64, basin, result string) *Work {
		return &Work{ID: "call_" + id, Name: "gauge", Argument: "Read the level of the " + basin, Result: result, From: from, To: to}
	}
	one := Tokens{Input: 310, Output: 24}
	list := []Scenario{
		{Name: "plain", Turns: []Turn{{At: 0, Prompt: "Is the upper lock open?", Responses: []Response{
			{From: 0.2, To: 2.125, Text: "The upper lock is open until eight.", Tokens: one}}}}},
		{Name: "turns", Turns: []Turn{
			{At: 0, Prompt: "Who keeps the lower lock?", Responses: []Response{{From: 0.2, To: 1.5, Text: "Marit keeps it.", Tokens: Tokens{Input: 200, Output: 7}}}},
			{At: 60, Prompt: "And the weir?", Responses: []Response{{From: 60.3, To: 62, Text: "Nobody keeps the weir.", Tokens: Tokens{Input: 40, CacheRead: 190, Output: 9}}}},
		}},
		{Name: "parallel", Turns: []Turn{{At: 0, Prompt: "Compare both basins.", Responses: []Response{
			{From: 0.2, To: 2, Text: "I read both gauges.", Tokens: Tokens{Input: 420, Output: 61}, Work: []*Work{
				level("north01", 2.05, 4.5, "north basin", "north 3.20 m"), level("south01", 2.1, 3.25, "south basin", "south 2.95 m")}},
			{From: 4.7, To: 6, Text: "The north basin is 25 cm higher.", Tokens: Tokens{Input: 510, Output: 12}}}}}},
		{Name: "failed", Turns: []Turn{{At: 0, Prompt: "Read the gauge of the mill pond.", Responses: []Response{
			{From: 0.1, To: 1, Tokens: Tokens{Input: 300, Output: 30}, Work: []*Work{
				{ID: "call_pond01", Name: "gauge", Argument: "Read the level of the mill pond", Result: "the gauge does not answer", From: 1.05, To: 3.5, Failed: true}}},
			{From: 3.6, To: 4.5, Tokens: Tokens{Input: 350, Output: 28}, Work: []*Work{level("pond02", 4.55, 5.75, "mill pond", "pond 1.10 m")}},
			{From: 5.9, To: 7, Text: "The pond stands at 1.10 m.", Tokens: Tokens{Input: 400, Output: 10}}}}}},
		{Name: "reasoning", Turns: []Turn{{At: 0, Prompt: "May a barge of 1.80 m pass tonight?", Responses: []Response{
			{From: 0.2, To: 5, Think: "The sill lies at 2.10 m, and it rains.", Text: "It may pass until ten.", Tokens: Tokens{Input: 35, CacheRead: 4096, CacheWrite: 512, Output: 14, Reasoning: 220}}}}}},
		{Name: "delegation", Turns: []Turn{{At: 0, Prompt: "Have somebody inspect the sluice.", Responses: []Response{
			{From: 0.2, To: 2, Text: "An inspector goes there.", Tokens: Tokens{Input: 600, Output: 44}, Work: []*Work{
				{ID: "call_insp01", Name: "delegate", Argument: "Inspect the sluice", Result: "The sluice has a crack of 4 cm.", From: 2.05, To: 11.5, Delegate: &Delegate{
					ID: "a5b1ce0001", Agent: "inspector", Task: "Inspect the sluice and report cracks.", Responses: []Response{
						{From: 3, To: 4.5, Tokens: Tokens{Input: 210, Output: 33}, Work: []*Work{level("crack01", 4.6, 7, "sluice wall", "crack of 4 cm")}},
						{From: 7.2, To: 9.5, Text: "The sluice has a crack of 4 cm.", Tokens: Tokens{Input: 260, Output: 13}}}}}}},
			{From: 11.6, To: 13, Text: "It needs mortar: a crack of 4 cm.", Tokens: Tokens{Input: 700, Output: 15}}}}}},
		{Name: "retry", Turns: []Turn{{At: 0, Prompt: "Close the flood gate.", Responses: []Response{
			{From: 3.2, To: 5, Retried: true, Text: "The flood gate is closed.", Tokens: one}}}}},
		{Name: "interrupted", Turns: []Turn{{At: 0, Prompt: "Drain the chamber.", Responses: []Response{
			{From: 0.2, To: 2, Text: "I open the culvert.", Tokens: Tokens{Input: 300, Output: 40}, Work: []*Work{
				{ID: "call_drain01", Name: "culvert", Argument: "Open the culvert", From: 2.1, To: 2.1, Open: true}}}}}}},
		{Name: "compaction", Compact: true, Turns: []Turn{
			{At: 0, Prompt: "Read the log of the last year.", Responses: []Response{{From: 0.2, To: 4, Text: "It was a year of low water.", Tokens: Tokens{Input: 9000, Output: 120}}}},
			{At: 90, Prompt: "When was it lowest?", Responses: []Response{{From: 90.2, To: 92, Text: "In August.", Tokens: Tokens{Input: 800, Output: 6}}}},
		}},
	}
	forked := list[slices.IndexFunc(list, func(s Scenario) bool { return s.Name == "turns" })]
	forked.Name, forked.Forked = "forked", true
	list = append(list, forked)
	numbered := Scenario{Name: "numbered"}
	for i, basin := range []string{"east basin", "west basin"} {
		from := float64(i) * 60
		w := level("0", from+1.55, from+3.25, basin, basin+" 1.40 m")
		numbered.Turns = append(numbered.Turns, Turn{At: from, Prompt: "How high is the " + basin + "?", Responses: []Response{
			{From: from + 0.2, To: from + 1.5, Tokens: Tokens{Input: 300, Output: 20}, Work: []*Work{w}},
			{From: from + 3.4, To: from + 4.5, Text: "The " + basin + " stands at 1.40 m.", Tokens: Tokens{Input: 340, Output: 11}}}})
	}
	list = append(list, numbered)
	again := list[slices.IndexFunc(list, func(s Scenario) bool { return s.Name == "parallel" })]
	again.Name, again.Twice = "repeated", true
	return append(list, again)
}
