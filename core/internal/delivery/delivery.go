// Package delivery brings sealed batches to the exporters and then commits their
// checkpoint. Every exporter has a pipeline of its own, and takes batches in order:
//
//	Submit ──► queue ─────────────► retry ─────────► split ────────────► Exporter
//	           two batches in       plain errors:    a batch refused     accepts, refuses
//	           memory, or the       for ever, with   for good: halves,   or fails
//	           spool on the disk    backoff          down to one record
//
//	           ┌───┬───┬───┬───┬───┐
//	spool      │ 5 │ 6 │ 7 │ 8 │ 9 │ ◄── write index: enqueue, spillMemory
//	           └─▲─┴───┴───┴───┴───┘
//	             └ read index: next reads it, remove moves it
//
// While an exporter keeps up, batches go to it from memory and nothing is written to the
// disk; one that is slow blocks Submit. After the first failure the exporter is behind: the
// batches in its memory go to its spool, and so do the following ones, until the spool is
// empty again. A batch in a spool counts as accepted, so that an exporter that is down delays
// neither the others nor the sources, until the spools have reached SpoolMax together; then
// Submit blocks.
//
// Few large requests cost a destination less than many small ones, so an exporter may gather
// batches that others follow at once. Such a batch is out of memory, and not accepted until the
// exporter has delivered it. When that fails, the gathered batches go to the spool as well.
//
//	Submit ──► queue ──► gather ──► gather ──► Part: store ──► both are accepted
//	                     └ released └ released └ gather ──► gather ──► Part: store ──► the others are
//
// A batch that an exporter refuses for good is cut in halves until the record that it
// refuses is found. That record becomes a dead letter, and the rest is accepted.
//
// Order of acknowledgement. A batch's checkpoint is committed when every exporter
// has accepted it or has it in its spool, synced, in the order of sealing. So the
// checkpoint is never ahead of the exporters and spools. After a crash a spool
// is delivered first, and then the frames that were decoded again behind the checkpoint:
// their batches may be cut differently, and their rows have the ids and versions of those
// that came before. Each exporter has a spool of its own, though two that are down
// hold the same batches: the batches that one has accepted can then be removed without
// regard to the other. Decoding again for the one that is behind, instead of a spool,
// would need the checkpoint, the assembler's state and the decoders once for each
// exporter, and sources that can still be read a day later.
package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/spool"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// Committer makes checkpoints durable, together.
type Committer interface {
	Commit(...checkpoint.Delta) error
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
	// Refused keeps a batch of one record that the exporter refuses for good, and the error.
	// It is called again until it succeeds: the checkpoint moves past the record then.
	Refused func(exporter string, b *export.Batch, why error) error
	// Damaged, if set, is called for spooled batches that cannot be read and are lost.
	Damaged func(exporter string, err error)
	// Released, if set, is called with each batch once no exporter needs it, in order, from one
	// goroutine. It must not keep the batch.
	Released func(b *export.Batch)
	// GatherFor is for how long batches are gathered at most; 3 s.
	GatherFor time.Duration
	// Ready, if set, is closed when the exporters may store: until then they gather.
	Ready   <-chan struct{}
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
}

// Delivery is described in the package comment.
type Delivery struct {
	settings Settings
	commit   Committer
	ready    func(context.Context) error // waits until the exporters may store
	queues   []*queue
	order    chan *inFlight // bounds the batches in memory: one in it, and the one that is to be released next
	released chan *inFlight
	lost     atomic.Int64
}

// Lost is how often spooled batches could not be read.
func (d *Delivery) Lost() int64 { return d.lost.Load() }

// inFlight is a batch that not every exporter has accepted.
type inFlight struct {
	batch   *export.Batch // nil when it is released
	delta   checkpoint.Delta
	more    bool
	records int
	release func()
	done    func()
	sealed  time.Time
	used    counter // by the queues that need it, and Submit
	pending counter // in the queues that have not accepted it, and Submit
}

// counter counts down.
type counter struct {
	n    atomic.Int32
	zero chan struct{} // closed at 0
}

func (c *counter) init(n int) {
	c.n.Store(int32(n))
	c.zero = make(chan struct{})
}

func (c *counter) sub(n int) {
	if c.n.Add(int32(-n)) == 0 {
		close(c.zero)
	}
}

// accepted notes that n queues have accepted the batch, and need it no more.
func (p *inFlight) accepted(n int) {
	p.used.sub(n)
	p.pending.sub(n)
}

// maxGathered bounds the batches that are gathered, and as many may be being stored; and with them the memory
// of the checkpoints that are not committed.
const maxGathered = 64

