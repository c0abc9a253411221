package plane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each frame with a message that has it as its content, and its length in a problem.
func echo(c Call) error {
	var req wire.Request
	var resp wire.Response
	for {
		if err := c.Recv(&req); err != nil {
			return err
		}
		resp.Reset()
		for i := range req.Batches {
			b := &req.Batches[i]
			var out []msg.Message
			for j := range b.Frames {
				out = append(out, msg.Message{Frame: int32(j), Key: "k", Session: string(b.Frames[j].Data), Content: msg.Raw(b.Frames[j].Data)})
			}
			resp.Append(b, out, nil, nil, nil)
		}
		if err := c.Send(&resp); err != nil {
			return err
		}
	}
}

// call serves handle and opens a call of it. The error is how the call ended for the decoder.
func call(t *testing.T, handle func(Call) error) (*Conn, <-chan error) {
	t.Helper()
	path, ended := filepath.Join(t.TempDir(), "s"), make(chan error, 1)
	l, err := Serve(path, func(c Call) { ended <- handle(c) })
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), path, session(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, ended
}

// TestMessagesCross: requests of many sizes, some in flight at a time, are answered in their order with the same
// bytes, and the end of the requests ends the call.
func TestMessagesCross(t *testing.T) {
	c, ended := call(t, echo)
	rng := rand.New(rand.NewPCG(1, 2))
	var requests []*wire.Request
	for i, size := range []int{0, 1, ahead - 1, ahead, firstBuffer, 3 * firstBuffer, 700 << 10, 1, keep + 1, 2, 100, 100, 100} {
		data := bytes.Repeat([]byte{byte('a' + i)}, size)
		r := &wire.Request{}
		for n := range 1 + rng.IntN(3) {
			r.Batches = append(r.Batches, wire.Batch{Stream: uint64(n), Data: data, Frames: []frame.Frame{{Data: data[:size/3]}, {Data: data[size/3:]}}})
		}
		requests = append(requests, r)
	}
	sent := make(chan error, 1)
	go func() {
		for _, r := range requests {
			if err := c.Send(r); err != nil {
				sent <- err
				return
			}
		}
		sent <- c.CloseSend()
	}()
	var resp wire.Response
	for i, r := range requests {
		if err := c.Recv(&resp); err != nil {
			t.Fatal(i, err)
		}
		n := 0
		if err := resp.Results(func(raw []byte) error {
			b := r.Batches[n]
			var res wire.Result
			if err := res.Read(raw, b.Data); err != nil {
				return err
			}
			for j, m := range res.Messages {
				if m.Session != string(b.Frames[j].Data) || m.Content.String() != m.Session || res.Stream != b.Stream {
					t.Errorf("request %d, batch %d, frame %d: other bytes", i, n, j)
				}
			}
			if n++; len(res.Messages) != len(b.Frames) {
				t.Errorf("%d messages for %d frames", len(res.Messages), len(b.Frames))
			}
			return nil
		}); err != nil || n != len(r.Batches) {
			t.Fatalf("%d results of %d: %v", n, len(r.Batches), err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the call ended with %v", err)
	}
	if err := c.Recv(&resp); !errors.Is(err, io.EOF) {
		t.Errorf("after the end of the call: %v", err)
	}
}

// TestReader cuts any pieces of a stream into the same messages.
func TestReader(t *testing.T) {
	var stream []byte
	var want []string
	for _, n := range []int{0, 5, 0, 3 * ahead, 1, firstBuffer + 3, 2} {
		m := strings.Repeat("x", n)
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(n)), m...)
		want = append(want, m)
	}
	for name, from := range map[string]io.Reader{"whole": bytes.NewReader(stream), "bytes": iotest.OneByteReader(bytes.NewReader(stream)), "with its end": iotest.DataErrReader(bytes.NewReader(stream))} {
		r := reader{from: from}
		for i, w := range want {
			if b, err := r.next(); err != nil || string(b) != w {
				t.Errorf("%s, message %d: %d bytes of %d, %v", name, i, len(b), len(w), err)
			}
		}
		if _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v at the end", name, err)
		}
	}
}

