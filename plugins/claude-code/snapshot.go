package claudecode

import (
	"encoding/json"
	"fmt"
)

// stateVersion rises when the state's form changes.
const stateVersion = 1

type state struct {
	Version  int
	Session  string      `json:",omitempty"`
	Lanes    []*lane     `json:",omitempty"`
	Calls    []*call     `json:",omitempty"`
	Recent   []*response `json:",omitempty"`
	Notified []uint64    `json:",omitempty"`
}

// Snapshot returns what the decoder knows of the lines so far.
func (d *transcript) Snapshot() ([]byte, error) {
	if d.session == "" && len(d.lanes) == 0 && len(d.notified) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(state{stateVersion, d.session, d.lanes, d.calls, d.recent, d.notified})
	if err != nil {
		return nil, fmt.Errorf("claude-code: snapshot: %w", err)
	}
	return b, nil
}

// Restore takes up where Snapshot was taken.
func (d *transcript) Restore(snapshot []byte) error {
	var s state
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return fmt.Errorf("claude-code: snapshot: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("claude-code: snapshot of version %d, want %d", s.Version, stateVersion)
	}
	d.session, d.lanes, d.calls, d.recent, d.notified = s.Session, s.Lanes, s.Calls, s.Recent, s.Notified
	return nil
}
