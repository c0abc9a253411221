package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A record is a head of fixed size and a payload:
//
//	 0 magic     4  where a record may begin
//	 4 head sum  4  CRC-32C of the bytes 8 to 48
//	 8 data sum  4  CRC-32C of the payload
//	12 length    4  of the payload
//	16 kind      1
//	17 frame     1  kind of the frame
//	18 flags     1
//	20 zero      4
//	24 stream    8
//	32 position  8  of the stream
//	40 time      8  Unix ns
//
// All numbers are little endian.
const (
	headSize = 48
	// MaxFrame is the most bytes that a frame may have; the rest is dropped.
	MaxFrame = 64 << 20
	// maxPayload leaves room for a name, an id and a reason beside the data.
	maxPayload = MaxFrame + 1<<20
	// maxString bounds each of a frame's strings.
	maxString = 64 << 10
)

var magic = []byte{0xf1, 'E', 'a', 0x9e}

type kind uint8

const (
	kindBegin   kind = 1 + iota // names a stream, at its position: before its first record in a segment
	kindFrame                   //
	kindGap                     // frames that were received and not recorded
	kindMark                    // the listener's state
	kindEnd                     // of a stream
	kindEntry                   // in an index: a stream of the segment
	kindTrailer                 // the last of an index: it is whole
)

const flagFromClient = 1

type record struct {
	kind      kind
	frameKind uint8
	flags     uint8
	stream    uint64
	pos       int64
	at        int64
	payload   []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seedOf is where the checksums of a segment begin.
func seedOf(segment uint64) uint32 {
	return crc32.Checksum(binary.LittleEndian.AppendUint64(nil, segment), castagnoli)
}

// beginRecord appends room for a head. The payload follows, then endRecord.
func beginRecord(dst []byte) []byte { return append(dst, make([]byte, headSize)...) }

// endRecord fills in the head of the record that began at from.
func endRecord(dst []byte, from int, seed uint32, r *record) {
	head, payload := dst[from:from+headSize], dst[from+headSize:]
	copy(head, magic)
	binary.LittleEndian.PutUint32(head[8:], crc32.Update(seed, castagnoli, payload))
	binary.LittleEndian.PutUint32(head[12:], uint32(len(payload)))
	head[16], head[17], head[18] = byte(r.kind), r.frameKind, r.flags
	binary.LittleEndian.PutUint64(head[24:], r.stream)
	binary.LittleEndian.PutUint64(head[32:], uint64(r.pos))
	binary.LittleEndian.PutUint64(head[40:], uint64(r.at))
	binary.LittleEndian.PutUint32(head[4:], crc32.Update(seed, castagnoli, head[8:]))
}

// appendRecord appends a record whose payload is ready.
func appendRecord(dst []byte, seed uint32, r *record) []byte {
	from := len(dst)
	dst = append(beginRecord(dst), r.payload...)
	endRecord(dst, from, seed, r)
	return dst
}

// state of a place in a segment.
type state uint8

const (
	whole state = iota
	short       // more bytes are needed
	bad
)

// parse reads the record at the start of b, which takes n bytes. When it is short,
// n is how many bytes are needed. The payload lies in b.
func (r *record) parse(b []byte, seed uint32) (n int, st state) {
	if k := min(len(b), len(magic)); !bytes.Equal(b[:k], magic[:k]) {
		return 0, bad
	}
	if len(b) < headSize {
		return headSize, short
	}
	if binary.LittleEndian.Uint32(b[4:]) != crc32.Update(seed, castagnoli, b[8:headSize]) {
		return 0, bad
	}
	size := int(binary.LittleEndian.Uint32(b[12:]))
	if size > maxPayload {
		return 0, bad
	}
	n = headSize + size
	if len(b) < n {
		return n, short
	}
	r.payload = b[headSize:n:n]
	if binary.LittleEndian.Uint32(b[8:]) != crc32.Update(seed, castagnoli, r.payload) {
		return 0, bad
	}
	r.kind, r.frameKind, r.flags = kind(b[16]), b[17], b[18]
	r.stream = binary.LittleEndian.Uint64(b[24:])
	r.pos = int64(binary.LittleEndian.Uint64(b[32:]))
	r.at = int64(binary.LittleEndian.Uint64(b[40:]))
	return n, whole
}

// nextMagic returns where after the first byte of b a record may begin: where it stops
// knowing when nothing is found.
func nextMagic(b []byte) int {
	if i := bytes.Index(b[1:], magic); i >= 0 {
		return 1 + i
	}
	n := min(len(magic), len(b)) - 1
	for !bytes.HasSuffix(b, magic[:n]) {
		n--
	}
	return len(b) - n
}

func appendBytes[T string | []byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// errPayload means a payload whose checksum is right and whose content is not:
// one of a newer version.
var errPayload = errors.New("payload is not understood")

// fields reads a payload. After the first error it returns zero values.
type fields struct {
	b   []byte
	err error
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.err, f.b = errPayload, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.b)
	if n <= 0 {
		f.err, f.b = errPayload, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) bytes() []byte {
	n := f.uvarint()
	if n > uint64(len(f.b)) {
		f.err, f.b = errPayload, nil
		return nil
	}
	out := f.b[:n:n]
	f.b = f.b[n:]
	return out
}

func (f *fields) string() string { return string(f.bytes()) }
