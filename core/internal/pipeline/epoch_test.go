package pipeline

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
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
	c := &core{p: &Pipeline{settings: Settings{FlushInterval: time.Second}}}
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
