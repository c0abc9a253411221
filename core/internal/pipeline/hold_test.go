package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// submitted is a batch as a sink receives it; the test decides when the exporters have it.
type submitted struct {
	batch               *export.Batch
	delta               checkpoint.Delta
	more                bool
	released, committed func()
}

// inHand is a sink that keeps every batch.
type inHand struct{ list []submitted }

func (h *inHand) Submit(_ context.Context, b *export.Batch, d checkpoint.Delta, more bool, released, committed func()) error {
	h.list = append(h.list, submitted{b, d, more, released, committed})
	return nil
}

func (h *inHand) last() *submitted { return &h.list[len(h.list)-1] }

// withHand is a pipeline that does not run, and a source of it, whose batches stay in the test's hand.
func withHand(t *testing.T, s Settings) (*Pipeline, *Feed, *inHand) {
	t.Helper()
	p, feed := stopped(t, s)
	sink := new(inHand)
	p.core.commits.sink = sink
	return p, feed, sink
}

// TestFramesAreHeld: frames with rows keep their bytes and their place in the budgets until the exporters have the rows, others until they are decoded; those of before a rewind are returned at once.
func TestFramesAreHeld(t *testing.T) {
	p, feed, sink := withHand(t, Settings{Metrics: telemetry.New()})
	k, undecoded := &p.core.commits, feed.format.undecoded
	a := opened(t, p, feed, "k", 0)
	released := 0
	take := func(pos int64, generation int, messages ...msg.Message) {
		t.Helper()
		held, err := newLease(t.Context(), 100, undecoded, p.inFlight)
		if err != nil {
			t.Fatal(err)
		}
		b := &frame.Batch{Frames: []frame.Frame{aFrame(pos, "")}, Release: func() { released++ }}
		p.inbox.pending.Add(1)
		if err := p.core.take(result{&decode{ticket: ticket{a.stream, generation, pos}, batch: b, held: held}, &wire.Result{Messages: messages}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, wantReleased int, wantInFlight int64) {
		t.Helper()
		if released != wantReleased || p.inFlight.inUse() != wantInFlight || undecoded.inUse() != 0 || p.inbox.pending.Load() != 0 {
			t.Errorf("%s: %d are returned, %d bytes in flight, %d undecoded", what, released, p.inFlight.inUse(), undecoded.inUse())
		}
	}
	take(0, 7, said(0, "of another generation"))
	check("rewound", 1, 0)
	take(0, 0)
	if check("without a message", 2, 0); k.changed[a.stream.name] != a {
		t.Error("the account of frames without messages is not written")
	}
	take(10, 0, said(0, "a"), msg.Message{})
	take(20, 0, said(0, "b"))
	check("with messages", 2, 200)
	if k.batch.bytes != 200 || k.batch.read != 20 {
		t.Errorf("the batch has %d bytes, of %d read", k.batch.bytes, k.batch.read)
	}
	rows, stored := int64(k.batch.rows.Len()), false
	k.ledgers.written, k.ledgers.changed = time.Now(), time.Now()
	if err := k.close(t.Context(), closing{stored: func() { stored = true }}); err != nil {
		t.Fatal(err)
	}
	check("with the exporters", 2, 200)
	s := sink.last()
	if len(s.batch.ID) != 32 || s.more || stored || p.core.drained() || k.held.Load() != 1 || !k.empty() || metric(t, p.metrics, "earshot_in_flight_bytes") != 200 || k.due(time.Now().Add(time.Hour)) {
		t.Errorf("batch %q, stored %t, %d are held", s.batch.ID, stored, k.held.Load())
	}
	if len(s.delta.Groups) != 1 || len(s.delta.Streams) != 1 || s.delta.Streams[0].Pos != 30 || len(s.batch.Ledger) != 0 {
		t.Errorf("checkpoint %+v, accounts %+v", s.delta, s.batch.Ledger)
	}
	s.released()
	if check("stored", 4, 0); !stored || p.Progress().Committed != 0 || k.held.Load() != 0 || k.submitted.Load() != 1 {
		t.Errorf("stored %t, progress %+v", stored, p.Progress())
	}
	if s.committed(); p.Progress().Committed < rows || k.submitted.Load() != 0 {
		t.Errorf("progress %+v of %d rows", p.Progress(), rows)
	}
}

// TestWhatABatchHas: the checkpoint has the changes since the one before, once, and the rows of accounts go with the last batch of all that is delivered. In a backlog neither is in every batch.
func TestWhatABatchHas(t *testing.T) {
	p, feed, sink := withHand(t, Settings{FlushInterval: time.Hour, Erased: func(_, session string) bool { return session == "gone" }})
	k := &p.core.commits
	a := opened(t, p, feed, "k", 0)
	for i, x := range []struct {
		how             closing
		groups, ledgers int
	}{
		{closing{more: true}, 1, 1},
		{closing{more: true}, -1, 0},
		{closing{}, 1, 0},
		{closing{committed: func() {}}, 1, 1},
	} {
		k.ledgers.written, k.ledgers.changed = time.Now(), time.Now()
		answered(t, p, a, []frame.Frame{aFrame(10*int64(i), "")}, wire.Result{Messages: []msg.Message{said(0, fmt.Sprint(i))}})
		k.dropped, k.rewritten, k.forgotten = []checkpoint.Group{{Key: "dropped"}}, []checkpoint.Stream{{Key: "rewritten"}}, []checkpoint.Stream{{Key: "forgotten"}}
		if err := k.close(t.Context(), x.how); err != nil {
			t.Fatal(err)
		}
		s := sink.last()
		if checkpoints := x.groups >= 0; len(s.batch.Ledger) != x.ledgers || checkpoints != (len(s.delta.Groups) == 2 && len(s.delta.Streams) == 2 && len(s.delta.Forget) == 1) || !checkpoints != reflect.DeepEqual(s.delta, checkpoint.Delta{}) || s.more != x.how.more {
			t.Errorf("batch %d: %d accounts, %+v", i, len(s.batch.Ledger), s.delta)
		}
		s.released()
	}
	if a.record.Ledgered != 40 || len(k.ledgers.pending) != 0 {
		t.Errorf("accounts are written up to %d", a.record.Ledgered)
	}
	if err := k.close(t.Context(), closing{}); err != nil || len(sink.last().delta.Groups)+len(sink.last().delta.Streams)+len(sink.last().delta.Forget) != 0 {
		t.Errorf("%v: what is in the checkpoint is written again: %+v", err, sink.last().delta)
	}
	gone := said(0, "of another process")
	gone.Session, gone.Host = "gone", msg.Host{Tenant: "tenant", Format: "notes", Source: "source", Ver: 10}
	if _, err := p.core.assembler.Apply(&gone, 9, 1, time.Now(), 0); err != nil {
		t.Fatal(err)
	}
	if err := k.close(t.Context(), closing{}); err != nil || len(sink.last().delta.Groups) != 0 {
		t.Errorf("%v: the state of an erased session is kept: %+v", err, sink.last().delta.Groups)
	}
}

// TestAnchorsAreDurableFirst: the time of a file that dates rows is in the checkpoint before them, and without the position that comes with them.
func TestAnchorsAreDurableFirst(t *testing.T) {
	check := checkpoints{map[string]checkpoint.Stream{}, map[string][]byte{}}
	p, feed, sink := withHand(t, Settings{})
	k := &p.core.commits
	k.check = check
	a := opened(t, p, feed, "k", 30)
	a.record.Anchor, a.record.State = 7, []byte("state")
	k.anchors = []*account{a}
	for range 2 {
		if err := k.close(t.Context(), closing{}); err != nil {
			t.Fatal(err)
		}
		want := checkpoint.Stream{Source: "source", Key: "k", Origin: "/k", Anchor: 7, State: []byte("state")}
		if d := cmp.Diff(want, check.streams["k"]); d != "" || len(sink.list) != 1 {
			t.Error(d)
		}
		check.streams["k"], sink.list = want, nil
	}
}

// fullDisk is a checkpoint on a disk that takes a commit again after some that failed.
type fullDisk struct {
	checkpoints
	fails int
}

func (f *fullDisk) Commit(list ...checkpoint.Delta) error {
	if f.fails--; f.fails >= 0 {
		return errors.New("no space left")
	}
	return f.checkpoints.Commit(list...)
}

// TestAnchorsWaitForTheDisk: while the disk is full no batch with a time of a file is sent, and its sessions are in the checkpoint of the next attempt.
func TestAnchorsWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := &fullDisk{checkpoints{map[string]checkpoint.Stream{}, map[string][]byte{}}, 1 << 30}
		p, feed, sink := withHand(t, Settings{})
		k := &p.core.commits
		k.check = check
		a := opened(t, p, feed, "k", 0)
		answered(t, p, a, []frame.Frame{aFrame(0, "")}, wire.Result{Messages: []msg.Message{said(0, "a")}})
		k.anchors = []*account{a}
		within, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := k.closeNow(within); !errors.Is(err, context.DeadlineExceeded) || len(sink.list) != 0 || len(k.anchors) != 1 {
			t.Errorf("%d batches are sent: %v", len(sink.list), err)
		}
		check.fails = 5
		if err := k.close(t.Context(), closing{}); err != nil || check.streams["k"].Key == "" || len(k.anchors) != 0 {
			t.Errorf("%v, the checkpoint has %+v", err, check.streams)
		}
		if s := sink.last(); len(s.delta.Groups) != 1 || len(s.batch.Messages) != 1 {
			t.Errorf("%d sessions are in the checkpoint, %d messages are sent", len(s.delta.Groups), len(s.batch.Messages))
		}
	})
}

