package letta

import (
	"encoding/json"
	"fmt"
)

// stateVersion rises when the state's form changes.
const stateVersion = 1

type snapshot struct {
	Version int
	state
}

// Snapshot returns what the decoder knows of the frames so far.
func (d *stream) Snapshot() ([]byte, error) {
	if d.Place == (place{}) && len(d.Runs) == 0 && len(d.Pending) == 0 && d.Held == "" {
		return nil, nil
	}
	b, err := json.Marshal(snapshot{stateVersion, d.state})
	if err != nil {
		return nil, fmt.Errorf("letta: snapshot: %w", err)
	}
	return b, nil
}

// Restore takes up where Snapshot was taken.
func (d *stream) Restore(b []byte) error {
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("letta: snapshot: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("letta: snapshot of version %d, want %d", s.Version, stateVersion)
	}
	d.state = s.state
	return nil
}
