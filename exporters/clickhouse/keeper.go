package clickhouse

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
)

const (
	// sizeEvery is how often the size of the tables is looked at; that of the embedded store, which has no other writer, if
	// rows were stored since.
	sizeEvery = time.Minute
	// rollEvery is how often the rollups are computed, and rollFirst is when they are first. Of the
	// time that it takes they rest twenty times as much.
	rollEvery, rollFirst = time.Minute, 15 * time.Second
	// rollSeldom is how often they are in the embedded store when no more than an hour or two were computed
	// the last times.
	rollSeldom, fewHours = 10 * time.Minute, 2
	// daysEvery is how often days that are over are merged, if nothing was stored in them for as
	// long as settledAfter.
	daysEvery, settledAfter = 10 * time.Minute, time.Hour
	// attributeEvery is how often the rules of the dimensions are applied while there is new work. Of the
	// time that it takes they rest twenty times as much.
	attributeEvery = 15 * time.Second
	// attributeUnread is how often they are while the rows have no reader and the engine is open: over a minute's rows it costs the
	// engine more than to store them, and to open it for them more than that.
	attributeUnread = 5 * time.Minute
)

// keeper holds the tables of a database below a size, computes the rollups, applies the rules of the
// dimensions and merges the days that are over, until it is stopped.
type keeper struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	stored *arrivals
	grown  atomic.Bool // rows were stored since the size was looked at last
	unread atomic.Bool // the rows have no reader
	ruled  atomic.Bool // the configured rules of the dimensions are in the store
	read   bell        // rung when they have one
	opened *bell       // rung when rows were stored; nil for a server
}

// note reports that rows were stored by an insert that began then.
func (k *keeper) note(began time.Time) {
	k.grown.Store(true)
	k.stored.note(began)
	if k.opened != nil {
		k.opened.ring()
	}
}

// reader waits until the rows have a reader, or for so long, and then until the engine is open: rows open it, and so does a reader.
func (k *keeper) reader(ctx context.Context, s standby, most time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := k.read.next()
	if !k.unread.Load() {
		return ctx.Err()
	}
	if rung, err := read.within(ctx, most); rung || err != nil {
		return err
	}
	open := make(chan error, 1)
	go func() { open <- s.open(ctx, standbyMost-most) }()
	select {
	case <-read:
		cancel()
		<-open
		return nil
	case err := <-open:
		return err
	}
}

// start starts the keeper of an exporter's tables. A fresh database has no rows: there is nothing to compute before
// the first are old enough, and nothing to attribute before they are there.
func (k *keeper) start(x *Exporter, fresh bool) {
	log, settle := x.settings.Logger, x.settings.settle()
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	if most := x.settings.MaxSize; most > 0 {
		size := sizeKeeper{drop: func(ctx context.Context) (int64, string, error) { return x.conn.dropOldest(ctx, most) }, alone: x.conn.embedded, grown: &k.grown, pause: x.conn.standby.pause}
		k.done.Go(func() { size.keep(ctx, log) })
	}
	first := rollFirst
	if fresh {
		first = settle
		k.stored.attributed()
	}
	if x.settings.ConversationsEvery > 0 {
		k.done.Go(func() { x.underived.keep(ctx, x) })
	}
	rolls := roller{c: x.conn, s: x.schema, settle: settle, sleep: pause}
	k.done.Go(func() { keepRollups(ctx, x.conn, rolls.pass, first, settle, log) })
	k.done.Go(func() { keepAttribution(ctx, attributorOf(x), x.settings.Dimensions, k, fresh, log) })
	if settlesDays(x.conn, &x.settings) {
		merge := func(ctx context.Context) (int, error) { return x.conn.mergeSettled(ctx, settledAfter, pause) }
		k.done.Go(func() { keepDays(ctx, x.conn.standby, merge, log) })
	}
}

// settlesDays reports whether an exporter's keeper merges the days that are over.
func settlesDays(c *Conn, s *Settings) bool { return c.embedded && s.CreateSchema }

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

// sizeKeeper holds the tables below a size.
type sizeKeeper struct {
	drop  func(context.Context) (bytes int64, upTo string, err error) // drops the oldest rows above the size
	alone bool                                                        // no other program writes
	grown *atomic.Bool                                                // rows were stored since the last look
	pause func(context.Context, time.Duration) error
}

func (s sizeKeeper) keep(ctx context.Context, log *slog.Logger) {
	for first := true; first || pause(ctx, sizeEvery) == nil; first = false {
		if s.alone && !first {
			if !s.grown.Load() {
				continue
			}
			if s.pause(ctx, 0) != nil { // no look opens the engine
				return
			}
		}
		s.grown.Store(false)
		n, oldest, err := s.drop(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("clickhouse: the tables may be larger than store.max_size", "error", err)
		case n > 0:
			log.Info("the oldest rows are dropped: the tables were larger than store.max_size", "bytes", n, "up_to", oldest)
		}
		if err != nil || n > 0 { // a part that was being merged is there still
			s.grown.Store(true)
		}
	}
}

func keepRollups(ctx context.Context, c *Conn, pass func(context.Context, computed) (int, error), first, settle time.Duration, log *slog.Logger) {
	var many time.Time // when many hours had new rows last
	for wait := first; c.standby.pause(ctx, wait) == nil; {
		began := time.Now()
		for _, r := range everyComputed() {
			n, err := pass(ctx, r)
			if err != nil || n > fewHours {
				many = began
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Warn("clickhouse: a computed table is behind, and its views read the rows", "table", r.base().table, "error", err)
			case n >= 24:
				log.Info("clickhouse: a table is computed", "table", r.base().table, "hours", n, "took", time.Since(began).Round(time.Millisecond))
			}
		}
		if wait = max(rollEvery, 20*time.Since(began)); c.embedded && began.Sub(many) > settle+rollEvery {
			wait = max(rollSeldom, wait)
		}
	}
}

// rule writes the configured rules, once: others may be applied beside the sidecar.
func (k *keeper) rule(ctx context.Context, p attributor, rules []attribution.Rule) error {
	if k.ruled.Load() {
		return nil
	}
	_, err := p.write(ctx, rules)
	k.ruled.Store(err == nil)
	return err
}

// keepAttribution writes the configured rules, and applies those of the store: at the start, unless the database is
// fresh, and when rows were stored; seldom while these have no reader, unless a budget needs to know whose they are. Rows of
// another sidecar in the same database are attributed by that one.
func keepAttribution(ctx context.Context, p attributor, rules []attribution.Rule, k *keeper, fresh bool, log *slog.Logger) {
	var since time.Time // zero at the start, for rows that an earlier process has stored
	for {
		began := time.Now()
		err := k.rule(ctx, p, rules)
		if err == nil && !fresh {
			_, err = p.pass(ctx, since)
		}
		if err == nil {
			k.stored.attributed()
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Warn("clickhouse: new work has no team, user and ticket yet", "error", err)
		} else {
			fresh = false
		}
		if p.sleep(ctx, max(attributeEvery, 20*time.Since(began))) != nil {
			return
		}
		if err != nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-k.stored.some:
		}
		if k.reader(ctx, p.c.standby, attributeUnread-time.Since(began)) != nil {
			return
		}
		since = k.stored.take()
	}
}

func keepDays(ctx context.Context, s standby, merge func(context.Context) (int, error), log *slog.Logger) {
	for wait := rollFirst; s.pause(ctx, wait) == nil; wait = daysEvery {
		_, err := merge(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Warn("clickhouse: days that are over are not in order yet", "error", err)
		}
	}
}
