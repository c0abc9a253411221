// Package app composes a sidecar from a configuration: checkpoint, store,
// decoders, sources, pipeline and delivery, in the order in which they may fail.
// It is the only door from the commands into the engine.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/deadletter"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/livetail"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/redact"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/store"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// Exporter is a destination with its name.
type Exporter struct {
	Name string
	export.Exporter
}

// Settings are what a developer gives beside the user's configuration.
type Settings struct {
	Config *config.Config
	// Decoders finds the executable of a format's decoder.
	Decoders Decoders
	// Exporters makes the destinations. dsn is that of the embedded store, and empty
	// when the configuration names a server.
	Exporters func(ctx context.Context, dsn string) ([]Exporter, error)
	// Readers, if set, makes what reads the GenAI metrics beside /metrics. They are
	// ended with the sidecar.
	Readers func(ctx context.Context) ([]sdkmetric.Reader, error)
	// UntilIdle ends the run once every source is drained, nothing has come for that
	// long, and every exporter has accepted everything. Zero: run until ctx ends.
	UntilIdle time.Duration
	// Drain is how long the end of ctx may take; 10 s.
	Drain  time.Duration
	Logger *slog.Logger
	// Reload, if set, gives configurations to change to: their sources. What else they
	// change needs a restart, and is logged.
	Reload <-chan *config.Config
	// Progress, if set, is called about ten times a second.
	Progress func(Progress)
	// Ready, if set, is called once everything runs.
	Ready func(Running)
}

// Running is a sidecar that runs.
type Running struct {
	StoreURL string // empty when there is no embedded store
	Metrics  string // address; empty when it is off
}

// Progress is how far a sidecar has come.
type Progress = pipeline.Progress

// heartbeat is how often a sidecar to which nothing comes says that it lives.
const heartbeat = time.Minute

// Run runs a sidecar until ctx ends or it is idle.
func Run(ctx context.Context, s Settings) error {
	if s.Drain <= 0 {
		s.Drain = 10 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	r := newRunner(s, nil)
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	return r.run(ctx)
}

// runner is a sidecar in the making.
type runner struct {
	Settings
	metrics     *telemetry.Metrics
	dir         string // what this run keeps is in here
	sockets     string
	check       *checkpoint.Store
	store       *store.Store
	exporters   []Exporter
	delivery    *delivery.Delivery
	pipeline    *pipeline.Pipeline
	redactor    *redact.Redactor
	peek        *livetail.Hub      // nil in a second decoding
	journal     *journal.Journal   // nil: all sources are files
	live        map[[2]string]bool // source and format of what the journal has readers of
	sources     []*feed
	connections *source.Connections // of all sources
	server      *telemetry.Server
	closers     []func()
	refused     *deadletter.Log
	again       *again // a second decoding; nil in a sidecar
}

// feed is a source with its sink.
type feed struct {
	config config.Source
	source source.Source
	sink   source.Sink
	feed   *pipeline.Feed
	stop   context.CancelFunc // of a source that runs
	done   chan struct{}      // closed when it has ended
}

func newRunner(s Settings, a *again) *runner {
	return &runner{Settings: s, again: a, metrics: telemetry.New(), live: make(map[[2]string]bool), connections: source.NewConnections()}
}

func (r *runner) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
}

func (r *runner) later(f func()) { r.closers = append(r.closers, f) }

// prepare brings up everything that may be wrong with the configuration.
func (r *runner) prepare(ctx context.Context) error {
	dir := r.Config.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	var err error
	if r.again != nil {
		if dir, err = os.MkdirTemp(dir, "backfill-"); err != nil {
			return err
		}
		r.later(func() { _ = os.RemoveAll(dir) })
	}
	r.dir = dir
	if r.check, err = checkpoint.Open(dir); err != nil {
		return err
	}
	r.later(func() { _ = r.check.Close() })
	if err := r.listenMetrics(dir); err != nil {
		return err
	}
	if r.refused, err = deadletter.Open(r.Config.DataDir, r.rotated); err != nil {
		return err
	}
	r.later(func() { _ = r.refused.Close() })
	// Unix sockets have short names, so they do not lie in the data directory.
	if r.sockets, err = os.MkdirTemp("", "earshot-"); err != nil {
		return err
	}
	r.later(func() { _ = os.RemoveAll(r.sockets) })

	dsn := ""
	if r.Config.Embedded() {
		r.store, err = store.Open(ctx, StoreSettings(r.Config, r.Logger))
		if err != nil {
			return err
		}
		r.later(r.store.Close)
		dsn = r.store.DSN("default", "earshot")
	}
	if r.exporters, err = r.Exporters(ctx, dsn); err != nil {
		return err
	}
	r.later(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, e := range r.exporters {
			if err := e.Close(ctx); err != nil {
				r.Logger.Warn("close exporter", "exporter", e.Name, "error", err)
			}
		}
	})
	c := r.Config.Delivery
	targets := make([]delivery.Target, 0, len(r.exporters))
	for _, e := range r.exporters {
		if e.Exporter, err = r.verify(e); err != nil {
			return err
		}
		if r.again != nil {
			e.Exporter = r.again.wrap(e.Exporter)
		}
		targets = append(targets, delivery.Target{Name: e.Name, Exporter: e.Exporter})
	}
	count, err := r.meter(ctx)
	if err != nil {
		return err
	}
	r.delivery, err = delivery.New(delivery.Settings{
		RetryMin: time.Duration(c.RetryMin), RetryMax: time.Duration(c.RetryMax), Logger: r.Logger, Metrics: r.metrics,
		Refused: r.setAside, Damaged: r.spoolDamaged, Committed: count, SpoolDir: filepath.Join(dir, "spool"), SpoolMax: int64(c.SpoolMax),
	}, r.check, targets...)
	if err != nil {
		return err
	}
	r.later(r.delivery.Close)
	beat := heartbeat
	if r.UntilIdle > 0 { // it would never be idle
		beat = 0
	}
	r.pipeline = pipeline.New(pipeline.Settings{
		FlushInterval: time.Duration(c.FlushInterval), BatchRows: c.BatchRows, BatchBytes: int64(c.BatchBytes), MaxInFlight: int64(c.MaxInFlight), Heartbeat: beat,
		Assemble: assemble.Settings{IdleRun: time.Duration(c.IdleClose), IdleCall: time.Duration(c.IdleCall)}, Logger: r.Logger, Metrics: r.metrics,
	}, r.check, r.delivery)
	if err := r.mirror(); err != nil {
		return err
	}
	r.redactor, err = redactor(r.Config, func(rule string, n int) { r.metrics.Redacted.WithLabelValues(rule).Add(float64(n)) })
	if err != nil {
		return err
	}
	if r.again == nil {
		r.peek = &livetail.Hub{}
		frames, err := livetail.Listen(r.peek, r.sockets, r.Config.DataDir)
		if err != nil {
			return err
		}
		r.later(frames.Close)
	}
	for i := range r.Config.Sources {
		if err := r.add(ctx, &r.Config.Sources[i]); err != nil {
			r.pipeline.Close()
			return err
		}
	}
	if err := r.unread(); err != nil {
		r.pipeline.Close()
		return err
	}
	return nil
}

