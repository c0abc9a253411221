package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// entry is a stream in a segment.
type entry struct {
	number uint64 // unique over all journals of a data directory
	source string
	format string
	key    string // empty: the stream does not outlive its process
	origin string
	anchor int64
	state  []byte // the listener's

	to    int64 // position behind its last frame in the segment
	ended bool
}

// name is the stream's key at the sink. A recording that begins after one of the
// same key was closed is a new stream.
func (e *entry) name() string {
	if e.key == "" {
		return fmt.Sprintf("%016x", e.number)
	}
	return fmt.Sprintf("%s~%016x", e.key, e.number)
}

// numberOf returns the stream's number from its key at the sink.
func numberOf(name string) (n uint64, ok bool) {
	if len(name) < 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(name[len(name)-16:], 16, 64)
	return n, err == nil
}

func (e *entry) id() source.ID {
	return source.ID{Key: e.name(), Origin: e.origin, Anchor: e.anchor}
}

// checkpoint is the streams of a source's checkpoint, by number, without the state of their decoders.
type checkpoint map[uint64]source.Known

func (c checkpoint) add(known []source.Known) {
	for _, k := range known {
		if n, ok := numberOf(k.Key); ok {
			c[n] = source.Known{ID: k.ID, Pos: k.Pos, Closed: k.Closed}
		}
	}
}

// safe reports whether a restart needs none of it.
func (e *entry) safe(k source.Known, known bool) bool {
	return known && (k.Closed || !e.ended && e.to <= k.Pos)
}

// appendEntry appends the entry as a record: of kind kindBegin in a segment,
// kindEntry in an index.
func appendEntry(dst []byte, k kind, seed uint32, e *entry, at int64) []byte {
	from := len(dst)
	dst = beginRecord(dst)
	dst = appendBytes(dst, e.source)
	dst = appendBytes(dst, e.format)
	dst = appendBytes(dst, e.key)
	dst = appendBytes(dst, e.origin)
	dst = binary.AppendVarint(dst, e.anchor)
	dst = appendBytes(dst, e.state)
	r := record{kind: k, stream: e.number, pos: e.to, at: at}
	if k == kindEntry {
		dst = binary.AppendVarint(dst, e.to)
		if e.ended {
			r.flags = 1
		}
	}
	endRecord(dst, from, seed, &r)
	return dst
}

func (e *entry) parse(r *record) error {
	f := fields{b: r.payload}
	*e = entry{
		number: r.stream, source: f.string(), format: f.string(), key: f.string(), origin: f.string(),
		anchor: f.varint(), state: bytes.Clone(f.bytes()), to: r.pos,
	}
	if r.kind == kindEntry {
		e.to, e.ended = f.varint(), r.flags&1 != 0
	}
	if f.err == nil && e.to < 0 {
		return errPayload
	}
	return f.err
}

// contents are the entries of a segment, by number.
type contents map[uint64]*entry

// add applies a record of the segment. ok is false for one that belongs to no entry, such
// as one of a stream that a corrupt record named.
func (c contents) add(r *record) (ok bool) {
	if r.kind == kindBegin {
		e := new(entry)
		if e.parse(r) != nil {
			return false
		}
		c[r.stream] = e
		return true
	}
	e := c[r.stream]
	if e == nil {
		return false
	}
	switch r.kind {
	case kindFrame, kindGap:
		end, err := r.end()
		if err != nil {
			return false
		}
		e.to = end
		return true
	case kindMark:
		e.state = bytes.Clone(r.payload)
	case kindEnd:
		e.ended = true
	default:
		return false
	}
	e.to = r.pos // frames before it may be damaged
	return true
}
