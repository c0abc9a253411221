package conversation

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
)

// MaxWaits is the number of questions that are remembered until they are answered.
const MaxWaits = 64

// Wait is a question to a person, by its id in the protocol: whether a call may be made, or what a run is to do.
type Wait struct {
	ID   string
	Run  string
	Call string // empty if the run waits and no call
}

// Waits are the questions that have no answer, the oldest first.
type Waits []Wait

// Ask adds a question. Beyond MaxWaits the oldest is forgotten.
func (q *Waits) Ask(w Wait) { *q = bounded.Push(*q, w, MaxWaits) }

// Answer removes the question with that id and returns it.
func (q *Waits) Answer(id string) (w Wait, asked bool) {
	return bounded.Take((*[]Wait)(q), func(w Wait) bool { return w.ID == id })
}

// Signal is that of the beginning or of the end of the wait: of the call, or of the run, which then pauses.
func (w Wait) Signal(ends bool) msg.Signal {
	switch {
	case w.Call == "" && ends:
		return msg.RunResume
	case w.Call == "":
		return msg.RunPause
	case ends:
		return msg.WaitEnd
	}
	return msg.WaitStart
}
