package tap

import (
	"io"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// request is the copy of a request's body.
type request struct {
	name     string
	ids      string // see requestIDs
	encoding string
	bare     bool // not worth a frame when there is no body
	limit    int
	memory   *memory
	in       io.Reader // the body, copied as it is read; nil: it has none

	mu       sync.Mutex
	data     []byte
	dropped  int64
	full     bool      // some was dropped because there was no memory
	whole    bool      // it was read to its end
	held     bool      // it may still be read when the upstream has no use for it
	closed   io.Closer // to be closed then; nil: nothing is
	released bool
	ended    chan struct{} // closed by end
	once     sync.Once
}

// body returns a reader of r that is copied as it is read.
func (q *request) body(r io.ReadCloser) io.ReadCloser {
	if r == nil {
		return nil
	}
	return &requestBody{r, q}
}

type requestBody struct {
	io.ReadCloser
	copy *request
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.copy.add(p[:n])
	if err != nil {
		b.copy.end(err == io.EOF)
	}
	return n, err
}

// Close closes the body, but for one that no response has come to: see rest.
func (b *requestBody) Close() error {
	b.copy.mu.Lock()
	held := b.copy.held
	if held {
		b.copy.closed = b.ReadCloser
	}
	b.copy.mu.Unlock()
	if held {
		return nil
	}
	b.copy.end(false)
	return b.ReadCloser.Close()
}

// rest reads the part of a request that the upstream has left, up to the limit.
func (q *request) rest() {
	if q.in != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(q.in, int64(q.limit)))
	}
}

// free closes the body if the upstream has closed it.
func (q *request) free() {
	q.mu.Lock()
	q.held = false
	body := q.closed
	q.closed = nil
	q.mu.Unlock()
	if body != nil {
		q.end(false)
		_ = body.Close()
	}
}

func (q *request) add(p []byte) {
	if len(p) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(p), q.limit-len(q.data))
	if q.released {
		n = 0
	} else if n > 0 && !q.memory.reserve(n) {
		n, q.full = 0, true
	}
	q.data = append(q.data, p[:n]...)
	q.dropped += int64(len(p) - n)
}

// end ends the copy; whole reports that the body was read to its end.
func (q *request) end(whole bool) {
	q.once.Do(func() {
		q.mu.Lock()
		q.whole = whole
		q.mu.Unlock()
		close(q.ended)
	})
}

// content returns the bytes that are copied so far, and why they are not all.
func (q *request) content() (data []byte, dropped int64, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.full:
		reason = source.ReasonFull
	case q.dropped > 0:
		reason = msg.ReasonTooLong
	case !q.whole:
		reason = source.ReasonBroken
	}
	return q.data, q.dropped, reason
}

// release releases the memory and ends the copying.
func (q *request) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.released {
		q.released = true
		q.memory.release(len(q.data))
		q.data = nil
	}
}
