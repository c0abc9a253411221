package reassemble

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
)

// windowSize is the distance up to which deflate refers back.
const windowSize = 32 << 10

// maxRatio bounds the work on a message that inflates to much more than the limit, in
// multiples of it.
const maxRatio = 4

// tail ends a message: the empty block that its sender left out, and a final one,
// so that the reader ends.
const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

// inflater inflates the messages of one direction.
type inflater struct {
	takeover bool
	limit    int

	r      io.ReadCloser
	window []byte // the last inflated bytes, with takeover
	out    []byte
}

// message inflates one message. dropped are bytes beyond the limit. The result is
// valid until the next call.
func (f *inflater) message(compressed []byte) (data []byte, dropped int64, err error) {
	in := io.MultiReader(bytes.NewReader(compressed), strings.NewReader(tail))
	if f.r == nil {
		f.r = flate.NewReaderDict(in, f.window)
	} else if err := f.r.(flate.Resetter).Reset(in, f.window); err != nil {
		return nil, 0, fmt.Errorf("inflate: %w", err)
	}
	if cap(f.out) > keep {
		f.out = nil
	}
	f.out = f.out[:0]
	var buf [4 << 10]byte
	for total := int64(0); ; {
		n, err := f.r.Read(buf[:])
		total += int64(n)
		kept := min(n, f.limit-len(f.out))
		f.out = append(f.out, buf[:kept]...)
		dropped += int64(n - kept)
		f.remember(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return f.out, dropped, nil
		case err != nil:
			return nil, 0, fmt.Errorf("inflate: %w", err)
		case total > maxRatio*int64(f.limit):
			return nil, 0, fmt.Errorf("inflate: more than %d times the limit", maxRatio)
		}
	}
}

// remember moves the window on.
func (f *inflater) remember(p []byte) {
	if !f.takeover {
		return
	}
	if over := len(f.window) + len(p) - windowSize; over > 0 {
		n := copy(f.window, f.window[min(over, len(f.window)):])
		f.window = f.window[:n]
	}
	f.window = append(f.window, p...)
}
