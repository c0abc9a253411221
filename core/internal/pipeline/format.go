package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/retry"
)

// Launcher starts a decoder process of a format.
type Launcher func(ctx context.Context) (*host.Process, error)

// format is one format's decoder process and its lanes.
type format struct {
	name    string
	start   Launcher
	log     *slog.Logger
	metrics *telemetry.Metrics
	inbox   *inbox
	lanes   []*lane
	info    decoder.Info
	circuit circuit

	// undecoded bounds the format's share of the pipeline's memory for frames that are not
	// decoded yet, so that a decoder that hangs leaves the rest to the others.
	undecoded *budget
	// inQuarantine counts the records that were quarantined in a row, none decoded between;
	// of the core.
	inQuarantine int

	endIdle time.Duration
	wakes   chan struct{} // has a value when a command was queued

	mu      sync.Mutex
	process *host.Process // started by AddFormat, for its Info
	up      chan struct{} // closed while there is a process, or one is started for the next command
	asleep  bool          // the process has ended because there was nothing to do
}

const (
	// crashesUntilOpen is how many crashes without progress open the circuit. A frame that
	// ends every process is found in fewer; see quarantine.go.
	crashesUntilOpen = 8
	restartMin       = 10 * time.Millisecond
	restartMax       = 30 * time.Second
	// memoryEvery is how often a process's memory is measured; a process that has run for
	// healthyAfter counts as progress.
	memoryEvery  = 100 * time.Millisecond
	memoryIdle   = time.Second // the same while nothing is decoded
	healthyAfter = 10 * time.Second
)

// exit is how a process ended.
type exit struct {
	err    error
	reason string // of the dead letters for it
	killed bool   // by a signal from outside, which proves less
	lane   *lane  // whose answer was late or wrong; nil: the process as a whole
}

// circuit is open while a format's process ends again and again without progress.
type circuit struct {
	// progress counts frames that were accounted for or quarantined: a process that ends
	// without any would end again.
	progress atomic.Int64
	open     atomic.Pointer[string] // why; nil when it is closed
}

// advance notes progress, which closes the circuit.
func (f *format) advance() {
	f.circuit.progress.Add(1)
	if f.circuit.open.Load() != nil && f.circuit.open.Swap(nil) != nil {
		f.metrics.DecoderCircuit.With(f.name).Set(0)
		f.log.Info("decoder works again", "format", f.name)
	}
}

// run keeps the format's process running until ctx ends.
//
// A process that ends is started again, at once when it made progress. One that ends again
// and again without progress opens the circuit: it is started with long pauses, the sources
// of its format wait before they take any of the pipeline's memory, and Broken names it.
// The first progress closes the circuit.
func (f *format) run(ctx context.Context) {
	crashes, last := 0, f.circuit.progress.Load()
	backoff := retry.Backoff{Min: restartMin, Max: restartMax}
	for {
		err := f.runProcess(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errNothingToDo) {
			if !f.sleep(ctx) {
				return
			}
			continue
		}
		if now := f.circuit.progress.Load(); now != last {
			crashes, last = 0, now
			backoff.Reset()
		}
		crashes++
		wait := time.Duration(0)
		if crashes > 1 {
			wait = backoff.Next()
		}
		if crashes >= crashesUntilOpen {
			why := fmt.Sprintf("format %s: its decoder crashed %d times without progress: %v", f.name, crashes, err)
			f.circuit.open.Store(&why)
			f.metrics.DecoderCircuit.With(f.name).Set(1)
		}
		f.log.Error("decoder crashed", "format", f.name, "error", err, "crashes", crashes, "restart_in", wait)
		f.metrics.DecoderRestarts.With(f.name).Inc()
		if !retry.Wait(ctx, wait) {
			return
		}
	}
}

// runProcess runs one process from its start to its end. Its streams are rewound then.
func (f *format) runProcess(ctx context.Context) error {
	proc, err := f.nextProcess(ctx)
	f.mu.Lock()
	switch {
	case err == nil && !f.asleep:
		close(f.up)
	case err != nil && f.asleep:
		f.up = make(chan struct{})
	}
	f.asleep = false
	f.mu.Unlock()
	if err != nil {
		return err
	}
	e, attempts := f.serve(ctx, proc)
	if errors.Is(e.err, errNothingToDo) {
		proc.Kill()
		_ = f.inbox.call(context.Background(), func(c *core) { c.fatal = c.asleep(f) })
		f.mu.Lock()
		f.asleep = true
		f.mu.Unlock()
		return e.err
	}
	f.mu.Lock()
	f.up = make(chan struct{})
	f.mu.Unlock()
	if ctx.Err() != nil {
		proc.Kill()
		return ctx.Err()
	}
	proc.Abort()
	for _, l := range f.lanes {
		l.empty()
	}
	_ = f.inbox.call(context.Background(), func(c *core) { c.processEnded(f, e, attempts) })
	for _, l := range f.lanes { // queued meanwhile, of an earlier generation
		l.empty()
	}
	return e.err
}

