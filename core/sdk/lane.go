package sdk

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
)

// lane decodes the streams of one Decode call.
type lane struct {
	factory decoder.Factory
	streams map[uint64]decoder.Decoder
	out     decoder.Output
}

// batch decodes one batch and appends its result. A stream that failed is
// forgotten: the host opens it again, or not.
func (l *lane) batch(b *wire.Batch, resp *wire.Response) {
	l.out.Reset()
	snapshot, fail := l.decode(b)
	if fail != nil {
		delete(l.streams, b.Stream)
	}
	resp.Append(b, l.out.Messages, l.out.Problems, snapshot, fail)
	if b.Close {
		delete(l.streams, b.Stream)
	}
}

func (l *lane) decode(b *wire.Batch) (snapshot []byte, fail *wire.Failure) {
	if b.Open != nil {
		d, err := l.open(b.Open)
		if err != nil {
			return nil, failure(err, -1)
		}
		l.streams[b.Stream] = d
	}
	d := l.streams[b.Stream]
	if d == nil {
		return nil, failure(fmt.Errorf("stream %d is not open", b.Stream), -1)
	}
	for i := range b.Frames {
		if err := l.frame(d, &b.Frames[i], int32(i)); err != nil {
			return nil, failure(err, int32(i))
		}
	}
	l.out.Begin(int32(len(b.Frames)) - 1)
	if b.Flush {
		if err := d.Flush(&l.out); err != nil {
			return nil, failure(fmt.Errorf("flush: %w", err), int32(len(b.Frames))-1)
		}
	}
	if b.Snapshot {
		snapshot = []byte{}
		if s, ok := d.(decoder.Snapshotter); ok {
			state, err := s.Snapshot()
			if err != nil {
				return nil, failure(fmt.Errorf("snapshot: %w", err), -1)
			}
			snapshot = append(snapshot, state...)
		}
	}
	return snapshot, nil
}

func (l *lane) open(o *wire.Open) (decoder.Decoder, error) {
	s := decoder.Stream{Origin: o.Origin, Source: o.Source}
	if o.Options != "" {
		s.Options = json.RawMessage(o.Options)
	}
	d, err := l.factory.New(s)
	if err != nil {
		return nil, decoder.Permanent(err)
	}
	if len(o.Snapshot) == 0 {
		return d, nil
	}
	r, ok := d.(decoder.Snapshotter)
	if !ok {
		return nil, decoder.Permanent(fmt.Errorf("snapshot given to a decoder that takes none"))
	}
	if err := r.Restore(o.Snapshot); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return d, nil
}

// frame decodes one frame. A panic costs this frame, which the host keeps as a
// problem, and not the process: what the decoder had added for the frame is
// taken back, and it goes on with the state that the panic left.
func (l *lane) frame(d decoder.Decoder, f *frame.Frame, i int32) (err error) {
	l.out.Begin(i)
	messages, problems := len(l.out.Messages), len(l.out.Problems)
	defer func() {
		if p := recover(); p != nil {
			clear(l.out.Messages[messages:])
			l.out.Messages, l.out.Problems = l.out.Messages[:messages], l.out.Problems[:problems]
			l.out.Problem("decoder_panic", fmt.Sprint(p))
			fmt.Fprintf(os.Stderr, "decoder panic: %v\n%s", p, debug.Stack())
			err = nil
		}
	}()
	return d.Decode(f, &l.out)
}

func failure(err error, i int32) *wire.Failure {
	return &wire.Failure{Error: err.Error(), Permanent: decoder.IsPermanent(err), Frame: i}
}
