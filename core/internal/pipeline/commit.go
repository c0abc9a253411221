package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/retry"
)

// committer collects rows and changed accounts into a commit batch, and submits it with the
// checkpoint that holds once its rows are with the exporters.
type committer struct {
	settings  *Settings
	assembler *assemble.Assembler
	replays   *replays
	check     Checkpoint
	sink      Sink
	inFlight  *budget
	bytes     *telemetry.Gauge // in flight
	progress  *progress

	batch     *commitBatch
	messages  slabs[msg.Message]
	spans     slabs[msg.Span]
	changed   map[uint64]*account // since the last batch was closed, by the stream's name
	ended     map[uint64]ended
	ledgers   ledgers
	forgotten []checkpoint.Stream
	dropped   []checkpoint.Group  // of erased sessions
	rewritten []checkpoint.Stream // that are not open, without their erased sessions
	anchors   []*account          // whose anchor was used and is not durable yet
	held      atomic.Int32        // batches whose memory is in use by exporters
	submitted atomic.Int32        // batches that are not committed yet
	durable   *atomic.Bool        // set when the next checkpoint is durable
	started   time.Time           // when the pipeline was made
	closed    time.Time           // when a batch was closed last
	checked   time.Time           // when one with a checkpoint was

	interval time.Duration // see Pipeline.SetFlushInterval
	urgent   bool          // a stream has ended that may be gone: Settings.FlushInterval holds
	more     bool          // the batch before was filled by a backlog
	read     func() bool   // all that the sources of files have is decoded
	wanted   []func()      // called when the rows until now are with the exporters
}

// ended is a stream that was closed or forgotten, until the checkpoint has that. One that is opened again before, as that
// of a file that is compressed at once, goes on from here.
type ended struct {
	account *account // nil: forgotten
	durable *atomic.Bool
}

func (k *committer) init(s *Settings, assembler *assemble.Assembler, replays *replays, check Checkpoint, sink Sink, inFlight *budget, progress *progress) {
	k.settings, k.assembler, k.replays, k.check, k.sink, k.inFlight, k.progress = s, assembler, replays, check, sink, inFlight, progress
	k.bytes = s.Metrics.InFlight
	k.changed, k.ended = make(map[uint64]*account), make(map[uint64]ended)
	k.ledgers.pending = make(map[uint64]*account)
	k.batch, k.durable = new(commitBatch), new(atomic.Bool)
	k.started = time.Now()
	k.closed = k.started
	k.interval = s.FlushInterval
}

// commitBatch is the rows of the frames between two checkpoints.
type commitBatch struct {
	rows     export.Batch
	messages records[msg.Message] // of rows
	spans    records[msg.Span]
	frames   []*decode // whose buffers the rows refer to
	bytes    int64     // of the frames' buffers
	read     int64     // of the frames
	began    time.Time // when the first row was added
}

func (k *committer) empty() bool { return k.batch.began.IsZero() }

// rows returns the rows of the open batch, for one to be added.
func (k *committer) rows() *export.Batch {
	b := k.batch
	if b.began.IsZero() {
		b.began = time.Now()
	}
	return &b.rows
}

func (k *committer) addMessage(m *msg.Message) {
	r := k.rows()
	r.Messages = append(r.Messages, k.batch.messages.add(&k.messages, m))
}

func (k *committer) addSpan(s *msg.Span) {
	r := k.rows()
	r.Spans = append(r.Spans, k.batch.spans.add(&k.spans, s))
}

func (k *committer) addVerdict(v msg.Verdict) {
	r := k.rows()
	r.Verdicts = append(r.Verdicts, v)
}

func (k *committer) addDeadLetter(l msg.DeadLetter) {
	r := k.rows()
	r.DeadLetters = append(r.DeadLetters, l)
}

func (k *committer) addStream(s msg.Stream) {
	if k.settings.erases(s.Tenant, s.Session) {
		return
	}
	r := k.rows()
	r.Streams = append(r.Streams, s)
}

// hold keeps a batch of frames until the rows that refer to its buffer are committed.
func (k *committer) hold(d *decode) {
	k.batch.frames = append(k.batch.frames, d)
	k.batch.bytes += d.held.bytes
	k.batch.read += d.batch.End() - d.batch.Frames[0].Pos
}

