package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/deadletter"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/erasure"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/livetail"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/redact"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/store"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/semconv"
)

// runner is one run: of a sidecar, or of a backfill beside it. prepare builds its parts from
// the destinations back to the sources, each with the part that it feeds:
//
//	sources → redactor → (journal) → pipeline → delivery → exporters → store
//
// run starts the sources at once, because agents send whether or not a store answers; what they read waits until
// the destinations are ready, gathered by the exporters that can. It stops the parts from the sources on.
type runner struct {
	Settings
	backfill *backfill // nil in a sidecar
	dir      string    // of the checkpoint, the spool and the journal's copy of this run
	data     string    // the data directory, for those who work while a reload replaces the configuration
	sockets  string    // directory of Unix sockets

	sources     []*feed
	connections *source.Connections // of all sources
	redactor    *redact.Redactor
	liveTail    *livetail.Hub      // nil in a backfill
	journal     *journal.Journal   // nil: all sources are files
	read        map[[2]string]bool // source and format of the recordings that are read
	pipeline    *pipeline.Pipeline
	delivery    *delivery.Delivery
	exporters   []Exporter
	store       *store.Store   // nil: the rows go to a server
	gateway     *store.Gateway // nil: the store has its Unix socket alone
	stored      []*storedCheck // the exporters that can be asked
	ready       chan struct{}  // closed when the destinations have been made ready

	checkpoint *checkpoint.Store
	erased     *erasure.Set
	eraser     *eraser
	refusals   *refusals
	metrics    *telemetry.Metrics
	server     *telemetry.Server

	closers
}

// closers close the parts that were opened.
type closers []func()

// onClose adds one.
func (c *closers) onClose(f func()) { *c = append(*c, f) }

// close closes the parts in the reverse order of onClose.
func (c *closers) close() {
	for _, f := range slices.Backward(*c) {
		f()
	}
}

// feed is a source with its sink.
type feed struct {
	config   config.Source
	source   source.Source
	sink     source.Sink
	pipeline *pipeline.Feed
	stop     context.CancelFunc // of a source that runs
	done     chan struct{}      // closed when it has stopped
	ended    bool               // it is stopped, and may not be settled
}

func newRunner(s Settings, b *backfill) *runner {
	r := &runner{Settings: s, backfill: b, metrics: telemetry.New(), read: make(map[[2]string]bool), connections: source.NewConnections()}
	r.eraser = &eraser{runner: r}
	return r
}

// prepare builds every part that the configuration may have wrong, without starting any.
func (r *runner) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.openState, r.openStore, r.newExporters, r.newDelivery, r.newPipeline, r.newRedactor, r.addSources,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openState opens the files of the data directory, and the address of the metrics.
func (r *runner) openState(context.Context) error {
	dir := r.Config.DataDir
	r.data = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	var err error
	if r.backfill != nil {
		if dir, err = os.MkdirTemp(dir, "backfill-"); err != nil {
			return err
		}
		r.onClose(func() { _ = os.RemoveAll(dir) })
	}
	r.dir = dir
	if r.checkpoint, err = checkpoint.Open(dir); err != nil {
		return err
	}
	r.onClose(func() { _ = r.checkpoint.Close() })
	if err := r.listenMetrics(dir); err != nil {
		return err
	}
	if r.erased, err = erasure.OpenSet(r.Config.DataDir); err != nil {
		return err
	}
	r.refusals = &refusals{metrics: r.metrics, logger: r.Logger}
	if r.refusals.log, err = deadletter.Open(r.Config.DataDir, r.refusals.lost); err != nil {
		return err
	}
	r.onClose(func() { _ = r.refusals.log.Close() })
	// Unix sockets have short names, so they do not lie in the data directory.
	var remove func()
	if r.sockets, remove, err = store.OwnedDir(os.TempDir()); err != nil {
		return err
	}
	r.onClose(remove)
	return nil
}

// openStore makes the embedded store, unless the rows go to a server. It is started beside the sources.
func (r *runner) openStore(context.Context) (err error) {
	if !r.Config.Embedded() {
		return nil
	}
	of := *r.Config
	of.DataDir = cmp.Or(r.StoreOf, of.DataDir)
	settings := StoreSettings(&of, r.Logger)
	if of.Store.Fetch {
		settings.Fetch = r.Fetch
	}
	if r.store, err = store.New(settings); err != nil {
		return err
	}
	r.onClose(r.store.Close)
	if r.Config.Store.Listen == "" || r.backfill != nil {
		return nil
	}
	if r.gateway, err = openGateway(r.store, r.Config, r.Logger); err != nil {
		return err
	}
	r.onClose(r.gateway.Close)
	return nil
}

