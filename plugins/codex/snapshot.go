package codex

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/earshot-dev/earshot/core/msg"
)

// stateVersion rises when the state's form changes.
const stateVersion = 1

// state is what the decoder knows of the lines so far.
type state struct {
	Thread   string `json:",omitempty"` // of the first session_meta
	Session  string `json:",omitempty"` // the thread that leads the tree
	Parent   string `json:",omitempty"` // the thread that spawned this one
	Child    bool   `json:",omitempty"`
	Name     string `json:",omitempty"` // of a sub-agent
	Path     string `json:",omitempty"` // its place in the tree: /root/reviewer
	Provider string `json:",omitempty"`
	Model    string `json:",omitempty"`
	Dir      string `json:",omitempty"` // where it works
	Manual   bool   `json:",omitempty"` // a person began it, at a terminal or in an editor

	Own  bool     `json:",omitempty"` // a record beside session_meta was seen that is no copy
	Copy *history `json:",omitempty"` // the copied history that goes on

	Run       string    `json:",omitempty"` // that goes on
	Last      string    `json:",omitempty"` // the last one that was introduced
	Turn      string    `json:",omitempty"` // the protocol's id of the turn, which is the run's unless a prompt came first
	Ended     string    `json:",omitempty"` // the last turn of which the end was told
	Lifecycle bool      `json:",omitempty"` // turns are known to be told of (task_started)
	Prompted  bool      `json:",omitempty"` // the run has a prompt
	Answered  bool      `json:",omitempty"` // the model has said something in it
	Response  *response `json:",omitempty"`
	Compacted bool      `json:",omitempty"` // and the model has said nothing since

	Total counts   `json:",omitzero"`  // the thread's sum when it was last told
	Calls []*call  `json:",omitempty"` // open ones, oldest first
	Done  []uint64 `json:",omitempty"` // hashes of the ids of calls that are over, oldest first
	Twins []twin   `json:",omitempty"` // texts that may be told once more, oldest first
}

type snapshot struct {
	Version int
	state
}

// Snapshot returns what the decoder knows of the lines so far.
func (d *thread) Snapshot() ([]byte, error) {
	if reflect.ValueOf(d.state).IsZero() {
		return nil, nil
	}
	b, err := json.Marshal(snapshot{stateVersion, d.state})
	if err != nil {
		return nil, fmt.Errorf("codex: snapshot: %w", err)
	}
	return b, nil
}

// Restore takes up where Snapshot was taken.
func (d *thread) Restore(b []byte) error {
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("codex: snapshot: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("codex: snapshot of version %d, want %d", s.Version, stateVersion)
	}
	d.state = s.state
	return nil
}

// session is the conversation: the thread that leads the tree.
func (d *thread) session() string {
	switch {
	case d.Session != "":
		return d.Session
	case d.Thread != "":
		return d.Thread
	case d.origin != "":
		return d.origin
	}
	return "unknown"
}

func (d *thread) agent() msg.Agent {
	if d.Child {
		return msg.Agent{ID: d.Thread, Name: d.Name, Kind: msg.KindAgent}
	}
	return msg.Agent{Name: "codex", Kind: msg.KindAgent}
}
