package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

const (
	// laneDepth is how many requests may be under way in a lane.
	laneDepth = 4
	// requestBytes and requestJobs bound what is put into one request.
	requestBytes = 512 << 10
	requestJobs  = 64
	// snapEveryBytes is how much is decoded at most between two snapshots.
	snapEveryBytes = 4 << 20
	// A batch of up to smallBatch bytes of a file is followed by a snapshot as long as
	// snapshots are small. It rides on the batch and its checkpoint. A file can be gone
	// at the next start, and then the snapshot is all that there is; what was journalled
	// is there until it is safe.
	smallBatch    = 64 << 10
	smallSnapshot = 16 << 10
)

// lane decodes some of the format's streams, one after another.
type lane struct {
	p    *Pipeline
	f    *format
	jobs chan *job
	held []span // what the process had in its hands when it died
}

// session is one life of a decoder process, as one lane sees it.
type session struct {
	rpc      *host.RPC
	snap     bool // its decoders give snapshots
	deadline time.Duration
	sent     chan request
	alone    *sync.RWMutex // of all lanes: who decodes alone has it locked
}

// request is what is sent at once.
type request struct {
	jobs  []*job
	alone bool
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

// send sends queued jobs to the decoder until ctx ends. An error of the
// connection is the receiver's to report.
func (l *lane) send(ctx context.Context, s *session) {
	defer close(s.sent)
	defer func() { _ = s.rpc.CloseSend() }()
	for {
		var requests []request
		select {
		case <-ctx.Done():
			return
		case j := <-l.jobs:
			requests = l.collect(s, j)
		}
		for i, r := range requests {
			if !l.transmit(ctx, s, r) {
				for _, r := range requests[i+1:] {
					l.lose(r.jobs)
				}
				return
			}
		}
	}
}

// collect makes requests of a job and those that wait behind it.
func (l *lane) collect(s *session, j *job) (out []request) {
	var r request
	for size := 0; ; {
		if parts := j.suspected(s); parts != nil {
			if len(r.jobs) > 0 {
				out = append(out, r)
			}
			for _, part := range parts {
				out = append(out, request{jobs: []*job{part}, alone: part.alone})
			}
			return out
		}
		r.jobs = append(r.jobs, j)
		if size += j.bytes(); len(r.jobs) == requestJobs || size >= requestBytes {
			return append(out, r)
		}
		select {
		case j = <-l.jobs:
		default:
			return append(out, r)
		}
	}
}

// transmit sends a request. It returns false when the session has ended.
func (l *lane) transmit(ctx context.Context, s *session, r request) bool {
	req := &wire.Request{Batches: make([]wire.Batch, 0, len(r.jobs))}
	live := r.jobs[:0]
	for i, j := range r.jobs {
		if j.stream.isRefused() {
			if !l.answer(ctx, j, new(wire.Result)) {
				l.lose(append(live, r.jobs[i+1:]...))
				return false
			}
			continue
		}
		if b, ok := l.batch(j, s); ok {
			req.Batches, live = append(req.Batches, b), append(live, j)
		} else {
			l.p.drop(j)
		}
	}
	if r.jobs = live; len(live) == 0 {
		return true
	}
	s.begin(r)
	if ctx.Err() != nil {
		s.end(r)
		l.lose(r.jobs)
		return false
	}
	select {
	case s.sent <- r:
		return s.rpc.Send(req) == nil // else the receiver loses the jobs
	case <-ctx.Done():
		s.end(r)
		l.lose(r.jobs)
		return false
	}
}

// begin waits until the request may be decoded beside what is being decoded.
func (s *session) begin(r request) {
	if r.alone {
		s.alone.Lock()
	} else {
		s.alone.RLock()
	}
}

// end is called when the request was answered, or never will be.
func (s *session) end(r request) {
	if r.alone {
		s.alone.Unlock()
	} else {
		s.alone.RUnlock()
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
	life, from, mute := st.life, st.resume, st.mute
	st.mu.Unlock()
	if j.life != life {
		return b, false
	}
	b = wire.Batch{Stream: st.id, Flush: j.flush && !mute, Close: j.close, Snapshot: j.snapshot && !mute}
	if j.batch != nil {
		b.Data, b.Frames = j.batch.Data, j.batch.Frames
		if hasReason(b.Frames) {
			j.sent, b.Frames = decodable(b.Frames)
		}
		st.unsnapped += int64(len(b.Data))
		small := !st.feed.journalled && len(b.Data) <= smallBatch && len(from.snapshot) <= smallSnapshot
		b.Snapshot = b.Snapshot || small || st.unsnapped >= snapEveryBytes || time.Since(st.asked) >= l.p.settings.SnapEvery
	}
	if j.end != nil && st.feed.journalled && !mute {
		b.Frames = []frame.Frame{{Kind: frame.Close, Name: frame.Lost, Pos: j.pos, End: j.pos}}
	}
	if b.Snapshot = b.Snapshot && s.snap; b.Snapshot {
		st.unsnapped, st.asked = 0, time.Now()
	}
	if st.opened != s || st.openedLife != life {
		if j.batch == nil && !j.close && !j.flush && !j.open {
			return b, false
		}
		st.opened, st.openedLife = s, life
		b.Open = &wire.Open{Origin: from.origin, Options: st.feed.options, Snapshot: from.snapshot, Source: st.feed.source}
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
func (l *lane) receive(ctx context.Context, s *session, fail func()) (d death) {
	resp := new(wire.Response)
	for r := range s.sent {
		if d.err == nil {
			if d = l.await(ctx, s, r, resp); d.err != nil {
				l.hold(r)
			}
		} else if d.reason == "" { // answers to earlier requests may have died with it
			l.hold(r)
		}
		if d.err != nil {
			fail() // before another lane goes on
		}
		s.end(r)
		if d.err != nil {
			l.lose(r.jobs)
			continue
		}
		err := l.results(ctx, resp, r.jobs)
		resp.Reset()
		if err != nil {
			d = death{err: err, reason: msg.ReasonDecoderInvalid, hung: l}
			fail()
		}
	}
	return d
}

// await waits for an answer. How long depends on how much is asked.
func (l *lane) await(ctx context.Context, s *session, r request, resp *wire.Response) death {
	size := 0
	for _, j := range r.jobs {
		size += j.bytes()
	}
	limit := s.deadline * time.Duration(1+size>>20)
	var hung atomic.Bool
	timer := time.AfterFunc(limit, func() { hung.Store(true); s.rpc.Close() })
	err := s.rpc.Recv(resp)
	timer.Stop()
	if err == nil {
		return death{}
	}
	if hung.Load() {
		return death{err: fmt.Errorf("decoder %s: no answer in %s", l.f.name, limit), reason: msg.ReasonDecoderTimeout, hung: l}
	}
	if ctx.Err() != nil { // because of another lane
		return death{err: errOther}
	}
	return death{err: err}
}

// hold notes what the process had in its hands.
func (l *lane) hold(r request) {
	for _, j := range r.jobs {
		l.held = append(l.held, j.span(r.alone))
	}
}

// errOther says that a lane ended because the session did.
var errOther = errors.New("another lane ended")

// results hands the results of one response over, in order. The error is one of
// the protocol, or ctx's.
func (l *lane) results(ctx context.Context, resp *wire.Response, jobs []*job) error {
	held := make([]span, 0, len(jobs))
	for _, j := range jobs {
		held = append(held, j.span(false))
	}
	i := 0
	err := resp.Results(func(raw []byte) error {
		if i >= len(jobs) {
			return fmt.Errorf("decoder %s: more results than batches", l.f.name)
		}
		j := jobs[i]
		i++
		r := l.p.result()
		if err := r.Read(raw, j.data()); err != nil {
			l.p.drop(j)
			return err
		}
		if r.Stream != j.stream.id {
			l.p.drop(j)
			return fmt.Errorf("decoder %s: result of stream %d, expected %d", l.f.name, r.Stream, j.stream.id)
		}
		if !l.answer(ctx, j, r) {
			return ctx.Err()
		}
		return nil
	})
	if err == nil && i < len(jobs) {
		err = fmt.Errorf("decoder %s: %d results for %d batches", l.f.name, i, len(jobs))
	}
	l.lose(jobs[i:])
	if err != nil && ctx.Err() == nil {
		l.held = held
	}
	return err
}

// result returns a result to read into. A sync.Pool would lose its memory in every
// other collection of garbage, and there are many.
func (p *Pipeline) result() *wire.Result {
	select {
	case r := <-p.results:
		return r
	default:
		return new(wire.Result)
	}
}

// reuse takes a result whose messages were taken.
func (p *Pipeline) reuse(r *wire.Result) {
	select {
	case p.results <- r:
	default:
	}
}

// answer hands a result to the core, which takes the job with it.
func (l *lane) answer(ctx context.Context, j *job, r *wire.Result) bool {
	select {
	case l.p.decoded <- decoded{j, r}:
		return true
	case <-ctx.Done():
		l.p.drop(j)
		return false
	}
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
