package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer answers each request with the response that answer builds.
type peer struct {
	answer func(*wire.Response, []wire.Batch) error
	last   []wire.Batch
	closed chan struct{}
}

func newPeer(answer func(*wire.Response, []wire.Batch) error) *peer {
	return &peer{answer: answer, closed: make(chan struct{})}
}

func (p *peer) Send(r *wire.Request) error { p.last = r.Batches; return nil }

func (p *peer) Recv(r *wire.Response) error {
	if p.answer == nil {
		<-p.closed
		return errors.New("closed")
	}
	return p.answer(r, p.last)
}

func (p *peer) Close() {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
}

// A response that does not match the request ends the RPC with an error.
func TestRPCRefusesWrongAnswers(t *testing.T) {
	for want, answer := range map[string]func(*wire.Response, []wire.Batch) error{
		"0 results for 1 batches": func(*wire.Response, []wire.Batch) error { return nil },
		"more results than the 1": func(r *wire.Response, b []wire.Batch) error {
			r.Append(&b[0], nil, nil, nil, nil)
			r.Append(&b[0], nil, nil, nil, nil)
			return nil
		},
		"of stream 99": func(r *wire.Response, _ []wire.Batch) error {
			r.Append(&wire.Batch{Stream: 99}, nil, nil, nil, nil)
			return nil
		},
		"range 0+4 of": func(r *wire.Response, b []wire.Batch) error {
			long := []byte("long")
			r.Append(&wire.Batch{Stream: b[0].Stream, Data: long}, []msg.Message{{Content: msg.Raw(long)}}, nil, nil, nil)
			return nil
		},
		"broken pipe": func(*wire.Response, []wire.Batch) error { return errors.New("broken pipe") },
	} {
		l := &rpc{conn: newPeer(answer), note: func() string { return " (its last words)" }}
		_, err := l.open(t.Context(), decoder.Stream{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "its last words") {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, again := l.open(t.Context(), decoder.Stream{}, nil); again == nil || again.Error() != err.Error() {
			t.Errorf("an RPC that has ended answers %v", again)
		}
	}
}

func TestRPCTimesOut(t *testing.T) {
	l := &rpc{conn: newPeer(nil)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.open(ctx, decoder.Stream{}, nil); err == nil || !strings.Contains(err.Error(), "no answer: context deadline exceeded") {
		t.Errorf("got %v", err)
	}
}

func TestRPCDistinguishesFailuresOfTheDecoder(t *testing.T) {
	opened := false
	l := &rpc{conn: newPeer(func(r *wire.Response, b []wire.Batch) error {
		var f *wire.Failure
		if opened {
			f = &wire.Failure{Error: "no more", Permanent: true, Frame: 1}
		}
		opened = true
		r.Append(&b[0], nil, nil, nil, f)
		return nil
	})}
	s, err := l.open(t.Context(), decoder.Stream{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Decode(t.Context(), Batch{Frames: []frame.Frame{{Data: []byte("a")}, {Data: []byte("b")}}})
	var f *Failure
	if !errors.As(err, &f) || !f.Permanent || f.Err != "no more" || f.Frame != 1 || l.err != nil {
		t.Errorf("got %v, RPC error %v", err, l.err)
	}
	if _, err := l.open(t.Context(), decoder.Stream{Options: []byte("{")}, nil); err == nil {
		t.Error("options that are not JSON were sent")
	}
}

// pipe answers the requests in order, and notes what they were.
type pipe struct {
	requests chan []wire.Batch
	seen     []wire.Batch
	fails    uint64 // the stream whose batches without a flush fail
}

func (p *pipe) Send(r *wire.Request) error { p.requests <- r.Batches; return nil }

func (p *pipe) Recv(r *wire.Response) error {
	for _, b := range <-p.requests {
		p.seen = append(p.seen, b)
		var f *wire.Failure
		if b.Stream == p.fails && len(b.Frames) > 0 {
			f = &wire.Failure{Error: "no more"}
		}
		r.Append(&b, nil, nil, nil, f)
	}
	return nil
}

func (p *pipe) Close() {}

// Batches of a stream are on their way together; a failure ends the stream and not the RPC, and the next request closes it.
func TestRPCDecodesAll(t *testing.T) {
	p := &pipe{requests: make(chan []wire.Batch, 8), fails: 2}
	l := &rpc{conn: p}
	batches := []Batch{{Frames: []frame.Frame{{Data: []byte("a")}}}, {Frames: []frame.Frame{{Data: []byte("b")}}}, {Flush: true}}
	for _, want := range []int{3, 0} {
		s, err := l.open(t.Context(), decoder.Stream{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		answers, err := decodeAll(t.Context(), time.Minute, s, batches)
		var f *Failure
		if len(answers) != want || errors.As(err, &f) != (want == 0) || l.err != nil {
			t.Errorf("%d answers, want %d: %v, RPC error %v", len(answers), want, err, l.err)
		}
		s.Close()
	}
	var closed []uint64
	for _, b := range p.seen {
		if b.Close {
			closed = append(closed, b.Stream)
		}
	}
	if len(p.seen) != 9 || len(closed) != 1 || closed[0] != 1 {
		t.Errorf("%d batches, closed %v", len(p.seen), closed)
	}
}
