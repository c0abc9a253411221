// Package delivery brings sealed batches to the exporters and then commits their
// checkpoint.
//
// Every exporter has a queue of its own and takes batches in order. What may
// pass is tried again for ever, with jitter; a batch that an exporter refuses for
// good is cut in halves until the record to blame is found, which is set aside,
// and the rest goes through. A batch's checkpoint is committed when every
// exporter is done with it, in the order of sealing, so the checkpoint is never
// ahead of any exporter.
package delivery

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// Committer makes a checkpoint durable.
type Committer interface {
	Commit(checkpoint.Delta) error
}

// Target is an exporter with its name.
type Target struct {
	Name     string
	Exporter export.Exporter
}

// Settings of a delivery; the zero value of each is its default.
type Settings struct {
	RetryMin, RetryMax time.Duration // 200 ms, 30 s
	// Refused keeps a batch of one record that the exporter will never take, and why.
	// It is called again until it succeeds: the checkpoint moves past the record then.
	Refused func(exporter string, b *export.Batch, why error) error
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
}

// Delivery is described in the package comment.
type Delivery struct {
	settings Settings
	commit   Committer
	lines    []*line
	order    chan *parcel
}

// line is an exporter with its queue.
type line struct {
	Target
	queue chan *parcel
}

// parcel is a batch on its way.
type parcel struct {
	batch  *export.Batch
	delta  checkpoint.Delta
	done   func()
	sealed time.Time
	left   atomic.Int32  // exporters that have not taken it
	all    chan struct{} // closed when there are none
}

// taken notes that n exporters are done with the batch.
func (p *parcel) taken(n int32) {
	if p.left.Add(-n) == 0 {
		close(p.all)
	}
}

// New returns a delivery to the targets.
func New(s Settings, commit Committer, targets ...Target) *Delivery {
	if s.RetryMin <= 0 {
		s.RetryMin = 200 * time.Millisecond
	}
	if s.RetryMax <= 0 {
		s.RetryMax = 30 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Metrics == nil {
		s.Metrics = telemetry.New()
	}
	// One batch with the exporter, one behind it, one being collected.
	d := &Delivery{settings: s, commit: commit, order: make(chan *parcel, 1)}
	for _, t := range targets {
		d.lines = append(d.lines, &line{Target: t, queue: make(chan *parcel, 1)})
	}
	return d
}

// Submit implements pipeline.Outlet.
func (d *Delivery) Submit(ctx context.Context, b *export.Batch, delta checkpoint.Delta, done func()) error {
	p := &parcel{batch: b, delta: delta, done: done, sealed: time.Now(), all: make(chan struct{})}
	p.left.Store(int32(len(d.lines)) + 1)
	defer p.taken(1)
	select {
	case d.order <- p:
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.Len() == 0 {
		p.taken(int32(len(d.lines)))
		return nil
	}
	for _, l := range d.lines {
		select {
		case l.queue <- p:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Run delivers until ctx ends. Batches that are under way then are neither
// committed nor lost: their frames are decoded again at the next start.
func (d *Delivery) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, l := range d.lines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			d.serve(ctx, l)
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		d.commits(ctx)
	}()
	wg.Wait()
}

// commits commits what is delivered, in order.
func (d *Delivery) commits(ctx context.Context) {
	for {
		var p *parcel
		select {
		case p = <-d.order:
		case <-ctx.Done():
			return
		}
		select {
		case <-p.all:
		case <-ctx.Done():
			return
		}
		err := d.retry(ctx, "checkpoint", func() error { return d.commit.Commit(p.delta) })
		if err != nil {
			return
		}
		d.settings.Metrics.Commits.Inc()
		p.done()
	}
}

// serve takes batches to one exporter.
func (d *Delivery) serve(ctx context.Context, l *line) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-l.queue:
			if d.deliver(ctx, l, p.batch, p.sealed) != nil {
				return
			}
			d.settings.Metrics.ExporterLag.WithLabelValues(l.Name).Set(0)
			p.taken(1)
		}
	}
}

// deliver gives a batch to an exporter until it is taken. The error is ctx's.
func (d *Delivery) deliver(ctx context.Context, l *line, b *export.Batch, sealed time.Time) error {
	m := d.settings.Metrics
	var refused error
	err := d.retry(ctx, l.Name, func() error {
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
		if err := d.deliver(ctx, l, half, sealed); err != nil {
			return err
		}
	}
	return nil
}

// retry calls f until it succeeds or ctx ends.
func (d *Delivery) retry(ctx context.Context, what string, f func() error) error {
	wait, told := d.settings.RetryMin, time.Time{}
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause := wait/2 + rand.N(wait)
		var after *export.RetryAfter
		if errors.As(err, &after) {
			pause = max(pause, after.Wait)
		}
		if time.Since(told) > time.Minute {
			d.settings.Logger.Warn("not delivered, trying again", "to", what, "error", err, "next_in", pause)
			told = time.Now()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait = min(2*wait, d.settings.RetryMax)
	}
}
