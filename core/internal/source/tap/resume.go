package tap

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/earshot-dev/earshot/core/frame"
)

// A run that goes on in the background may be taken up again by another request, which
// gets what comes after a number:
//
//	POST …/messages/stream                 {run_id: R, seq_id: 1, …}  {run_id: R, seq_id: 2, …}
//	GET  …/runs/R/stream?starting_after=2  {run_id: R, seq_id: 3, …}
//
// AgentOS has POST …/runs/R/resume for it, and event_index for the number.
//
// By itself the second response begins in the middle of a sentence, and does not say of
// what conversation it is. So it is recorded behind what was heard of the run before, and
// its decoder leaves out what comes twice.

// Limits of what is remembered of runs that may be taken up again.
const (
	mostRuns    = 64
	mostHistory = 1 << 20 // bytes of one run; a longer one is forgotten
	mostOfAll   = 8 << 20
	probed      = 4 // events by which a response has to name its run
)

// histories are the runs that were heard last, the latest last.
type histories struct {
	mu   sync.Mutex
	runs []*history
	size int
}

// history is what was heard of a run: the request that began it, and its events.
type history struct {
	run    string
	frames []frame.Frame
	size   int
}

// retell records what was heard before of the run that the request takes up again.
func (s *stream) retell() {
	run := resumed(s.path)
	if run == "" {
		return
	}
	for _, f := range s.tap.histories.of(run) {
		s.record(&f)
	}
}

// resumed is the run of a path …/runs/{run}/stream or /resume; empty when it is another
// path.
func resumed(path string) string {
	path = strings.TrimSuffix(path, "/")
	rest, ok := strings.CutSuffix(path, "/stream")
	if !ok {
		rest, ok = strings.CutSuffix(path, "/resume")
	}
	at := strings.LastIndex(rest, "/runs/")
	if !ok || at < 0 {
		return ""
	}
	run := rest[at+len("/runs/"):]
	if name, err := url.PathUnescape(run); err == nil {
		run = name
	}
	return run
}

// remember notes a frame of a run that may be taken up again: one whose events are
// numbered. A response whose first events are not is none.
func (s *stream) remember(f *frame.Frame) {
	switch {
	case s.past == nil || f.Reason != "":
		return
	case f.Kind == frame.Request:
		if s.past.add(f); s.past.size > mostHistory {
			s.past = nil
		}
		return
	case f.Kind != frame.Event:
		return
	}
	if s.past.run == "" {
		s.past.run = numberedRun(f.Data)
	}
	if s.past.run == "" {
		if s.probes++; s.probes >= probed {
			s.past = nil
		}
		return
	}
	s.tap.histories.add(s.past, f)
}

// numberedRun is the run of an event that has a number in it; empty when it is none.
func numberedRun(data []byte) string {
	if !bytes.Contains(data, []byte(`"seq_id"`)) && !bytes.Contains(data, []byte(`"event_index"`)) {
		return ""
	}
	var e struct {
		Run   string `json:"run_id"`
		Seq   *int64 `json:"seq_id"`
		Index *int64 `json:"event_index"`
	}
	if json.Unmarshal(data, &e) != nil || e.Seq == nil && e.Index == nil {
		return ""
	}
	return e.Run
}

func (h *history) add(f *frame.Frame) {
	kept := *f
	kept.Data = bytes.Clone(f.Data)
	h.frames, h.size = append(h.frames, kept), h.size+len(f.Data)
}

// of returns the frames of a run.
func (l *histories) of(run string) []frame.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.runs {
		if h.run == run {
			return slices.Clone(h.frames)
		}
	}
	return nil
}

// add notes a frame of a run. Several responses may speak of it, and the first that does
// has its request.
func (l *histories) add(h *history, f *frame.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.runs, func(o *history) bool { return o.run == h.run })
	switch {
	case at < 0 && len(h.frames) == 0 && h.size > 0: // it was forgotten
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
	for len(l.runs) > mostRuns || l.size > mostOfAll {
		l.forget(0)
	}
	if h.size > mostHistory && len(l.runs) > 0 {
		l.forget(len(l.runs) - 1)
	}
}

// forget drops a run. Its responses do not begin it again in their middle.
func (l *histories) forget(at int) {
	h := l.runs[at]
	l.runs = slices.Delete(l.runs, at, at+1)
	l.size -= h.size
	h.frames = nil
}