// touch has the account of a stream written with the batch.
func (k *committer) touch(a *account) {
	k.changed[a.stream.name] = a
	k.ledgers.active = true
}

// end notes that a stream has ended, whose account is written with the batch.
func (k *committer) end(a *account) {
	a.record.Closed = true
	k.ended[a.stream.name] = ended{a, k.durable}
}

// known returns the record of a stream, and whether its anchor is durable. ok is false when the stream is new.
func (k *committer) known(name uint64, source, key string) (r checkpoint.Stream, anchored, ok bool, err error) {
	e, is := k.ended[name]
	if !is {
		r, ok, err = k.check.Stream(source, key)
		return r, ok, ok, err
	}
	delete(k.ended, name)
	if e.account == nil {
		k.forgotten = slices.DeleteFunc(k.forgotten, func(r checkpoint.Stream) bool { return r.Source == source && r.Key == key })
		return checkpoint.Stream{}, false, false, nil
	}
	return e.account.record, e.account.anchored, true, nil
}

// drop has an account not written any more.
func (k *committer) drop(a *account) {
	if k.changed[a.stream.name] == a {
		delete(k.changed, a.stream.name)
	}
	if k.ledgers.pending[a.stream.name] == a {
		delete(k.ledgers.pending, a.stream.name)
	}
}

// forget drops the stream of an account from the checkpoint with the batch, which has its last row.
func (k *committer) forget(a *account) {
	if a.record.Ledgered != readBytes(&a.record) {
		k.ledgers.pending[a.stream.name] = a
	}
	k.forgetStream(a.stream.name, a.record)
}

// forgetStream drops a stream that is not open from the checkpoint with the batch.
func (k *committer) forgetStream(name uint64, r checkpoint.Stream) {
	if a := k.ledgers.pending[name]; a != nil {
		r := k.rows()
		r.Ledger = append(r.Ledger, a.ledger(time.Now().UnixNano(), k.started.UnixNano()))
		delete(k.ledgers.pending, name)
	}
	delete(k.changed, name)
	k.replays.take(name)
	k.forgotten = append(k.forgotten, r)
	k.ended[name] = ended{nil, k.durable}
}

// backlog reports whether the batch was filled by traffic that was there before it was read: live
// traffic fills budgets with buffers of next to nothing.
func (k *committer) backlog() bool { return k.batch.read >= k.settings.BatchBytes/4 }

func (k *committer) full() bool {
	return k.batch.bytes >= k.settings.BatchBytes || k.batch.rows.Len() >= k.settings.BatchRows
}

// due reports whether the batch is to be closed although it is not full. While one is with
// the exporters the next would only wait behind it: it goes on being filled, so that a store
// that is slow gets fewer and larger batches.
func (k *committer) due(now time.Time) bool {
	ledgers := k.ledgers.due(now, k.settings.FlushInterval)
	if k.held.Load() > 0 {
		return false
	}
	interval := k.interval
	if k.urgent {
		interval = min(interval, k.settings.FlushInterval)
	}
	if k.more && k.dirty() && now.Sub(k.ledgers.changed) >= k.settings.FlushIdle+time.Second { // the rest of a backlog, or its checkpoint
		return true
	}
	if k.unread() && !k.urgent && !ledgers && !k.ledgers.changed.After(k.closed) && len(k.batch.rows.DeadLetters) == 0 { // a source's trouble is none of silence
		return k.dirty() && now.Sub(k.since()) >= max(interval, silenceWait)
	}
	if k.empty() {
		return ledgers && !k.unread() || (ledgers || k.dirty()) && now.Sub(k.closed) >= interval
	}
	// Rows that come one by one are there at once; of many those that come together are sent together.
	return now.Sub(k.closed) >= interval && now.Sub(k.batch.began) >= min(interval, k.settings.FlushInterval)/5
}

