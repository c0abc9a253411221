package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/retry"
)

// Launcher starts a decoder process of a format.
type Launcher func(ctx context.Context) (*host.Process, error)

// format is the decoders of one format: their process and its lanes.
type format struct {
	name  string
	start Launcher
	log   *slog.Logger
	lanes []*lane
	info  decoder.Info

	// undecoded bounds what a format may hold of the pipeline's memory before it is
	// decoded, so that a decoder that does not move leaves the rest to the others.
	undecoded *budget
	// progress counts the frames that were accounted for, or condemned: a process that
	// dies without any of that would die again.
	progress  atomic.Int64
	condemned int // records in a row, none decoded between; the core's

	broken atomic.Pointer[string] // why the circuit is open; nil when it is not

	mu      sync.Mutex
	process *host.Process // started to be asked what it is
	up      chan struct{} // closed while there is a process
}

const (
	// deathsUntilOpen is how many deaths without progress open the circuit. A frame at
	// which every process dies is found in fewer; see blame.
	deathsUntilOpen = 8
	restartMin      = 10 * time.Millisecond
	restartMax      = 30 * time.Second
	// memoryEvery is how often a process's memory is looked at, calm how long it has
	// to live to count as one that works.
	memoryEvery = 100 * time.Millisecond
	calm        = 10 * time.Second
)

// death is how a process ended.
type death struct {
	err    error
	reason string // of what is set aside for it
	// killed says that a signal from outside ended it, which proves less.
	killed bool
	hung   *lane // that gave no answer, or a wrong one; nil: the process as a whole
}

// run keeps the format's process alive until ctx ends.
//
// A process that dies is started again, at once when it got anywhere. One that
// dies again and again without getting anywhere opens the circuit: it is tried
// with a long pause between, the sources of its format wait before they take any
// of the pipeline's memory, and Broken names it. The first progress closes the
// circuit.
func (f *format) run(ctx context.Context, p *Pipeline) {
	deaths, last := 0, f.progress.Load()
	backoff := retry.Backoff{Min: restartMin, Max: restartMax}
	for {
		err := f.live(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if now := f.progress.Load(); now != last {
			deaths, last = 0, now
			backoff.Reset()
		}
		deaths++
		wait := time.Duration(0)
		if deaths > 1 {
			wait = backoff.Next()
		}
		if deaths >= deathsUntilOpen {
			why := fmt.Sprintf("format %s: its decoder died %d times without getting anywhere: %v", f.name, deaths, err)
			f.broken.Store(&why)
			p.metrics.DecoderCircuit.WithLabelValues(f.name).Set(1)
		}
		f.log.Error("decoder died", "format", f.name, "error", err, "deaths", deaths, "restart_in", wait)
		p.metrics.DecoderRestarts.WithLabelValues(f.name).Inc()
		if !retry.Wait(ctx, wait) {
			return
		}
	}
}

// live is one life of a process.
func (f *format) live(ctx context.Context, p *Pipeline) error {
	proc, err := f.take(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	close(f.up)
	f.mu.Unlock()
	d, spans := f.serve(ctx, proc, p)
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
	p.tellWait(func() {
		p.core.blame(spans, d)
		p.core.restart(f)
	})
	for _, l := range f.lanes { // what came meanwhile is of an earlier life
		l.empty()
	}
	return d.err
}

// take returns the process that was started to be asked what it is, or a new one.
func (f *format) take(ctx context.Context) (*host.Process, error) {
	f.mu.Lock()
	p := f.process
	f.process = nil
	f.mu.Unlock()
	if p != nil && !p.Exited() {
		return p, nil
	}
	return f.start(ctx)
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

// advance notes progress, which closes the circuit.
func (f *format) advance(p *Pipeline) {
	f.progress.Add(1)
	if f.broken.Load() != nil && f.broken.Swap(nil) != nil {
		p.metrics.DecoderCircuit.WithLabelValues(f.name).Set(0)
		f.log.Info("decoder works again", "format", f.name)
	}
}

// serve runs the lanes until the process dies or run ends. It returns how it died
// and what it had in its hands.
func (f *format) serve(run context.Context, proc *host.Process, p *Pipeline) (death, []span) {
	ctx, cancel := context.WithCancel(run)
	defer cancel()
	var wg sync.WaitGroup
	ends := make(chan death, 2*len(f.lanes)+1)
	alone := new(sync.RWMutex)
	for _, l := range f.lanes {
		l.held = nil
		rpc, err := proc.Decode(ctx)
		if err != nil {
			ends <- death{err: err}
			break
		}
		s := &session{rpc: rpc, snap: proc.Snapshots(), deadline: proc.CallTimeout(), sent: make(chan request, laneDepth), alone: alone}
		wg.Add(2)
		go func() { defer wg.Done(); l.send(ctx, s); ends <- death{} }()
		go func() { defer wg.Done(); ends <- l.receive(ctx, s, cancel) }()
	}
	wg.Add(1)
	go func() { defer wg.Done(); ends <- f.watch(ctx, proc, p) }()
	var d death
	for d.err == nil && run.Err() == nil {
		select {
		case d = <-ends:
			if errors.Is(d.err, errOther) {
				d = death{}
			}
		case <-run.Done():
		}
	}
	cancel()
	wg.Wait()
	return f.verdict(proc, d)
}

// watch ends when the process has more memory than it may have.
func (f *format) watch(ctx context.Context, proc *host.Process, p *Pipeline) death {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	works := time.After(calm)
	for {
		select {
		case <-ctx.Done():
			return death{}
		case <-works:
			f.advance(p)
		case <-tick.C:
			if err := proc.OverLimit(); err != nil {
				return death{err: err, reason: msg.ReasonDecoderMemory}
			}
			if proc.Exited() { // without anything in its hands
				return death{err: errEnded}
			}
		}
	}
}

var errEnded = errors.New("it ended")

// verdict says how the process died and what may have been the cause: what it was
// decoding, in the lane that hung, or in all of them.
func (f *format) verdict(proc *host.Process, d death) (death, []span) {
	if d.err == nil {
		return d, nil
	}
	if d.reason == "" {
		d.reason = msg.ReasonDecoderCrash
		how, killed := proc.Died()
		if d.killed = killed; how != "" {
			d.err = fmt.Errorf("%s: %w", how, d.err)
		}
	}
	var spans []span
	for _, l := range f.lanes {
		if d.hung == nil || d.hung == l {
			spans = append(spans, l.held...)
		}
	}
	return d, spans
}
