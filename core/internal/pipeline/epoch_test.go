package pipeline

import (
	"testing"

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
	for _, left := range s.spare[0].Messages[:1000] {
		if left.Key != "" || !left.Content.IsZero() {
			t.Fatal("a message of an epoch that is done is still there")
		}
	}
	// The epoch, its batch and the batch on the shelf.
	if n := testing.AllocsPerRun(20, func() { s.give(fill()) }); n > 3 {
		t.Errorf("an epoch of 1,000 messages allocates %v times", n)
	}
}

func TestShelfIsBounded(t *testing.T) {
	var s shelf
	for range 10 * spares {
		s.give(&export.Batch{Messages: make([]msg.Message, 1)})
	}
	if len(s.spare) != spares {
		t.Errorf("%d lists are kept", len(s.spare))
	}
}
