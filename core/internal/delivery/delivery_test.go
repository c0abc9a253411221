package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is an exporter that can be down or refuse a record.
type far struct {
	mu      sync.Mutex
	away    bool
	refuses string
	got     []string // keys of messages
	batches []string
}

var errAway = errors.New("connection refused")

func (f *far) Export(_ context.Context, b *export.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return errAway
	}
	for _, m := range b.Messages {
		if m.Key == f.refuses {
			return export.Permanent(errors.New("not that one"))
		}
	}
	f.batches = append(f.batches, b.ID)
	for _, m := range b.Messages {
		f.got = append(f.got, m.Key+"="+m.Content.String())
	}
	return nil
}

func (f *far) Close(context.Context) error { return nil }

func (f *far) set(away bool) { f.mu.Lock(); f.away = away; f.mu.Unlock() }

func (f *far) count() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.got) }

// exporter is a far, or one that gathers.
type exporter interface {
	export.Exporter
	set(away bool)
	count() int
	received() []string
}

func (f *far) received() []string { f.mu.Lock(); defer f.mu.Unlock(); return f.got }

// gathering is a far that gathers up to four batches, or most.
type gathering struct {
	far
	most    int
	rows    []export.Rows // one for each batch that is gathered
	parted  []export.Rows // of those that are set apart
	exports int           // that succeeded
}

func (g *gathering) Gather(b *export.Batch) bool {
	if len(g.rows) == max(g.most, 4) {
		return false
	}
	g.rows = append(g.rows, rowsOf(b))
	return true
}

func (g *gathering) Part() func(context.Context) error {
	g.parted, g.rows = g.rows, nil
	return func(context.Context) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if err := g.store(g.parted...); err != nil {
			return err
		}
		g.parted = nil
		return nil
	}
}

func rowsOf(b *export.Batch) export.Rows {
	var lines []string
	for _, m := range b.Messages {
		lines = append(lines, m.Key+"="+m.Content.String())
	}
	return export.Rows{Count: len(lines), Data: []byte(strings.Join(lines, "\n"))}
}

func (g *gathering) Export(_ context.Context, b *export.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.store(append(b.Rows, rowsOf(b))...)
}

// store stores rows. mu is held.
func (g *gathering) store(rows ...export.Rows) error {
	if g.away {
		return errAway
	}
	var lines []string
	for _, r := range rows {
		if r.Count > 0 {
			lines = append(lines, strings.Split(string(r.Data), "\n")...)
		}
	}
	for _, l := range lines {
		if g.refuses != "" && strings.HasPrefix(l, g.refuses+"=") {
			return export.Permanent(errors.New("not that one"))
		}
	}
	g.got = append(g.got, lines...)
	g.exports++
	return nil
}

func (g *gathering) Ungather(put func(*export.Batch) error) error {
	for _, rows := range []*[]export.Rows{&g.parted, &g.rows} {
		for len(*rows) > 0 {
			if err := put(&export.Batch{ID: "g", Rows: (*rows)[:1]}); err != nil {
				return err
			}
			*rows = (*rows)[1:]
		}
	}
	return nil
}

func (g *gathering) Split(b *export.Batch) (halves [2]*export.Batch, ok bool) {
	lines := strings.Split(string(b.Rows[0].Data), "\n")
	if len(lines) < 2 {
		return halves, false
	}
	for i, part := range [][]string{lines[:len(lines)/2], lines[len(lines)/2:]} {
		halves[i] = &export.Batch{ID: b.ID, Rows: []export.Rows{{Count: len(part), Data: []byte(strings.Join(part, "\n"))}}}
	}
	return halves, true
}

// rig is a delivery with its exporters and its checkpoint.
type rig struct {
	*testing.T
	dir      string
	near     exporter
	other    *far
	max      int64
	gather   time.Duration
	opened   func() // called before the exporters are
	log      bytes.Buffer
	metrics  *telemetry.Metrics
	refused  []string
	reported []string // batches that Released was called with

	mu        sync.Mutex
	committed int
	failing   bool
	more      bool // every batch is followed by another at once
	d         *delivery.Delivery
	stop      func()
}

func (r *rig) Commit(deltas ...checkpoint.Delta) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		return errAway
	}
	r.committed += len(deltas)
	return nil
}