// errNothingToDo ends the process of a format whose decoders are all closed.
var errNothingToDo = errors.New("it has nothing to do")

// wake has a process started for a command that was queued, if there is none.
func (f *format) wake() {
	select {
	case f.wakes <- struct{}{}:
	default:
	}
}

// sleep waits until a command is queued. It returns false when ctx has ended before.
func (f *format) sleep(ctx context.Context) bool {
	f.log.Debug("decoder has ended until there is something to decode", "format", f.name)
	for {
		if slices.ContainsFunc(f.lanes, func(l *lane) bool { return len(l.queue) > 0 }) {
			return true
		}
		select {
		case <-f.wakes:
		case <-ctx.Done():
			return false
		}
	}
}

// nextProcess returns the process that AddFormat started, or a new one.
func (f *format) nextProcess(ctx context.Context) (*host.Process, error) {
	f.mu.Lock()
	p := f.process
	f.process = nil
	f.mu.Unlock()
	if p != nil && !p.Exited() {
		return p, nil
	}
	return f.start(ctx)
}

// kill ends the process that AddFormat started, if it never ran.
func (f *format) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.process != nil {
		f.process.Kill()
		f.process = nil
	}
}

// ready waits until there is a process.
func (f *format) ready(ctx context.Context) error {
	f.mu.Lock()
	up := f.up
	f.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve runs the lanes until the process ends or run does. It returns how the process ended
// and its unfinished attempts.
func (f *format) serve(run context.Context, proc *host.Process) (exit, []attempt) {
	ctx, cancel := context.WithCancel(run)
	defer cancel()
	var wg sync.WaitGroup
	exits, stop := make(chan exit, 2*len(f.lanes)+1), make(chan struct{})
	exclusive := new(sync.RWMutex)
	for _, l := range f.lanes {
		l.unanswered = nil
		rpc, err := proc.Decode(ctx)
		if err != nil {
			exits <- exit{err: err}
			break
		}
		conn := &connection{rpc: rpc, snapshots: proc.Snapshots(), deadline: proc.CallTimeout(), sent: make(chan request, laneDepth), exclusive: exclusive}
		wg.Go(func() { l.send(ctx, stop, conn); exits <- exit{} })
		wg.Go(func() { exits <- l.receive(ctx, conn, cancel) })
	}
	wg.Go(func() { exits <- f.watch(ctx, proc) })
	var e exit
	for e.err == nil && run.Err() == nil {
		select {
		case e = <-exits:
			if errors.Is(e.err, errOtherLane) {
				e = exit{}
			}
		case <-run.Done():
		}
	}
	if errors.Is(e.err, errNothingToDo) { // all that was sent is answered
		close(stop)
		wg.Wait()
		close(exits)
		e = exit{err: errNothingToDo}
		for x := range exits {
			if x.err != nil {
				return f.explain(proc, x)
			}
		}
		return e, nil
	}
	cancel()
	wg.Wait()
	return f.explain(proc, e)
}

var errEnded = errors.New("it ended")

// watch returns when the process has more memory than it may have, or has ended.
func (f *format) watch(ctx context.Context, proc *host.Process) exit {
	every, progress, since := memoryEvery, int64(0), time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	healthy := time.After(healthyAfter)
	for {
		select {
		case <-ctx.Done():
			return exit{}
		case <-healthy:
			f.advance()
		case <-tick.C:
			if err := proc.OverLimit(); err != nil {
				return exit{err: err, reason: msg.ReasonDecoderMemory}
			}
			if proc.Exited() { // while it had no request
				return exit{err: errEnded}
			}
			next, now := memoryIdle, f.circuit.progress.Load()
			if now != progress || f.inbox.pending.Load() > 0 {
				next, progress, since = memoryEvery, now, time.Now()
			} else if time.Since(since) >= f.endIdle && f.closed(ctx) {
				return exit{err: errNothingToDo}
			}
			if next != every {
				every = next
				tick.Reset(every)
			}
		}
	}
}

// closed reports whether no decoder of the format is open.
func (f *format) closed(ctx context.Context) (closed bool) {
	err := f.inbox.call(ctx, func(c *core) { closed = c.accounts.closed(f) })
	return err == nil && closed
}

// explain adds how the process ended, and returns the attempts that may be the cause: those
// of the lane whose answer was late or wrong, or of all lanes.
func (f *format) explain(proc *host.Process, e exit) (exit, []attempt) {
	if e.err == nil {
		return e, nil
	}
	if e.reason == "" {
		e.reason = msg.ReasonDecoderCrash
		how, killed := proc.Died()
		if e.killed = killed; how != "" {
			e.err = fmt.Errorf("%s: %w", how, e.err)
		}
	}
	var attempts []attempt
	for _, l := range f.lanes {
		if e.lane == nil || e.lane == l {
			attempts = append(attempts, l.unanswered...)
		}
	}
	return e, attempts
}
