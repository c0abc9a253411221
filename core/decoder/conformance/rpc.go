package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/wire"
)

// conn is one Decode RPC.
type conn interface {
	Send(*wire.Request) error
	Recv(*wire.Response) error
	Close()
}

// rpc multiplexes streams over one Decode RPC.
type rpc struct {
	conn conn
	next uint64
	err  error // ended the RPC
	// closed are streams that the decoder does not know to be closed: the next request closes them, which costs no
	// round trip.
	closed []uint64
	// note, when set, returns a text about the process that is added to an error.
	note func() string
}

// call sends the batches in one request and reads the results. An error ends the RPC.
func (r *rpc) call(ctx context.Context, batches []wire.Batch) (results []wire.Result, err error) {
	err = r.calls(ctx, [][]wire.Batch{batches}, func(res []wire.Result) error { results = res; return nil })
	return results, err
}

// calls sends requests without waiting for the responses in between, as the sidecar does, and passes the results of each to
// answered until that returns an error, which does not end the RPC. Any other error does.
func (r *rpc) calls(ctx context.Context, requests [][]wire.Batch, answered func([]wire.Result) error) error {
	if r.err != nil {
		return r.err
	}
	first := make([]wire.Batch, 0, len(r.closed)+len(requests[0]))
	for _, id := range r.closed {
		first = append(first, wire.Batch{Stream: id, Close: true})
	}
	closed := len(first)
	r.closed = r.closed[:0]
	requests = append([][]wire.Batch{append(first, requests[0]...)}, requests[1:]...)

	var refused error
	err := r.exchange(ctx, requests, func(i int, results []wire.Result) {
		if i == 0 {
			results = results[closed:]
		}
		if refused == nil {
			refused = answered(results)
		}
	})
	if err == nil {
		return refused
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("no answer: %w", cause)
	}
	if r.note != nil {
		err = fmt.Errorf("%w%s", err, r.note())
	}
	r.err = err
	return err
}

// exchange sends requests, and receives their responses meanwhile: a decoder that nobody reads from stops reading. After an error
// the connection is closed.
func (r *rpc) exchange(ctx context.Context, requests [][]wire.Batch, received func(i int, results []wire.Result)) error {
	stop := context.AfterFunc(ctx, r.conn.Close)
	defer stop()
	send := func(requests [][]wire.Batch) error {
		for _, batches := range requests {
			if err := r.conn.Send(&wire.Request{Batches: batches}); err != nil {
				r.conn.Close()
				return err
			}
		}
		return nil
	}
	if err := send(requests[:1]); err != nil {
		return err
	}
	sent := make(chan error, 1)
	if len(requests) == 1 {
		sent <- nil
	} else {
		go func() { sent <- send(requests[1:]) }()
	}
	for i, batches := range requests {
		results, err := r.receive(batches)
		if err != nil {
			r.conn.Close()
			<-sent
			return err
		}
		received(i, results)
	}
	return <-sent
}

func (r *rpc) receive(batches []wire.Batch) ([]wire.Result, error) {
	var resp wire.Response
	if err := r.conn.Recv(&resp); err != nil {
		return nil, err
	}
	var results []wire.Result
	err := resp.Results(func(raw []byte) error {
		i := len(results)
		if i >= len(batches) {
			return fmt.Errorf("more results than the %d batches of the request", len(batches))
		}
		results = append(results, wire.Result{})
		if err := results[i].Read(raw, batches[i].Data); err != nil {
			return err
		}
		if results[i].Stream != batches[i].Stream {
			return fmt.Errorf("result %d is of stream %d, the batch of stream %d", i, results[i].Stream, batches[i].Stream)
		}
		return nil
	})
	if err == nil && len(results) != len(batches) {
		err = fmt.Errorf("%d results for %d batches", len(results), len(batches))
	}
	return results, err
}

func (r *rpc) open(ctx context.Context, s decoder.Stream, snapshot []byte) (Stream, error) {
	if s.Options != nil && !json.Valid(s.Options) {
		return nil, errors.New("options are not JSON")
	}
	r.next++
	st := &rpcStream{rpc: r, id: r.next}
	open := &wire.Open{Origin: s.Origin, Options: string(s.Options), Snapshot: snapshot}
	res, err := r.call(ctx, []wire.Batch{{Stream: st.id, Open: open}})
	if err != nil {
		return nil, err
	}
	if f := res[0].Failure; f != nil {
		return nil, errors.New(f.Error)
	}
	return st, nil
}

// rpcStream is a stream of an rpc.
type rpcStream struct {
	rpc *rpc
	id  uint64
}

var _ Stream = (*rpcStream)(nil)

func (s *rpcStream) Decode(ctx context.Context, b Batch) (Answer, error) {
	answers, err := decodeGroup(ctx, []Stream{s}, []Batch{b})
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// Close has the next request close the stream in the decoder.
func (s *rpcStream) Close() {
	if s.rpc.err == nil {
		s.rpc.closed = append(s.rpc.closed, s.id)
	}
}

// decodeAll decodes batches of a stream, one after the other, and returns the answers until the first error.
func decodeAll(ctx context.Context, timeout time.Duration, s Stream, batches []Batch) (answers []Answer, err error) {
	st, ok := s.(*rpcStream)
	if !ok {
		for _, b := range batches {
			a, err := s.Decode(ctx, b)
			if err != nil {
				return answers, err
			}
			answers = append(answers, a)
		}
		return answers, nil
	}
	requests := make([][]wire.Batch, len(batches))
	for i := range batches {
		requests[i] = []wire.Batch{st.batch(&batches[i])}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) }) // for one response
	defer late.Stop()
	err = st.rpc.calls(ctx, requests, func(results []wire.Result) error {
		late.Reset(timeout)
		i := len(answers)
		a, err := answer(&results[0])
		if err != nil {
			return err
		}
		if batches[i].Poison {
			poisonBytes(requests[i][0].Data)
		}
		answers = append(answers, a)
		return nil
	})
	return answers, err
}

func (s *rpcStream) batch(b *Batch) wire.Batch {
	in := pack(b.Frames)
	return wire.Batch{Stream: s.id, Data: in.Data, Frames: in.Frames, Flush: b.Flush, Snapshot: b.Snapshot}
}

// answer is what a result has, or the error that the decoder returned.
func answer(r *wire.Result) (Answer, error) {
	if f := r.Failure; f != nil {
		return Answer{}, &Failure{Err: f.Error, Permanent: f.Permanent, Frame: int(f.Frame)}
	}
	for i := range r.Messages {
		own(&r.Messages[i])
	}
	return Answer{Messages: r.Messages, Problems: r.Problems, Snapshot: r.Snapshot}, nil
}

// decodeGroup decodes batches of several streams at once: in one request when they are
// streams of one RPC, and one after the other otherwise.
func decodeGroup(ctx context.Context, streams []Stream, batches []Batch) ([]Answer, error) {
	first, ok := streams[0].(*rpcStream)
	if !ok {
		out := make([]Answer, len(streams))
		for i, s := range streams {
			var err error
			if out[i], err = s.Decode(ctx, batches[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	req := make([]wire.Batch, len(batches))
	for i := range batches {
		req[i] = streams[i].(*rpcStream).batch(&batches[i])
	}
	results, err := first.rpc.call(ctx, req)
	if err != nil {
		return nil, err
	}
	out := make([]Answer, len(results))
	for i := range results {
		if out[i], err = answer(&results[i]); err != nil {
			return nil, err
		}
		if batches[i].Poison {
			poisonBytes(req[i].Data)
		}
	}
	return out, nil
}
