package body

import (
	"errors"
	"io"
	"sync/atomic"
)

// Errors of inputs.
var (
	// ErrTooLarge is the error of a body that is decoded beyond its limit.
	ErrTooLarge = errors.New("too large")
	// ErrMemory is the error of a body for which there is no memory now.
	ErrMemory = errors.New("too many large bodies at once")
)

// Memory bounds the bytes of all bodies that are being read.
type Memory struct {
	Most int64
	used atomic.Int64
}

// Used is how much is taken now.
func (m *Memory) Used() int64 { return m.used.Load() }

// reserve takes memory if some is left. No goroutine sees more in use than there is.
func (m *Memory) reserve(n int64) bool {
	for {
		used := m.used.Load()
		if used+n > m.Most {
			return false
		}
		if m.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// Input is a body with its content encoding undone, which counts the bytes that it takes of a memory.
type Input struct {
	memory  *Memory
	decoded io.ReadCloser
	limit   int
	read    int   // bytes decoded so far
	taken   int64 // of the memory
}

// NewInput returns the input of a body that is at most limit bytes long once it is decoded.
func NewInput(memory *Memory, limit int) *Input { return &Input{memory: memory, limit: limit} }

// Open begins to read raw, which is in an encoding.
func (in *Input) Open(encoding string, raw io.Reader) (err error) {
	in.decoded, err = Decode(encoding, raw)
	return err
}

// Read implements io.Reader.
func (in *Input) Read(p []byte) (int, error) {
	n, err := in.decoded.Read(p)
	if in.read += n; in.read > in.limit {
		return max(n-(in.read-in.limit), 0), ErrTooLarge
	}
	return n, err
}

// Hold takes memory until n bytes of it are taken.
func (in *Input) Hold(n int) error {
	if more := int64(n) - in.taken; more > 0 {
		if !in.memory.reserve(more) {
			return ErrMemory
		}
		in.taken += more
	}
	return nil
}

// Taken is how much memory is taken.
func (in *Input) Taken() int { return int(in.taken) }

// expected is how much memory is taken at once for a body that claims to be as long.
const expected = 1 << 20

// All reads the whole body, which has about size bytes; 0 when that is not known. It takes twice its
// size: it grows by being copied, and a frame is copied out of it.
func (in *Input) All(size int) ([]byte, error) { return in.AllInto(nil, size) }

// AllInto is All, into the room of an earlier body where that fits: a body that only claims to be large takes no more memory
// than without.
func (in *Input) AllInto(room []byte, size int) ([]byte, error) {
	data := []byte{}
	if size < cap(room) && cap(room) <= min(2*size, expected) && in.Hold(2*cap(room)) == nil {
		data = room[:0]
	}
	for {
		if len(data) == cap(data) {
			more := min(max(cap(data), 4<<10), in.limit+1-cap(data))
			if cap(data) == 0 && size > 0 {
				more = min(size+1, expected, in.limit+1)
			}
			if err := in.Hold(2 * (cap(data) + more)); err != nil {
				return nil, err
			}
			grown := make([]byte, len(data), cap(data)+more)
			copy(grown, data)
			data = grown
		}
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Release returns the memory and ends the decoding.
func (in *Input) Release() {
	in.memory.used.Add(-in.taken)
	in.taken = 0
	if in.decoded != nil {
		_ = in.decoded.Close()
	}
}
