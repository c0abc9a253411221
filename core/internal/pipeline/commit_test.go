package pipeline

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestEpochsShareLists says that an epoch takes the lists of one that is done, and
// finds nothing of it in them.
func TestEpochsShareLists(t *testing.T) {
	var s shelf
	m := msg.Message{Key: "k", Session: "s", Content: msg.Raw([]byte("text"))}
	fill := func() *export.Batch {
		e := newEpoch(&s)
		if e.batch.Len() != 0 {
			t.Fatalf("a new epoch has %d records", e.batch.Len())
		}
		for range 1000 {
			e.message(&m)
		}
		return e.batch
	}
	s.give(fill())
	for _, left := range s.spare.messages[:1000] {
		if left.Key != "" || !left.Content.IsZero() {
			t.Fatal("a message of an epoch that is done is still there")
		}
	}
	// The epoch, its batch and the batch on the shelf.
	if n := testing.AllocsPerRun(20, func() { s.give(fill()) }); n > 3 {
		t.Errorf("an epoch of 1,000 messages allocates %v times", n)
	}
}

// TestShelfKeepsOne says that of the lists that come back one is kept, and that an
// epoch without records, which has none, does not stand in for it.
func TestShelfKeepsOne(t *testing.T) {
	var s shelf
	s.give(&export.Batch{Ledger: make([]msg.Ledger, 1)})
	for n := range 3 {
		s.give(&export.Batch{Messages: make([]msg.Message, 5+n)})
	}
	for _, want := range []int{5, 0} {
		if l := s.take(); cap(l.messages) != want {
			t.Errorf("room for %d messages, want %d", cap(l.messages), want)
		}
	}
}

// TestEpochWaitsForTheOneBefore says that an epoch is not sealed by time while
// another is with the exporters.
func TestEpochWaitsForTheOneBefore(t *testing.T) {
	c := &core{p: &Pipeline{settings: Settings{FlushInterval: time.Second}}, assembler: assemble.New(assemble.Settings{}, nil, nil)}
	c.epoch = newEpoch(&c.shelf)
	now := time.Now()
	if c.due(now) {
		t.Error("an empty epoch is due")
	}
	c.changed = map[*stream]struct{}{{}: {}}
	if !c.due(now) {
		t.Error("the account of a stream that gave nothing is never due")
	}
	c.epoch.message(&msg.Message{})
	for _, x := range []struct {
		age    time.Duration
		sealed int32
		want   bool
	}{{0, 0, false}, {2 * time.Second, 0, true}, {2 * time.Second, 1, false}, {time.Hour, 1, false}} {
		c.sealed.Store(x.sealed)
		if got := c.due(c.epoch.began.Add(x.age)); got != x.want {
			t.Errorf("%s old, %d under way: due is %t", x.age, x.sealed, got)
		}
	}
}

// TestListsAreMadeAtOnce says that the lists of a new epoch have room for as much as
// the one before had.
func TestListsAreMadeAtOnce(t *testing.T) {
	var s shelf
	s.note(&export.Batch{Messages: make([]msg.Message, 800), Spans: make([]msg.Span, 400)})
	if l := s.take(); cap(l.messages) != 900 || cap(l.spans) != 450 || len(l.messages)+len(l.spans) != 0 {
		t.Errorf("room for %d messages and %d spans", cap(l.messages), cap(l.spans))
	}
}

// TestAlive says from when on a sender's silence counts.
func TestAlive(t *testing.T) {
	const hour, now = int64(time.Hour), int64(1_800_000_000e9)
	for name, x := range map[string]struct {
		says  int64 // the record
		kind  frame.Kind
		batch *frame.Batch
		want  int64
	}{
		"heard live":                  {now - hour, frame.Event, &frame.Batch{}, now},
		"a clock that is behind":      {now - 8*hour, frame.Line, &frame.Batch{Written: now - 2*hour}, now},
		"a clock that is ahead":       {now + 8*hour, frame.Event, &frame.Batch{}, now},
		"a copied transcript":         {now - 100*hour, frame.Line, &frame.Batch{Written: now}, now - 100*hour},
		"a reloaded conversation":     {now - 2*hour, frame.Body, &frame.Batch{}, now - 2*hour},
		"history":                     {now - 100*hour, frame.Line, &frame.Batch{Written: now - 90*hour, Backlog: true}, now - 100*hour},
		"history of the last minutes": {now - hour/60, frame.Line, &frame.Batch{Written: now, Backlog: true}, now - hour/60},
		"history from the future":     {now + hour, frame.Line, &frame.Batch{Written: now - hour, Backlog: true}, now - hour},
		"what a decoder had open":     {now - hour, frame.Line, nil, now - hour},
	} {
		if got := alive(&msg.Message{Time: x.says}, &frame.Frame{Kind: x.kind, At: now}, x.batch, time.Unix(0, now)); got != x.want {
			t.Errorf("%s: %s ago", name, time.Duration(now-got))
		}
	}
}