// TestWantedAtOnce: who wants the rows until now has them when the exporters do; at once when there are none, or some were sent just now. While a batch is with the exporters it waits.
func TestWantedAtOnce(t *testing.T) {
	for name, x := range map[string]struct {
		rows, held bool
		ago        time.Duration // since a batch was closed
		served     bool
		batches    int
	}{"nothing": {false, false, time.Hour, true, 0}, "rows": {true, false, time.Hour, false, 1}, "just now": {true, false, justNow / 2, true, 0}, "while one is with the exporters": {true, true, time.Hour, false, 0}} {
		p, _, sink := withHand(t, Settings{})
		k, now := &p.core.commits, time.Now()
		if err := k.serveWanted(t.Context(), now); err != nil || len(sink.list) != 0 {
			t.Errorf("%v: a batch that nobody wants", err)
		}
		served := 0
		if k.closed = now.Add(-x.ago); x.rows {
			k.addMessage(&msg.Message{})
		}
		if x.held {
			k.held.Add(1)
		}
		k.wanted = []func(){func() { served++ }, func() { served++ }}
		for range 2 {
			if err := k.serveWanted(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		if (served == 2) != x.served || len(sink.list) != x.batches || len(k.wanted) != map[bool]int{true: 2, false: 0}[x.held] {
			t.Errorf("%s: served %d, %d batches, %d wait", name, served, len(sink.list), len(k.wanted))
		}
		if x.batches == 1 {
			if sink.last().released(); served != 2 {
				t.Errorf("%s: served %d", name, served)
			}
		}
	}
}

// TestDueToTheMoment: a batch is closed when its rows have waited for the interval, and not before; so are accounts, and streams without rows.
func TestDueToTheMoment(t *testing.T) {
	for _, rows := range []bool{true, false} {
		p, _, sink := withHand(t, Settings{})
		k := &p.core.commits
		if rows {
			k.addMessage(&msg.Message{})
			k.batch.began = k.closed.Add(-time.Hour)
		} else {
			k.forgotten = []checkpoint.Stream{{}}
		}
		for _, at := range []time.Duration{time.Second - 1, time.Second} {
			if err := k.closeDue(t.Context(), k.closed.Add(at)); err != nil || len(sink.list) != int(at/time.Second) {
				t.Errorf("after %v: %v, %d batches, rows %t", at, err, len(sink.list), rows)
			}
		}
		k.held.Store(0)
		if rows { // that come one by one are gathered for a fifth
			k.addMessage(&msg.Message{})
			k.closed = k.batch.began.Add(-time.Hour)
			if k.due(k.batch.began.Add(200*time.Millisecond-1)) || !k.due(k.batch.began.Add(200*time.Millisecond)) {
				t.Error("a row waits for another time than a fifth of the interval")
			}
		}
	}
	p, feed, _ := withHand(t, Settings{})
	k, a := &p.core.commits, opened(t, p, feed, "k", 10)
	k.ledgers.pending[1] = a
	k.ledgers.active = false
	now := k.closed.Add(time.Millisecond)
	if !k.due(now) || k.unread() {
		t.Error("an account waits for a reader where all are")
	}
	if k.interval++; k.due(now) || !k.unread() {
		t.Error("an account does not wait for a reader")
	}
}

// TestEndedIsKnown: until the checkpoint has it, the record of a stream that ended is known from here, and one that was forgotten is not known. Other streams are as the checkpoint has them.
func TestEndedIsKnown(t *testing.T) {
	check := checkpoints{map[string]checkpoint.Stream{"old": {Source: "s", Key: "old", Pos: 3}}, map[string][]byte{}}
	p, feed, sink := withHand(t, Settings{})
	k := &p.core.commits
	k.check = check
	a := opened(t, p, feed, "k", 10)
	a.anchored = true
	is := func(what string, name uint64, key string, pos int64, ok bool) {
		t.Helper()
		if r, anchored, found, err := k.known(name, "source", key); err != nil || r.Pos != pos || found != ok || anchored != ok {
			t.Errorf("%s: at %d, %t, anchored %t, %v", what, r.Pos, found, anchored, err)
		}
	}
	is("one of the checkpoint", 1, "old", 3, true)
	is("a new one", 2, "new", 0, false)
	k.end(a)
	is("one that ended", a.stream.name, "k", 10, true)
	is("once", a.stream.name, "k", 0, false)
	for _, r := range []checkpoint.Stream{{Source: "other", Key: "old"}, {Source: "source", Key: "other"}, {Source: "source", Key: "old"}} {
		k.forgetStream(nameOf(r.Source, r.Key), r)
	}
	is("one that was forgotten", nameOf("source", "old"), "old", 0, false)
	if d := cmp.Diff([]checkpoint.Stream{{Source: "other", Key: "old"}, {Source: "source", Key: "other"}}, k.forgotten); d != "" {
		t.Error(d)
	}
	k.end(a)
	for i, want := range []int{3, 0} { // with the next batch after it is durable
		if err := k.close(t.Context(), closing{}); err != nil || len(k.ended) != want {
			t.Errorf("batch %d: %v, %d are remembered", i, err, len(k.ended))
		}
		sink.last().committed()
	}
}

// TestOpenedWhereItWas: a stream goes on with its record, at its snapshot, without its poison records, under the name that its source has now. A record that an anchor made has no format.
func TestOpenedWhereItWas(t *testing.T) {
	known := checkpoint.Stream{
		Source: "source", Key: "k", Format: "notes", Origin: "/was", Anchor: 5, State: []byte("was"), Pos: 40, SnapPos: 30, Snapshot: []byte("snapshot"),
		Session: "s", Closed: true, Ledgered: 20, Poison: map[int64]string{35: "decoder_crash"},
	}
	anchor := checkpoint.Stream{Source: "source", Key: "k", Origin: "/was", Anchor: 5, Pos: 40}
	for name, x := range map[string]struct {
		known *checkpoint.Stream
		state []byte
		want  func(*checkpoint.Stream)
	}{
		"new": {nil, []byte("now"), func(r *checkpoint.Stream) {
			*r = checkpoint.Stream{Source: "source", Key: "k", Format: "notes", Anchor: 9, State: []byte("now")}
		}},
		"known":       {&known, nil, func(*checkpoint.Stream) {}},
		"another one": {&known, []byte("now"), func(r *checkpoint.Stream) { r.State = []byte("now") }},
		"an anchor":   {&anchor, nil, func(r *checkpoint.Stream) { *r = anchor; r.Format, r.Ledgered = "notes", 40 }},
	} {
		p, feed := stopped(t, Settings{})
		check := checkpoints{map[string]checkpoint.Stream{}, map[string][]byte{}}
		if x.known != nil {
			check.streams["k"] = *x.known
		}
		p.core.commits.check = check
		s, before := &stream{name: nameOf("source", "k"), feed: feed}, &stream{name: 1, feed: feed}
		for _, o := range []*stream{before, s} {
			key := map[bool]string{true: "k", false: "before"}[o == s]
			if err := p.core.open(o, checkpoint.Stream{Source: "source", Key: key, Origin: "/now", Anchor: 9, State: x.state}); err != nil {
				t.Fatal(err)
			}
		}
		want := known
		want.Closed = false
		x.want(&want)
		want.Origin = "/now"
		a := p.core.accounts.of[s]
		if d := cmp.Diff(want, a.record); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		c := &s.cursor
		if c.next != want.SnapPos || a.decoded != want.SnapPos || c.resume.pos != want.SnapPos || string(c.resume.snapshot) != string(want.Snapshot) || c.resume.origin != "/now" || len(c.quarantine.records) != len(want.Poison) {
			t.Errorf("%s: goes on at %d, %+v", name, c.next, c.resume)
		}
		if (x.known != nil) != a.anchored || a.ended != (x.known == &known) || a.lastSession != want.Session || !a.decoderClosed || s.id == before.id || s.lane == nil || p.core.commits.changed[s.name] != a {
			t.Errorf("%s: %+v", name, a)
		}
		p.core.accounts.remove(a)
		if p.core.accounts.named[s.name] != nil || len(p.core.accounts.of) != 1 || len(p.core.accounts.awake) != 1 {
			t.Errorf("%s: it is not removed", name)
		}
	}
}

// begun has the core run until the test calls ended.
func begun(t *testing.T, p *Pipeline) (ended func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.runCore(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestFlushOfAll: Flush returns when each decoder that has something open was asked for it, or will not be. It asks none that cannot be opened or that is being delivered again.
func TestFlushOfAll(t *testing.T) {
	p, feed := stopped(t, Settings{Lanes: 1, FlushInterval: time.Hour})
	open, discarded := opened(t, p, feed, "open", 10), opened(t, p, feed, "discarded", 20)
	opened(t, p, feed, "flushed", 30).record.FlushPos = 30
	opened(t, p, feed, "stalled", 40).stalled = true
	opened(t, p, feed, "rewound", 50).stream.cursor.next = 5
	for _, a := range []*account{open, discarded} {
		a.decoded = a.record.Pos
	}
	ended := begun(t, p)
	flushed := make(chan error)
	go func() { flushed <- p.Flush(t.Context()) }()
	queue := open.stream.lane.queue
	for range 2 {
		cmd := <-queue
		if len(flushed) > 0 {
			t.Error("it does not wait for the decoders")
		}
		switch to := cmd.target(); {
		case to.stream == open.stream && to.pos == 10:
			p.inbox.results <- result{cmd, &wire.Result{HasSnapshot: true, Snapshot: []byte("state"), Messages: []msg.Message{said(0, "open")}}}
		case to.stream == discarded.stream && to.pos == 20:
			p.inbox.discard(cmd)
		default:
			t.Errorf("%T of %d", cmd, to.pos)
		}
	}
	if err := <-flushed; err != nil || len(queue) != 0 {
		t.Errorf("%v, %d commands more", err, len(queue))
	}
	if err := p.inbox.call(t.Context(), func(c *core) {
		if !open.flushed() || discarded.flushed() || string(open.record.Snapshot) != "state" || len(c.commits.batch.rows.Messages) != 1 {
			t.Errorf("flushed %t and %t, %d messages", open.flushed(), discarded.flushed(), len(c.commits.batch.rows.Messages))
		}
		discarded.record.FlushPos = 20
		p.core.accounts.named[nameOf("source", "rewound")].stalled = true
	}); err != nil {
		t.Error(err)
	}
	if none, err := p.flushAll(t.Context()); !none || err != nil {
		t.Errorf("%v: there is still one to flush", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Flush(over); !errors.Is(err, context.Canceled) {
		t.Errorf("at the end of its context: %v", err)
	}
	ended()
	if err := p.Flush(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("of a pipeline that has stopped: %v", err)
	}
}

// TestFinishEndsRuns: open runs are ended, and their spans are with the exporters.
func TestFinishEndsRuns(t *testing.T) {
	p, feed := stopped(t, Settings{FlushInterval: time.Hour})
	a := opened(t, p, feed, "k", 0)
	answered(t, p, a, []frame.Frame{aFrame(0, "")}, wire.Result{Messages: []msg.Message{said(0, "first")}})
	a.record.FlushPos = a.record.Pos
	ended := begun(t, p)
	if err := p.Finish(t.Context()); err != nil {
		t.Error(err)
	}
	if n := p.Progress(); n.Spans != 1 || n.Committed < 3 || !p.Drained(t.Context()) {
		t.Errorf("%+v", n)
	}
	ended()
}

// TestStoreIsABeat: Store also writes an account, which shows that Earshot runs, if none was written for long; while rows wait for a reader none is.
func TestStoreIsABeat(t *testing.T) {
	p, feed, sink := withHand(t, Settings{Heartbeat: time.Minute, FlushInterval: time.Hour})
	a := opened(t, p, feed, "k", 10)
	k := &p.core.commits
	k.closed = time.Now().Add(-time.Hour)
	k.interval = 2 * time.Hour
	if err := p.core.idle(time.Now()); err != nil || len(k.changed) != 0 {
		t.Errorf("%v: %d accounts while nobody reads", err, len(k.changed))
	}
	ended := begun(t, p)
	stored := make(chan error)
	go func() { stored <- p.Store(t.Context()) }()
	for len(stored) == 0 {
		var s *submitted
		if err := p.inbox.call(t.Context(), func(*core) {
			if len(sink.list) > 0 {
				s = sink.last()
			}
		}); err != nil {
			t.Fatal(err)
		}
		if s != nil {
			if len(s.delta.Streams) != 1 || s.delta.Streams[0].Key != a.record.Key {
				t.Errorf("%+v", s.delta)
			}
			s.released()
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := <-stored; err != nil {
		t.Error(err)
	}
	ended()
	k.closed, k.interval = time.Now().Add(-2*ledgerEvery), time.Hour
	k.messages.free, k.spans.free = make([][]msg.Message, 1), make([][]msg.Span, 1)
	k.settings.Heartbeat = time.Second
	if err := p.core.idle(time.Now()); err != nil || len(k.changed) != 1 || len(k.messages.free)+len(k.spans.free) != 0 {
		t.Errorf("%v: %d accounts are a heartbeat, %d slabs are kept", err, len(k.changed), len(k.messages.free)+len(k.spans.free))
	}
}

// TestDefaults: the zero value of a setting is its default, and others are kept.
func TestDefaults(t *testing.T) {
	var none Settings
	none.defaults()
	want := Settings{
		FlushInterval: time.Second, BatchRows: 10_000, BatchBytes: 8 << 20, MaxInFlight: 48 << 20, FlushIdle: 2 * time.Second, CloseIdle: time.Minute,
		EndIdle: 2 * time.Minute, SnapEvery: time.Second, Lanes: 2, MaxDeadLetter: 1 << 20, Logger: none.Logger, Metrics: none.Metrics,
	}
	if !reflect.DeepEqual(want, none) || none.Logger == nil || none.Metrics == nil {
		t.Errorf("%+v", none)
	}
	set := Settings{
		FlushInterval: 1, BatchRows: 2, BatchBytes: 3, MaxInFlight: 4, FlushIdle: 5, CloseIdle: 6, EndIdle: 7, SnapEvery: 8, Heartbeat: 9, Lanes: 10, MaxDeadLetter: 11,
		Logger: slog.Default(), Metrics: telemetry.New(),
	}
	kept := set
	if kept.defaults(); !reflect.DeepEqual(set, kept) {
		t.Errorf("%+v", kept)
	}
}

// TestLooksAreRareWithoutAReader: while rows wait for a reader, the core looks for rows that are due once a second alone.
func TestLooksAreRareWithoutAReader(t *testing.T) {
	p, _ := stopped(t, Settings{})
	set := func(d time.Duration) {
		p.SetFlushInterval(t.Context(), d)
		p.posted()
		p.inbox.early.started = false
	}
	p.core.tick = time.NewTicker(time.Millisecond)
	defer p.core.tick.Stop()
	set(20 * slowEvery)
	select {
	case <-p.core.tick.C:
		t.Error("it looks")
	case <-time.After(20 * time.Millisecond):
	}
	set(time.Millisecond)
	began := time.Now()
	<-p.core.tick.C
	if early := time.Since(began); early < 9*time.Millisecond || p.core.commits.interval != time.Millisecond {
		t.Errorf("it looks after %v", early)
	}
	set(2 * time.Second)
	select {
	case <-p.core.tick.C:
	case <-time.After(20 * time.Second):
		t.Error("it does not look")
	}
}

// TestFormatIsAddedOnce: a format that is known is not started again, and one that does not start is not added.
func TestFormatIsAddedOnce(t *testing.T) {
	p, _ := stopped(t, Settings{})
	fails := func(context.Context) (*host.Process, error) { return nil, errors.New("no such program") }
	if info, err := p.AddFormat(t.Context(), "notes", fails); err != nil || info.Revision != 4 {
		t.Errorf("revision %d, %v", info.Revision, err)
	}
	if _, err := p.AddFormat(t.Context(), "other", fails); err == nil || p.format("other") != nil {
		t.Errorf("%v", err)
	}
}

// TestBroken names the formats whose decoders end again and again, in one order; the first progress ends it.
func TestBroken(t *testing.T) {
	p, feed := stopped(t, Settings{Metrics: telemetry.New()})
	for _, name := range []string{"b", "c", "a"} {
		f := p.newFormat(name, decoder.Info{})
		p.formats[name] = f
		f.circuit.open.Store(&name)
		f.metrics.DecoderCircuit.With(name).Set(1)
	}
	for _, want := range [][]string{{"a", "b", "c"}, {"a", "c"}} {
		if got := p.Broken(); !slices.Equal(got, want) || metric(t, p.metrics, "earshot_decoder_circuit_open") != float64(len(want)) {
			t.Errorf("%q, want %q; %q", got, want, counted(t, p.metrics, "earshot_decoder"))
		}
		p.formats["b"].advance()
		feed.format.advance()
	}
}