// New returns a delivery to the targets. The batches that an earlier run left in their
// spools are delivered first.
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
	if s.GatherFor <= 0 {
		s.GatherFor = 3 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Metrics == nil {
		s.Metrics = telemetry.New()
	}
	d := &Delivery{settings: s, commit: commit, ready: closed(s.Ready), order: make(chan *inFlight, 1), released: make(chan *inFlight, 3*maxGathered)}
	for _, t := range targets {
		sp, err := spool.Open(filepath.Join(s.SpoolDir, t.Name))
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("exporter %s: %w", t.Name, err)
		}
		if n := sp.Torn(); n > 0 {
			s.Logger.Warn("the end of the spool was cut: a batch that a crash interrupted, and that is decoded again", "exporter", t.Name, "bytes", n)
		}
		d.queues = append(d.queues, &queue{Target: t, gatherer: export.AsGatherer(t.Exporter), spool: sp, behind: sp.Size() > 0, wake: make(chan struct{}, 1), changed: make(chan struct{})})
		s.Metrics.SpoolBytes.With(t.Name).Set(float64(sp.Size()))
	}
	d.warnOrphans()
	return d, nil
}

// warnOrphans warns of spools with batches for an exporter that is not configured any more.
func (d *Delivery) warnOrphans() {
	entries, err := os.ReadDir(d.settings.SpoolDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		known := slices.ContainsFunc(d.queues, func(q *queue) bool { return q.Name == e.Name() })
		if inside, _ := os.ReadDir(filepath.Join(d.settings.SpoolDir, e.Name())); !known && len(inside) > 0 {
			d.settings.Logger.Warn("a spool has batches for an exporter that is not configured; they stay", "exporter", e.Name())
		}
	}
}

// Close closes the spools. Run has ended.
func (d *Delivery) Close() {
	for _, q := range d.queues {
		_ = q.spool.Close()
	}
}

// Settled reports whether every exporter has accepted every batch.
func (d *Delivery) Settled() bool {
	for _, q := range d.queues {
		if !q.settled() {
			return false
		}
	}
	return true
}

// closed returns a function that waits until a channel is closed; nil: it is. The error is ctx's.
func closed(c <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		if c == nil {
			return nil
		}
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// spoolBytes is how many bytes the spools have together.
func (d *Delivery) spoolBytes() (n int64) {
	for _, q := range d.queues {
		n += q.spool.Size()
	}
	return n
}

// Submit queues a batch for every exporter, and blocks until each queue has room. more means
// that another follows at once. release is called when no exporter needs the batch's memory, and
// done when its checkpoint is committed. One goroutine calls Submit.
func (d *Delivery) Submit(ctx context.Context, b *export.Batch, delta checkpoint.Delta, more bool, release, done func()) error {
	p := &inFlight{batch: b, delta: delta, more: more, records: b.Len(), release: release, done: done, sealed: time.Now()}
	p.used.init(len(d.queues) + 1)
	p.pending.init(len(d.queues) + 1)
	defer p.accepted(1)
	select {
	case d.order <- p:
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.Len() == 0 {
		p.accepted(len(d.queues))
		return nil
	}
	for _, q := range d.queues {
		send := d.enqueue
		if _, ok := q.Exporter.(export.Selector); ok {
			send = d.enqueuePart
		}
		if err := send(ctx, q, p); err != nil {
			return err
		}
	}
	return nil
}

// Run exports until ctx ends. Batches that are in flight then and not in a spool are
// neither committed nor lost: their frames are decoded again at the next start.
func (d *Delivery) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, q := range d.queues {
		wg.Add(1)
		go func() {
			defer wg.Done()
			d.export(ctx, q)
		}()
	}
	wg.Go(func() { d.releaseInOrder(ctx) })
	wg.Go(func() { d.commitInOrder(ctx) })
	wg.Wait()
}

// releaseInOrder releases the batches that no exporter needs.
func (d *Delivery) releaseInOrder(ctx context.Context) {
	for {
		var p *inFlight
		select {
		case p = <-d.order:
		case <-ctx.Done():
			return
		}
		select {
		case <-p.used.zero:
		case <-ctx.Done():
			return
		}
		if d.settings.Released != nil {
			d.settings.Released(p.batch)
		}
		p.release()
		p.batch, p.release = nil, nil
		select {
		case d.released <- p:
		case <-ctx.Done():
			return
		}
	}
}

// commitInOrder commits the checkpoints of the batches that all exporters have accepted: those
// that were accepted together at once.
func (d *Delivery) commitInOrder(ctx context.Context) {
	var next *inFlight
	for {
		if next == nil {
			select {
			case next = <-d.released:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-next.pending.zero:
		case <-ctx.Done():
			return
		}
		group := []*inFlight{next}
		next = nil
		for accepted := true; accepted && next == nil && len(group) < maxGathered; {
			select {
			case p := <-d.released:
				select {
				case <-p.pending.zero:
					group = append(group, p)
				default:
					next = p
				}
			default:
				accepted = false
			}
		}
		deltas := make([]checkpoint.Delta, len(group))
		for i, p := range group {
			deltas[i] = p.delta
		}
		if d.retry(ctx, "checkpoint", func() error { return d.commit.Commit(deltas...) }) != nil {
			return
		}
		d.settings.Metrics.Commits.Add(int64(len(group)))
		for _, p := range group {
			p.done()
		}
	}
}
