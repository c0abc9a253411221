package replay

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/retry"
)

// Frames reads the frames of a recording, in batches; io.EOF ends it.
type Frames interface {
	Next() (*frame.Batch, error)
}

// Play calls a function with each frame, at their own pace multiplied by speed: 2 is
// twice as fast, 0 makes no pauses. Frames without a time follow at once.
func Play(ctx context.Context, in Frames, speed float64, give func(*frame.Frame) error) error {
	p := pace{speed: speed}
	for {
		b, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range b.Frames {
			if err := p.wait(ctx, b.Frames[i].At); err != nil {
				return err
			}
			if err := give(&b.Frames[i]); err != nil {
				return err
			}
		}
		b.Done()
	}
}

// pace keeps the distances of recorded times.
type pace struct {
	speed float64
	first int64
	began time.Time
}

func (p *pace) wait(ctx context.Context, at int64) error {
	if p.speed <= 0 || at == 0 {
		return ctx.Err()
	}
	if p.first == 0 {
		p.first, p.began = at, time.Now()
	}
	// From the beginning, so that small delays do not add up.
	d := time.Until(p.began.Add(time.Duration(float64(at-p.first) / p.speed)))
	if d <= 0 {
		return ctx.Err()
	}
	if !retry.Wait(ctx, d) {
		return ctx.Err()
	}
	return nil
}