// StoreSettings are those of the configuration's embedded store.
func StoreSettings(c *config.Config, log *slog.Logger) store.Settings {
	return store.Settings{
		Dir: filepath.Join(c.DataDir, "store"), Binary: c.Store.Binary, Listen: c.Store.Listen, MaxMemory: int64(c.Store.MaxMemory), Logger: log,
	}
}

// run runs until ctx ends or everything is idle, and drains.
func (r *runner) run(ctx context.Context) error {
	// Sources end first, then the pipeline; a signal is the beginning of that.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	read, stopReading := context.WithCancel(work)
	defer stopReading()

	var wg, reading sync.WaitGroup
	start := func(f func()) { wg.Add(1); go func() { defer wg.Done(); f() }() }
	defer wg.Wait()
	defer stop(nil)
	if r.store != nil {
		start(func() { r.store.Supervise(work) })
	}
	start(func() { r.delivery.Run(work) })
	start(func() {
		if err := r.pipeline.Run(work); err != nil {
			stop(err)
		}
	})
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
	r.server.SetReadinessChecks(r.pipeline.Broken)
	r.bound(ctx, work)
	r.server.SetReady(true)
	if r.Ready != nil {
		run := Running{Metrics: r.server.Addr()}
		if r.store != nil {
			run.StoreURL = r.store.URL()
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
	drain, cancel := context.WithTimeout(work, r.Drain)
	defer cancel()
	if idle {
		// Everything is read and accepted; what is still open is given now.
		err := r.pipeline.Finish(drain)
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
	stopReading()
	reading.Wait()
	r.drain(drain)
	if err := r.pipeline.Flush(drain); err != nil {
		r.Logger.Warn("not every decoder gave what it holds; it is decoded again at the next start", "error", err)
	}
	r.drain(drain)
	return r.lost()
}

// lost is an error when spooled batches could not be read: what ends well has to have
// everything where it belongs.
func (r *runner) lost() error {
	if r.delivery.Lost() == 0 {
		return nil
	}
	return errors.New("spooled batches were damaged and are lost (see the dead letters); earshot backfill brings back what the sources still have")
}

// wait waits for the end of ctx, an error of work, or idleness.
func (r *runner) wait(ctx, work context.Context, listen func(*feed)) (idle bool) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	since, last, finished := time.Now(), int64(-1), false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-work.Done():
			return false
		case c := <-r.Reload:
			r.reload(ctx, c, listen)
		case now := <-tick.C:
			p := r.pipeline.Progress()
			if r.Progress != nil {
				r.Progress(p)
			}
			if r.UntilIdle <= 0 {
				continue
			}
			if p.Delivered != last || !r.drained() || !r.pipeline.Drained() || !r.delivery.Settled() {
				since, last = now, p.Delivered
				continue
			}
			if now.Sub(since) < r.UntilIdle {
				continue
			}
			if finished {
				return true
			}
			r.finish()
			finished, since = true, now.Add(-r.UntilIdle)
		}
	}
}

// finisher is a source that holds something back because more of it may come: a
// last line without its newline.
type finisher interface{ Finish() }

// finish says to the sources that nothing more is going to come.
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

// drain waits until what was read is with the exporters, or until ctx ends: then
// the rest is read again at the next start.
func (r *runner) drain(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !r.pipeline.Drained() {
		select {
		case <-ctx.Done():
			r.Logger.Warn("not everything that was read is with the exporters; it will be read again at the next start")
			return
		case <-tick.C:
		}
	}
}
