// Package delivery brings sealed batches to the exporters and then commits their
// checkpoint.
//
//	            ┌─► memory (two batches) ─► exporter
//	Submit ─────┤      │ a first failure
//	            │      ▼
//	            └─► spool (disk), while behind ─► exporter, tried for ever
//
// Every exporter has a line of its own and takes batches in order. While an
// exporter keeps up, batches go to it from memory and nothing is written to disk;
// one that is slow holds up what is behind it. One that fails falls behind: what is
// in its memory goes to its spool, and so does what follows, until it has caught
// up. A batch in a spool counts as delivered, so an exporter that is away delays
// neither the others nor the sources, until the spools have reached SpoolMax
// together; then the sources wait.
//
// What may pass is tried again for ever, with jitter; a batch that an exporter
// refuses for good is cut in halves until the record to blame is found, which is
// set aside, and the rest goes through.
//
// Order of acknowledgement. A batch's checkpoint is committed when every exporter
// has accepted it or has it in its spool, synced, in the order of sealing. So the
// checkpoint is never ahead of what exporters or spools have. After a crash a spool
// is delivered first, and then what was decoded again behind the checkpoint: its
// batches may be cut differently, and their rows have the ids and versions of those
// that came before. Each exporter has a spool of its own, though two that are away
// hold the same batches: what one has taken can then be removed without knowing
// of the other. Decoding again for the one that is behind, instead of a spool,
// would need the checkpoint, the assembler's state and the decoders once for each
// exporter, and sources that can still be read a day later.
package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/spool"
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
	// SpoolDir has a directory for each exporter. SpoolMax bounds them together; 4 GiB.
	SpoolDir string
	SpoolMax int64
	// Refused keeps a batch of one record that the exporter will never take, and why.
	// It is called again until it succeeds: the checkpoint moves past the record then.
	Refused func(exporter string, b *export.Batch, why error) error
	// Damaged, if set, is told of spooled batches that cannot be read and are lost.
	Damaged func(exporter string, err error)
	// Committed, if set, is given each batch once its checkpoint is committed, in
	// order, from one goroutine. The batch is not to be kept.
	Committed func(b *export.Batch)
	Logger    *slog.Logger
	Metrics   *telemetry.Metrics
}

// Delivery is described in the package comment.
type Delivery struct {
	settings Settings
	commit   Committer
	lines    []*line
	order    chan *parcel
	lost     atomic.Int64
}

// Lost is how often spooled batches could not be read.
func (d *Delivery) Lost() int64 { return d.lost.Load() }

// parcel is a batch on its way.
type parcel struct {
	batch  *export.Batch
	delta  checkpoint.Delta
	done   func()
	sealed time.Time
	left   atomic.Int32  // lines that have not taken it
	all    chan struct{} // closed when there are none
}

// taken notes that n lines are done with the batch.
func (p *parcel) taken(n int32) {
	if p.left.Add(-n) == 0 {
		close(p.all)
	}
}

// New returns a delivery to the targets. What their spools have from an earlier
// run is delivered first.
func New(s Settings, commit Committer, targets ...Target) (*Delivery, error) {
	if s.RetryMin <= 0 {
		s.RetryMin = 200 * time.Millisecond
	}
	if s.RetryMax <= 0 {
		s.RetryMax = 30 * time.Second
	}
	if s.SpoolMax <= 0 {
		s.SpoolMax = 4 << 30
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Metrics == nil {
		s.Metrics = telemetry.New()
	}
	d := &Delivery{settings: s, commit: commit, order: make(chan *parcel, 1)}
	for _, t := range targets {
		q, err := spool.Open(filepath.Join(s.SpoolDir, t.Name))
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("exporter %s: %w", t.Name, err)
		}
		if n := q.Torn(); n > 0 {
			s.Logger.Warn("the end of the spool was cut: a batch that a crash interrupted, and that is decoded again", "exporter", t.Name, "bytes", n)
		}
		l := &line{Target: t, spool: q, behind: q.Size() > 0, wake: make(chan struct{}, 1), changed: make(chan struct{})}
		d.lines = append(d.lines, l)
		d.settings.Metrics.SpoolBytes.WithLabelValues(t.Name).Set(float64(q.Size()))
	}
	d.strangers()
	return d, nil
}

// strangers warns of spools whose exporter is not configured any more.
func (d *Delivery) strangers() {
	entries, err := os.ReadDir(d.settings.SpoolDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		known := false
		for _, l := range d.lines {
			known = known || l.Name == e.Name()
		}
		if inside, _ := os.ReadDir(filepath.Join(d.settings.SpoolDir, e.Name())); !known && len(inside) > 0 {
			d.settings.Logger.Warn("a spool has batches for an exporter that is not configured; they stay", "exporter", e.Name())
		}
	}
}

// Close closes the spools. Run has ended.
func (d *Delivery) Close() {
	for _, l := range d.lines {
		_ = l.spool.Close()
	}
}

// Settled reports whether every exporter has accepted everything.
func (d *Delivery) Settled() bool {
	for _, l := range d.lines {
		if !l.settled() {
			return false
		}
	}
	return true
}

// spooled is how many bytes the spools have together.
func (d *Delivery) spooled() (n int64) {
	for _, l := range d.lines {
		n += l.spool.Size()
	}
	return n
}

// Submit implements pipeline.Outlet. It is called by one goroutine.
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
		if err := d.offer(ctx, l, p); err != nil {
			return err
		}
	}
	return nil
}

// Run delivers until ctx ends. Batches that are under way then and not in a spool
// are neither committed nor lost: their frames are decoded again at the next start.
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
		if d.settings.Committed != nil {
			d.settings.Committed(p.batch)
		}
		p.done()
	}
}
