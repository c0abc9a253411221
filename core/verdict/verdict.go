// Package verdict judges open work: each run, tool call and delegation that has begun and not
// ended is healthy, or has one of eleven reasons why it makes no progress. It is pure: it
// reads no clock, and equal records and histories have equal verdicts.
//
// A verdict follows from three things: the records' own times (Progress, CallState), when the
// source was last alive (a record, or bytes of its stream that were no record yet), and how
// long the same work took before (History). Silence counts from the last sign of life by
// Earshot's clock, so that a sender's wrong clock makes nothing late. History, which is
// read long after it was written, is not judged: nothing of it goes on now.
//
//	healthy             goes on, or has waited no longer than work of its kind takes
//	model_silent        the model has its input, and answers for longer than it ever took
//	model_retrying      requests to the model fail and are tried again
//	tool_running        a call runs for longer than its own history allows
//	waiting_permission  a call waits for a person's permission
//	waiting_person      the run waits for a person's answer
//	rate_limited        a quota is used up; no retry helps before it is reset
//	child_dead          a delegate failed, or its stream ended, without an answer
//	orphan              a run goes on although its caller has ended
//	zombie              a delegate has ended and its caller does not have the result
//	never_started       a run has no answer of a model at all, or a delegation no run
//	looping             the same calls have the same results again and again
//
// Work that waits for work below it has the verdict of that work, and names it as the cause.
package verdict

import (
	"fmt"
	"time"
)

// Kind is a verdict.
type Kind uint8

// The verdicts.
const (
	Healthy Kind = iota
	ModelSilent
	ModelRetrying
	ToolRunning
	WaitingPermission
	WaitingPerson
	RateLimited
	ChildDead
	Orphan
	Zombie
	NeverStarted
	Looping
)

var kinds = [...]string{
	"healthy", "model_silent", "model_retrying", "tool_running", "waiting_permission", "waiting_person",
	"rate_limited", "child_dead", "orphan", "zombie", "never_started", "looping",
}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("invalid(%d)", k)
}

var advice = map[string]string{
	"model_silent":       "Interrupt the turn and have it go on. If other agents are silent too, it is the provider.",
	"model_retrying":     "It goes on when the provider does: look at its status, or change the model.",
	"tool_running":       "Look whether its process still works. If you end it, the agent gets an error and goes on.",
	"waiting_permission": "Allow or refuse it where the agent runs.",
	"waiting_person":     "Answer where the agent runs.",
	"rate_limited":       "Wait until the quota is reset, raise it, or change the model.",
	"child_dead":         "Interrupt the caller and have it try again: no result will come.",
	"orphan":             "Stop it, unless its work is wanted: nobody waits for it.",
	"zombie":             "Interrupt the caller: its delegate has finished, and it was not told.",
	"never_started":      "Begin it again: no model has answered.",
	"looping":            "Interrupt it and tell it what to do otherwise: it repeats itself.",
}

// Advice is a person's next step after a verdict of that name; empty: none.
func Advice(name string) string { return advice[name] }

// Names are the names of all verdicts; the first is healthy.
func Names() []string { return kinds[:] }

// Waits reports whether the work waits for a person: that is no fault.
func (k Kind) Waits() bool { return k == WaitingPermission || k == WaitingPerson }

// Verdict is a verdict with its reason.
type Verdict struct {
	Kind     Kind
	Since    int64  // Unix ns; when that state of the work began
	Evidence string // one sentence
	Cause    string // the id of the call or the run below it that is the reason; empty: itself
}

// Rules are the floors below which no history makes work late.
type Rules struct {
	ModelSilent time.Duration // without a record, or a byte, of an answer of a model
	Tool        time.Duration // of a call without history
	ToolFloor   time.Duration // of a call with history
	Start       time.Duration // until a delegate's first record
	Grace       time.Duration // for records that are written late: the end of a delegate, of a caller
	Retrying    time.Duration // of retries
	Asked       time.Duration // of a wait for a person
}

// DefaultRules are the rules of a configuration that names none.
func DefaultRules() Rules {
	return Rules{
		ModelSilent: 3 * time.Minute, Tool: 20 * time.Minute, ToolFloor: time.Minute,
		Start: time.Minute, Grace: 30 * time.Second, Retrying: 30 * time.Second, Asked: 10 * time.Second,
	}
}

// Recent is for how long after its last sign of life work that was not read live is judged: the
// end of a transcript that is older is history.
const Recent = 5 * time.Minute

// Age is a duration for people.
func Age(ns int64) string { return span(ns) }

// span is a duration for people.
func span(ns int64) string {
	d := time.Duration(max(ns, 0))
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
