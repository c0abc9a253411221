package conversation

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// Time is a time as the protocol has it: nanoseconds, and how fine the protocol is. The
// zero value is no time; the host then infers one.
type Time struct {
	Nanos     int64         `json:",omitempty"`
	Precision msg.Precision `json:",omitempty"`
}

// TimeOf reads a JSON string or number (package when).
func TimeOf(v jsonv.Value) (t Time) {
	t.Nanos, t.Precision, _ = when.Value(v)
	return t
}

// Or returns t, or the other when t is no time.
func (t Time) Or(other Time) Time {
	if t.Nanos == 0 {
		return other
	}
	return t
}

// Set makes t the time of the message.
func (t Time) Set(m *msg.Message) { m.Time, m.Precision = t.Nanos, t.Precision }

// Run is one invocation of an agent.
type Run struct {
	ID string `json:",omitempty"`

	// Child is set when another run caused this one. Parent and Call are empty until they
	// are known.
	Child      bool           `json:",omitempty"`
	Parent     string         `json:",omitempty"` // run
	Call       string         `json:",omitempty"` // of the parent
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`

	Started bool   `json:",omitempty"` // a message has the signal RunStart
	Linked  bool   `json:",omitempty"` // a message has the parent
	Ended   bool   `json:",omitempty"`
	Failed  bool   `json:",omitempty"` // the last record of the model is an error
	Stop    string `json:",omitempty"` // finish reason of the last response
}

// Active reports whether the run has begun and has not ended.
func (r *Run) Active() bool { return r.ID != "" && !r.Ended }

// Begin begins a run. A run that another one caused keeps its id and its parent: new input
// makes it active again.
func (r *Run) Begin(id string) {
	if r.Child {
		r.Ended = false
		return
	}
	*r = Run{ID: id}
}

// Wake begins a run unless one is active, and reports whether it did.
func (r *Run) Wake(id string) bool {
	if r.Active() {
		return false
	}
	r.Begin(id)
	return true
}

// Caused records the call that caused the run. A later cause is ignored.
func (r *Run) Caused(parent, call string, link msg.LinkMethod, confidence uint8) {
	if r.Call == "" {
		r.Parent, r.Call, r.Link, r.Confidence = parent, call, link, confidence
	}
}

// Mark makes the message one of the run. The first message of a run starts it; the first
// one after the parent is known has the parent.
func (r *Run) Mark(m *msg.Message) (first bool) {
	m.Run = r.ID
	if r.ID == "" {
		return false
	}
	if first = !r.Started; first {
		r.Started = true
		m.Signal = msg.RunStart
		if r.Child {
			m.ParentRun = msg.UnknownRun
		}
	}
	if r.Parent != "" && !r.Linked {
		r.Linked = true
		r.Below(m)
	}
	return first
}

// Below writes the parent of the run into the message.
func (r *Run) Below(m *msg.Message) {
	m.ParentRun, m.ParentCall = r.Parent, r.Call
	m.Delegation.Link, m.Delegation.Confidence = r.Link, r.Confidence
}

// Going is the id of the run while it is active.
func (r *Run) Going() string {
	if r.Active() {
		return r.ID
	}
	return ""
}

// Finish makes the message the end of the run for that reason, which a user would not see.
func (r *Run) Finish(m *msg.Message, reason string, failed bool) {
	m.Hidden, m.FinishReason, m.IsError = true, reason, failed
	r.End(m)
}

// Outcome is the reason of the end of a run where the protocol has none.
func Outcome(failed bool) string {
	if failed {
		return "error"
	}
	return "stop"
}

// Causes names in a message about a call the run that the call caused, by its id in the protocol, if it is known.
func Causes(m *msg.Message, run string) {
	if run != "" {
		m.Delegation.ChildRun, m.Delegation.Link = run, msg.ByNativeID
	}
}

// End makes the message the end of the run.
func (r *Run) End(m *msg.Message) {
	m.Signal, r.Ended = msg.RunEnd, true
}
