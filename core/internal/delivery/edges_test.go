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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/spool"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestRewrite changes the spool of an exporter that is down.
func TestRewrite(t *testing.T) {
	r := (&rig{T: t, dir: t.TempDir(), near: &far{}, other: &far{away: true}}).start()
	r.submit(0, 10)
	r.until("the commits", func() bool { return r.commits() == 10 })
	if r.d.Behind("near") || !r.d.Behind("other") || r.d.Behind("unknown") {
		t.Error("the wrong exporter is behind")
	}
	n, err := r.d.Rewrite(func(b *export.Batch) bool {
		if b.Messages[0].Key != "7.0" {
			return false
		}
		b.Messages[0].Content = msg.Plain("erased")
		return true
	})
	if n != 1 || err != nil {
		t.Errorf("%d are changed: %v", n, err)
	}
	r.other.set(false)
	r.until("all of it", r.d.Settled)
	r.stop()
	all := want(10)
	all[21] = "7.0=erased"
	if d := cmp.Diff(all, r.other.got); d != "" {
		t.Error(d)
	}
	if r.d.Behind("other") {
		t.Error("still behind")
	}
}

// figures are the values of the metrics, by name and labels.
func figures(t *testing.T, m *telemetry.Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "earshot_")
			for _, l := range x.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(x.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// recorded is a checkpoint that notes the deltas in order.
type recorded struct {
	mu   sync.Mutex
	keys []string
}

func (c *recorded) Commit(deltas ...checkpoint.Delta) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range deltas {
		c.keys = append(c.keys, d.Streams[0].Key)
	}
	return nil
}

// TestDamagedSpool has a spool with records that are no batches: each is reported and lost, and the others
// are delivered. The spool of an exporter that is gone is named, and stays.
func TestDamagedSpool(t *testing.T) {
	dir := t.TempDir()
	one, done := batch(0)
	defer done()
	record, err := one.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "gone"} {
		q, err := spool.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []string{"short", "8 bytes.", "8 bytes.and no batch", "8 bytes." + string(record)} {
			if err := q.Append([]byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var damaged []string
	x, c, m := &far{}, &recorded{}, telemetry.New()
	d, err := delivery.New(delivery.Settings{
		SpoolDir: dir, RetryMin: time.Millisecond, Metrics: m, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Damaged: func(exporter string, err error) { damaged = append(damaged, exporter) },
	}, c, delivery.Target{Name: "x", Exporter: x})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Behind("x") || d.Settled() {
		t.Error("what an earlier run left is not waiting")
	}
	if figures(t, m)["spool_bytes x"] == 0 {
		t.Error("the spool has no bytes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	r := &rig{T: t}
	r.until("the spool", d.Settled)
	acked := make(chan int, 3)
	for i := 1; i < 3; i++ {
		b, done := batch(i)
		if i == 2 {
			b = &export.Batch{ID: "empty"}
		}
		if err := d.Submit(ctx, b, checkpoint.Delta{Streams: []checkpoint.Stream{{Key: fmt.Sprint(i)}}}, false, done, func() { acked <- i }); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := <-acked, <-acked; a != 1 || b != 2 {
		t.Errorf("%d and %d are committed", a, b)
	}
	r.until("the queue", d.Settled)
	cancel()
	<-ended
	d.Close()
	if diff := cmp.Diff(want(2), x.received()); diff != "" {
		t.Error(diff)
	}
	if got := d.Lost(); got != 3 || len(damaged) != 3 || damaged[0] != "x" {
		t.Errorf("%d are lost, reported: %v", got, damaged)
	}
	if diff := cmp.Diff([]string{"1", "2"}, c.keys); diff != "" {
		t.Error(diff)
	}
	if text := log.String(); !strings.Contains(text, "exporter=gone") || strings.Contains(text, "exporter=empty") || strings.Count(text, "are lost") != 3 {
		t.Error(text)
	}
	got := figures(t, m)
	for name, want := range map[string]float64{"spool_bytes x": 0, "spool_lost_total x": 3, "export_lag_seconds x": 0, "export_batches_total x ok": 2, "export_records_total x": 6, "export_batch_seconds x": 2} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, %v, want %v", name, v, ok, want)
		}
	}
}

// asking is an exporter that asks for a pause once.
type asking struct {
	far
	at []time.Time
}

func (a *asking) Export(ctx context.Context, b *export.Batch) error {
	a.mu.Lock()
	a.at = append(a.at, time.Now())
	n := len(a.at)
	a.mu.Unlock()
	if a.away {
		return errAway
	}
	if n < 3 {
		return &export.RetryAfter{Err: errAway, Wait: 300 * time.Millisecond}
	}
	return a.far.Export(ctx, b)
}

// TestRetryAfter: a destination that asks for a pause has it, of memory and of the spool.
func TestRetryAfter(t *testing.T) {
	near := &asking{}
	r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}}).start()
	r.submit(0, 1)
	r.until("the exporter", func() bool { return near.count() == 3 && r.d.Settled() })
	r.stop()
	for i := 1; i < 3; i++ {
		if pause := near.at[i].Sub(near.at[i-1]); pause < 300*time.Millisecond {
			t.Errorf("attempt %d comes after %v", i, pause)
		}
	}
}

