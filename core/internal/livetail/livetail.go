// Package livetail sends copies of the redacted frames on their way to the decoders to
// watchers, such as `earshot tail`. The pipeline never waits for a watcher: one that is too
// slow misses frames, and receives their number. Without watchers a batch costs one atomic
// load.
package livetail

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

const (
	depth   = 256     // lines that wait in a watcher's queue
	maxData = 1 << 20 // bytes of a frame that are sent
)

// Line is a frame as a watcher receives it.
type Line struct {
	TS         time.Time `json:"ts"` // when it was read
	Source     string    `json:"source"`
	Format     string    `json:"format"`
	Origin     string    `json:"origin"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name,omitempty"`
	FromClient bool      `json:"from_client,omitempty"`
	Pos        int64     `json:"pos"`
	Bytes      int       `json:"bytes"`
	Reason     string    `json:"reason,omitempty"` // why it is not decoded
	Data       string    `json:"data,omitempty"`
	Base64     string    `json:"data_base64,omitempty"` // instead of data, when that is not UTF-8
	Missed     int64     `json:"missed,omitempty"`      // frames before this one that were not sent
}

// Hub is the set of watchers. The zero value is empty.
type Hub struct {
	watching atomic.Int32
	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// watcher is one request, with its filter and its queue.
type watcher struct {
	source, format, match string
	lines                 chan Line
	missed                atomic.Int64
}

func (w *watcher) wants(source, format string, f *frame.Frame) bool {
	return (w.source == "" || w.source == source) && (w.format == "" || w.format == format) &&
		(w.match == "" || strings.Contains(string(f.Data), w.match))
}

// Sink returns a sink that copies the frames for s to the watchers. A nil Hub returns s.
func (p *Hub) Sink(name, format string, s source.Sink) source.Sink {
	if p == nil {
		return s
	}
	return sink{s, p, name, format}
}

type sink struct {
	source.Sink
	peek         *Hub
	name, format string
}

// Open implements source.Sink.
func (k sink) Open(ctx context.Context, id source.ID, rewind func(int64)) (source.Stream, int64, error) {
	s, pos, err := k.Sink.Open(ctx, id, rewind)
	if err != nil {
		return nil, 0, err
	}
	return stream{s, k, id.Origin}, pos, nil
}

type stream struct {
	source.Stream
	sink   sink
	origin string
}

// Deliver implements source.Stream.
func (s stream) Deliver(ctx context.Context, b *frame.Batch) error {
	if s.sink.peek.watching.Load() > 0 {
		s.sink.peek.show(s.sink.name, s.sink.format, s.origin, b)
	}
	return s.Stream.Deliver(ctx, b)
}

func (p *Hub) show(name, format, origin string, b *frame.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range b.Frames {
		f := &b.Frames[i]
		for w := range p.watchers {
			if !w.wants(name, format, f) {
				continue
			}
			if len(w.lines) == cap(w.lines) {
				w.missed.Add(1)
				continue
			}
			w.lines <- line(name, format, origin, f)
		}
	}
}

func line(name, format, origin string, f *frame.Frame) Line {
	l := Line{
		TS: time.Unix(0, f.At).UTC(), Source: name, Format: format, Origin: origin, Kind: f.Kind.String(), Name: f.Name, FromClient: f.FromClient,
		Pos: f.Pos, Bytes: len(f.Data), Reason: f.Reason,
	}
	if data := f.Data[:min(len(f.Data), maxData)]; utf8.Valid(data) {
		l.Data = string(data)
	} else {
		l.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	return l
}

// ServeHTTP sends a line of JSON for each new frame until the client disconnects. The
// query's source, format and match, a text that the frame contains, select frames.
func (p *Hub) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	v := q.URL.Query()
	me := &watcher{source: v.Get("source"), format: v.Get("format"), match: v.Get("match"), lines: make(chan Line, depth)}
	p.mu.Lock()
	if p.watchers == nil {
		p.watchers = make(map[*watcher]struct{})
	}
	p.watchers[me] = struct{}{}
	p.mu.Unlock()
	p.watching.Add(1)
	defer func() {
		p.watching.Add(-1)
		p.mu.Lock()
		delete(p.watchers, me)
		p.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	out.SetEscapeHTML(false)
	if flush.Flush() != nil {
		return
	}
	for {
		select {
		case <-q.Context().Done():
			return
		case l := <-me.lines:
			l.Missed = me.missed.Swap(0)
			if out.Encode(l) != nil || len(me.lines) == 0 && flush.Flush() != nil {
				return
			}
		}
	}
}
