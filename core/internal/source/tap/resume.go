package tap

import (
	"bytes"
	"slices"
	"sync"

	"github.com/earshot-dev/earshot/core/frame"
)

// A run in the background may be resumed by another request, whose response has the events
// behind a number. The decoder of the format describes the fields and the path
// (source.Resume):
//
//	POST …/messages/stream                 {run_id: R, seq_id: 1, …}  {run_id: R, seq_id: 2, …}
//	GET  …/runs/R/stream?starting_after=2  {run_id: R, seq_id: 3, …}
//
// By itself the second response begins in the middle of a sentence and does not name its
// conversation. So the tap records it behind the frames that it remembers of the run, and the
// decoder drops the duplicates.

// Limits of the memory of runs that may be resumed.
const (
	maxRuns      = 64
	maxHistory   = 1 << 20 // bytes of one run; a longer one is evicted
	maxHistories = 8 << 20
	maxProbes    = 4 // events by which a response has to name its run
)

// histories are the runs that were recorded last, the latest last.
type histories struct {
	mu   sync.Mutex
	runs []*history
	size int
}

// history is the request that began a run, and its events.
type history struct {
	run    string
	frames []frame.Frame
	size   int
}

// replay records the frames of the run that the request resumes.
func (s *stream) replay() {
	run := s.resume.RunOf(s.path)
	if run == "" {
		return
	}
	for _, f := range s.tap.histories.framesOf(run) {
		s.record(&f)
	}
}

// remember notes a frame of a run that may be resumed: one whose events are numbered. A
// response whose first events are not has no such run.
func (s *stream) remember(f *frame.Frame) {
	switch {
	case s.past == nil || f.Reason != "":
		return
	case f.Kind == frame.Request:
		if s.past.add(f); s.past.size > maxHistory {
			s.past = nil
		}
		return
	case f.Kind != frame.Event:
		return
	}
	if s.past.run == "" {
		s.past.run = s.resume.NumberedRun(f.Data)
	}
	if s.past.run == "" {
		if s.probes++; s.probes >= maxProbes {
			s.past = nil
		}
		return
	}
	s.tap.histories.add(s.past, f)
}

func (h *history) add(f *frame.Frame) {
	kept := *f
	kept.Data = bytes.Clone(f.Data)
	h.frames, h.size = append(h.frames, kept), h.size+len(f.Data)
}

// framesOf returns the frames of a run.
func (l *histories) framesOf(run string) []frame.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.runs {
		if h.run == run {
			return slices.Clone(h.frames)
		}
	}
	return nil
}

// add notes a frame of a run. Several responses may have events of it; the first one has the
// request.
func (l *histories) add(h *history, f *frame.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.runs, func(o *history) bool { return o.run == h.run })
	switch {
	case at < 0 && len(h.frames) == 0 && h.size > 0: // it was evicted
		return
	case at < 0:
		l.size += h.size
	default:
		h = l.runs[at]
		l.runs = slices.Delete(l.runs, at, at+1)
	}
	h.add(f)
	l.size += len(f.Data)
	l.runs = append(l.runs, h)
	for len(l.runs) > maxRuns || l.size > maxHistories {
		l.evict(0)
	}
	if h.size > maxHistory && len(l.runs) > 0 {
		l.evict(len(l.runs) - 1)
	}
}

// evict evicts a run. Its later events do not add it again, without its beginning.
func (l *histories) evict(at int) {
	h := l.runs[at]
	l.runs = slices.Delete(l.runs, at, at+1)
	l.size -= h.size
	h.frames = nil
}
