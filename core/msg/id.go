package msg

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// ID identifies a message: 128 bits, written as 32 hex digits.
type ID [16]byte

// TraceID and SpanID are those of OpenTelemetry.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

func (id ID) String() string      { return hex.EncodeToString(id[:]) }
func (id TraceID) String() string { return hex.EncodeToString(id[:]) }
func (id SpanID) String() string  { return hex.EncodeToString(id[:]) }

// MarshalText returns the id in hex.
func (id ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText reads an id in hex.
func (id *ID) UnmarshalText(b []byte) error { return unhex(id[:], b) }

// UnmarshalText reads an id in hex.
func (id *TraceID) UnmarshalText(b []byte) error { return unhex(id[:], b) }

// UnmarshalText reads an id in hex.
func (id *SpanID) UnmarshalText(b []byte) error { return unhex(id[:], b) }

func unhex(id, b []byte) error {
	if len(b) != hex.EncodedLen(len(id)) {
		return fmt.Errorf("id %q: want %d hex digits", b, hex.EncodedLen(len(id)))
	}
	_, err := hex.Decode(id, b)
	return err
}

// MarshalText returns the id in hex.
func (id TraceID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// MarshalText returns the id in hex.
func (id SpanID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool      { return id == ID{} }
func (id TraceID) IsZero() bool { return id == TraceID{} }
func (id SpanID) IsZero() bool  { return id == SpanID{} }

// NewID returns the id of the message with that key.
func NewID(tenant, format, session, key string) ID {
	s := sum("message", tenant, format, session, key)
	return ID(s[:16])
}

// NewTraceID returns the id of the trace whose top-level run is run.
func NewTraceID(tenant, format, session, run string) TraceID {
	s := sum("trace", tenant, format, session, run)
	id := TraceID(s[:16])
	if id.IsZero() { // not a valid trace id
		id[15] = 1
	}
	return id
}

// NewSpanID returns the id of the span of that kind for the protocol's own
// name of the work: a run, a response, a call. It does not depend on the trace,
// so that a message knows its span before a late link decides its trace.
func NewSpanID(tenant, format, session string, kind SpanKind, native string) SpanID {
	s := sum("span", tenant, format, session, kind.String(), native)
	id := SpanID(s[:8])
	if id.IsZero() {
		id[7] = 1
	}
	return id
}

// HashKey makes a key out of protocol facts, for messages that have no id of
// their own.
func HashKey(parts ...string) string {
	s := sum(parts...)
	return hex.EncodeToString(s[:16])
}

// sum hashes the parts, each preceded by its length, so that no two lists of
// parts have the same bytes.
func sum(parts ...string) [sha256.Size]byte {
	var room [256]byte
	b := room[:0]
	for _, s := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return sha256.Sum256(b)
}