// TestSubmitEnds: Submit ends with its context while the spools are full.
func TestSubmitEnds(t *testing.T) {
	for name, near := range map[string]exporter{"whole": &far{away: true}, "parts": &selecting{far{away: true}}} {
		r := (&rig{T: t, dir: t.TempDir(), near: near, other: &far{}, max: 1}).start()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		var err error
		for i := 0; err == nil; i += 10 {
			b, done := batch(i)
			err = r.d.Submit(ctx, b, checkpoint.Delta{}, false, done, func() {})
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		r.until("the first batch, which is larger than the spools may be", func() bool { return r.commits() > 0 })
		r.stop()
	}
}

// TestGatherLimits: batches are gathered while others follow, for a while, and so many.
func TestGatherLimits(t *testing.T) {
	for name, c := range map[string]struct {
		more    bool
		gather  time.Duration
		batches int
		pause   time.Duration // between two of them
		exports int
	}{
		"none follows": {false, time.Hour, 10, 0, 10}, "for long": {true, time.Millisecond, 10, time.Second / 2, 10}, "too many": {true, time.Hour, 130, 0, 3},
		"no other came": {true, time.Hour, 4, 1100 * time.Millisecond, 4}, "another came in time": {true, time.Hour, 4, 900 * time.Millisecond, 1},
		"for so long": {true, 2 * time.Second, 8, 900 * time.Millisecond, 3}, "by default": {true, 0, 8, 900 * time.Millisecond, 2},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			near := &gathering{most: 1000}
			r := (&rig{T: t, dir: dir, near: near, other: &far{}, more: c.more, gather: c.gather}).start()
			for i := range c.batches {
				r.submit(i, i+1)
				time.Sleep(c.pause)
			}
			r.until(name, func() bool { return r.commits() == c.batches && r.d.Settled() })
			r.stop()
			if near.exports != c.exports {
				t.Errorf("%s: %d exports, want %d", name, near.exports, c.exports)
			}
			if d := cmp.Diff(want(c.batches), near.got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
			if got := figures(t, r.metrics); got["export_records_total near"] != float64(3*c.batches) || got["checkpoint_commits_total"] != float64(c.batches) {
				t.Errorf("%s: %v", name, got)
			}
		})
	}
}

