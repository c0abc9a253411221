package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/wire"
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

	mu      sync.Mutex
	process *host.Process
}

// session is one life of a decoder process, as one lane sees it.
type session struct {
	rpc  *host.Lane
	snap bool // its decoders give snapshots
	sent chan []*job
}

// run keeps the format's process alive until ctx ends.
func (f *format) run(ctx context.Context, p *Pipeline) error {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		proc, err := f.take(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			wait = min(max(2*wait, 200*time.Millisecond), 30*time.Second)
			f.log.Error("decoder does not start", "format", f.name, "error", err, "retry_in", wait)
			continue
		}
		began := time.Now()
		err = f.serve(ctx, proc, p)
		proc.Kill()
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			wait = 0
		}
		wait = min(max(2*wait, 50*time.Millisecond), 30*time.Second)
		f.log.Error("decoder died", "format", f.name, "error", err, "restart_in", wait)
		p.metrics.DecoderRestarts.WithLabelValues(f.name).Inc()
	}
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

// serve runs the lanes until the process dies or ctx ends, and then has every
// stream of the format begin again at its last snapshot.
func (f *format) serve(ctx context.Context, proc *host.Process, p *Pipeline) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, 2*len(f.lanes))
	for _, l := range f.lanes {
		rpc, err := proc.Lane(ctx)
		if err != nil {
			errs <- err
			break
		}
		s := &session{rpc: rpc, snap: proc.Snapshots(), sent: make(chan []*job, laneDepth)}
		wg.Add(2)
		go func() { defer wg.Done(); errs <- l.send(ctx, s) }()
		go func() { defer wg.Done(); errs <- l.receive(ctx, s, cancel) }()
	}
	err := <-errs
	cancel()
	wg.Wait()
	for _, l := range f.lanes {
		l.empty()
	}
	p.tellWait(func() { p.core.restart(f) })
	return err
}

const (
	// laneDepth is how many requests may be under way in a lane.
	laneDepth = 4
	// requestBytes and requestJobs bound what is put into one request.
	requestBytes = 1 << 20
	requestJobs  = 64
	// snapEvery is how often a stream that goes on is asked for a snapshot.
	snapEvery      = time.Second
	snapEveryBytes = 4 << 20
)

// lane decodes some of the format's streams, one after another.
type lane struct {
	p    *Pipeline
	f    *format
	jobs chan *job
}

// put queues a job.
func (l *lane) put(ctx context.Context, j *job) error {
	select {
	case l.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.p.stopped:
		return errStopped
	}
}

// empty drops what is queued: its streams begin again.
func (l *lane) empty() {
	for {
		select {
		case j := <-l.jobs:
			l.p.drop(j)
		default:
			return
		}
	}
}

// send sends queued jobs to the decoder.
func (l *lane) send(ctx context.Context, s *session) error {
	defer close(s.sent)
	for {
		var jobs []*job
		select {
		case <-ctx.Done():
			return s.rpc.CloseSend()
		case j := <-l.jobs:
			jobs = append(jobs, j)
		}
		size := jobs[0].bytes()
	more:
		for len(jobs) < requestJobs && size < requestBytes {
			select {
			case j := <-l.jobs:
				jobs = append(jobs, j)
				size += j.bytes()
			default:
				break more
			}
		}
		req := &wire.Request{Batches: make([]wire.Batch, 0, len(jobs))}
		live := jobs[:0]
		for _, j := range jobs {
			if b, ok := l.batch(j, s); ok {
				req.Batches, live = append(req.Batches, b), append(live, j)
			} else {
				l.p.drop(j)
			}
		}
		if jobs = live; len(jobs) == 0 {
			continue
		}
		select {
		case s.sent <- jobs:
		case <-ctx.Done():
			l.lose(jobs)
			return ctx.Err()
		}
		if err := s.rpc.Send(req); err != nil {
			return err // the receiver loses the jobs
		}
	}
}

