package pipeline

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/checkpoint"
)

// half is a checkpoint with a stream whose row in the table of accounts is older than its record.
type half struct{ nothingKnown }

func (half) Streams(string) ([]checkpoint.Stream, error) {
	return []checkpoint.Stream{{Source: "legion", Key: "k", Format: "legion", Pos: 9, Ledgered: 5}}, nil
}

// TestRowOfAnEarlierProcessIsWrittenOnce: the journal looks at the checkpoint again and again, to remove
// segments. A stream that has ended meanwhile has a record there that is older than its row, and once had
// both the row and the record set back to it.
func TestRowOfAnEarlierProcessIsWrittenOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := New(Settings{FlushInterval: time.Hour}, half{}, discardSink{}) // the test takes the rows
	_, ended := inThisProcess(ctx, nil, p)
	feed, err := p.AddFeed("legion", "default", "legion", "", true)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.runCore(ctx); err != nil {
			t.Error(err)
		}
	})
	feed.Resume(ctx)
	for i, want := range []int{1, 0, 0} {
		if n := len(feed.Known()); n != 1 {
			t.Errorf("%d streams are known", n)
		}
		got := 0
		_ = p.inbox.call(ctx, func(c *core) { got = len(c.commits.ledgers.take(c.commits.closed)) })
		if got != want {
			t.Errorf("look %d: %d rows to be written, want %d", i, got, want)
		}
	}
	cancel()
	running.Wait()
	ended()
}
