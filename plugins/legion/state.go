package legion

import (
	"encoding/json"
	"fmt"
)

// state is a snapshot.
type state struct {
	Clock    uint64              `json:"clock"`
	Last     string              `json:"last,omitempty"`
	Sessions map[string]*session `json:"sessions,omitempty"`
}

// Snapshot returns what is remembered.
func (d *Decoder) Snapshot() ([]byte, error) {
	if d.last == nil {
		return nil, nil
	}
	sc := d.scratch.Get().(*scratch)
	defer d.scratch.Put(sc)
	for _, s := range d.sessions {
		s.Said.settle(sc)
	}
	return json.Marshal(state{Clock: d.clock, Last: d.last.id, Sessions: d.sessions})
}

// Restore takes up a snapshot.
func (d *Decoder) Restore(snapshot []byte) error {
	var st state
	if err := json.Unmarshal(snapshot, &st); err != nil {
		return fmt.Errorf("legion: snapshot: %w", err)
	}
	d.clock = st.Clock
	for id, s := range st.Sessions {
		if s == nil {
			return fmt.Errorf("legion: snapshot: session %q is null", id)
		}
		s.id = id
		if s.Calls == nil {
			s.Calls = make(map[string]*call)
		}
		for id, c := range s.Calls {
			if c == nil {
				return fmt.Errorf("legion: snapshot: call %q is null", id)
			}
			c.id = id
		}
		d.sessions[id] = s
	}
	d.last = d.sessions[st.Last]
	return nil
}
