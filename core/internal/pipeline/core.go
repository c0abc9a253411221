package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// core is the one goroutine that owns the accounts of all streams, the assembler and the
// open commit batch.
type core struct {
	settings    Settings
	check       Checkpoint
	log         *slog.Logger
	metrics     *telemetry.Metrics
	inbox       *inbox
	results     resultPool
	inFlight    *budget
	deadLetters *handover[msg.DeadLetter]
	alerts      *handover[msg.Verdict]

	assembler  *assemble.Assembler
	accounts   accounts
	accounting accounting
	commits    committer
	replays    replays
	verdicts   verdictCounts
	reported   map[string]bool // inputs that could not be read, with the reason
	opened     uint64          // streams so far
	fatal      error           // of a call; it ends the core
	tick       *time.Ticker    // of looking whether a batch is due
}

// verdictCounts counts the verdicts that hold: those that are reported again count once.
type verdictCounts struct {
	metrics *telemetry.Metrics
	hold    map[verdictKey]bool
}

type verdictKey struct {
	span msg.SpanID
	name string
}

// accounts are the open streams.
type accounts struct {
	of    map[*stream]*account
	named map[uint64]*account // by the name for the assembler
	// awake have a decoder that is open or not flushed. The others cost nothing while they are silent.
	awake map[*account]struct{}
	files *fileSources
}

// fileSources knows when the sources that read files have delivered all that is there. Reloads add to them and
// must not wait for the core, which may be waiting for an exporter.
type fileSources struct {
	mu sync.Mutex
	of map[*Feed]Files
}

func (s *fileSources) set(f *Feed, files Files) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[f] = files
}

func (s *fileSources) remove(f *Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, f)
}

// all reports whether each of them is drained; false: there is none.
func (s *fileSources) all() bool { return s.found() && s.some() }

// found reports whether none of them has files to find or to deliver.
func (s *fileSources) found() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, files := range s.of {
		if !files.Drained() {
			return false
		}
	}
	return true
}

func (s *fileSources) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of) > 0
}

// again has each of them deliver those streams again that it has closed. They may wait for the core.
func (s *fileSources) again(streams map[uint64]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, files := range s.of {
		go files.Again(func(key string) bool { _, ok := streams[nameOf(f.source, key)]; return ok })
	}
}

func (x *accounts) wake(a *account) { x.awake[a] = struct{}{} }

func (x *accounts) add(a *account) {
	x.of[a.stream], x.named[a.stream.name] = a, a
	x.wake(a)
	a.stream.feed.counters.streams.Inc()
}

func (x *accounts) remove(a *account) {
	delete(x.of, a.stream)
	delete(x.named, a.stream.name)
	delete(x.awake, a)
	a.stream.feed.counters.streams.Dec()
}

// dateHistory has the streams whose last frames were history silent since these were written, not since they were read.
func (x *accounts) dateHistory() {
	for a := range x.awake {
		if a.written != 0 {
			a.touched, a.written = time.Unix(0, min(a.written, a.touched.UnixNano())), 0
		}
	}
}

// historyRead reports whether all of the files is delivered, and no decoder has anything open that a flush would emit.
func (x *accounts) historyRead() bool {
	for a := range x.awake {
		if !a.flushed() {
			return false
		}
	}
	return x.files.all()
}

// closed reports whether no decoder of a format is open.
func (x *accounts) closed(f *format) bool {
	for s, a := range x.of {
		if s.feed.format == f && !a.decoderClosed {
			return false
		}
	}
	return true
}

// settled reports whether nothing of a source is on its way to the core.
func (x *accounts) settled(f *Feed) bool {
	for s, a := range x.of {
		if s.feed != f || a.stalled {
			continue
		}
		// One that was rewound and whose source is gone is never delivered again up to its
		// former position: the checkpoint's is enough.
		if next, _ := s.cursor.position(); next > a.record.Pos {
			return false
		}
	}
	return true
}

