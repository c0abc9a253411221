package journal

import (
	"encoding/binary"

	"github.com/earshot-dev/earshot/core/frame"
)

// Reasons of frames without data, and of gaps.
const (
	ReasonDropped = "journal_dropped" // the segment was evicted: too old, or the journal was too large
	ReasonCorrupt = "journal_corrupt" // the segment is damaged
	ReasonFull    = "journal_full"    // the frame could not be recorded
	reasonTooLong = "too_long"
)

// appendFrame appends a frame and returns the position after it.
func appendFrame(dst []byte, seed uint32, stream uint64, pos int64, f *frame.Frame) ([]byte, int64) {
	data, dropped, reason := f.Data, f.Dropped, f.Reason
	if len(data) > MaxFrame {
		dropped += int64(len(data) - MaxFrame)
		data = data[:MaxFrame]
		if reason == "" {
			reason = reasonTooLong
		}
	}
	from := len(dst)
	dst = beginRecord(dst)
	dst = appendBytes(dst, f.Name[:min(len(f.Name), maxString)])
	dst = appendBytes(dst, f.ID[:min(len(f.ID), maxString)])
	dst = appendBytes(dst, reason[:min(len(reason), maxString)])
	dst = binary.AppendUvarint(dst, uint64(dropped))
	dst = append(dst, data...)
	r := record{kind: kindFrame, frameKind: uint8(f.Kind), stream: stream, pos: pos, at: f.At}
	if f.FromClient {
		r.flags = flagFromClient
	}
	endRecord(dst, from, seed, &r)
	return dst, pos + int64(len(data)) + dropped + 1
}

// sizeOf is an upper bound of the bytes that appendFrame appends.
func sizeOf(f *frame.Frame) int64 {
	return int64(headSize + len(f.Name) + len(f.ID) + len(f.Reason) + 4*binary.MaxVarintLen64 + min(len(f.Data), MaxFrame))
}

// appendGap appends a gap and returns the position after it.
func appendGap(dst []byte, seed uint32, stream uint64, pos, at int64, g *gap) ([]byte, int64) {
	from := len(dst)
	dst = beginRecord(dst)
	dst = g.append(dst)
	endRecord(dst, from, seed, &record{kind: kindGap, stream: stream, pos: pos, at: at})
	return dst, pos + max(g.bytes, 1)
}

// gap counts bytes that were received and not recorded.
type gap struct {
	reason string
	bytes  int64
}

func (g *gap) add(reason string, bytes int64) {
	if g.reason == "" {
		g.reason = reason
	}
	g.bytes += max(bytes, 0)
}

func (g *gap) append(dst []byte) []byte {
	dst = appendBytes(dst, g.reason[:min(len(g.reason), maxString)])
	dst = binary.AppendUvarint(dst, 0) // was the number of frames
	return binary.AppendUvarint(dst, uint64(g.bytes))
}

func (g *gap) none() bool { return g.reason == "" }

// end returns the position after a frame or a gap.
func (r *record) end() (int64, error) {
	f, err := r.frame(interned{})
	return f.End, err
}

// frame returns the frame of a record of kind kindFrame or kindGap. Its data lies
// in the record's payload.
func (r *record) frame(intern interned) (frame.Frame, error) {
	in := fields{b: r.payload}
	f := frame.Frame{At: r.at, Pos: r.pos}
	if r.kind == kindGap {
		f.Reason = intern.get(in.bytes())
		in.uvarint()
		f.Dropped = max(int64(in.uvarint()), 1)
		f.End = f.Pos + f.Dropped
	} else {
		f.Kind, f.FromClient = frame.Kind(r.frameKind), r.flags&flagFromClient != 0
		f.Name, f.ID, f.Reason = intern.get(in.bytes()), in.string(), intern.get(in.bytes())
		f.Dropped = int64(in.uvarint())
		f.Data = in.b
		f.End = f.Pos + int64(len(f.Data)) + f.Dropped + 1
	}
	if in.err != nil || f.Pos < 0 || f.Dropped < 0 || f.End <= f.Pos {
		return f, errPayload
	}
	return f, nil
}

// interned keeps one copy of strings that are repeated.
type interned map[string]string

func (s interned) get(b []byte) string {
	const most = 1024
	if v, ok := s[string(b)]; ok {
		return v
	}
	v := string(b)
	if s != nil && len(s) < most && len(v) <= 64 {
		s[v] = v
	}
	return v
}
