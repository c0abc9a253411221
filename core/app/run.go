package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/store"
)

// run runs until ctx ends or everything is idle, and drains.
func (r *runner) run(ctx context.Context) error {
	// The sources stop first, then the pipeline; a signal begins that.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	read, stopReading := context.WithCancel(work)
	defer stopReading()

	var wg, reading sync.WaitGroup
	start := func(f func()) { wg.Add(1); go func() { defer wg.Done(); f() }() }
	defer wg.Wait()
	defer stop(nil)
	start(func() {
		if err := startDestinations(work, r.store, r.exporters, r.Logger); err != nil {
			stop(err)
			return
		}
		close(r.ready)
	})
	startReady := func(f func()) {
		start(func() {
			select {
			case <-r.ready:
				f()
			case <-work.Done():
			}
		})
	}
	if r.store != nil {
		startReady(func() { r.store.Supervise(work) })
	}
	start(func() { r.delivery.Run(work) })
	for _, v := range r.stored {
		startReady(func() { v.watch(work) })
	}
	for _, e := range r.exporters {
		if a, ok := e.Exporter.(export.Alerter); ok && r.UntilIdle <= 0 && r.backfill == nil {
			startReady(func() { r.watchAlerts(work, a) })
		}
	}
	start(func() {
		if err := r.pipeline.Run(work); err != nil {
			stop(err)
		}
	})
	if r.backfill == nil {
		startReady(func() { r.eraser.watch(work) })
	}
	listen := func(f *feed) {
		ctx, cancel := context.WithCancel(read)
		f.stop, f.done = cancel, make(chan struct{})
		reading.Add(1)
		go func() {
			defer reading.Done()
			defer close(f.done)
			if err := f.source.Run(ctx, f.sink); err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("source %s: %w", f.config.Name, err))
			}
		}()
	}
	for _, f := range r.sources {
		listen(f)
	}
	c := r.Config // a reload replaces it
	reading.Go(func() {
		select {
		case <-r.ready:
			r.watchReads(read, c)
		case <-read.Done():
		}
	})
	r.server.SetReadinessChecks(r.pipeline.Broken)
	r.waitListening(ctx, work)
	r.server.SetReady(true)
	select {
	case <-r.ready:
	case <-ctx.Done():
	case <-work.Done():
	}
	if r.Ready != nil && ctx.Err() == nil && work.Err() == nil {
		run := Running{Metrics: r.server.Addr()}
		if r.store != nil {
			run.Store = "unix:" + r.store.Socket()
		}
		if r.gateway != nil {
			run.Store = "http://" + r.gateway.Addr()
		}
		r.Ready(run)
	}

	idle := r.wait(ctx, work, listen)
	if err := context.Cause(work); work.Err() != nil && err != nil && !errors.Is(err, context.Canceled) {
		stopReading()
		reading.Wait()
		return err
	}
	r.server.SetReady(false)
	if idle {
		// Everything is read and accepted; the open messages are emitted now.
		finish, cancel := context.WithCancel(work)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err := r.pipeline.Finish(finish)
		if ctx.Err() != nil {
			err = nil
		}
		stopReading()
		reading.Wait()
		for err == nil && !r.delivery.Settled() { // a spool
			select {
			case <-ctx.Done():
				return nil
			case <-work.Done():
				return context.Cause(work)
			case <-time.After(20 * time.Millisecond):
			}
		}
		return errors.Join(err, r.lost())
	}
	// Where an exporter does not answer and the spools are full, sources and pipeline wait for it.
	drain, cancel := context.WithTimeout(work, r.Drain)
	defer cancel()
	defer context.AfterFunc(drain, func() { stop(nil) })()
	stopReading()
	reading.Wait()
	r.drain(drain)
	if err := r.pipeline.Flush(drain); err != nil {
		r.Logger.Warn("decoders did not emit all open messages; they are decoded again at the next start", "error", err)
	}
	if drain.Err() == nil {
		r.drain(drain)
	}
	return r.lost()
}