// TestReaderRefuses streams that end within a message, and messages over the limit.
func TestReaderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   error
	}{
		"a cut length":  {"\x00\x00", io.ErrUnexpectedEOF},
		"no message":    {"\x00\x00\x00\x05", io.ErrUnexpectedEOF},
		"a cut message": {"\x00\x00\x00\x05abc", io.ErrUnexpectedEOF},
		"a long one":    {"\x10\x00\x00\x01abc", nil},
		"garbage":       {"HTTP/1.1 400 Bad Request\r\n", nil},
	} {
		r := reader{from: strings.NewReader(c.stream)}
		_, err := r.next()
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && (err == nil || !strings.Contains(err.Error(), "the limit is")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnnouncedBytesTakeNoMemory: a length that is allowed and not followed by as many bytes takes memory for
// those that came, about.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, wire.MaxMessage), make([]byte, 100<<10)...)
	r := reader{from: bytes.NewReader(stream)}
	if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if cap(r.buf) > 300<<10 {
		t.Errorf("a buffer of %d bytes for %d", cap(r.buf), len(stream))
	}
}

// TestLargeBufferIsLetGo when the message in it is done.
func TestLargeBufferIsLetGo(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, 2*keep), make([]byte, 2*keep)...)
	stream = append(binary.BigEndian.AppendUint32(stream, 1), 7)
	r := reader{from: bytes.NewReader(stream)}
	if b, err := r.next(); err != nil || len(b) != 2*keep {
		t.Fatal(len(b), err)
	}
	if b, err := r.next(); err != nil || len(b) != 1 || b[0] != 7 || cap(r.buf) > keep {
		t.Error(b, err, cap(r.buf))
	}
}

// TestPeerDoesNotRead: the sender waits, with no more memory than the system's buffer, until the call is closed.
func TestPeerDoesNotRead(t *testing.T) {
	stop := make(chan struct{})
	c, _ := call(t, func(Call) error { <-stop; return nil })
	defer close(stop)
	data := make([]byte, 1<<20)
	sent, failed := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		for {
			if err := c.Send(&wire.Request{Batches: []wire.Batch{{Data: data, Frames: []frame.Frame{{Data: data}}}}}); err != nil {
				failed <- err
				return
			}
			sent <- struct{}{}
		}
	}()
	select {
	case err := <-failed:
		t.Fatal(err)
	case <-time.After(100 * time.Millisecond):
	}
	if len(sent) > 4 {
		t.Errorf("%d requests of 1 MiB were taken by a peer that reads none", len(sent))
	}
	go func() { time.Sleep(10 * time.Millisecond); c.Close() }()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	var resp wire.Response
	if err := c.Recv(&resp); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestRequestThatIsNone ends the call for the host as well.
func TestRequestThatIsNone(t *testing.T) {
	c, ended := call(t, echo)
	c.pieces = append(c.pieces[:0], c.length[:], []byte("\x0a\x7fthere is less"))
	if err := c.write(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	var resp wire.Response
	if err := c.Recv(&resp); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestSendRefuses a message over the limit, and one that cannot be encoded, and the call goes on.
func TestSendRefuses(t *testing.T) {
	c, _ := call(t, echo)
	data := []byte("abc")
	if err := c.Send(&wire.Request{Batches: []wire.Batch{{Data: data, Frames: []frame.Frame{{Data: []byte("abc")}}}}}); err == nil {
		t.Error("a frame of another buffer was sent")
	}
	large := make([]byte, wire.MaxMessage) // its pages are never touched
	if err := c.Send(&wire.Request{Batches: []wire.Batch{{Data: large}}}); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Error(err)
	}
	if err := c.Send(&wire.Request{Batches: []wire.Batch{{Data: data, Frames: []frame.Frame{{Data: data}}}}}); err != nil {
		t.Error(err)
	}
	var resp wire.Response
	if err := c.Recv(&resp); err != nil || !bytes.Contains(resp.Bytes(), data) {
		t.Error(err)
	}
}

// TestEndOfTheServer ends open calls.
func TestEndOfTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Serve(path, func(c Call) { _ = echo(c) })
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), path, session(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(&wire.Request{}); err != nil {
		t.Fatal(err)
	}
	var resp wire.Response
	if err := c.Recv(&resp); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Recv(&resp); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), path, session(t)); err == nil {
		t.Error("a call of a server that has ended")
	}
}

// TestServerOfAnotherSession is not spoken to: a path may lead anywhere.
func TestServerOfAnotherSession(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peer is known on Linux only")
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := Serve(path, func(c Call) { _ = echo(c) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err := Dial(t.Context(), path, session(t)+1); err == nil || !strings.Contains(err.Error(), "not of the session") {
		t.Error(c, err)
	}
}

// FuzzReader: no stream makes it panic, or return more than came.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01a\x00\x00\x00\x02b"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, total := reader{from: bytes.NewReader(in)}, 0
		for {
			b, err := r.next()
			if err != nil {
				break
			}
			total += lengthSize + len(b)
		}
		if total > len(in) || cap(r.buf) > max(firstBuffer, 2*len(in)+ahead) {
			t.Errorf("%d bytes of %d, a buffer of %d", total, len(in), cap(r.buf))
		}
	})
}