func newCore(p *Pipeline, sink Sink) *core {
	c := &core{
		settings: p.settings, check: p.check, log: p.log, metrics: p.metrics,
		inbox: p.inbox, results: p.results, inFlight: p.inFlight, deadLetters: &p.deadLetters, alerts: &p.alerts,
		accounts: accounts{make(map[*stream]*account), make(map[uint64]*account), make(map[*account]struct{}), p.files},
		replays:  replays{awaited: make(map[uint64][]assemble.RunRef)},
		reported: make(map[string]bool), verdicts: verdictCounts{p.metrics, make(map[verdictKey]bool)},
	}
	rules := p.settings.Assemble
	rules.Replay, rules.LocalIDs, rules.LastBytes = !p.check.Fresh(), p.localIDs, c.accounts.lastBytes
	rules.Begun = c.accounts.anchor
	rules.HistoryRead = func() bool {
		return c.inbox.pending.Load() == 0 && len(c.replays.pending) == 0 && c.accounts.historyRead()
	}
	c.assembler = assemble.New(rules, p.check, c)
	c.commits.init(&c.settings, c.assembler, &c.replays, p.check, sink, p.inFlight, &p.progress)
	c.commits.read = func() bool {
		return c.inbox.pending.Load() == 0 && len(c.replays.pending) == 0 && c.accounts.files.all()
	}
	c.accounting.init(&c.settings, c.assembler, &c.commits, &p.progress)
	return c
}

