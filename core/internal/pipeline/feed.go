package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// Redactor removes secrets from the messages that a decoder made of the frames. It changes neither
// ids nor keys, and does the same each time.
type Redactor interface {
	// Message redacts a message. clean are the data of a frame that was found clean, in which texts
	// of the message may lie; nil when there is none.
	Message(m *msg.Message, clean []byte)
	String(string) string
	// Payload redacts a frame that could not be decoded.
	Payload([]byte) []byte
}

// Feed is the sink of one source.
type Feed struct {
	source  string
	tenant  string
	format  *format
	options string
	server  string // host:port of the server that is observed; empty when the source has none
	second  Redactor
	// journalled sources deliver frames again with the time at which they were first read,
	// which may then stand in for a missing one.
	journalled bool
	// lane is that of all streams of a journalled source; nil: each has its own. One
	// conversation may be many streams there, one for each request, and the answer to a
	// call in the second is not to be decoded before the call in the first.
	lane      *lane
	snapEvery time.Duration

	inbox    *inbox
	files    *fileSources
	inFlight *budget
	progress *progress
	check    Checkpoint
	log      *slog.Logger

	counters counters // of the core
}

// counters are a source's counters that every frame and message increments: to find one by
// its labels costs as much as to hash a message's ids.
type counters struct {
	streams         *telemetry.Gauge
	frames, decoded *telemetry.Counter
	messages        map[msg.Kind]*telemetry.Counter
}

var _ source.Sink = (*Feed)(nil)

// AddFeed adds a source of a format that was added before.
func (p *Pipeline) AddFeed(sourceName, tenant, formatName, options string, journalled bool) (*Feed, error) {
	f := p.format(formatName)
	if f == nil {
		return nil, fmt.Errorf("pipeline: source %s: format %s has no decoder", sourceName, formatName)
	}
	feed := &Feed{
		source: sourceName, tenant: tenant, format: f, options: options, journalled: journalled, snapEvery: p.settings.SnapEvery,
		inbox: p.inbox, files: p.files, inFlight: p.inFlight, progress: &p.progress, check: p.check, log: p.log,
		counters: counters{
			streams: p.metrics.Streams.With(sourceName),
			frames:  p.metrics.Frames.With(sourceName), decoded: p.metrics.Bytes.With(sourceName, "decoded"),
			messages: make(map[msg.Kind]*telemetry.Counter),
		},
	}
	if journalled {
		feed.lane = f.lanes[p.feeds.Add(1)%uint64(len(f.lanes))]
	}
	return feed, nil
}

// SetServer names the server that the source observes, host:port, before it is read.
func (f *Feed) SetServer(server string) { f.server = server }

// Files is a source that reads files.
type Files interface {
	// Drained reports whether all that was in them has been delivered.
	Drained() bool
	// Again has those streams delivered again from their beginning that were closed because all of them was delivered.
	Again(wanted func(key string) bool)
}

// SetFiles has the pipeline know that the source reads files. It is called before the source is read.
func (f *Feed) SetFiles(files Files) { f.files.set(f, files) }

// SetRedactor has decoded messages redacted before anything else sees them. It is called before
// the source is read.
func (f *Feed) SetRedactor(r Redactor) { f.second = r }

// redact redacts the answer to a command: the messages, and why the decoder failed. Its words about a frame are redacted with the dead letter.
func (f *Feed) redact(cmd command, r *wire.Result) {
	if f.second == nil {
		return
	}
	d, _ := cmd.(*decode)
	for i := range r.Messages {
		m := &r.Messages[i]
		f.second.Message(m, d.cleanAt(m.Frame))
	}
	if r.Failure != nil {
		r.Failure.Error = f.second.String(r.Failure.Error)
	}
}

// Format is the name of the format.
func (f *Feed) Format() string { return f.format.name }

// laneOf is the lane of a stream.
func (f *Feed) laneOf(stream uint64) *lane {
	if f.lane != nil {
		return f.lane
	}
	return f.format.lanes[stream%uint64(len(f.format.lanes))]
}

// Resume has the rows of the streams' accounts written that an earlier process did not come to write. It is called once, before the
// source is read: later, the records are older than this process's accounts, which a resumed row would set back. A core that runs may be
// waiting for an exporter; ctx ends the wait for it.
func (f *Feed) Resume(ctx context.Context) {
	for _, r := range f.streams() {
		if r.Format == f.format.name && readBytes(&r) > r.Ledgered {
			f.inbox.postWithin(ctx, func(c *core) { c.resumeLedger(f, r) })
		}
	}
}

// Known implements source.Sink.
func (f *Feed) Known() []source.Known {
	list := f.streams()
	out := make([]source.Known, 0, len(list))
	for i := range list {
		r := &list[i]
		out = append(out, source.Known{ID: source.ID{Key: r.Key, Origin: r.Origin, Anchor: r.Anchor, State: r.State}, Pos: r.SnapPos, Closed: r.Closed})
	}
	return out
}

// streams are those of the source that the checkpoint has.
func (f *Feed) streams() []checkpoint.Stream {
	list, err := f.check.Streams(f.source)
	if err != nil {
		f.log.Error("checkpoint", "source", f.source, "error", err)
	}
	return list
}

// Open implements source.Sink.
func (f *Feed) Open(ctx context.Context, id source.ID, rewind func(pos int64)) (source.Stream, int64, error) {
	s := &stream{name: nameOf(f.source, id.Key), feed: f}
	var err error
	if e := f.inbox.call(ctx, func(c *core) {
		err = c.open(s, checkpoint.Stream{Source: f.source, Key: id.Key, Origin: id.Origin, Anchor: id.Anchor, State: id.State})
	}); e != nil {
		return nil, 0, e
	}
	if err != nil {
		return nil, 0, err
	}
	return s, s.cursor.onRewind(rewind), nil
}

// Detach ends the use of a source that has ended: when it returns, everything that the
// source delivered is with the exporters, and a source of the same name may be added.
// Until then the source may go on.
func (f *Feed) Detach(ctx context.Context) error {
	var committed <-chan struct{}
	closed := func() (ok bool, err error) {
		if e := f.inbox.call(ctx, func(c *core) {
			if ok = c.accounts.settled(f); ok {
				committed, err = c.commits.closeNow(ctx)
			}
		}); e != nil {
			return false, e
		}
		return ok, err
	}
	if err := poll(ctx, 10*time.Millisecond, closed); err != nil {
		return err
	}
	if err := f.inbox.wait(ctx, committed); err != nil {
		return err
	}
	return f.inbox.call(ctx, func(c *core) { c.detach(f) })
}

// poll calls f until it succeeds or fails.
func poll(ctx context.Context, every time.Duration, f func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := f(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Forget implements source.Sink.
func (f *Feed) Forget(keys ...string) {
	f.inbox.post(func(c *core) {
		for _, k := range keys {
			if name := nameOf(f.source, k); c.accounts.named[name] == nil {
				c.commits.forgetStream(name, checkpoint.Stream{Source: f.source, Key: k})
			}
		}
	})
}

// Trouble implements source.Sink.
func (f *Feed) Trouble(origin, reason, detail string) {
	f.log.Warn("cannot read", "source", f.source, "origin", origin, "reason", reason, "detail", detail)
	f.inbox.post(func(c *core) { c.unreadable(f, origin, reason, detail) })
}