// TestRoomAtOnce has an exporter that went away with two batches in memory, of which one has room in its spool: a third one waits, and no longer than
// until the first is delivered.
func TestRoomAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		near := &slow{far: far{away: true}, gate: make(chan struct{})}
		r := (&rig{T: t, dir: dir, near: near, other: &far{}, max: 1}).start()
		var submitted atomic.Int32
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range 3 {
				r.submit(i, i+1)
				submitted.Add(1)
			}
		}()
		synctest.Wait()
		near.gate <- struct{}{}
		time.Sleep(100 * time.Millisecond)
		if n := submitted.Load(); n != 2 || r.commits() != 1 || !r.d.Behind("near") {
			t.Errorf("%d batches are submitted, %d are committed, behind: %t", n, r.commits(), r.d.Behind("near"))
		}
		near.set(false)
		near.gate <- struct{}{}
		synctest.Wait()
		if n := submitted.Load(); n != 3 {
			t.Errorf("%d batches are submitted", n)
		}
		close(near.gate)
		<-ended
		r.until("all of it", r.d.Settled)
		r.stop()
		if d := cmp.Diff(want(3), near.received()); d != "" {
			t.Error(d)
		}
	})
}

// TestADiskThatIsGone has spools that can neither be read nor written for a while: nothing is lost, and the disk is not asked without a pause.
func TestADiskThatIsGone(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		spools, away := filepath.Join(dir, "spools"), filepath.Join(dir, "away")
		move := func(from, to string) {
			if err := os.Rename(from, to); err != nil {
				t.Error(err)
			}
		}
		near := &far{away: true}
		r := (&rig{T: t, dir: spools, near: near, other: &far{}}).start()
		r.submit(0, 3)
		r.until("the commits", func() bool { return r.commits() == 3 })
		r.stop()
		near.set(false)
		r.opened = func() { move(spools, away) }
		r.start()
		ended := make(chan struct{})
		go func() { r.submit(3, 4); close(ended) }()
		time.Sleep(20 * time.Millisecond)
		if near.count() != 0 || r.d.Settled() {
			t.Error("a batch is delivered from nowhere")
		}
		move(away, spools)
		time.Sleep(10 * time.Millisecond)
		if near.count() != 12 {
			t.Errorf("%d messages are delivered when the disk is back", near.count())
		}
		<-ended
		r.until("all of it", r.d.Settled)
		r.stop()
		if d := cmp.Diff(want(4), near.received()); d != "" {
			t.Error(d)
		}
		if n := strings.Count(r.log.String(), "cannot be read"); n < 10 || n > 30 {
			t.Errorf("the spool was read %d times in 20 ms", n)
		}
		if n := strings.Count(r.log.String(), "not spooled"); n != 1 {
			t.Errorf("the batch was written %d times in 20 ms", n)
		}
	})
}

// TestDefaultPauses has a destination that is away for an hour: a delivery without settings asks it after 100 to 200 ms, then less and less
// often, and at least twice a minute. One with settings has its own pauses.
func TestDefaultPauses(t *testing.T) {
	for name, c := range map[string]struct {
		settings    delivery.Settings
		first, last [2]time.Duration
	}{
		"default": {delivery.Settings{}, [2]time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, [2]time.Duration{15 * time.Second, 30 * time.Second}},
		"set":     {delivery.Settings{RetryMin: time.Second, RetryMax: time.Minute}, [2]time.Duration{500 * time.Millisecond, time.Second}, [2]time.Duration{30 * time.Second, time.Minute}},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			x := &asking{}
			var log bytes.Buffer
			c.settings.SpoolDir, c.settings.Metrics, c.settings.Logger = dir, telemetry.New(), slog.New(slog.NewTextHandler(&log, nil))
			d, err := delivery.New(c.settings, &recorded{}, delivery.Target{Name: "x", Exporter: x})
			if err != nil {
				t.Fatal(err)
			}
			x.away = true
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { d.Run(ctx); close(ended) }()
			b, done := batch(0)
			if err := d.Submit(ctx, b, checkpoint.Delta{Streams: []checkpoint.Stream{{Key: "0"}}}, false, done, func() {}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			cancel()
			<-ended
			d.Close()
			n := len(x.at)
			if n < 10 {
				t.Fatalf("%s: %d attempts", name, n)
			}
			for of, pause := range map[[2]time.Duration]time.Duration{c.first: x.at[1].Sub(x.at[0]), c.last: x.at[n-1].Sub(x.at[n-2])} {
				if pause < of[0] || pause > of[1] {
					t.Errorf("%s: a pause is %v, not within %v", name, pause, of)
				}
			}
			if lines := strings.Count(log.String(), "not delivered, trying again"); lines < 20 || lines > 60 {
				t.Errorf("%s: %d log lines in an hour", name, lines)
			}
			got := figures(t, c.settings.Metrics)
			if got := got["export_batches_total x retry"]; got != float64(n) {
				t.Errorf("%s: %v of %d attempts are counted", name, got, n)
			}
			if lag := got["export_lag_seconds x"]; lag < 3500 || got["spool_bytes x"] == 0 {
				t.Errorf("%s: the batch has waited for %v seconds, %v bytes are in the spool", name, lag, got["spool_bytes x"])
			}
		})
	}
}

