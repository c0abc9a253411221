package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/retry"
)

// send exports a batch until the exporter accepts it, or only once. The error is ctx's or, of
// a single attempt, the exporter's. A batch that the exporter refuses for good is split.
func (d *Delivery) send(ctx context.Context, q *queue, b *export.Batch, sealed time.Time, once bool) error {
	m := d.settings.Metrics
	var refused error
	try := d.retry
	if once {
		try = func(_ context.Context, _ string, f func() error) error { return f() }
	}
	err := try(ctx, q.Name, func() error {
		m.ExporterLag.With(q.Name).Set(time.Since(sealed).Seconds())
		began := time.Now()
		err := q.Exporter.Export(ctx, b)
		switch {
		case err == nil:
			m.BatchSeconds.With(q.Name).Observe(time.Since(began).Seconds())
			m.Batches.With(q.Name, "ok").Inc()
			m.Records.With(q.Name).Add(int64(b.Rowed()))
		case export.IsPermanent(err):
			m.Batches.With(q.Name, "refused").Inc()
			refused = err
			return nil
		default:
			m.Batches.With(q.Name, "retry").Inc()
		}
		return err
	})
	if err != nil || refused == nil {
		return err
	}
	halves, ok := halve(q.gatherer, b)
	if !ok {
		d.settings.Logger.Error("record refused", "exporter", q.Name, "error", refused)
		if d.settings.Refused == nil {
			return nil
		}
		return d.retry(ctx, "dead letters", func() error { return d.settings.Refused(q.Name, b, refused) })
	}
	for _, half := range halves {
		if err := d.send(ctx, q, half, sealed, once); err != nil {
			return err
		}
	}
	return nil
}

// halve cuts a batch in two, if it has more than one row.
func halve(x export.Gatherer, b *export.Batch) (halves [2]*export.Batch, ok bool) {
	if b.Len() > 1 {
		return b.Halves(), true
	}
	return x.Split(b)
}

// retry calls f until it succeeds or ctx ends, and logs failures once a minute.
func (d *Delivery) retry(ctx context.Context, to string, f func() error) error {
	backoff, logged := retry.Backoff{Min: d.settings.RetryMin, Max: d.settings.RetryMax}, time.Time{}
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause := max(backoff.Next(), asked(err))
		if time.Since(logged) > time.Minute {
			d.settings.Logger.Warn("not delivered, trying again", "to", to, "error", err, "next_in", pause)
			logged = time.Now()
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
