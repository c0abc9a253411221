package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestBatchWaitsForTheOneBefore: a commit batch is not closed by time while an exporter has the
// memory of another.
func TestBatchWaitsForTheOneBefore(t *testing.T) {
	k := &committer{settings: &Settings{FlushInterval: time.Second}, assembler: assemble.New(assemble.Settings{}, nil, nil), batch: &commitBatch{}, interval: time.Second}
	now := time.Now()
	if k.due(now) {
		t.Error("an empty batch is due")
	}
	k.changed = map[uint64]*account{1: {}}
	if !k.due(now) {
		t.Error("the account of a stream without rows is never due")
	}
	k.addMessage(&msg.Message{})
	for _, x := range []struct {
		age  time.Duration
		held int32
		want bool
	}{{0, 0, false}, {2 * time.Second, 0, true}, {2 * time.Second, 1, false}, {time.Hour, 1, false}} {
		k.held.Store(x.held)
		if got := k.due(k.batch.began.Add(x.age)); got != x.want {
			t.Errorf("%s old, %d held: due is %t", x.age, x.held, got)
		}
	}
}

// TestRestOfABacklog: while rows wait for a reader, the rest of a backlog is written when no more of it arrives, and
// rows that come one by one wait.
func TestRestOfABacklog(t *testing.T) {
	for _, more := range []bool{false, true} {
		k := &committer{settings: &Settings{FlushInterval: time.Second, FlushIdle: 2 * time.Second}, assembler: assemble.New(assemble.Settings{}, nil, nil),
			batch: &commitBatch{}, interval: time.Minute, more: more}
		k.addMessage(&msg.Message{})
		now := k.batch.began
		k.closed = now
		for second := range 60 {
			k.ledgers.active = second < 10 // frames arrive
			now = now.Add(time.Second)
			if got, want := k.due(now), more && second >= 12 || second == 59; got != want {
				t.Errorf("a backlog %t: after %d s, of which frames arrived in 10, due is %t", more, second+1, got)
			}
		}
	}
}

// TestBacklogEndsOnce: a batch of a backlog that was open for an interval, because an exporter was slow, has another behind it, unless
// all is read: then the rest follows at once, with the accounts.
func TestBacklogEndsOnce(t *testing.T) {
	for _, c := range []struct {
		name               string
		more, read, filled bool
		age                time.Duration
		closes, ends       bool
	}{
		{"half a batch of a backlog", true, false, true, 2 * time.Second, true, false},
		{"a few rows of a backlog", true, false, false, 2 * time.Second, true, true},
		{"rows of a backlog that is being read", true, false, true, time.Millisecond, false, false},
		{"the rest of a backlog", true, true, true, time.Millisecond, true, true},
		{"rows that come one by one", false, true, false, time.Millisecond, false, false},
		{"much at once", false, false, true, 2 * time.Second, true, true},
	} {
		sink := new(recordedDeltas)
		p := New(Settings{FlushInterval: time.Second}, nothingKnown{}, sink)
		k := &p.core.commits
		a := &account{stream: &stream{name: 1, feed: &Feed{source: "s", format: &format{name: "notes"}}}, record: checkpoint.Stream{Source: "s", Key: "k", Pos: 10}}
		k.touch(a)
		k.addMessage(&msg.Message{})
		if k.more = c.more; c.filled {
			k.batch.read = k.settings.BatchBytes / 2
		}
		k.read = func() bool { return c.read }
		k.ledgers.written = k.batch.began
		k.closed = k.batch.began
		if err := k.closeDue(t.Context(), k.batch.began.Add(c.age)); err != nil || len(*sink) == 1 != c.closes {
			t.Errorf("%s: %v, closed %d times", c.name, err, len(*sink))
		}
		if c.closes && k.more == c.ends {
			t.Errorf("%s: another batch follows: %t", c.name, k.more)
		}
		if written := len(k.ledgers.pending) == 0 && a.record.Ledgered == 10; written != (c.closes && (!c.ends || c.read)) {
			t.Errorf("%s: its account is written: %t", c.name, written)
		}
	}
}

// TestSilenceWaitsForAReader: a verdict on an agent that is silent is sent at once where there is a reader, and without a
// reader it waits for ten minutes, unless something arrives or a source is in trouble.
func TestSilenceWaitsForAReader(t *testing.T) {
	for _, c := range []struct {
		interval time.Duration
		arrives  time.Duration // 0: never
		urgent   bool
		trouble  bool
		want     time.Duration
	}{
		{time.Second, 0, false, false, time.Second},
		{time.Minute, 0, false, false, 10 * time.Minute},
		{time.Minute, time.Second, false, false, time.Minute},
		{time.Minute, 5 * time.Minute, false, false, 5 * time.Minute},
		{time.Minute, 0, true, false, time.Second},
		{time.Minute, 0, false, true, time.Minute},
	} {
		k := &committer{settings: &Settings{FlushInterval: time.Second}, assembler: assemble.New(assemble.Settings{}, nil, nil), batch: &commitBatch{}, interval: c.interval, urgent: c.urgent}
		k.addVerdict(msg.Verdict{})
		if c.trouble {
			k.addDeadLetter(msg.DeadLetter{})
		}
		now := k.batch.began
		k.closed = now
		waited := time.Duration(0)
		for !k.due(now.Add(waited)) && waited < time.Hour {
			waited += time.Second
			k.ledgers.active = waited == c.arrives
		}
		if waited != c.want {
			t.Errorf("rows are sent each %s, something arrives after %s: due after %s, want %s", c.interval, c.arrives, waited, c.want)
		}
	}
}

