package pipeline

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// Checkpoint is the durable state that a pipeline resumes from.
type Checkpoint interface {
	Streams(source string) ([]checkpoint.Stream, error)
	Stream(source, key string) (checkpoint.Stream, bool, error)
	Group(key string) ([]byte, error)
	OpenGroups() ([]string, error)
	Commit(...checkpoint.Delta) error
	Fresh() bool
}

// Sink takes closed commit batches. Submit blocks while it has enough of them; more means that
// another follows at once. released is called when no exporter needs the batch any more, and
// committed when every exporter has delivered it and its checkpoint is committed.
type Sink interface {
	Submit(ctx context.Context, b *export.Batch, d checkpoint.Delta, more bool, released, committed func()) error
}

// Settings of a pipeline; the zero value of each is its default.
type Settings struct {
	FlushInterval time.Duration // between the ends of two commit batches that are not full; 1 s; see SetFlushInterval
	BatchRows     int           // rows in a commit batch; 10,000
	BatchBytes    int64         // bytes of frames in a commit batch; 8 MiB
	MaxInFlight   int64         // bytes of frames between sources and exporters; 48 MiB
	FlushIdle     time.Duration // without frames for this long, a decoder is flushed; 2 s
	CloseIdle     time.Duration // without frames for this long, a decoder is closed; its snapshot opens it again; 1 min
	EndIdle       time.Duration // without frames of a format for this long, its process ends once its decoders are closed; the next frame starts another; 2 min
	SnapEvery     time.Duration // how often the decoder of a stream that goes on takes a snapshot; 1 s
	Heartbeat     time.Duration // how often an account is written although no frame is read; never. Not while rows wait for a reader
	Lanes         int           // of a format; 2
	MaxDeadLetter int           // bytes of a dead letter's payload; 1 MiB
	// Erased, if set, reports whether the messages of a session are refused; Tenants are those of
	// sources, for streams whose source does not run.
	Erased   func(tenant, session string) bool
	Tenants  []string
	Assemble assemble.Settings
	Logger   *slog.Logger
	Metrics  *telemetry.Metrics
}

func (s *Settings) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&s.FlushInterval, time.Second)
	set(&s.FlushIdle, 2*time.Second)
	set(&s.CloseIdle, time.Minute)
	set(&s.EndIdle, 2*time.Minute)
	set(&s.SnapEvery, time.Second)
	if s.BatchRows <= 0 {
		s.BatchRows = 10_000
	}
	if s.BatchBytes <= 0 {
		s.BatchBytes = 8 << 20
	}
	if s.MaxInFlight <= 0 {
		s.MaxInFlight = 48 << 20
	}
	if s.Lanes <= 0 {
		s.Lanes = 2
	}
	if s.MaxDeadLetter <= 0 {
		s.MaxDeadLetter = 1 << 20
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Metrics == nil {
		s.Metrics = telemetry.New()
	}
}

// Pipeline is described in the package comment.
type Pipeline struct {
	settings Settings
	check    Checkpoint
	metrics  *telemetry.Metrics
	log      *slog.Logger

	formatsMu sync.Mutex
	formats   map[string]*format
	running   context.Context // nil before Run
	processes sync.WaitGroup  // of the formats
	feeds     atomic.Uint64   // of journalled sources so far

	inFlight    *budget
	results     resultPool
	inbox       *inbox
	core        *core
	files       *fileSources
	progress    progress
	deadLetters handover[msg.DeadLetter]
	alerts      handover[msg.Verdict]
}

// Progress is how far a pipeline has come since its start.
type Progress struct {
	Delivered int64 // bytes of frames that sources have delivered; those that are read again for a link or a decoder's crash count again
	Undecoded int64 // about how many bytes wait for their decoder
	Bytes     int64 // bytes that were accounted for
	Frames    int64
	Messages  int64
	Spans     int64
	Problems  int64
	Committed int64 // rows that are with every exporter
}

// progress counts for Progress; the core and the sources add to it.
type progress struct {
	delivered, bytes, frames, messages, spans, problems, committed atomic.Int64
}

