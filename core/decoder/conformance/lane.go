package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/wire"
)

// conn is one Decode call.
type conn interface {
	Send(*wire.Request) error
	Recv(*wire.Response) error
	Close()
}

// lane multiplexes streams over one Decode call.
type lane struct {
	conn conn
	next uint64
	dead error
	// note, when set, adds to an error what else is known of the decoder's end.
	note func() string
}

// ask sends the batches in one request and reads the results.
func (l *lane) ask(ctx context.Context, batches []wire.Batch) ([]wire.Result, error) {
	if l.dead != nil {
		return nil, l.dead
	}
	results, err := l.exchange(ctx, batches)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("no answer: %w", cause)
		}
		if l.note != nil {
			err = fmt.Errorf("%w%s", err, l.note())
		}
		l.dead = err
		l.conn.Close()
	}
	return results, err
}

func (l *lane) exchange(ctx context.Context, batches []wire.Batch) ([]wire.Result, error) {
	stop := context.AfterFunc(ctx, l.conn.Close)
	defer stop()
	if err := l.conn.Send(&wire.Request{Batches: batches}); err != nil {
		return nil, err
	}
	var resp wire.Response
	if err := l.conn.Recv(&resp); err != nil {
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

func (l *lane) open(ctx context.Context, s decoder.Stream, snapshot []byte) (Stream, error) {
	if s.Options != nil && !json.Valid(s.Options) {
		return nil, errors.New("options are not JSON")
	}
	l.next++
	st := &laneStream{lane: l, id: l.next}
	open := &wire.Open{Origin: s.Origin, Options: string(s.Options), Snapshot: snapshot}
	res, err := l.ask(ctx, []wire.Batch{{Stream: st.id, Open: open}})
	if err != nil {
		return nil, err
	}
	if f := res[0].Failure; f != nil {
		return nil, errors.New(f.Error)
	}
	return st, nil
}

// laneStream is a stream of a lane.
type laneStream struct {
	lane *lane
	id   uint64
}

var _ Stream = (*laneStream)(nil)

func (s *laneStream) Decode(ctx context.Context, b Batch) (Answer, error) {
	answers, err := group(ctx, []Stream{s}, []Batch{b})
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// Close has the decoder forget the stream.
func (s *laneStream) Close() {
	if s.lane.dead == nil {
		// Whether that works is seen by whoever asks next.
		_, _ = s.lane.ask(context.Background(), []wire.Batch{{Stream: s.id, Close: true}})
	}
}

// group decodes batches of several streams at once: in one request when they are
// streams of one lane, and one after the other otherwise.
func group(ctx context.Context, streams []Stream, batches []Batch) ([]Answer, error) {
	first, ok := streams[0].(*laneStream)
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
			Stream: streams[i].(*laneStream).id, Data: in.Data, Frames: in.Frames, Flush: b.Flush, Snapshot: b.Snapshot,
		}
	}
	results, err := first.lane.ask(ctx, req)
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
			fill(req[i].Data)
		}
	}
	return out, nil
}