// closeDue closes the commit batch if it is due. The rest of a backlog is due when all is read. Before that no batch of it
// ends the backlog, though an exporter that is slow kept it open for long: each end is small inserts behind a large one.
func (k *committer) closeDue(ctx context.Context, now time.Time) error {
	read := k.more && k.read()
	rest := read && k.held.Load() == 0 && k.dirty()
	if !k.due(now) && !rest {
		return nil
	}
	return k.close(ctx, closing{more: k.more && !read && k.backlog(), rest: rest})
}

// unread reports whether rows wait for a reader.
func (k *committer) unread() bool { return k.interval > k.settings.FlushInterval }

// silenceWait is how long what silence makes, with nothing that arrived, waits for a reader or for something that happens:
// verdicts, runs that end by rule. A store that has closed its engine opens it for such rows: a second of a processor and
// 200 MiB, three minutes behind each agent that stops.
const silenceWait = 10 * time.Minute

// since is since when there is something to commit, or since the last commit where that has no time.
func (k *committer) since() time.Time {
	if k.empty() {
		return k.closed
	}
	return k.batch.began
}

// dirty reports whether there is anything to commit.
func (k *committer) dirty() bool {
	return !k.empty() || len(k.changed) > 0 || len(k.forgotten) > 0 || k.assembler.Ended()
}

// justNow is for how long a flush is as good as another: the statements of a page come
// one after the other.
const justNow = 100 * time.Millisecond

// serveWanted flushes for those who want it. While a batch is with the exporters they wait for it.
func (k *committer) serveWanted(ctx context.Context, now time.Time) error {
	if len(k.wanted) == 0 || k.held.Load() > 0 {
		return nil
	}
	wanted := k.wanted
	k.wanted = nil
	done := func() {
		for _, f := range wanted {
			f()
		}
	}
	if !k.dirty() || now.Sub(k.closed) < justNow {
		done()
		return nil
	}
	return k.close(ctx, closing{stored: done})
}

// closing is how a batch is closed.
type closing struct {
	more      bool   // another follows at once
	rest      bool   // it is the last of a backlog
	stored    func() // called when the rows are with the exporters; may be nil
	committed func() // called when rows and checkpoint are durable; may be nil
}

// close ends the batch: its rows go to the sink, and with them the checkpoint that holds once
// they are with the exporters.
//
// In a backlog one batch follows another several times a second, and a checkpoint has the whole
// state of every session that changed: there is one each flush interval. What is decoded again
// after a crash because of that has the same rows.
func (k *committer) close(ctx context.Context, how closing) error {
	if err := k.commitAnchors(ctx); err != nil { // before anything is taken for the batch
		return err
	}
	var d checkpoint.Delta
	now := time.Now()
	checkpoints := !how.more || now.Sub(k.checked) >= k.settings.FlushInterval
	if checkpoints {
		if err := k.commitGroups(&d); err != nil {
			return err
		}
	}
	b, durable := k.batch, k.durable
	k.batch = new(commitBatch)
	maps.DeleteFunc(k.ended, func(_ uint64, e ended) bool { return e.durable.Load() })
	k.closed, k.more = now, how.more
	if checkpoints {
		k.checked, k.urgent, k.durable = now, false, new(atomic.Bool)
		k.addLedgers(&b.rows, how)
		k.commitStreams(&d)
	}
	b.rows.ID = batchID(&b.rows)
	n := int64(b.rows.Len())
	k.held.Add(1)
	k.submitted.Add(1)
	k.bytes.Set(float64(k.inFlight.inUse()))
	release := func() {
		// Before the frames are released, so that the rows of the next find the slabs.
		k.messages.put(&b.messages)
		k.spans.put(&b.spans)
		for _, d := range b.frames {
			d.release()
		}
		k.held.Add(-1)
		if how.stored != nil {
			how.stored()
		}
	}
	return k.sink.Submit(ctx, &b.rows, d, how.more, release, func() {
		k.progress.committed.Add(n)
		k.submitted.Add(-1)
		if checkpoints {
			durable.Store(true)
		}
		if how.committed != nil {
			how.committed()
		}
	})
}

