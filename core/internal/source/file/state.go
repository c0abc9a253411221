package file

import (
	"encoding/json"
	"fmt"
)

// stateV is the version of state.
const stateV = 1

// state is what a stream remembers in the checkpoint.
type state struct {
	V       int    `json:"v"`
	Kind    kind   `json:"kind,omitempty"`
	Dev     uint64 `json:"dev"`
	Ino     uint64 `json:"ino"`
	Base    int64  `json:"base,omitempty"`
	Off     int64  `json:"off"`
	Head    sum    `json:"head"`
	HeadLen int    `json:"head_len"`
	Tail    sum    `json:"tail"`
	// Outside says that the file was renamed to a name that no pattern covers.
	Outside bool `json:"outside,omitempty"`
	// Done is the stamp of a file that holds nothing more of the stream.
	DoneSize  int64 `json:"done_size,omitempty"`
	DoneMtime int64 `json:"done_mtime,omitempty"`
}

func (s state) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("file: state of a stream: " + err.Error()) // there is nothing in it that has no JSON
	}
	return b
}

func decodeState(b []byte) (state, error) {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return state{}, fmt.Errorf("state: %w", err)
	}
	if s.V != stateV || s.Off < 0 || s.Base < 0 || s.HeadLen < 0 || s.HeadLen > markLen {
		return state{}, fmt.Errorf("state: version %d, or a bad offset", s.V)
	}
	return s, nil
}