func (r *rig) commits() int { r.mu.Lock(); defer r.mu.Unlock(); return r.committed }

func (r *rig) start() *rig {
	r.Helper()
	var err error
	r.metrics = telemetry.New()
	r.d, err = delivery.New(delivery.Settings{
		Metrics: r.metrics, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond, SpoolDir: r.dir, SpoolMax: r.max, GatherFor: r.gather,
		Refused: func(exporter string, b *export.Batch, why error) error {
			r.refused = append(r.refused, fmt.Sprint(exporter, " ", name(b), " ", why))
			return nil
		},
		Released: func(b *export.Batch) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reported = append(r.reported, b.Messages[0].Key)
		},
	}, r, delivery.Target{Name: "near", Exporter: r.near}, delivery.Target{Name: "other", Exporter: r.other})
	if err != nil {
		r.Fatal(err)
	}
	if r.opened != nil {
		r.opened()
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() { r.d.Run(ctx); close(done) }()
	r.stop = func() { cancel(); <-done; r.d.Close() }
	return r
}

// submit submits batches whose texts lie in buffers that are overwritten once they
// are done, as a source's are.
func (r *rig) submit(from, to int) {
	r.Helper()
	for i := from; i < to; i++ {
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		b, done := batch(i)
		if err := r.d.Submit(ctx, b, checkpoint.Delta{}, r.more, done, func() {}); err != nil {
			r.Fatal(i, err)
		}
		cancel()
	}
}

func batch(i int) (*export.Batch, func()) {
	b := &export.Batch{ID: fmt.Sprintf("%032x", i)}
	var buffers [][]byte
	for k := range 3 {
		buf := fmt.Appendf(nil, "text %d of %d, and some more", k, i)
		buffers = append(buffers, buf)
		b.Messages = append(b.Messages, &msg.Message{Key: fmt.Sprint(i, ".", k), Content: msg.Raw(buf)})
	}
	return b, func() {
		for _, buf := range buffers {
			for i := range buf {
				buf[i] = '!'
			}
		}
	}
}

// name is the key of a batch of one message.
func name(b *export.Batch) string {
	if len(b.Rows) > 0 {
		key, _, _ := strings.Cut(string(b.Rows[0].Data), "=")
		return key
	}
	return b.Messages[0].Key
}

func want(n int) (out []string) {
	for i := range n {
		for k := range 3 {
			out = append(out, fmt.Sprintf("%d.%d=text %d of %d, and some more", i, k, k, i))
		}
	}
	return out
}

func (r *rig) until(event string, cond func() bool) {
	r.Helper()
	for end := time.Now().Add(time.Minute); !cond(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			r.Fatal("still waiting for ", event)
		}
	}
}

func (r *rig) onDisk() (n int64) {
	_ = filepath.WalkDir(r.dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(p) == ".spool" {
			info, err := e.Info()
			if err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// TestNothingIsSpooled has exporters that keep up: nothing is written to the disk.
func TestNothingIsSpooled(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &far{}, other: &far{}}).start()
	r.submit(0, 50)
	r.until("the commits", func() bool { return r.commits() == 50 && r.d.Settled() })
	if n := r.onDisk(); n != 0 {
		t.Errorf("%d bytes in the spools", n)
	}
	r.stop()
	for _, f := range []exporter{r.near, r.other} {
		if d := cmp.Diff(want(50), f.received()); d != "" {
			t.Error(d)
		}
	}
}

// TestAwayForLong has an exporter that is down for several restarts. It delays neither the
// other nor the checkpoint, and receives every batch in order when it is back.
func TestAwayForLong(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &far{}, other: &far{away: true}}).start()
	for life := range 3 {
		r.submit(100*life, 100*(life+1))
		r.until("the commits", func() bool { return r.commits() == 100*(life+1) && r.near.count() == 300*(life+1) })
		if r.d.Settled() {
			t.Error("settled, and an exporter is down")
		}
		r.stop()
		r.start()
	}
	r.other.set(false)
	r.submit(300, 310)
	r.until("all of it", r.d.Settled)
	r.stop()
	if d := cmp.Diff(want(310), r.near.received()); d != "" {
		t.Errorf("the exporter that was up: %s", d)
	}
	if d := cmp.Diff(want(310), r.other.got); d != "" {
		t.Errorf("the exporter that was down: %s", d)
	}
	if n := r.onDisk(); n != 0 {
		t.Errorf("%d bytes are left in the spools", n)
	}
}

