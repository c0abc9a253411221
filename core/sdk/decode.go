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

// decodeCall decodes the streams of one Decode calc.
type decodeCall struct {
	factory decoder.Factory
	streams map[uint64]decoder.Decoder
	out     decoder.Output
}

// batch decodes one batch and appends its result. A stream that failed is dropped: the host
// opens it again, or does not.
func (c *decodeCall) batch(b *wire.Batch, resp *wire.Response) {
	c.out.Reset()
	snapshot, fail := c.decode(b)
	if fail != nil {
		delete(c.streams, b.Stream)
	}
	resp.Append(b, c.out.Messages, c.out.Problems, snapshot, fail)
	if b.Close {
		delete(c.streams, b.Stream)
	}
}

func (c *decodeCall) decode(b *wire.Batch) (snapshot []byte, fail *wire.Failure) {
	if b.Open != nil {
		d, err := c.open(b.Open)
		if err != nil {
			return nil, failure(err, -1)
		}
		c.streams[b.Stream] = d
	}
	d := c.streams[b.Stream]
	if d == nil {
		return nil, failure(fmt.Errorf("stream %d is not open", b.Stream), -1)
	}
	for i := range b.Frames {
		if err := c.frame(d, &b.Frames[i], int32(i)); err != nil {
			return nil, failure(err, int32(i))
		}
	}
	c.out.Begin(int32(len(b.Frames)) - 1)
	if b.Flush {
		if err := d.Flush(&c.out); err != nil {
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

func (c *decodeCall) open(o *wire.Open) (decoder.Decoder, error) {
	s := decoder.Stream{Origin: o.Origin, Source: o.Source}
	if o.Options != "" {
		s.Options = json.RawMessage(o.Options)
	}
	d, err := c.factory.New(s)
	if err != nil {
		return nil, decoder.Permanent(err)
	}
	if len(o.Snapshot) == 0 {
		return d, nil
	}
	r, ok := d.(decoder.Snapshotter)
	if !ok {
		return nil, decoder.Permanent(fmt.Errorf("the decoder does not take snapshots"))
	}
	if err := r.Restore(o.Snapshot); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return d, nil
}

// frame decodes one frame. A panic costs this frame, which the host keeps as a problem, and
// not the process: the messages that the decoder had added for the frame are removed, and it
// goes on with the state that the panic left.
func (c *decodeCall) frame(d decoder.Decoder, f *frame.Frame, i int32) (err error) {
	c.out.Begin(i)
	messages, problems := len(c.out.Messages), len(c.out.Problems)
	defer func() {
		if p := recover(); p != nil {
			clear(c.out.Messages[messages:])
			c.out.Messages, c.out.Problems = c.out.Messages[:messages], c.out.Problems[:problems]
			c.out.Problem("decoder_panic", fmt.Sprint(p))
			fmt.Fprintf(os.Stderr, "decoder panic: %v\n%s", p, debug.Stack())
			err = nil
		}
	}()
	return d.Decode(f, &c.out)
}

func failure(err error, i int32) *wire.Failure {
	return &wire.Failure{Error: err.Error(), Permanent: decoder.IsPermanent(err), Frame: i}
}