// startDestinations starts the embedded store, if there is one, and has the exporters make their destinations ready: at
// worst for as long as a server takes that does not answer, and as long as the tables of a former release take to be brought
// up to date.
func startDestinations(ctx context.Context, s *store.Store, exporters []Exporter, log *slog.Logger) error {
	if s != nil {
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for _, e := range exporters {
		if x, ok := e.Exporter.(export.Preparer); ok {
			wg.Go(func() {
				if err := x.Prepare(ctx); err != nil && ctx.Err() == nil {
					log.Warn("exporter is not ready yet; records wait in the spool", "exporter", e.Name, "error", err)
				}
			})
		}
	}
	wg.Wait()
	return nil
}

// alertEvery is how often an exporter is asked for alerts.
const alertEvery = time.Minute

// watchAlerts has the alerts of an exporter delivered, until ctx ends. One that is lost in a crash begins again
// after the restart.
func (r *runner) watchAlerts(ctx context.Context, a export.Alerter) {
	tick := time.NewTicker(alertEvery)
	defer tick.Stop()
	for {
		list, err := a.Alerts(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			r.Logger.Warn("the budgets are not checked", "error", err)
		}
		r.pipeline.AddAlerts(list...)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lost is an error when spooled batches could not be read: a run that ends well has
// everything where it belongs.
func (r *runner) lost() error {
	if r.delivery.Lost() == 0 {
		return nil
	}
	return errors.New("spooled batches were damaged and are lost (see the dead letters); earshot backfill restores the records that the sources still have")
}

// wait waits for the end of ctx, an error of work, or idleness.
func (r *runner) wait(ctx, work context.Context, listen func(*feed)) (idle bool) {
	every := progressEvery
	tick := time.NewTicker(every)
	defer tick.Stop()
	if r.Progress == nil && r.UntilIdle <= 0 {
		tick.Stop() // there is nothing to look at
	}
	shown := int64(-1)
	idleness := idleness{since: time.Now(), last: -1}
	var m backlogMeter
	var again <-chan time.Time // of reloading
	for {
		select {
		case <-ctx.Done():
			return false
		case <-work.Done():
			return false
		case c := <-r.Reload:
			again = r.reload(ctx, c, listen)
		case <-again:
			again = r.reload(ctx, r.Config, listen)
		case now := <-tick.C:
			within, cancel := context.WithTimeout(ctx, time.Second) // the pipeline may be waiting for an exporter
			p := m.read(within, r, now)
			ended := r.UntilIdle > 0 && idleness.ends(within, r, now, p.Delivered)
			cancel()
			if r.Progress != nil {
				r.Progress(p)
			}
			if ended {
				return true
			}
			if r.UntilIdle > 0 {
				continue
			}
			next := time.Second
			if p.Delivered != shown {
				next, shown = progressEvery, p.Delivered
			}
			if next != every {
				every = next
				tick.Reset(every)
			}
		}
	}
}

// idleness is since when a run that is to end when it is idle is so.
type idleness struct {
	since    time.Time // the last frame was delivered or decoded
	last     int64     // bytes delivered
	finished bool      // the sources have delivered their last lines
	hurries  bool      // no batch waits for more rows
}

// ends reports whether the run has been idle for long enough, and every exporter has all rows. That these are being stored, and decoders flushed, is no work that
// the end waits for once more.
func (i *idleness) ends(ctx context.Context, r *runner, now time.Time, delivered int64) bool {
	switch {
	case delivered != i.last || !r.drained() || !r.pipeline.Decoded(ctx) || r.eraser.erasing():
		i.since, i.last = now, delivered
		i.hurry(ctx, r, false)
	case now.Sub(i.since) < r.UntilIdle:
	case !r.pipeline.Drained(ctx) || !r.delivery.Settled():
		i.hurry(ctx, r, true)
	case i.finished:
		return true
	default:
		r.finish()
		i.finished, i.since = true, now.Add(-r.UntilIdle)
	}
	return false
}

func (i *idleness) hurry(ctx context.Context, r *runner, on bool) {
	if on == i.hurries {
		return
	}
	i.hurries = on
	interval := time.Duration(r.Config.Delivery.FlushInterval)
	if on {
		interval = lastFlush
	}
	r.pipeline.SetFlushInterval(ctx, interval)
}

// finisher is a source that holds something back because more of it may come: a
// last line without its newline.
type finisher interface{ Finish() }

// finish makes the sources deliver the last lines that have no newline.
func (r *runner) finish() {
	for _, f := range r.sources {
		if s, ok := f.source.(finisher); ok {
			s.Finish()
		}
	}
}

func (r *runner) drained() bool {
	for _, f := range r.sources {
		if !f.source.Drained() {
			return false
		}
	}
	return true
}

// lastFlush is the flush interval of a sidecar that ends.
const lastFlush = 10 * time.Millisecond

// drain waits until the exporters have everything that was read, or until ctx ends: then
// the rest is read again at the next start.
func (r *runner) drain(ctx context.Context) {
	r.pipeline.SetFlushInterval(ctx, lastFlush)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !r.pipeline.Drained(ctx) {
		select {
		case <-ctx.Done():
			r.Logger.Warn("not everything that was read is with the exporters; it will be read again at the next start")
			return
		case <-tick.C:
		}
	}
}