// commitGroups emits the spans of the sessions that changed, and adds their states to the checkpoint, with
// what they ask to be decoded again.
func (k *committer) commitGroups(d *checkpoint.Delta) error {
	err := k.assembler.Commit(func(key string, open bool, state []byte) {
		if !k.settings.erasedGroup(key) {
			d.Groups = append(d.Groups, checkpoint.Group{Key: key, Open: open, State: state})
		}
	})
	if err != nil {
		return err
	}
	return k.replays.checkpoint(d)
}

// addLedgers adds the rows of accounts that are due.
func (k *committer) addLedgers(rows *export.Batch, how closing) {
	maps.Copy(k.ledgers.pending, k.changed)
	if !how.more && !how.rest && how.committed == nil && !k.ledgers.due(k.closed, k.settings.FlushInterval) {
		return
	}
	due := k.ledgers.take(k.closed)
	for _, a := range due {
		row := a.ledger(k.closed.UnixNano(), k.started.UnixNano())
		rows.Ledger = append(rows.Ledger, row)
		a.record.Ledgered = row.Read
		k.changed[a.stream.name] = a
	}
}

// commitStreams moves what has changed since the last checkpoint, beside the sessions, to this one.
func (k *committer) commitStreams(d *checkpoint.Delta) {
	for _, a := range k.changed {
		d.Streams = append(d.Streams, a.record)
	}
	clear(k.changed)
	d.Groups, k.dropped = append(d.Groups, k.dropped...), nil
	d.Streams, k.rewritten = append(d.Streams, k.rewritten...), nil
	d.Forget, k.forgotten = k.forgotten, nil
}

// closeNow ends the batch. The channel is closed when rows and checkpoint are durable.
func (k *committer) closeNow(ctx context.Context) (<-chan struct{}, error) {
	committed := make(chan struct{})
	return committed, k.close(ctx, closing{committed: func() { close(committed) }})
}

// commitAnchors makes the anchors durable that stand in for times in this batch, before any
// row with such a time is anywhere: after a crash the file may have another modification
// time, and the row would have another place. While the disk takes none, as a full one, they wait for it.
func (k *committer) commitAnchors(ctx context.Context) error {
	if len(k.anchors) == 0 {
		return nil
	}
	var d checkpoint.Delta
	for _, a := range k.anchors {
		r := &a.record
		d.Streams = append(d.Streams, checkpoint.Stream{Source: r.Source, Key: r.Key, Origin: r.Origin, Anchor: r.Anchor, State: r.State})
	}
	backoff, logged := retry.Backoff{Min: 200 * time.Millisecond, Max: 30 * time.Second}, time.Time{}
	for {
		err := k.check.Commit(d)
		if err == nil {
			k.anchors = nil
			return nil
		}
		if errors.Is(err, checkpoint.ErrDamaged) {
			return err
		}
		if time.Since(logged) > time.Minute {
			k.settings.Logger.Warn("the times of files are not durable, trying again; the sources wait", "error", err)
			logged = time.Now()
		}
		if !retry.Wait(ctx, backoff.Next()) {
			return ctx.Err()
		}
	}
}

// batchID names a batch by its rows.
func batchID(b *export.Batch) string {
	h := sha256.New()
	buf := make([]byte, 0, 64)
	row := func(id []byte, ver uint64) {
		buf = binary.BigEndian.AppendUint64(append(buf[:0], id...), ver)
		h.Write(buf)
	}
	for i := range b.Messages {
		row(b.Messages[i].Host.ID[:], b.Messages[i].Host.Ver)
	}
	for i := range b.Spans {
		s := b.Spans[i]
		h.Write(s.TraceID[:])
		row(s.ID[:], s.Ver)
	}
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		h.Write([]byte(v.Name))
		row(v.Span[:], v.Ver)
	}
	for i := range b.DeadLetters {
		row(b.DeadLetters[i].ID[:], b.DeadLetters[i].Ver)
	}
	for i := range b.Streams {
		r := &b.Streams[i]
		row(append([]byte(r.Stream), strconv.FormatInt(r.Pace.Start, 10)...), r.Ver)
	}
	for i := range b.Ledger {
		row([]byte(b.Ledger[i].Stream), b.Ledger[i].Ver)
		if len(b.Ledger) == b.Len() { // a heartbeat: only its time differs
			row(nil, uint64(b.Ledger[i].Seen))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