// grouped is a checkpoint that notes how many batches each commit has; the first one waits.
type grouped struct {
	gate chan struct{}
	mu   sync.Mutex
	n    []int
}

func (c *grouped) Commit(deltas ...checkpoint.Delta) error {
	<-c.gate
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = append(c.n, len(deltas))
	return nil
}

// TestCommitsTogether: the batches that were accepted while a checkpoint was being written are in the next one together, and the memory of each
// was released before.
func TestCommitsTogether(t *testing.T) {
	x, c := &far{}, &grouped{gate: make(chan struct{})}
	d, err := delivery.New(delivery.Settings{SpoolDir: t.TempDir()}, c, delivery.Target{Name: "x", Exporter: x})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	const n = 20
	released, committed := make(chan int, n), make(chan int, n)
	for i := range n {
		b, _ := batch(i)
		if err := d.Submit(ctx, b, checkpoint.Delta{}, false, func() { released <- i }, func() { committed <- i }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if got := <-released; got != i {
			t.Errorf("batch %d is released, not %d", got, i)
		}
	}
	close(c.gate)
	for i := range n {
		if got := <-committed; got != i {
			t.Errorf("batch %d is committed, not %d", got, i)
		}
	}
	cancel()
	<-ended
	d.Close()
	if len(c.n) > 3 {
		t.Errorf("the commits have %v batches", c.n)
	}
}

// TestGatheredWithoutRoom has a destination that goes away with batches that it has gathered, while the spools are full: they are not accepted
// until it is back, and then all of them are delivered. Meanwhile it can be stopped.
func TestGatheredWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := (&rig{T: t, dir: filepath.Join(dir, "stopped"), near: &gathering{far: far{away: true}}, other: &far{}, more: true, max: 1}).start()
		r.submit(0, 4)
		time.Sleep(time.Minute)
		r.stop()
		if n := r.commits(); n != 1 {
			t.Errorf("%d batches are committed", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		near := &gathering{far: far{away: true}}
		r := (&rig{T: t, dir: dir, near: near, other: &far{}, more: true, max: 1}).start()
		r.submit(0, 4)
		time.Sleep(time.Minute)
		if n := r.commits(); n != 1 || r.d.Settled() { // a spool that is empty takes a batch of any size
			t.Errorf("%d batches are committed, settled: %v", n, r.d.Settled())
		}
		near.set(false)
		r.until("all of it", func() bool { return r.commits() == 4 && r.d.Settled() })
		r.stop()
		if d := cmp.Diff(want(4), near.received()); d != "" {
			t.Error(d)
		}
	})
}

// TestYoungerWaitForGathered has a destination that goes away with two gathered batches, of which the second is too large for the room in the spools: a
// small one behind them waits too, and all are delivered in order.
func TestYoungerWaitForGathered(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		near := &gathering{far: far{away: true}}
		r := (&rig{T: t, dir: dir, near: near, other: &far{}, more: true, max: 20 << 10}).start()
		submit := func(i, size int) {
			b, done := batch(i)
			b.Messages[0].Content = msg.Plain(strings.Repeat("x", size))
			if err := r.d.Submit(t.Context(), b, checkpoint.Delta{}, true, done, func() {}); err != nil {
				t.Error(err)
			}
		}
		submit(0, 1)
		submit(1, 30<<10)
		time.Sleep(3 * time.Second) // they are tried, and spooled as far as there is room
		submitted := make(chan struct{})
		go func() { defer close(submitted); submit(2, 1) }()
		time.Sleep(time.Minute)
		if n := r.commits(); n != 1 || !r.d.Behind("near") {
			t.Errorf("%d batches are committed, behind: %t", n, r.d.Behind("near"))
		}
		near.set(false)
		<-submitted
		r.until("all of it", func() bool { return r.commits() == 3 && r.d.Settled() })
		r.stop()
		var keys []string
		for _, l := range near.received() {
			keys = append(keys, l[:3])
		}
		if d := cmp.Diff([]string{"0.0", "0.1", "0.2", "1.0", "1.1", "1.2", "2.0", "2.1", "2.2"}, keys); d != "" {
			t.Error(d)
		}
	})
}

