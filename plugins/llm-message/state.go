package llmmessage

import (
	"encoding/json"
	"fmt"
)

// stateVersion rises when the state's form changes.
const stateVersion = 1

// Limits of what is remembered. What is forgotten is the oldest.
const (
	maxSessions = 64
	maxSeen     = 4096 // events
	maxGiven    = 8192 // texts and calls of a session
	maxCalls    = 256  // open ones
	maxIDs      = 1024 // ids under which snapshots know calls
	maxNameless = 64   // ended calls without such an id
	maxDone     = 4096 // calls that have their result, responses that were counted
	maxLanes    = 16   // memories of a session
	maxItems    = 2048 // messages of a memory
	maxGuides   = 8
	maxPhases   = 256
	maxWaits    = 64
	maxDraft    = 1 << 20 // bytes of an answer in the making
	maxAttr     = 4 << 10 // bytes of JSON that is kept as an attribute
)

// state is what the decoder knows of the events before.
type state struct {
	Version  int
	Last     string            `json:",omitempty"` // the session that an event last named
	Alias    map[string]string `json:",omitempty"` // restored sessions, and which they were
	Sessions []*session        `json:",omitempty"` // least recently used first
	Seen     ring              `json:",omitzero"`  // events
	Heard    heard             `json:",omitzero"`
}

// Snapshot returns the state.
func (d *stream) Snapshot() ([]byte, error) {
	d.Version = stateVersion
	b, err := json.Marshal(&d.state)
	if err != nil {
		return nil, fmt.Errorf("llm-message: snapshot: %w", err)
	}
	return b, nil
}

// Restore takes up where Snapshot was taken.
func (d *stream) Restore(snapshot []byte) error {
	var s state
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return fmt.Errorf("llm-message: snapshot: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("llm-message: snapshot of version %d, want %d", s.Version, stateVersion)
	}
	for _, one := range s.Sessions {
		if one == nil {
			return fmt.Errorf("llm-message: snapshot: a session is missing")
		}
		one.Given.index()
	}
	d.state = s
	return nil
}
