package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/retry"
)

// deliver gives a batch to an exporter until it is taken, or only once. The error
// is ctx's or, of a single attempt, that of the exporter.
func (d *Delivery) deliver(ctx context.Context, l *line, b *export.Batch, sealed time.Time, once bool) error {
	m := d.settings.Metrics
	var refused error
	try := d.retry
	if once {
		try = func(_ context.Context, _ string, f func() error) error { return f() }
	}
	err := try(ctx, l.Name, func() error {
		m.ExporterLag.WithLabelValues(l.Name).Set(time.Since(sealed).Seconds())
		began := time.Now()
		err := l.Exporter.Export(ctx, b)
		switch {
		case err == nil:
			m.BatchSeconds.WithLabelValues(l.Name).Observe(time.Since(began).Seconds())
			m.Batches.WithLabelValues(l.Name, "ok").Inc()
			m.Records.WithLabelValues(l.Name).Add(float64(b.Len()))
		case export.IsPermanent(err):
			m.Batches.WithLabelValues(l.Name, "refused").Inc()
			refused = err
			return nil
		default:
			m.Batches.WithLabelValues(l.Name, "retry").Inc()
		}
		return err
	})
	if err != nil || refused == nil {
		return err
	}
	if b.Len() <= 1 {
		d.settings.Logger.Error("record refused", "exporter", l.Name, "error", refused)
		if d.settings.Refused == nil {
			return nil
		}
		return d.retry(ctx, "dead letters", func() error { return d.settings.Refused(l.Name, b, refused) })
	}
	for _, half := range b.Halves() {
		if err := d.deliver(ctx, l, half, sealed, once); err != nil {
			return err
		}
	}
	return nil
}

// retry calls f until it succeeds or ctx ends.
func (d *Delivery) retry(ctx context.Context, what string, f func() error) error {
	backoff, told := retry.Backoff{Min: d.settings.RetryMin, Max: d.settings.RetryMax}, time.Time{}
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause := max(backoff.Next(), asked(err))
		if time.Since(told) > time.Minute {
			d.settings.Logger.Warn("not delivered, trying again", "to", what, "error", err, "next_in", pause)
			told = time.Now()
		}
		if !retry.Wait(ctx, pause) {
			return ctx.Err()
		}
	}
}

// asked returns the pause that the destination asked for with its error; 0: none.
func asked(err error) time.Duration {
	var after *export.RetryAfter
	if errors.As(err, &after) {
		return after.Wait
	}
	return 0
}