// TestDamagedBytes has a spool of which a byte is another: what cannot be read is reported, and the rest delivered.
func TestDamagedBytes(t *testing.T) {
	dir := t.TempDir()
	x := &far{away: true}
	r := (&rig{T: t, dir: dir, near: x, other: &far{}}).start()
	r.submit(0, 3)
	r.until("the commits", func() bool { return r.commits() == 3 })
	r.stop()
	files, err := filepath.Glob(filepath.Join(dir, "near", "*.spool"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("text 1 of 1"))
	if at < 0 {
		t.Fatal("the second batch is not there")
	}
	b[at] = 'T'
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	x.set(false)
	r.start()
	r.until("the spool", r.d.Settled)
	lost := r.d.Lost()
	r.stop()
	if d := cmp.Diff(slices.Concat(want(1), want(3)[6:]), x.received()); d != "" {
		t.Error(d)
	}
	if lost != 1 {
		t.Errorf("%d are lost", lost)
	}
}

// TestPartAtOnce has an exporter of parts that waits for one: it is delivered when it is there.
func TestPartAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		near := &selecting{}
		r := (&rig{T: t, dir: dir, near: near, other: &far{}}).start()
		synctest.Wait()
		r.submit(10, 11)
		synctest.Wait()
		if n := near.count(); n != 1 {
			t.Errorf("%d parts are delivered", n)
		}
		r.stop()
	})
}

// slow is an exporter that takes a batch for each value of its gate.
type slow struct {
	far
	gate chan struct{}
}

func (s *slow) Export(ctx context.Context, b *export.Batch) error {
	select {
	case <-s.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.far.Export(ctx, b)
}

// TestASlowExporter: a few batches wait in memory for an exporter that takes its time, and those who submit more wait. Nothing is written to the disk, and
// one is submitted for each that is taken.
func TestASlowExporter(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		near := &slow{gate: make(chan struct{})}
		r := (&rig{T: t, dir: dir, near: near, other: &far{}}).start()
		var submitted atomic.Int32
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range 40 {
				r.submit(i, i+1)
				submitted.Add(1)
			}
		}()
		synctest.Wait()
		first := submitted.Load()
		if first < 2 || first > 10 {
			t.Errorf("%d batches are submitted while none is taken", first)
		}
		for n := range int32(10) {
			time.Sleep(10 * time.Second)
			near.gate <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			if got := submitted.Load(); got != first+n+1 {
				t.Errorf("%d batches are submitted when %d are taken, want %d", got, n+1, first+n+1)
			}
		}
		if r.d.Behind("near") {
			t.Error("batches are in the spool")
		}
		close(near.gate)
		<-ended
		r.until("all of it", r.d.Settled)
		r.stop()
		if d := cmp.Diff(want(40), near.received()); d != "" {
			t.Error(d)
		}
	})
}