func (r *runner) newExporters(ctx context.Context) (err error) {
	dsn := ""
	if r.store != nil {
		dsn = r.store.DSN("default", "earshot")
	}
	if r.exporters, err = r.Exporters(ctx, dsn); err != nil {
		return err
	}
	r.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, e := range r.exporters {
			if err := e.Close(ctx); err != nil {
				r.Logger.Warn("close exporter", "exporter", e.Name, "error", err)
			}
		}
	})
	return nil
}

// newDelivery makes the queue of each exporter.
func (r *runner) newDelivery(ctx context.Context) error {
	var targets []delivery.Target
	for _, e := range r.exporters {
		wrapped := r.checkStored(e)
		if r.backfill != nil {
			wrapped = r.backfill.wrap(wrapped)
		}
		countSampled(r.metrics, e)
		targets = append(targets, delivery.Target{Name: e.Name, Exporter: wrapped})
	}
	count, err := r.meter(ctx)
	if err != nil {
		return err
	}
	c := r.Config.Delivery
	r.ready = make(chan struct{})
	r.delivery, err = delivery.New(delivery.Settings{
		RetryMin: time.Duration(c.RetryMin), RetryMax: time.Duration(c.RetryMax), Logger: r.Logger, Metrics: r.metrics,
		Refused: r.refusals.refused, Damaged: r.refusals.damaged, Released: count, Ready: r.ready, SpoolDir: filepath.Join(r.dir, "spool"), SpoolMax: int64(c.SpoolMax),
	}, r.checkpoint, targets...)
	if err != nil {
		return err
	}
	r.onClose(r.delivery.Close)
	return nil
}

// heartbeat is how often a sidecar without traffic reports to the store that it is alive.
const heartbeat = time.Minute

// newPipeline makes the pipeline of the delivery.
func (r *runner) newPipeline(context.Context) error {
	beat := heartbeat
	if r.UntilIdle > 0 { // it would never be idle
		beat = 0
	}
	host, err := os.Hostname()
	if err != nil { // the column is empty then
		r.Logger.Warn("the machine has no name", "error", err)
	}
	c := r.Config.Delivery
	r.pipeline = pipeline.New(pipeline.Settings{
		FlushInterval: time.Duration(c.FlushInterval), BatchRows: c.BatchRows, BatchBytes: int64(c.BatchBytes), MaxInFlight: int64(c.MaxInFlight), Heartbeat: beat,
		Erased: r.erased.Has, Tenants: tenants(r.Config),
		Assemble: assemble.Settings{IdleRun: time.Duration(c.IdleClose), IdleCall: time.Duration(c.IdleCall), Host: host, View: view, Chains: semconv.Chains, Reconciles: reconciled(r.Config.Sources), Hops: hops, ShowsDelegates: semconv.ShowsDelegates, Serves: semconv.Serves, Unique: semconv.Unique, Read: hopsRead(r.Config.Sources), Renamed: r.backfill != nil}, Logger: r.Logger, Metrics: r.metrics,
	}, r.checkpoint, r.delivery)
	r.refusals.add = r.pipeline.AddDeadLetter
	if r.backfill != nil {
		return nil
	}
	return r.refusals.mirror(r.Config.DataDir)
}

// newRedactor makes the stages between the sources and the pipeline: redaction, and the tap
// of earshot tail.
func (r *runner) newRedactor(context.Context) (err error) {
	r.redactor, err = redactor(r.Config, countRedacted(r.metrics))
	if err != nil || r.backfill != nil {
		return err
	}
	r.liveTail = &livetail.Hub{}
	frames, err := livetail.Listen(r.liveTail, r.sockets, r.Config.DataDir)
	if err != nil {
		return err
	}
	r.onClose(frames.Close)
	return nil
}

// addSources makes the sources and starts the decoders of their formats.
func (r *runner) addSources(ctx context.Context) error {
	for i := range r.Config.Sources {
		if err := r.add(ctx, &r.Config.Sources[i]); err != nil {
			r.pipeline.Close()
			return err
		}
	}
	if err := r.warnUnread(); err != nil {
		r.pipeline.Close()
		return err
	}
	return nil
}