// TestAlive: from which time on the silence of a message's sender counts.
func TestAlive(t *testing.T) {
	const hour, now = int64(time.Hour), int64(1_800_000_000e9)
	for name, x := range map[string]struct {
		time  int64 // of the record
		kind  frame.Kind
		batch *frame.Batch
		want  int64
	}{
		"read live":                   {now - hour, frame.Event, &frame.Batch{}, now},
		"a clock that is behind":      {now - 8*hour, frame.Line, &frame.Batch{Written: now - 2*hour}, now},
		"a clock that is ahead":       {now + 8*hour, frame.Event, &frame.Batch{}, now},
		"a copied transcript":         {now - 100*hour, frame.Line, &frame.Batch{Written: now}, now - 100*hour},
		"a reloaded conversation":     {now - 2*hour, frame.Body, &frame.Batch{}, now - 2*hour},
		"history":                     {now - 100*hour, frame.Line, &frame.Batch{Written: now - 90*hour, Backlog: true}, now - 100*hour},
		"history of the last minutes": {now - hour/60, frame.Line, &frame.Batch{Written: now, Backlog: true}, now - hour/60},
		"just a day old":              {now - 24*hour, frame.Event, &frame.Batch{}, now - 24*hour},
		"history from the future":     {now + hour, frame.Line, &frame.Batch{Written: now - hour, Backlog: true}, now - hour},
		"what a decoder had open":     {now - hour, frame.Line, nil, now - hour},
	} {
		if got := Alive(&msg.Message{Time: x.time}, &frame.Frame{Kind: x.kind, At: now}, x.batch, time.Unix(0, now)); got != x.want {
			t.Errorf("%s: %s ago", name, time.Duration(now-got))
		}
	}
}

// TestAccountsAreWrittenRarely: while every tick changes accounts their rows are written every few
// seconds, and the last change when it has been quiet for half of a flush interval.
func TestAccountsAreWrittenRarely(t *testing.T) {
	l := ledgers{pending: make(map[uint64]*account)}
	now, written := time.Now(), 0
	step := func() {
		now = now.Add(50 * time.Millisecond)
		if l.due(now, time.Second) {
			l.take(now)
			written++
		}
	}
	for n := range 60 * 20 { // a minute
		l.pending[uint64(n%7)], l.active = &account{}, true
		step()
	}
	if written < 10 || written > 13 {
		t.Errorf("written %d times in a minute", written)
	}
	l.pending[1], l.active = &account{}, true
	for n := 0; len(l.pending) > 0; n++ {
		if step(); n > 12 {
			t.Fatal("the last change is not written")
		}
	}
	for range 100 {
		step()
	}
	if written > 15 {
		t.Error("written without a change")
	}
}

// sinkOf commits every batch to the checkpoint.
type sinkOf checkpoints

func (s sinkOf) Submit(_ context.Context, _ *export.Batch, d checkpoint.Delta, _ bool, released, committed func()) error {
	released()
	committed()
	return checkpoints(s).Commit(d)
}

// TestAccountsOfAnEarlierProcess: an account that a process changed and did not come to write is
// written by the next, also if its stream has ended.
func TestAccountsOfAnEarlierProcess(t *testing.T) {
	check := checkpoints{map[string]checkpoint.Stream{}, map[string][]byte{}}
	p := New(Settings{}, check, sinkOf(check))
	behind := checkpoint.Stream{Source: "s", Key: "k", Format: "notes", Pos: 100, Ledgered: 40, Closed: true}
	f := &Feed{source: "s", format: &format{name: "notes"}}
	p.core.resumeLedger(f, behind)
	p.core.resumeLedger(f, behind)
	k := &p.core.commits
	if !k.due(time.Now().Add(time.Minute)) {
		t.Error("not due")
	}
	if err := k.close(t.Context(), closing{}); err != nil {
		t.Fatal(err)
	}
	if got := check.streams["k"]; got.Ledgered != 100 || !got.Closed {
		t.Errorf("in the checkpoint: %+v", got)
	}
	if len(k.ledgers.pending) != 0 {
		t.Error("still pending")
	}
}

// recordedDeltas is a sink that takes every batch, and keeps the checkpoints.
type recordedDeltas []checkpoint.Delta

