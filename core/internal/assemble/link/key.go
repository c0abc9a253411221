package link

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Key names a session. A correlation has no Format, and its Session is the correlation's name.
type Key struct{ Tenant, Format, Session string }

// String returns the key under which a store keeps the session; ParseKey reads it.
func (k Key) String() string { return k.Tenant + "\x00" + k.Format + "\x00" + k.Session }

// ParseKey returns the key whose String is s.
func ParseKey(s string) (Key, error) {
	parts := strings.SplitN(s, "\x00", 3)
	if len(parts) != 3 {
		return Key{}, fmt.Errorf("group key %q has %d parts", s, len(parts))
	}
	return Key{parts[0], parts[1], parts[2]}, nil
}

// As returns the key that ids are hashed of: that of the family, whose views are one
// conversation.
func (k Key) As(family string) Key {
	k.Format = cmp.Or(family, k.Format)
	return k
}

// Clone returns a key that shares no memory with k.
func (k Key) Clone() Key {
	return Key{strings.Clone(k.Tenant), strings.Clone(k.Format), strings.Clone(k.Session)}
}

// foreign begins a root that is no run of its session: the trace's id in hex follows.
const foreign = "\x00"

// Foreign returns the root of a run that is in a trace of another session.
func Foreign(trace msg.TraceID) string { return foreign + trace.String() }

// Trace returns the trace of a root of the session.
func (k Key) Trace(root string) msg.TraceID {
	if id, ok := strings.CutPrefix(root, foreign); ok {
		var t msg.TraceID
		if _, err := hex.Decode(t[:], []byte(id)); err == nil {
			return t
		}
	}
	return msg.NewTraceID(k.Tenant, k.Format, k.Session, root)
}