// run is the core's loop.
func (c *core) run(ctx context.Context) error {
	keys, err := c.check.OpenGroups()
	if err == nil {
		err = c.replays.load(c.check)
	}
	if err != nil {
		return err
	}
	tick := time.NewTicker(max(c.settings.FlushInterval/20, 10*time.Millisecond))
	defer tick.Stop()
	c.tick = tick
	for _, f := range c.inbox.early.take() {
		f(c)
	}
	now := time.Now()
	for _, k := range keys {
		if err := c.assembler.Resume(k, now); err != nil {
			return err
		}
	}
	slow := time.NewTicker(slowEvery)
	defer slow.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-c.inbox.results:
			err = c.take(r)
			c.results.put(r.decoded)
		case f := <-c.inbox.calls:
			f(c)
			err = c.fatal
		case now := <-tick.C:
			c.collect()
			err = c.commits.closeDue(ctx, now)
		case now := <-slow.C:
			again = c.accounts.rest(now, &c.settings)
			c.replays.askSources(c.accounts.files, now)
			if err = c.idle(now); err == nil {
				c.collect()
				err = c.commits.closeDue(ctx, now)
			}
		case now := <-again:
			again = c.accounts.rest(now, &c.settings)
		}
		if err == nil && (c.commits.full() || c.starved()) {
			err = c.commits.close(ctx, closing{more: c.commits.backlog()})
		}
		if err == nil {
			err = c.commits.serveWanted(ctx, time.Now())
		}
		if err == nil && len(c.replays.pending) > 0 {
			err = c.replay()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// slowEvery is how often the core looks for streams, runs and rows that have waited for long.
const slowEvery = time.Second

// take applies a result, unless its stream has ended or was rewound.
func (c *core) take(r result) error {
	c.inbox.pending.Add(-1)
	t := r.command.target()
	a := c.accounts.of[t.stream]
	if a == nil || a.generation != t.generation {
		r.command.discard()
		return nil
	}
	return r.command.apply(c, a, r.decoded)
}

// applied enters the part that all results have: that the decoder has worked up to a position
// and its process still runs, its snapshot, its failure.
func (c *core) applied(a *account, worked int64, r *wire.Result) {
	a.clearSuspect(worked)
	c.takeSnapshot(a, r)
	if r.Failure != nil {
		c.failed(a, r.Failure)
	}
}

// takeSnapshot keeps a decoder's state, at the position that the decoder has come to: after
// a restart it lies behind the account's.
func (c *core) takeSnapshot(a *account, r *wire.Result) {
	if !r.HasSnapshot || r.Failure != nil || a.record.Erased {
		return
	}
	a.record.SnapPos, a.record.Snapshot = a.decoded, r.Snapshot
	a.stream.cursor.setResume(a.resume())
	c.commits.touch(a)
}

// starved reports whether the commit batch is all that is in flight, and sources wait for
// its bytes: it will not become larger.
func (c *core) starved() bool {
	return !c.commits.empty() && c.commits.held.Load() == 0 && c.inbox.pending.Load() == 0 && c.inFlight.exhausted()
}

// collect takes the records of other components into the commit batch.
func (c *core) collect() {
	for _, v := range c.alerts.take() {
		c.commits.addVerdict(v)
	}
	for _, l := range c.deadLetters.take() {
		c.commits.addDeadLetter(l)
		c.metrics.Problems.With(l.Source, l.Stage, l.Reason).Inc()
	}
}

// open begins or resumes a stream.
func (c *core) open(s *stream, r checkpoint.Stream) error {
	if c.accounts.named[s.name] != nil {
		return fmt.Errorf("pipeline: stream %s is open already", r.Key)
	}
	known, anchored, ok, err := c.commits.known(s.name, r.Source, r.Key)
	if err != nil {
		return err
	}
	r.Format = s.feed.format.name
	a := &account{stream: s, record: r, touched: time.Now(), decoderClosed: true}
	if ok {
		a.record, a.anchored, a.ended = known, anchored, known.Closed
		a.record.Origin, a.record.Closed, a.lastSession = r.Origin, false, known.Session
		if known.Format == "" {
			a.record.Format, a.record.Ledgered = r.Format, readBytes(&known)
		}
		if r.State != nil {
			a.record.State = r.State
		}
	}
	a.decoded = a.record.SnapPos
	c.opened++
	s.id, s.lane = c.opened, s.feed.laneOf(c.opened)
	s.cursor.next, s.cursor.resume, s.cursor.quarantine.records = a.decoded, a.resume(), a.record.Poison
	c.accounts.add(a)
	c.commits.touch(a)
	return c.rejoin(s.name)
}

// detach drops a source's streams, as the end of the process would: the next source of that
// name goes on where they are.
func (c *core) detach(f *Feed) {
	for s, a := range c.accounts.of {
		if s.feed != f {
			continue
		}
		a.enqueue(&closeDecoder{})
		s.cursor.setClosed(true)
		c.accounts.remove(a)
		c.commits.drop(a)
		c.assembler.ForgetResponse(s.name)
	}
	c.accounts.files.remove(f)
}

// maxReported bounds the dead letters of inputs that cannot be read, and the memory of them.
const maxReported = 10_000

// unreadable adds a dead letter for an input that could not be read, once.
func (c *core) unreadable(f *Feed, origin, reason, detail string) {
	key := f.source + "\x00" + origin + "\x00" + reason
	if c.reported[key] || len(c.reported) > maxReported {
		return
	}
	c.reported[key] = true
	c.metrics.Problems.With(f.source, "read", reason).Inc()
	c.commits.addDeadLetter(msg.DeadLetter{
		ID: msg.NewDeadLetterID(f.tenant, f.source, "read", origin, reason), Tenant: f.tenant, Source: f.source, Format: f.format.name,
		Stage: "read", Reason: reason, Detail: detail, Origin: origin, Seen: time.Now().UnixNano(), Ver: 1,
	})
}

const (
	// manyAwake is from how many streams with an open decoder on one is closed as soon as it is flushed:
	// each takes kilobytes of its process, and of 50,000 files that are read for the first time few go on.
	manyAwake = 1024
	// restAgain is when streams are looked at again for whose commands the lanes had no room.
	restAgain = 50 * time.Millisecond
)

// rest flushes the decoders of streams without frames for a while, and closes those of streams without
// frames for long. It returns a channel that is ready when it is to be called again soon.
func (x *accounts) rest(now time.Time, s *Settings) (again <-chan time.Time) {
	closeIdle := s.CloseIdle
	if len(x.awake) > manyAwake {
		closeIdle = min(closeIdle, s.FlushIdle)
	}
	if x.files.all() {
		x.dateHistory()
	}
	refused := 0
	for a := range x.awake {
		if a.flushed() && a.decoderClosed {
			delete(x.awake, a)
			continue
		}
		silent, tried, queued := now.Sub(a.touched), false, false
		if !a.flushed() && !a.flushing && silent >= s.FlushIdle {
			a.flushing = a.enqueue(&flush{})
			tried, queued = true, a.flushing
		} else if a.flushed() && !a.decoderClosed && silent >= closeIdle && a.record.SnapPos == a.record.Pos {
			a.decoderClosed = a.enqueue(&closeDecoder{})
			tried, queued = true, a.decoderClosed
		}
		if l := a.stream.lane; tried && !queued && len(l.queue) == cap(l.queue) {
			if refused++; refused == requestCommands {
				break
			}
		}
	}
	if refused > 0 {
		again = time.After(restAgain)
	}
	return again
}

// idle ends runs by their silence.
func (c *core) idle(now time.Time) error {
	if c.commits.empty() && c.commits.held.Load() == 0 && now.Sub(c.commits.closed) >= ledgerEvery {
		c.commits.messages.drop()
		c.commits.spans.drop()
	}
	if !c.commits.unread() {
		c.accounts.heartbeat(&c.commits, now)
	}
	c.assembler.Looks(now)
	return c.assembler.Idle(now, int(c.commits.submitted.Load()))
}

// heartbeat has the account of one stream of each source written when nothing was for long: its time
// shows that Earshot is running and listening.
func (x *accounts) heartbeat(k *committer, now time.Time) {
	if every := k.settings.Heartbeat; every <= 0 || now.Sub(k.closed) < every {
		return
	}
	latest := make(map[*Feed]*account)
	for s, a := range x.of {
		if was := latest[s.feed]; was == nil || a.touched.After(was.touched) {
			latest[s.feed] = a
		}
	}
	for _, a := range latest {
		k.touch(a)
	}
}

// flushAll flushes every decoder, which takes its snapshot. It returns whether there was
// nothing left to do: a stream that is being delivered again is not flushed, because its
// decoder is not where it was.
func (x *accounts) flushAll(waiting *sync.WaitGroup) (done bool) {
	done = true
	for s, a := range x.of {
		if a.stalled || a.flushed() {
			continue
		}
		done = false
		s.at(a.record.Pos, func(t ticket) {
			waiting.Add(1)
			go func() { _ = s.lane.put(context.Background(), &flush{t, waiting}) }()
		})
	}
	return done
}

// drained reports whether every delivered frame is committed.
func (c *core) drained() bool {
	c.collect()
	if c.inbox.pending.Load() != 0 || c.commits.submitted.Load() != 0 || !c.commits.empty() || len(c.commits.changed) != 0 || len(c.commits.ledgers.pending) != 0 || c.replays.unasked || c.assembler.Ended() {
		return false
	}
	return c.accounts.decoded()
}

// decoded reports whether every frame that was delivered before is decoded, if no command is under way.
func (x *accounts) decoded() bool {
	for s, a := range x.of {
		if _, high := s.cursor.position(); a.record.Pos < high && !a.stalled { // rewound, and not delivered again yet
			return false
		}
	}
	return true
}

// Span implements assemble.Emitter.
func (c *core) Span(s msg.Span) { c.accounting.span(&s) }

// Message implements assemble.Emitter.
func (c *core) Message(m msg.Message) { c.commits.addMessage(&m) }

// Verdict implements assemble.Emitter.
func (c *core) Verdict(v msg.Verdict) {
	if c.settings.erases(v.Tenant, v.Session) {
		return
	}
	c.commits.addVerdict(v)
	c.verdicts.count(&v)
}

func (x *verdictCounts) count(v *msg.Verdict) {
	key := verdictKey{v.Span, v.Name}
	switch held := x.hold[key]; {
	case v.Resolved == 0 && !held:
		x.hold[key] = true
		x.metrics.VerdictsMade.With(v.Format, v.Name).Inc()
		x.metrics.Verdicts.With(v.Name).Inc()
	case v.Resolved != 0 && held:
		delete(x.hold, key)
		x.metrics.Verdicts.With(v.Name).Dec()
	}
}

// lastBytes is when bytes of a stream arrived last that is open and read live; 0: it is none.
func (x *accounts) lastBytes(stream uint64) int64 {
	if a := x.named[stream]; a != nil && a.stream.feed.journalled {
		return a.record.Read
	}
	return 0
}

// anchor is when the file of an open stream was written last before it was read first; 0: that is not known.
func (x *accounts) anchor(stream uint64) int64 {
	if a := x.named[stream]; a != nil {
		return a.record.Anchor
	}
	return 0
}

// Finding implements assemble.Emitter.
func (c *core) Finding(format, kind string) {
	c.metrics.Findings.With(format, kind).Inc()
}

var _ assemble.Emitter = (*core)(nil)