func (s *recordedDeltas) Submit(_ context.Context, _ *export.Batch, d checkpoint.Delta, _ bool, released, committed func()) error {
	*s = append(*s, d)
	released()
	committed()
	return nil
}

// TestBacklogChecksSeldom: of the batches of a backlog those have a checkpoint that are a flush interval after one, and
// the last. A stream that ended in between is known as it ended.
func TestBacklogChecksSeldom(t *testing.T) {
	sink := new(recordedDeltas)
	p := New(Settings{FlushInterval: time.Hour}, nothingKnown{}, sink)
	k := &p.core.commits
	a := &account{stream: &stream{name: 1, feed: &Feed{source: "s", format: &format{name: "notes"}}}, record: checkpoint.Stream{Source: "s", Key: "k"}}
	closeBatch := func(how closing) checkpoint.Delta {
		t.Helper()
		a.record.Pos += 10
		k.touch(a)
		k.addMessage(&msg.Message{})
		if err := k.close(t.Context(), how); err != nil {
			t.Fatal(err)
		}
		return (*sink)[len(*sink)-1]
	}
	if d := closeBatch(closing{more: true}); len(d.Streams) != 1 || d.Streams[0].Pos != 10 {
		t.Errorf("the first: %+v", d)
	}
	k.end(a)
	for range 2 {
		if d := closeBatch(closing{more: true}); len(d.Streams)+len(d.Groups)+len(d.Forget) != 0 {
			t.Errorf("between: %+v", d)
		}
	}
	if r, _, ok, err := k.known(1, "s", "k"); !ok || err != nil || r.Pos != 30 || !r.Closed {
		t.Errorf("a stream that ended: %+v, %t, %v", r, ok, err)
	}
	k.checked = k.checked.Add(-2 * time.Hour)
	if d := closeBatch(closing{more: true}); len(d.Streams) != 1 || d.Streams[0].Pos != 40 {
		t.Errorf("an interval later: %+v", d)
	}
	closeBatch(closing{more: true})
	k.interval = time.Hour * 24 // nobody reads the rows
	if now := time.Now(); k.due(now) || !k.due(now.Add(time.Minute)) {
		t.Error("the checkpoint of the last batch of a backlog waits for a reader")
	}
	if d := closeBatch(closing{}); len(d.Streams) != 1 || d.Streams[0].Pos != 60 || len(k.changed) != 0 {
		t.Errorf("the last: %+v", d)
	}
}

// TestBatchIDs: a batch is named by the ids and versions of its rows: by each, and by nothing else. A store drops a second batch of that name.
func TestBatchIDs(t *testing.T) {
	name := func(change func(*export.Batch)) string {
		b := export.Batch{Messages: exporttest.Records(make([]msg.Message, 2)...), Spans: exporttest.Records(make([]msg.Span, 1)...), Verdicts: make([]msg.Verdict, 1), DeadLetters: make([]msg.DeadLetter, 1),
			Streams: make([]msg.Stream, 1), Ledger: make([]msg.Ledger, 1)}
		change(&b)
		return batchID(&b)
	}
	seen := make(map[string]int)
	for i, change := range []func(*export.Batch){
		func(*export.Batch) {},
		func(b *export.Batch) { b.Messages[1].Host.ID[3] = 1 },
		func(b *export.Batch) { b.Messages[1].Host.Ver = 1 },
		func(b *export.Batch) { b.Spans[0].TraceID[1] = 1 },
		func(b *export.Batch) { b.Spans[0].ID[1] = 1 },
		func(b *export.Batch) { b.Spans[0].Ver = 1 },
		func(b *export.Batch) { b.Verdicts[0].Name = "stuck" },
		func(b *export.Batch) { b.Verdicts[0].Span[1] = 1 },
		func(b *export.Batch) { b.Verdicts[0].Ver = 1 },
		func(b *export.Batch) { b.DeadLetters[0].ID[1] = 1 },
		func(b *export.Batch) { b.DeadLetters[0].Ver = 1 },
		func(b *export.Batch) { b.Streams[0].Stream = "k" },
		func(b *export.Batch) { b.Streams[0].Pace.Start = 1 },
		func(b *export.Batch) { b.Streams[0].Ver = 1 },
		func(b *export.Batch) { b.Ledger[0].Stream = "k" },
		func(b *export.Batch) { b.Ledger[0].Ver = 1 },
		func(b *export.Batch) { *b = export.Batch{Ledger: make([]msg.Ledger, 1)} },
		func(b *export.Batch) { *b = export.Batch{Ledger: []msg.Ledger{{Seen: 1}}} }, // a heartbeat
	} {
		id := name(change)
		if was, ok := seen[id]; ok || len(id) != 32 {
			t.Errorf("batches %d and %d are %s", was, i, id)
		}
		seen[id] = i
	}
	if name(func(b *export.Batch) { b.Ledger[0].Seen, b.Messages[0].Host.Observed = 9, 9 }) != name(func(*export.Batch) {}) {
		t.Error("rows that were read at another time are another batch")
	}
}
