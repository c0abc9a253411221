package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// Feed is the sink of one source.
type Feed struct {
	p       *Pipeline
	source  string
	tenant  string
	format  *format
	options string
	server  string // host:port of who is listened to; empty when it is nobody's server
	// journalled sources deliver frames again with the time at which they were first
	// read, so that it may stand in for a missing one.
	journalled bool
	// lane is that of all streams of a journalled source; nil: each has its own. One
	// conversation may be many streams there, one for each request, and what answers a
	// call in the second is not to be decoded before the call in the first.
	lane     *lane
	counters counters
}

// counters are those of a source that every frame and message moves: finding one by
// its labels costs as much as hashing a message's ids. They are the core's.
type counters struct {
	frames, decoded prometheus.Counter
	messages        map[msg.Kind]prometheus.Counter
}

var _ source.Sink = (*Feed)(nil)

// AddFeed adds a source of a format that was added before.
func (p *Pipeline) AddFeed(sourceName, tenant, formatName, options string, journalled bool) (*Feed, error) {
	f := p.format(formatName)
	if f == nil {
		return nil, fmt.Errorf("pipeline: source %s: format %s has no decoder", sourceName, formatName)
	}
	feed := &Feed{p: p, source: sourceName, tenant: tenant, format: f, options: options, journalled: journalled, counters: counters{
		frames: p.metrics.Frames.WithLabelValues(sourceName), decoded: p.metrics.Bytes.WithLabelValues(sourceName, "decoded"),
		messages: make(map[msg.Kind]prometheus.Counter),
	}}
	if journalled {
		feed.lane = f.lanes[p.nextID.Add(1)%uint64(len(f.lanes))]
	}
	return feed, nil
}

// SetServer says which server the source listens to, host:port, before it is read.
func (f *Feed) SetServer(server string) { f.server = server }

// Format is the name of the format.
func (f *Feed) Format() string { return f.format.name }

// Known implements source.Sink.
func (f *Feed) Known() []source.Known {
	list, err := f.p.check.Streams(f.source)
	if err != nil {
		f.p.log.Error("checkpoint", "source", f.source, "error", err)
		return nil
	}
	out := make([]source.Known, 0, len(list))
	for i := range list {
		r := &list[i]
		out = append(out, source.Known{ID: source.ID{Key: r.Key, Origin: r.Origin, Anchor: r.Anchor, State: r.State}, Pos: r.SnapPos, Closed: r.Closed})
	}
	return out
}

// Open implements source.Sink.
func (f *Feed) Open(ctx context.Context, id source.ID, rewind func(pos int64)) (source.Stream, int64, error) {
	s := &stream{id: f.p.nextID.Add(1), name: nameOf(f.source, id.Key), feed: f, format: f.format, sessions: make(map[assemble.RunRef]struct{})}
	s.lane = f.lane
	if s.lane == nil {
		s.lane = f.format.lanes[s.id%uint64(len(f.format.lanes))]
	}
	s.record = checkpoint.Stream{Source: f.source, Key: id.Key, Origin: id.Origin, Anchor: id.Anchor, State: id.State}
	var err error
	if e := f.p.tellCtx(ctx, func() { err = f.p.core.open(s) }); e != nil {
		return nil, 0, e
	}
	if err != nil {
		return nil, 0, err
	}
	// A rewind that came before this is in the position; those after it are called.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rewind = rewind
	return s, s.next, nil
}

// Detach lets go of a source that has ended: when it returns, everything that it
// delivered is with the exporters, and a source of the same name may be added.
// Until then it may come back to what it was.
func (f *Feed) Detach(ctx context.Context) error {
	done := make(chan struct{})
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		var gone bool
		var err error
		if e := f.p.tellCtx(ctx, func() {
			if gone = f.p.core.settled(f); gone {
				err = f.p.core.seal(ctx, func() { close(done) })
			}
		}); e != nil {
			return e
		}
		if err != nil {
			return err
		}
		if gone {
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-done:
		return f.p.tellCtx(ctx, func() { f.p.core.detach(f) })
	case <-ctx.Done():
		return ctx.Err()
	case <-f.p.stopped:
		return errStopped
	}
}

// Forget implements source.Sink.
func (f *Feed) Forget(keys ...string) {
	f.p.tell(func() { f.p.core.forgetClosed(f, keys) })
}

// Trouble implements source.Sink.
func (f *Feed) Trouble(origin, reason, detail string) {
	f.p.log.Warn("cannot read", "source", f.source, "origin", origin, "reason", reason, "detail", detail)
	f.p.tell(func() { f.p.core.trouble(f, origin, reason, detail) })
}

// settled reports whether nothing of a source is on its way to the core.
func (c *core) settled(f *Feed) bool {
	for _, s := range c.streams {
		if s.feed != f || s.stalled {
			continue
		}
		s.mu.Lock()
		// One that was rewound and whose source is gone never comes back to where it was:
		// what it has in the checkpoint is enough.
		waits := s.next > s.record.Pos
		s.mu.Unlock()
		if waits {
			return false
		}
	}
	return true
}

// detach drops a source's streams, as the end of the process would: the next source
// of that name goes on where they are.
func (c *core) detach(f *Feed) {
	for id, s := range c.streams {
		if s.feed != f {
			continue
		}
		c.enqueue(s, &job{close: true})
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		delete(c.streams, id)
		delete(c.names, s.name)
		delete(c.changed, s)
		c.assembler.ForgetResponse(s.name)
	}
}

// forgetClosed drops streams from the checkpoint. One that is open stays.
func (c *core) forgetClosed(f *Feed, keys []string) {
	for _, k := range keys {
		if c.names[nameOf(f.source, k)] == nil {
			c.forget = append(c.forget, checkpoint.Stream{Source: f.source, Key: k})
		}
	}
}

// trouble notes what a source could not read, once.
func (c *core) trouble(f *Feed, origin, reason, detail string) {
	key := f.source + "\x00" + origin + "\x00" + reason
	if c.troubles[key] || len(c.troubles) > 10_000 {
		return
	}
	c.troubles[key] = true
	c.p.metrics.Problems.WithLabelValues(f.source, "read", reason).Inc()
	c.epoch.add()
	c.epoch.batch.DeadLetters = append(c.epoch.batch.DeadLetters, msg.DeadLetter{
		ID: msg.NewDeadLetterID(f.tenant, f.source, "read", origin, reason), Tenant: f.tenant, Source: f.source, Format: f.format.name,
		Stage: "read", Reason: reason, Detail: detail, Origin: origin, Seen: time.Now().UnixNano(), Ver: 1,
	})
}