func (j *job) bytes() int {
	if j.batch == nil {
		return 0
	}
	return len(j.batch.Data)
}

// batch makes a job's part of a request; ok is false when the stream was rewound
// after the job was queued.
func (l *lane) batch(j *job, s *session) (b wire.Batch, ok bool) {
	st := j.stream
	st.mu.Lock()
	life, from := st.life, st.resume
	st.mu.Unlock()
	if j.life != life {
		return b, false
	}
	b = wire.Batch{Stream: st.id, Flush: j.flush, Close: j.close, Snapshot: j.snapshot}
	if j.batch != nil {
		b.Data, b.Frames = j.batch.Data, j.batch.Frames
		if hasReason(b.Frames) {
			j.sent, b.Frames = decodable(b.Frames)
		}
		st.unsnapped += int64(len(b.Data))
		b.Snapshot = b.Snapshot || st.unsnapped >= snapEveryBytes || time.Since(st.asked) >= snapEvery
	}
	if b.Snapshot = b.Snapshot && s.snap; b.Snapshot {
		st.unsnapped, st.asked = 0, time.Now()
	}
	if st.opened != s || st.openedLife != life {
		if j.batch == nil && !j.close && !j.flush {
			return b, false
		}
		st.opened, st.openedLife = s, life
		b.Open = &wire.Open{Origin: from.origin, Options: st.feed.options, Snapshot: from.snapshot}
	}
	if j.close {
		st.opened = nil
	}
	return b, true
}

// hasReason reports whether a frame is not for the decoder.
func hasReason(frames []frame.Frame) bool {
	for i := range frames {
		if frames[i].Reason != "" {
			return true
		}
	}
	return false
}

// decodable returns the frames that are for the decoder, and their indexes.
func decodable(all []frame.Frame) (at []int32, frames []frame.Frame) {
	at = []int32{}
	for i := range all {
		if all[i].Reason == "" {
			at, frames = append(at, int32(i)), append(frames, all[i])
		}
	}
	return at, frames
}

// receive takes results to the core. fail ends the sender, which may be waiting
// for frames that will not come.
func (l *lane) receive(ctx context.Context, s *session, fail func()) error {
	var err error
	for jobs := range s.sent {
		resp := new(wire.Response)
		if err == nil {
			err = s.rpc.Recv(resp)
		}
		if err == nil {
			err = l.results(ctx, resp, jobs)
		} else {
			l.lose(jobs)
		}
		if err != nil {
			fail()
		}
	}
	return err
}

// results hands the results of one response over, in order.
func (l *lane) results(ctx context.Context, resp *wire.Response, jobs []*job) error {
	i := 0
	err := resp.Results(func(raw []byte) error {
		if i >= len(jobs) {
			return fmt.Errorf("decoder %s: more results than batches", l.f.name)
		}
		j := jobs[i]
		i++
		r := l.p.results.Get().(*wire.Result)
		if err := r.Read(raw, j.data()); err != nil {
			l.p.drop(j)
			return err
		}
		if r.Stream != j.stream.id {
			l.p.drop(j)
			return fmt.Errorf("decoder %s: result of stream %d, expected %d", l.f.name, r.Stream, j.stream.id)
		}
		select {
		case l.p.decoded <- decoded{j, r}:
			return nil
		case <-ctx.Done():
			l.p.drop(j)
			return ctx.Err()
		}
	})
	if err == nil && i < len(jobs) {
		err = fmt.Errorf("decoder %s: %d results for %d batches", l.f.name, i, len(jobs))
	}
	l.lose(jobs[i:])
	return err
}

func (j *job) data() []byte {
	if j.batch == nil {
		return nil
	}
	return j.batch.Data
}

// lose drops jobs that were on their way when a process died.
func (l *lane) lose(jobs []*job) {
	for _, j := range jobs {
		l.p.drop(j)
	}
}