// TestGatheredAreSpooledAtOnce has a destination that goes away with batches that it has gathered: they are in the spool, and committed, at once, and
// the destination is not asked for them before it is due.
func TestGatheredAreSpooledAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		near := &gathering{far: far{away: true}, most: 100}
		r := (&rig{T: t, dir: dir, near: near, other: &far{}, more: true, gather: time.Hour}).start()
		r.submit(0, 8)
		synctest.Wait()
		if r.commits() != 0 {
			t.Errorf("%d batches are committed while they are gathered", r.commits())
		}
		r.more = false
		r.submit(8, 9)
		time.Sleep(100 * time.Millisecond)
		if n := r.commits(); n != 9 || !r.d.Behind("near") {
			t.Errorf("%d batches are committed, behind: %t", n, r.d.Behind("near"))
		}
		near.set(false)
		r.until("all of it", r.d.Settled)
		r.stop()
		if d := cmp.Diff(want(9), near.received()); d != "" {
			t.Error(d)
		}
	})
}

// TestRefusalsAreCounted: each attempt of a refused batch and of its halves is counted, and the records that were accepted.
func TestRefusalsAreCounted(t *testing.T) {
	x, m := &far{refuses: "0.1"}, telemetry.New()
	d, err := delivery.New(delivery.Settings{SpoolDir: t.TempDir(), Metrics: m, Logger: slog.New(slog.DiscardHandler)}, &recorded{}, delivery.Target{Name: "x", Exporter: x})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	b, done := batch(0)
	committed := make(chan struct{})
	if err := d.Submit(ctx, b, checkpoint.Delta{Streams: []checkpoint.Stream{{Key: "0"}}}, false, done, func() { close(committed) }); err != nil {
		t.Fatal(err)
	}
	<-committed
	cancel()
	<-ended
	d.Close()
	got := figures(t, m)
	if refused, ok := got["export_batches_total x refused"], got["export_batches_total x ok"]; refused+ok != 5 || refused < 2 || ok < 2 { // a tree of three leaves
		t.Errorf("%v attempts are refused, %v are ok", refused, ok)
	}
	if n := got["export_records_total x"]; n != 2 {
		t.Errorf("%v records are accepted", n)
	}
}

// TestACleanStartIsSilent: a spool that is whole is no warning, and neither is one that is empty.
func TestACleanStartIsSilent(t *testing.T) {
	dir := t.TempDir()
	r := (&rig{T: t, dir: dir, near: &far{away: true}, other: &far{}}).start()
	r.submit(0, 2)
	r.until("the commits", func() bool { return r.commits() == 2 })
	r.stop()
	var log bytes.Buffer
	s := delivery.Settings{SpoolDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	d, err := delivery.New(s, &recorded{}, delivery.Target{Name: "near", Exporter: &far{}}, delivery.Target{Name: "other", Exporter: &far{}}, delivery.Target{Name: "new", Exporter: &far{}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Behind("near") || d.Behind("other") || d.Behind("new") {
		t.Error("the wrong exporter is behind")
	}
	d.Close()
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// TestGathersBeforeReady: until the exporters may store, batches are gathered and their memory is free. None is stored, and what is gathered does
// not keep the delivery from its end.
func TestGathersBeforeReady(t *testing.T) {
	for _, opens := range []bool{true, false} {
		g, ready, released, committed := new(gathering), make(chan struct{}), make(chan struct{}, 8), make(chan struct{}, 8)
		r := &rig{T: t, dir: t.TempDir()}
		d, err := delivery.New(delivery.Settings{SpoolDir: r.dir, Ready: ready, Released: func(*export.Batch) { released <- struct{}{} }}, r, delivery.Target{Name: "near", Exporter: g})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		for i := range 4 {
			b, release := batch(i)
			if err := d.Submit(ctx, b, checkpoint.Delta{}, i < 3, release, func() { committed <- struct{}{} }); err != nil {
				t.Fatal(err)
			}
			<-released
		}
		time.Sleep(20 * time.Millisecond)
		if g.count() > 0 || r.commits() > 0 || d.Settled() {
			t.Errorf("%d rows are stored and %d batches committed too early, settled: %t", g.count(), r.commits(), d.Settled())
		}
		if opens {
			close(ready)
			for range 4 {
				<-committed
			}
			if g.count() != 12 || g.exports != 1 || !d.Settled() {
				t.Errorf("%d rows in %d inserts, settled: %t", g.count(), g.exports, d.Settled())
			}
		}
		cancel()
		<-done
		d.Close()
	}
}