// Progress returns how far the pipeline has come.
func (p *Pipeline) Progress() Progress {
	n := &p.progress
	return Progress{
		Delivered: n.delivered.Load(), Undecoded: p.undecoded(), Bytes: n.bytes.Load(), Frames: n.frames.Load(), Messages: n.messages.Load(),
		Spans: n.spans.Load(), Problems: n.problems.Load(), Committed: n.committed.Load(),
	}
}

// undecoded is the memory of the frames that wait for their decoder.
func (p *Pipeline) undecoded() (n int64) {
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	for _, f := range p.formats {
		n += f.undecoded.inUse()
	}
	return n
}

// New returns a pipeline; AddFormat and AddFeed complete it before Run.
func New(s Settings, check Checkpoint, sink Sink) *Pipeline {
	s.defaults()
	p := &Pipeline{
		settings: s, check: check, metrics: s.Metrics, log: s.Logger,
		formats:  make(map[string]*format),
		inFlight: newBudget(s.MaxInFlight),
		results:  make(resultPool, 2*laneDepth),
		inbox:    newInbox(),
		files:    &fileSources{of: make(map[*Feed]Files)},
	}
	p.core = newCore(p, sink)
	return p
}

// AddFormat adds the decoders of a format, before Run or during it: their process is
// started for its Info, and kept. An error is one of the configuration.
func (p *Pipeline) AddFormat(ctx context.Context, name string, start Launcher) (decoder.Info, error) {
	if f := p.format(name); f != nil {
		return f.info, nil
	}
	proc, err := start(ctx)
	if err != nil {
		return decoder.Info{}, err
	}
	f := p.newFormat(name, proc.Info())
	f.start, f.process = start, proc
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	p.formats[name] = f
	if p.running != nil {
		if p.running.Err() != nil {
			proc.Kill()
			return f.info, errStopped
		}
		p.run(f)
	}
	return f.info, nil
}

func (p *Pipeline) newFormat(name string, info decoder.Info) *format {
	f := &format{
		name: name, info: info, log: p.log, metrics: p.metrics, inbox: p.inbox, up: make(chan struct{}),
		undecoded: newBudget(p.settings.MaxInFlight / 4), endIdle: p.settings.EndIdle, wakes: make(chan struct{}, 1),
	}
	for range p.settings.Lanes {
		f.lanes = append(f.lanes, &lane{format: name, inbox: p.inbox, results: p.results, queue: make(chan command, requestCommands), wake: f.wake})
	}
	return f
}

// run starts the supervision of a format's process. formatsMu is held.
func (p *Pipeline) run(f *format) {
	ctx := p.running
	p.processes.Go(func() { f.run(ctx) })
}

func (p *Pipeline) format(name string) *format {
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	return p.formats[name]
}

// localIDs implements assemble.Settings.
func (p *Pipeline) localIDs(name string) bool {
	f := p.format(name)
	return f != nil && f.info.LocalIDs
}

// Run moves frames until ctx ends. Then it stops at once: frames that are not committed are
// decoded again at the next start.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.Close()
	defer p.processes.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		p.formatsMu.Lock()
		defer p.formatsMu.Unlock()
		cancel()
	}()
	p.formatsMu.Lock()
	p.running = ctx
	for _, f := range p.formats {
		p.run(f)
	}
	p.formatsMu.Unlock()
	return p.runCore(ctx)
}

func (p *Pipeline) runCore(ctx context.Context) error {
	defer close(p.inbox.stopped)
	return p.core.run(ctx)
}

// Close ends the decoder processes of a pipeline that is not run.
func (p *Pipeline) Close() {
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	for _, f := range p.formats {
		f.kill()
	}
}

// AddDeadLetter adds a dead letter to the next commit batch. It does not wait: an exporter
// that refused a row calls it, and the core may be waiting for that exporter.
func (p *Pipeline) AddDeadLetter(l msg.DeadLetter) { p.deadLetters.add(l) }

// AddAlerts adds verdicts that are on no work to the next commit batch. It does not wait.
func (p *Pipeline) AddAlerts(list ...msg.Verdict) { p.alerts.add(list...) }

// Broken returns, for each format whose circuit is open, a sentence with the reason.
func (p *Pipeline) Broken() []string {
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	var out []string
	for _, f := range p.formats {
		if why := f.circuit.open.Load(); why != nil {
			out = append(out, *why)
		}
	}
	slices.Sort(out)
	return out
}

// Drained reports whether every delivered frame is committed. It is not known when ctx ends before the core, which
// may be waiting for an exporter, has looked.
func (p *Pipeline) Drained(ctx context.Context) bool { return p.ask(ctx, (*core).drained) }

// Decoded reports whether every delivered frame is decoded. That is as Drained has it.
func (p *Pipeline) Decoded(ctx context.Context) bool {
	return p.ask(ctx, func(c *core) bool {
		return c.inbox.pending.Load() == 0 && len(c.replays.pending) == 0 && c.accounts.decoded()
	})
}

// ask asks the core a question that has the answer no while commands are under way.
func (p *Pipeline) ask(ctx context.Context, question func(*core) bool) bool {
	yes := false
	if p.inbox.pending.Load() == 0 {
		_ = p.inbox.call(ctx, func(c *core) { yes = question(c) })
	}
	return yes
}

// Finish emits everything that is open, as incomplete or as ended by rule, and returns when
// it is committed. The sources have delivered everything, but they run: a decoder that
// crashes needs its frames again, and so does a stream whose run has another place now that others have ended.
func (p *Pipeline) Finish(ctx context.Context) error {
	for {
		// The open messages of the decoders.
		if err := poll(ctx, 5*time.Millisecond, func() (bool, error) { return p.flushAll(ctx) }); err != nil {
			return err
		}
		// The open runs and calls of the assembler.
		var committed <-chan struct{}
		var again bool
		var err error
		cerr := p.inbox.call(ctx, func(c *core) {
			if err = c.assembler.Finish(); err == nil {
				committed, err = c.commits.closeNow(ctx)
				again = c.replays.opened(&c.accounts)
			}
		})
		if err = cmp.Or(cerr, err); err != nil {
			return err
		}
		if err := p.inbox.wait(ctx, committed); err != nil || !again {
			return err
		}
		if err := poll(ctx, 5*time.Millisecond, func() (bool, error) { return p.Decoded(ctx), nil }); err != nil {
			return err
		}
	}
}

// SetFlushInterval changes the interval of a pipeline that runs. A longer one than that of the
// settings is for a time without readers: rows wait where they can be read again, until Store is
// called, a batch is full or the interval is over. The rows of a file that is gone do not wait.
func (p *Pipeline) SetFlushInterval(ctx context.Context, d time.Duration) {
	p.inbox.postWithin(ctx, func(c *core) {
		c.commits.interval = d
		if d/20 >= slowEvery {
			c.tick.Stop() // the slow one is enough
			return
		}
		c.tick.Reset(max(d/20, 10*time.Millisecond))
	})
}

// Store has the rows until now sent, and returns when every exporter has them.
func (p *Pipeline) Store(ctx context.Context) error {
	stored := make(chan struct{})
	if err := p.inbox.call(ctx, func(c *core) {
		c.accounts.heartbeat(&c.commits, time.Now())
		c.commits.wanted = append(c.commits.wanted, func() { close(stored) })
	}); err != nil {
		return err
	}
	return p.inbox.wait(ctx, stored)
}

// Flush emits the open messages of the decoders, as partial ones, and takes the decoders'
// snapshots. The sources have ended. Without it a transcript that is deleted before the next
// start would take the state of its decoder along: the usage of a last response, for example.
func (p *Pipeline) Flush(ctx context.Context) error {
	_, err := p.flushAll(ctx)
	return err
}

// flushAll flushes every decoder once, and reports whether there was none to flush.
func (p *Pipeline) flushAll(ctx context.Context) (none bool, err error) {
	var waiting sync.WaitGroup
	if err := p.inbox.call(ctx, func(c *core) { none = c.accounts.flushAll(&waiting) }); err != nil {
		return false, err
	}
	flushed := make(chan struct{})
	go func() { waiting.Wait(); close(flushed) }()
	select {
	case <-flushed:
		return none, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
