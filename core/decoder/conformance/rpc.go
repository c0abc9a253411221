package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	// note, when set, returns a text about the process that is added to an error.
	note func() string
}

// call sends the batches in one request and reads the results. An error ends the RPC.
func (r *rpc) call(ctx context.Context, batches []wire.Batch) ([]wire.Result, error) {
	if r.err != nil {
		return nil, r.err
	}
	results, err := r.roundTrip(ctx, batches)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("no answer: %w", cause)
		}
		if r.note != nil {
			err = fmt.Errorf("%w%s", err, r.note())
		}
		r.err = err
		r.conn.Close()
	}
	return results, err
}

func (r *rpc) roundTrip(ctx context.Context, batches []wire.Batch) ([]wire.Result, error) {
	stop := context.AfterFunc(ctx, r.conn.Close)
	defer stop()
	if err := r.conn.Send(&wire.Request{Batches: batches}); err != nil {
		return nil, err
	}
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

// Close closes the stream in the decoder.
func (s *rpcStream) Close() {
	if s.rpc.err == nil {
		// The next call returns the error.
		_, _ = s.rpc.call(context.Background(), []wire.Batch{{Stream: s.id, Close: true}})
	}
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
	for i, b := range batches {
		in := pack(b.Frames)
		req[i] = wire.Batch{
			Stream: streams[i].(*rpcStream).id, Data: in.Data, Frames: in.Frames, Flush: b.Flush, Snapshot: b.Snapshot,
		}
	}
	results, err := first.rpc.call(ctx, req)
	if err != nil {
		return nil, err
	}
	out := make([]Answer, len(results))
	for i, r := range results {
		if f := r.Failure; f != nil {
			return nil, &Failure{Err: f.Error, Permanent: f.Permanent, Frame: int(f.Frame)}
		}
		for j := range r.Messages {
			own(&r.Messages[j])
		}
		out[i] = Answer{Messages: r.Messages, Problems: r.Problems, Snapshot: r.Snapshot}
		if batches[i].Poison {
			poisonBytes(req[i].Data)
		}
	}
	return out, nil
}