// TestSpoolIsFull has a full spool: Submit blocks, and nothing is lost.
func TestSpoolIsFull(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &far{}, other: &far{away: true}, max: 20 << 10}).start()
	done := make(chan struct{})
	go func() { defer close(done); r.submit(0, 60) }()
	last, since := 0, time.Now()
	r.until("the spool to be full", func() bool {
		if n := r.commits(); n != last {
			last, since = n, time.Now()
		}
		return last > 0 && time.Since(since) > 200*time.Millisecond
	})
	select {
	case <-done:
		t.Error("everything was taken")
	default:
	}
	if n := r.onDisk(); n > 20<<10 {
		t.Errorf("%d bytes in the spools", n)
	}
	r.other.set(false)
	<-done
	r.until("all of it", func() bool { return r.d.Settled() && r.commits() == 60 })
	r.stop()
	if d := cmp.Diff(want(60), r.other.got); d != "" {
		t.Error(d)
	}
}

// TestRefused has exporters that refuse one record for good, from memory and from a spool:
// Refused is called with that record alone.
func TestRefused(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &far{refuses: "3.1"}, other: &far{away: true, refuses: "4.2"}}).start()
	r.submit(0, 10)
	r.until("the exporter that is up", func() bool { return r.near.count() == 29 })
	r.other.set(false)
	r.until("the other", r.d.Settled)
	r.stop()
	if d := cmp.Diff([]string{"near 3.1 not that one", "other 4.2 not that one"}, r.refused); d != "" {
		t.Error(d)
	}
	if r.other.count() != 29 {
		t.Errorf("%d records", r.other.count())
	}
}

// TestCommitFollows has a checkpoint that fails: it is committed in order, after the
// exporters have accepted the batches that it covers.
func TestCommitFollows(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &far{}, other: &far{}, failing: true}).start()
	r.submit(0, 2)
	r.until("the exporters", func() bool { return r.near.count() == 6 && r.other.count() == 6 })
	if r.commits() != 0 {
		t.Error("committed")
	}
	r.mu.Lock()
	r.failing = false
	r.mu.Unlock()
	r.until("the commits", func() bool { return r.commits() == 2 })
	r.stop()
	if d := cmp.Diff([]string{"0.0", "1.0"}, r.reported); d != "" {
		t.Errorf("Released was called with: %s", d)
	}
}

// TestGathered has an exporter that gathers batches: they are out of memory at once, accepted and
// committed with the export that delivers them, also when no other batch follows.
func TestGathered(t *testing.T) {
	near := &gathering{}
	r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}, more: true}).start()
	near.mu.Lock() // nothing is exported
	r.submit(0, 4)
	r.until("the memory of four", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.reported) == 4 })
	if n := r.commits(); n != 0 {
		t.Errorf("%d of the gathered batches are committed", n)
	}
	near.mu.Unlock()
	r.submit(4, 12)
	r.until("the commits", func() bool { return r.commits() == 12 && r.d.Settled() })
	r.stop()
	if d := cmp.Diff(want(12), near.got); d != "" {
		t.Error(d)
	}
	if near.exports > 4 {
		t.Errorf("%d exports of 12 batches", near.exports)
	}
	if n := r.onDisk(); n != 0 {
		t.Errorf("%d bytes in the spool", n)
	}
}

// TestGatheredFails has an exporter that goes away with batches that it has gathered. They are
// in its spool, also over a restart, and delivered in order.
func TestGatheredFails(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &gathering{far: far{away: true}}, other: &far{}, more: true}).start()
	r.submit(0, 30)
	r.until("the commits", func() bool { return r.commits() == 30 })
	if r.onDisk() == 0 || r.d.Settled() {
		t.Error("nothing is in the spool")
	}
	r.stop()
	near := &gathering{}
	r.near = near
	r.start()
	r.until("all of it", r.d.Settled)
	r.stop()
	if d := cmp.Diff(want(30), near.got); d != "" {
		t.Error(d)
	}
}

