package wire

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/earshot-dev/earshot/core/frame"
)

// Request is earshot.decoder.v1.DecodeRequest.
type Request struct {
	Batches []Batch
	buf     buffer // of Unmarshal
}

// Batch is earshot.decoder.v1.Batch. The Data of its frames lies in Data.
type Batch struct {
	Stream   uint64
	Open     *Open
	Data     []byte
	Frames   []frame.Frame
	Flush    bool
	Snapshot bool
	Close    bool
}

// Open is earshot.decoder.v1.Open.
type Open struct {
	Origin   string
	Options  string
	Snapshot []byte
	Source   string
}

// Field numbers of DecodeRequest, Batch, Open and Frame.
const (
	reqBatches = 1

	batchStream   = 1
	batchOpen     = 2
	batchData     = 3
	batchFrames   = 4
	batchFlush    = 5
	batchSnapshot = 6
	batchClose    = 7

	openOrigin   = 1
	openOptions  = 2
	openSnapshot = 3
	openSource   = 4

	frameLength     = 1
	frameKind       = 2
	frameFromClient = 3
	frameName       = 4
	frameID         = 5
	frameObserved   = 6
	frameSkip       = 7
)

// Marshal returns the request's bytes in pieces; the frames' bytes are not
// copied, so their buffers must not change until the response is there.
func (r *Request) Marshal() (mem.BufferSlice, error) {
	pieces, _, err := r.Pieces(nil, nil)
	if err != nil {
		return nil, err
	}
	out := make(mem.BufferSlice, 0, len(pieces))
	for _, p := range pieces {
		out = append(out, mem.SliceBuffer(p))
	}
	return out, nil
}

// Pieces appends the request's bytes to pieces, without a copy of the frames' bytes, which
// lie in pieces of their own. All others are appended to own, which is returned too.
func (r *Request) Pieces(pieces [][]byte, own []byte) ([][]byte, []byte, error) {
	for i := range r.Batches {
		b := &r.Batches[i]
		at := len(own)
		var err error
		if own, err = b.appendTail(own); err != nil {
			return pieces, own, err
		}
		tail := own[at:]
		var small [32]byte
		head := b.appendHead(small[:0])
		if len(b.Data) > 0 {
			head = protowire.AppendVarint(appendTag(head, batchData, protowire.BytesType), uint64(len(b.Data)))
		}
		at = len(own)
		own = protowire.AppendVarint(appendTag(own, reqBatches, protowire.BytesType), uint64(len(head)+len(b.Data)+len(tail)))
		own = append(own, head...)
		pieces = append(pieces, own[at:])
		if len(b.Data) > 0 {
			pieces = append(pieces, b.Data)
		}
		if len(tail) > 0 {
			pieces = append(pieces, tail)
		}
	}
	return pieces, own, nil
}

func (b *Batch) appendHead(dst []byte) []byte {
	dst = appendUint(dst, batchStream, b.Stream)
	if o := b.Open; o != nil {
		var body []byte
		body = appendString(body, openOrigin, o.Origin)
		body = appendString(body, openOptions, o.Options)
		body = appendBytes(body, openSnapshot, o.Snapshot)
		body = appendString(body, openSource, o.Source)
		dst = protowire.AppendBytes(appendTag(dst, batchOpen, protowire.BytesType), body)
	}
	return dst
}

func (b *Batch) appendTail(dst []byte) ([]byte, error) {
	pos, at := 0, 0
	for i := range b.Frames {
		f := &b.Frames[i]
		off, ok := frame.Offset(b.Data, f.Data)
		switch {
		case len(f.Data) == 0:
			off = pos
		case !ok || off < pos:
			return nil, fmt.Errorf("wire: frame %d does not lie in its batch's buffer", i)
		}
		dst, at = begin(dst, batchFrames, 1)
		dst = appendUint(dst, frameLength, uint64(len(f.Data)))
		dst = appendUint(dst, frameSkip, uint64(off-pos))
		dst = appendUint(dst, frameKind, uint64(f.Kind))
		dst = appendBool(dst, frameFromClient, f.FromClient)
		dst = appendString(dst, frameName, f.Name)
		dst = appendString(dst, frameID, f.ID)
		if f.At != 0 {
			dst = protowire.AppendFixed64(appendTag(dst, frameObserved, protowire.Fixed64Type), uint64(f.At))
		}
		dst = end(dst, at, 1)
		pos = off + len(f.Data)
	}
	dst = appendBool(dst, batchFlush, b.Flush)
	dst = appendBool(dst, batchSnapshot, b.Snapshot)
	dst = appendBool(dst, batchClose, b.Close)
	return dst, nil
}

// Unmarshal reads a request, which is valid until Free or the next Unmarshal.
func (r *Request) Unmarshal(in mem.BufferSlice) error {
	r.buf.fill(in)
	return r.Read(r.buf)
}

// Read reads a request, which is valid for as long as in is.
func (r *Request) Read(in []byte) error {
	r.Batches = r.Batches[:0]
	return fields(in, func(num protowire.Number, v value) error {
		if num != reqBatches {
			return nil
		}
		n := len(r.Batches)
		if n < cap(r.Batches) {
			r.Batches = r.Batches[:n+1]
			r.Batches[n] = Batch{Frames: r.Batches[n].Frames[:0]}
		} else {
			r.Batches = append(r.Batches, Batch{})
		}
		return r.Batches[n].unmarshal(v.bytes)
	})
}

// Free marks the request as unused: its buffer is reused.
func (r *Request) Free() { r.buf.trim() }

func (b *Batch) unmarshal(in []byte) error {
	at := 0
	err := fields(in, func(num protowire.Number, v value) error {
		switch num {
		case batchStream:
			b.Stream = v.num
		case batchOpen:
			b.Open = &Open{}
			return b.Open.unmarshal(v.bytes)
		case batchData:
			b.Data = v.bytes
		case batchFrames:
			var f frame.Frame
			var length, skip int
			for in := v.bytes; len(in) > 0; {
				num, v, n, err := next(in)
				if err != nil {
					return err
				}
				in = in[n:]
				switch num {
				case frameLength:
					length = int(uint32(v.num))
				case frameSkip:
					skip = int(uint32(v.num))
				case frameKind:
					f.Kind = frame.Kind(enum(v))
				case frameFromClient:
					f.FromClient = v.num != 0
				case frameName:
					f.Name = string(v.bytes)
				case frameID:
					f.ID = string(v.bytes)
				case frameObserved:
					f.At = int64(v.num)
				}
			}
			// The range is checked against Data below: the field may come later.
			f.Pos, f.End = int64(at+skip), int64(at+skip+length)
			at = int(f.End)
			b.Frames = append(b.Frames, f)
		case batchFlush:
			b.Flush = v.num != 0
		case batchSnapshot:
			b.Snapshot = v.num != 0
		case batchClose:
			b.Close = v.num != 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range b.Frames {
		f := &b.Frames[i]
		if f.End > int64(len(b.Data)) {
			return fmt.Errorf("wire: frame %d ends at %d of %d bytes", i, f.End, len(b.Data))
		}
		f.Data = b.Data[f.Pos:f.End]
	}
	return nil
}

func (o *Open) unmarshal(in []byte) error {
	return fields(in, func(num protowire.Number, v value) error {
		switch num {
		case openOrigin:
			o.Origin = string(v.bytes)
		case openOptions:
			o.Options = string(v.bytes)
		case openSnapshot:
			o.Snapshot = append([]byte(nil), v.bytes...)
		case openSource:
			o.Source = string(v.bytes)
		}
		return nil
	})
}
