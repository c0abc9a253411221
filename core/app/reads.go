package app

import (
	"context"
	"time"

	"github.com/earshot-dev/earshot/core/config"
)

// watchReads has rows wait for up to store.flush_unread while there is no reader of the embedded store,
// and sent when there is one: the store has its statement wait for that. As long as the store cannot be
// asked, rows are sent as if there were.
//
// What the exporter derives from rows, it derives for readers: its Unread is called with whether there is none.
//
// Rows wait for no other exporter: a receiver of spans and the people who are notified do not ask.
func (r *runner) watchReads(ctx context.Context, c *config.Config) {
	read, unread := time.Duration(c.Delivery.FlushInterval), time.Duration(c.Store.FlushUnread)
	if r.store == nil || r.backfill != nil || r.UntilIdle > 0 || len(r.exporters) != 1 || unread <= read {
		return
	}
	interval := read
	set := func(d time.Duration) {
		if d != interval {
			interval = d
			if d == unread {
				r.Logger.Debug("no reader of the store: rows wait", "at_most", d)
			}
			r.pipeline.SetFlushInterval(ctx, d)
		}
	}
	derives, _ := r.exporters[0].Exporter.(interface{ Unread(context.Context, bool) })
	if derives == nil {
		derives = derivesNothing{}
	}
	var done uint64
	for {
		asked, err := r.store.NextRead(ctx, done)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Logger.Debug("reads of the store are not known", "error", err)
			set(read)
			derives.Unread(ctx, false)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		case asked == done: // no reader
			set(unread)
			derives.Unread(ctx, true)
		default:
			set(read)
			within, cancel := context.WithTimeout(ctx, time.Second)
			_ = r.pipeline.Store(within) // the statement does not wait for longer; the rows come later
			cancel()
			derives.Unread(ctx, false) // behind the rows, which it is to derive from
			done = asked
		}
	}
}

// derivesNothing is an exporter that derives nothing from rows.
type derivesNothing struct{}

func (derivesNothing) Unread(context.Context, bool) {}
