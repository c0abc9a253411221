package file

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// stateV is the version of state.
const stateV = 1

// state is stored in the checkpoint with the key, origin and anchor of a stream. It
// identifies the content; the sink knows how far it was read.
type state struct {
	V       int    `json:"v"`
	Kind    kind   `json:"kind,omitempty"`
	Dev     uint64 `json:"dev"`
	Ino     uint64 `json:"ino"`
	Base    int64  `json:"base,omitempty"`
	Off     int64  `json:"off"`
	Head    digest `json:"head"`
	HeadLen int    `json:"head_len"`
	Tail    digest `json:"tail"`
	// Outside: the file was renamed to a name that no pattern covers.
	Outside bool `json:"outside,omitempty"`
	// Done is the stamp of a file that was read to its end.
	DoneSize  int64 `json:"done_size,omitempty"`
	DoneMtime int64 `json:"done_mtime,omitempty"`
}

func (s state) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("file: state of a stream: " + err.Error()) // every field of it has a JSON form
	}
	return b
}

func decodeState(b []byte) (state, error) {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return state{}, fmt.Errorf("state: %w", err)
	}
	if s.V != stateV || s.Off < 0 || s.Base < 0 || s.HeadLen < 0 || s.HeadLen > printLen {
		return state{}, fmt.Errorf("state: version %d, or a bad offset", s.V)
	}
	return s, nil
}

// checkpointed is a stream of an earlier run, and where it was read from.
type checkpointed struct {
	*stream
	id      inode
	kind    kind
	outside bool
}

// isOf reports whether the stream was read from that inode, or from one of the same
// number at the same path: a restart of the machine renumbers its devices.
func (c *checkpointed) isOf(x found) bool {
	return c.id.ino == x.id.ino && (c.id.dev == x.id.dev || c.origin == x.path)
}

// checkpoint holds the streams of earlier runs by inode number, until their files are found.
type checkpoint map[uint64][]*checkpointed

// loadCheckpoint decodes the streams that the sink knows. A stream whose state cannot be
// decoded is left out: its file is opened under the same key again, and the sink returns
// its position. The keys of the others are added to keys.
func loadCheckpoint(known []source.Known, keys streamKeys, log *slog.Logger) checkpoint {
	c := make(checkpoint)
	for _, k := range known {
		st, err := decodeState(k.State)
		if err != nil {
			log.Warn("stream is not recognized", "key", k.Key, "path", k.Origin, "cause", err)
			continue
		}
		keys[k.Key] = struct{}{}
		c[st.Ino] = append(c[st.Ino], &checkpointed{
			stream: &stream{
				key: k.Key, anchor: k.Anchor, origin: k.Origin, safe: k.Pos,
				cursor:      cursor{base: st.Base},
				fingerprint: fingerprint{off: st.Off, head: st.Head, headLen: st.HeadLen, tail: st.Tail},
				done:        stamp{st.DoneSize, st.DoneMtime},
			},
			id: inode{st.Dev, st.Ino}, kind: st.Kind, outside: st.Outside,
		})
	}
	return c
}

// take removes and returns the streams that were read from a file, the one that was read
// furthest first.
func (c checkpoint) take(x found) []*stream {
	all, ok := c[x.id.ino]
	if !ok {
		return nil
	}
	var out []*stream
	rest := all[:0]
	for _, st := range all {
		if st.isOf(x) {
			out = append(out, st.stream)
		} else {
			rest = append(rest, st)
		}
	}
	c[x.id.ino] = rest
	slices.SortFunc(out, func(a, b *stream) int { return cmp.Compare(b.fingerprint.off, a.fingerprint.off) })
	return out
}
