package agno

import (
	"encoding/json"
	"fmt"
)

// stateVersion rises when the state's form changes.
const stateVersion = 1

type state struct {
	Version int
	Session string    `json:",omitempty"`
	Count   uint64    `json:",omitempty"`
	Runs    []*run    `json:",omitempty"`
	Ended   []string  `json:",omitempty"`
	Held    []pending `json:",omitempty"`
	Told    digests
	Names   agentNames
}

// Snapshot returns the state after the frames so far.
func (s *stream) Snapshot() ([]byte, error) {
	if s.session == "" && len(s.runs)+len(s.ended.order)+len(s.pending) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(state{stateVersion, s.session, s.count, s.inOrder(), s.ended.order, s.pending, s.reloaded, s.agents})
	if err != nil {
		return nil, fmt.Errorf("agno: snapshot: %w", err)
	}
	return b, nil
}

// Restore restores the state of a snapshot.
func (s *stream) Restore(snapshot []byte) error {
	var st state
	if err := json.Unmarshal(snapshot, &st); err != nil {
		return fmt.Errorf("agno: snapshot: %w", err)
	}
	if st.Version != stateVersion {
		return fmt.Errorf("agno: snapshot of version %d, want %d", st.Version, stateVersion)
	}
	s.session, s.count, s.pending, s.reloaded, s.agents = st.Session, st.Count, st.Held, st.Told, st.Names
	for _, r := range st.Runs {
		if r == nil {
			return fmt.Errorf("agno: snapshot: a run is null")
		}
		s.runs[r.ID] = r
		s.text += len(r.Said.Text) + len(r.Said.Thinking) + len(r.Said.Draft)
	}
	for _, id := range st.Ended {
		s.ended.add(id)
	}
	return nil
}
