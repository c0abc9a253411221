package grace

import "github.com/earshot-dev/earshot/core/sdk/snapshot"

// stateVersion rises when the state's form changes, see package snapshot.
const stateVersion = 1

// Limits of the state. Beyond a limit the oldest entry is evicted.
const (
	maxCalls   = 1024     // without a result
	maxOver    = 1024     // calls that have theirs
	maxTasks   = 256      // of the last plan
	maxIntents = 16       // actions that the model wrote and that have not been seen to run
	maxIntent  = 64 << 10 // bytes of such an action
	maxText    = 1 << 20  // bytes of a question, or of an answer in the making
	maxAttr    = 4 << 10  // bytes of JSON that is kept as an attribute
	maxGoal    = 1 << 10  // bytes of the question that a delegation repeats
)

// state is the decoder's memory of earlier frames.
type state struct {
	Session string    `json:",omitempty"` // the conversation, when something names it
	Framing framing   `json:",omitempty"`
	Mode    string    `json:",omitempty"` // chat, agent or twins; empty before the first marker
	Turn    turn      `json:",omitzero"`
	Fresh   bool      `json:",omitempty"` // the next message begins a turn
	Shown   string    `json:",omitempty"` // key under which a question was shown that rows had no answer to
	Ask     *question `json:",omitempty"` // the question whose run is not known yet
	Asked   *question `json:",omitempty"` // the question of the request
	Chat    *chat     `json:",omitempty"` // the answer in the making

	Calls   []call       `json:",omitempty"` // without a result, oldest first
	Over    []closedCall `json:",omitempty"` // those that have theirs
	Tasks   []task       `json:",omitempty"`
	Intents []intent     `json:",omitempty"`
}

// turn is one run: a question and all that answers it.
type turn struct {
	Run    string `json:",omitempty"`
	Ended  bool   `json:",omitempty"`
	Failed bool   `json:",omitempty"` // one of its tasks has
	Goal   string `json:",omitempty"` // the beginning of the question
}

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }
