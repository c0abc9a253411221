package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// Checkpoint is the durable memory, as the pipeline sees it.
type Checkpoint interface {
	Streams(source string) ([]checkpoint.Stream, error)
	Stream(source, key string) (checkpoint.Stream, bool, error)
	Group(key string) ([]byte, error)
	OpenGroups() ([]string, error)
	Commit(checkpoint.Delta) error
	Fresh() bool
}

// Sink takes sealed epochs. Submit blocks while it has enough of them; done is
// called when the epoch is with every exporter and its checkpoint is committed.
type Sink interface {
	Submit(ctx context.Context, b *export.Batch, d checkpoint.Delta, done func()) error
}

// Settings of a pipeline; the zero value of each is its default.
type Settings struct {
	FlushInterval time.Duration // how old a record may get before its epoch is sealed; 500 ms
	BatchRows     int           // records in an epoch; 10,000
	BatchBytes    int64         // bytes of frames in an epoch; 8 MiB
	MaxInFlight   int64         // bytes of frames between sources and exporters; 48 MiB
	FlushIdle     time.Duration // silence after which what a decoder has open is given; 2 s
	ParkIdle      time.Duration // silence after which a decoder is closed, to be opened again from its snapshot; 1 min
	SnapEvery     time.Duration // how often a stream that goes on is asked for a snapshot; 1 s
	Heartbeat     time.Duration // how often an account is drawn although nothing comes; never
	Lanes         int           // of a format; 2
	MaxDeadLetter int           // bytes of a dead letter's payload; 1 MiB
	Assemble      assemble.Settings
	Logger        *slog.Logger
	Metrics       *telemetry.Metrics
}

func (s *Settings) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&s.FlushInterval, 500*time.Millisecond)
	set(&s.FlushIdle, 2*time.Second)
	set(&s.ParkIdle, time.Minute)
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

var errStopped = errors.New("pipeline stopped")

// Pipeline is described in the package comment.
type Pipeline struct {
	settings Settings
	check    Checkpoint
	outlet   Sink
	metrics  *telemetry.Metrics
	log      *slog.Logger

	formatsMu sync.Mutex
	formats   map[string]*format
	running   context.Context // nil before Run
	lives     sync.WaitGroup  // of the formats

	inFlight *budget
	results  chan *wire.Result // that may be filled again

	decoded     chan decoded
	mailbox     chan func()
	stopped     chan struct{}
	outstanding atomic.Int64 // jobs that the core has not taken yet
	nextID      atomic.Uint64

	core     core
	progress progress

	lettersMu sync.Mutex
	letters   []msg.DeadLetter // of others, for the next epoch
}

// Progress is how far a pipeline has come since its start.
type Progress struct {
	Delivered int64 // bytes of frames that sources have delivered
	Bytes     int64 // bytes that were accounted for
	Frames    int64
	Messages  int64
	Spans     int64
	Problems  int64
	Committed int64 // records that are with every exporter
}

// progress counts for Progress; the core and the sources add to it.
type progress struct {
	delivered, bytes, frames, messages, spans, problems, committed atomic.Int64
}

// Progress returns how far the pipeline has come.
func (p *Pipeline) Progress() Progress {
	n := &p.progress
	return Progress{
		Delivered: n.delivered.Load(), Bytes: n.bytes.Load(), Frames: n.frames.Load(), Messages: n.messages.Load(),
		Spans: n.spans.Load(), Problems: n.problems.Load(), Committed: n.committed.Load(),
	}
}

// decoded is a job with its result.
type decoded struct {
	job    *job
	result *wire.Result
}

// New returns a pipeline; AddFormat and AddFeed complete it before Run.
func New(s Settings, check Checkpoint, outlet Sink) *Pipeline {
	s.defaults()
	p := &Pipeline{
		settings: s, check: check, outlet: outlet, metrics: s.Metrics, log: s.Logger,
		formats:  make(map[string]*format),
		inFlight: newBudget(s.MaxInFlight),
		results:  make(chan *wire.Result, 2*laneDepth),
		decoded:  make(chan decoded, 2*laneDepth),
		mailbox:  make(chan func()),
		stopped:  make(chan struct{}),
	}
	p.core.init(p)
	return p
}

// AddFormat adds the decoders of a format, before Run or during it: their process
// is started, asked what it is, and kept. An error is one of the configuration.
func (p *Pipeline) AddFormat(ctx context.Context, name string, start Launcher) (decoder.Info, error) {
	if f := p.format(name); f != nil {
		return f.info, nil
	}
	proc, err := start(ctx)
	if err != nil {
		return decoder.Info{}, err
	}
	f := &format{
		name: name, start: start, log: p.log, process: proc, info: proc.Info(), up: make(chan struct{}),
		undecoded: newBudget(p.settings.MaxInFlight / 4),
	}
	for range p.settings.Lanes {
		f.lanes = append(f.lanes, &lane{p: p, f: f, jobs: make(chan *job, requestJobs)})
	}
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	p.formats[name] = f
	if p.running != nil {
		if p.running.Err() != nil {
			proc.Kill()
			return f.info, errStopped
		}
		p.live(f)
	}
	return f.info, nil
}

// live runs a format. formatsMu is held.
func (p *Pipeline) live(f *format) {
	ctx := p.running
	p.lives.Add(1)
	go func() { defer p.lives.Done(); f.run(ctx, p) }()
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

// Run moves frames until ctx ends. Then it stops at once: what is not committed
// is decoded again at the next start.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.Close()
	defer p.lives.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		p.formatsMu.Lock()
		defer p.formatsMu.Unlock()
		cancel()
	}()
	p.formatsMu.Lock()
	p.running = ctx
	for _, f := range p.formats {
		p.live(f)
	}
	p.formatsMu.Unlock()
	err := p.core.run(ctx)
	close(p.stopped)
	return err
}

// Close ends the decoder processes of a pipeline that is not run.
func (p *Pipeline) Close() {
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	for _, f := range p.formats {
		f.mu.Lock()
		if f.process != nil {
			f.process.Kill()
			f.process = nil
		}
		f.mu.Unlock()
	}
}

// AddDeadLetter has the next epoch take a dead letter along. It does not wait: an
// exporter that refused a row calls it, and the core may be waiting for that.
func (p *Pipeline) AddDeadLetter(l msg.DeadLetter) {
	p.lettersMu.Lock()
	p.letters = append(p.letters, l)
	p.lettersMu.Unlock()
}

// Broken says which formats wait because their decoder dies again and again, and
// why.
func (p *Pipeline) Broken() []string {
	p.formatsMu.Lock()
	defer p.formatsMu.Unlock()
	var out []string
	for _, f := range p.formats {
		if why := f.broken.Load(); why != nil {
			out = append(out, *why)
		}
	}
	slices.Sort(out)
	return out
}

// Drained reports whether nothing that was delivered is still on its way to an
// exporter.
func (p *Pipeline) Drained() bool {
	if p.outstanding.Load() != 0 {
		return false
	}
	quiet := false
	p.tellWait(func() { quiet = p.outstanding.Load() == 0 && p.core.quiet() })
	return quiet
}

// Finish gives everything that is open, as incomplete or as ended by rule, and
// returns when it is with the exporters and committed. The sources have nothing
// more to give, but they run: a decoder that dies needs its frames again.
func (p *Pipeline) Finish(ctx context.Context) error {
	// What the decoders have open.
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		var wait sync.WaitGroup
		done := false
		if err := p.tellCtx(ctx, func() { done = p.core.flushAll(&wait) }); err != nil {
			return err
		}
		if err := waitCtx(ctx, &wait); err != nil {
			return err
		}
		if done {
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// What the assembler has open.
	done := make(chan struct{})
	var err error
	p.tellWait(func() {
		if err = p.core.assembler.Finish(); err == nil {
			err = p.core.seal(ctx, func() { close(done) })
		}
	})
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.stopped:
		return errStopped
	}
}

// Flush emits what the decoders hold, as partial messages, and takes their snapshots.
// The sources have ended. Without it a transcript that is deleted before the next start
// would take the state of its decoder along: the usage of a last response, say.
func (p *Pipeline) Flush(ctx context.Context) error {
	var wait sync.WaitGroup
	if err := p.tellCtx(ctx, func() { p.core.flushAll(&wait) }); err != nil {
		return err
	}
	return waitCtx(ctx, &wait)
}

func waitCtx(ctx context.Context, wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell has the core do something.
func (p *Pipeline) tell(f func()) {
	select {
	case p.mailbox <- f:
	case <-p.stopped:
	}
}

// tellWait has the core do something and waits until it has.
func (p *Pipeline) tellWait(f func()) { _ = p.tellCtx(context.Background(), f) }

func (p *Pipeline) tellCtx(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case p.mailbox <- func() { f(); close(done) }:
	case <-p.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-p.stopped:
		return errStopped
	}
}

// drop gives up a job: its stream begins again, or the pipeline has ended.
func (p *Pipeline) drop(j *job) {
	if j.batch != nil {
		j.batch.Done()
	}
	j.stream.format.undecoded.release(j.size)
	p.inFlight.release(j.size)
	p.outstanding.Add(-1)
	if j.end != nil {
		j.end <- source.ErrRewound
	}
	if j.waits != nil {
		j.waits.Done()
	}
}