// TestGathersWhileItStores has an exporter that takes its time to store what it has gathered: meanwhile it gathers as many again, whose memory is free,
// and no more. All are committed in order. One that goes away with both has them in its spool, in order.
func TestGathersWhileItStores(t *testing.T) {
	for _, away := range []bool{false, true} {
		near := &gathering{}
		r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}, more: true, gather: time.Hour}).start()
		near.mu.Lock() // nothing is stored
		submitted := make(chan struct{})
		go func() { defer close(submitted); r.submit(0, 20) }()
		released := func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.reported) }
		r.until("the memory of twice as many as it gathers", func() bool { return released() == 8 })
		time.Sleep(20 * time.Millisecond)
		if n := released(); n != 8 || r.commits() != 0 {
			t.Errorf("the memory of %d batches is free, and %d are committed", n, r.commits())
		}
		near.away = away
		near.mu.Unlock()
		<-submitted
		r.until("the commits", func() bool { return r.commits() == 20 })
		if r.d.Behind("near") != away {
			t.Errorf("behind: %t, away: %t", !away, away)
		}
		near.set(false)
		r.until("all of it", r.d.Settled)
		r.stop()
		if d := cmp.Diff(want(20), near.received()); d != "" {
			t.Error(d)
		}
	}
}

// TestGathersWhileOldOnesAreStored has batches that are stored because of their age, which takes a while: those that follow are gathered meanwhile, and their
// memory is free.
func TestGathersWhileOldOnesAreStored(t *testing.T) {
	near := &gathering{}
	r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}, more: true, gather: 20 * time.Millisecond}).start()
	released := func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.reported) }
	near.mu.Lock() // nothing is stored
	r.submit(0, 1)
	r.until("the first is released", func() bool { return released() == 1 })
	time.Sleep(100 * time.Millisecond) // it is old
	r.submit(1, 3)
	r.until("the memory of those that follow", func() bool { return released() == 3 })
	if n := r.commits(); n != 0 {
		t.Errorf("%d are committed", n)
	}
	near.mu.Unlock()
	r.until("the commits", func() bool { return r.commits() == 3 && r.d.Settled() })
	r.stop()
	if d := cmp.Diff(want(3), near.received()); d != "" {
		t.Error(d)
	}
}

// TestGatheredIsRefused has an exporter that refuses one of the records that it has gathered: that
// record alone is dropped.
func TestGatheredIsRefused(t *testing.T) {
	for _, key := range []string{"0.0", "2.1", "7.2", "9.1"} {
		near := &gathering{far: far{refuses: key}}
		r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}, more: true}).start()
		r.submit(0, 10)
		r.until("all of it", func() bool { return r.commits() == 10 && r.d.Settled() })
		r.stop()
		if d := cmp.Diff([]string{"near " + key + " not that one"}, r.refused); d != "" {
			t.Error(d)
		}
		all := slices.DeleteFunc(want(10), func(l string) bool { return strings.HasPrefix(l, key+"=") })
		if d := cmp.Diff(all, near.got); d != "" {
			t.Errorf("without %s: %s", key, d)
		}
	}
}

// selecting is a far that needs the first message of every tenth batch.
type selecting struct{ far }

func (s *selecting) Select(b *export.Batch) *export.Batch {
	out := &export.Batch{ID: b.ID}
	if strings.HasSuffix(b.Messages[0].Key, "0.0") {
		out.Messages = b.Messages[:1]
	}
	return out
}

// TestPartsNeverDelay has an exporter of parts that is down: nothing waits for it, its spool has
// the parts alone, and it receives them in order after a restart.
func TestPartsNeverDelay(t *testing.T) {
	near := &selecting{far{away: true}}
	r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}}).start()
	r.submit(0, 100)
	r.until("the commits", func() bool { return r.commits() == 100 && r.other.count() == 300 })
	if n := r.onDisk(); n == 0 || n > 100<<10 {
		t.Errorf("%d bytes in the spools", n)
	}
	if r.d.Settled() || !r.d.Behind("near") {
		t.Error("settled, and the parts are in the spool")
	}
	r.stop()
	near.set(false)
	r.start()
	r.until("the parts", func() bool { return near.count() == 10 && r.d.Settled() })
	r.stop()
	var parts []string
	for i := 0; i < 100; i += 10 {
		parts = append(parts, fmt.Sprintf("%d.0=text 0 of %d, and some more", i, i))
	}
	if d := cmp.Diff(parts, near.received()); d != "" {
		t.Error(d)
	}
}
