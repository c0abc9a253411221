package clickhouse

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// sizeEvery is how often the size of the tables is looked at.
	sizeEvery = time.Minute
	// rollEvery is how often the rollups are computed, and rollFirst is when they are first. Of the
	// time that it takes they rest twenty times as much.
	rollEvery, rollFirst = time.Minute, 15 * time.Second
)

// keeper does what keeps the tables of a database small and quick, until it is stopped.
type keeper struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start starts the keeper. The tables are held below a size in bytes, if it is not 0.
func (k *keeper) start(c *Conn, s Schema, most int64, timeout time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	if most > 0 {
		k.done.Go(func() { keepSize(ctx, c, most, log) })
	}
	k.done.Go(func() { keepRollups(ctx, roller{c: c, s: s, settle: max(5*time.Minute, 4*timeout), sleep: pause}, log) })
}

func (k *keeper) stop() {
	if k.cancel != nil {
		k.cancel()
		k.done.Wait()
	}
}

// pause waits, or returns the error of the context when it ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func keepSize(ctx context.Context, c *Conn, most int64, log *slog.Logger) {
	for {
		n, oldest, err := c.dropOldest(ctx, most)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("clickhouse: the tables may be larger than store.max_size", "error", err)
		case n > 0:
			log.Info("the oldest rows are dropped: the tables were larger than store.max_size", "bytes", n, "up_to", oldest)
		}
		if pause(ctx, sizeEvery) != nil {
			return
		}
	}
}

func keepRollups(ctx context.Context, p roller, log *slog.Logger) {
	for wait := rollFirst; pause(ctx, wait) == nil; {
		began := time.Now()
		for _, r := range rollups() {
			n, err := p.pass(ctx, r)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Warn("clickhouse: a rollup is behind; its views compute from the rows what it does not have", "table", r.table, "error", err)
			case n >= 24:
				log.Info("clickhouse: a rollup is computed", "table", r.table, "hours", n, "took", time.Since(began).Round(time.Millisecond))
			}
		}
		wait = max(rollEvery, 20*time.Since(began))
	}
}
