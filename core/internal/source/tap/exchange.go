package tap

import (
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
	"github.com/earshot-dev/earshot/core/internal/source/reassemble"
	"github.com/earshot-dev/earshot/core/internal/source/timing"
)

// maxHeader is the number of bytes of a header or a path that are kept.
const maxHeader = 8 << 10

func cropped(s string) string { return s[:min(len(s), maxHeader)] }

// exchange is one request with its response.
type exchange struct {
	tap      *Tap
	request  request
	facts    source.ResponseInfo
	path     string
	host     string
	origin   string
	started  int64
	recorded chan struct{} // closed when nothing more of it is recorded; see order
	turn     turn

	// mu is held while it is decided how the exchange is recorded: when the response's head comes, when that takes too
	// long, when there is none.
	mu       sync.Mutex
	patience *time.Timer // until the request is recorded alone; nil: it is not
	head     bool        // the response's head has come, or will not
	early    bool        // the request is recorded before the head
	queue    *queue      // once it is recorded

	// Of the response, set before the first piece of the queue, or before that ends.
	reply
	format string
	meter  *timing.Meter
}

// reply is how the recorded response is read.
type reply struct {
	status   int64  // of HTTP; 0: it has none
	failure  string // why there is none that a decoder reads; see source.ResponseInfo
	reason   string // the same in words
	id       string // the provider's own of the request, where that is recorded without it
	none     bool   // of the response nothing is recorded
	shape    body.Shape
	encoding string
	socket   [2]*reassemble.Assembler // by direction; nil: not a WebSocket
}

func (t *Tap) newExchange(r *http.Request) *exchange {
	now := time.Now().UnixNano()
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = make(http.Header) // for trailers that were not announced
	}
	origin := url.URL{Scheme: t.upstream.Scheme, Host: t.upstream.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	x := &exchange{
		tap:     t,
		started: now,
		path:    r.URL.Path,
		host:    hostname(r.Host),
		origin:  cropped(source.Address(&origin)),
		facts: source.ResponseInfo{
			Method:      cropped(r.Method),
			Traceparent: cropped(r.Header.Get("Traceparent")),
			Tracestate:  cropped(r.Header.Get("Tracestate")),
		},
		meter: timing.Start(now),
	}
	x.request = request{
		name: x.facts.Method + " " + cropped(r.URL.EscapedPath()), ids: requestIDs(r.Header), encoding: r.Header.Get("Content-Encoding"),
		limit: int(t.MaxBody), memory: &t.memory, ended: make(chan struct{}),
		bare: r.Method == http.MethodGet || r.Method == http.MethodHead, held: true,
	}
	if r.Body == nil || r.Body == http.NoBody {
		x.request.end(true)
	}
	x.mu.Lock() // the timer may be early
	defer x.mu.Unlock()
	if x.format = t.asked(x.path, x.host); x.format != "" && !x.request.bare && !t.resumes(x.format, x.path) {
		x.patience = time.AfterFunc(t.HeadPatience, x.unanswered)
	}
	return x
}

// unanswered records the request of an exchange whose response does not begin: an agent that waits for it is seen to wait.
func (x *exchange) unanswered() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.head {
		return
	}
	select {
	case <-x.request.ended:
		x.early = true
		x.record()
	default: // it is still being sent
		x.patience.Reset(x.tap.HeadPatience)
	}
}

// decide has the request recorded with the response from now on. The caller holds mu.
func (x *exchange) decide() {
	if x.head = true; x.patience != nil {
		x.patience.Stop()
	}
}

// fail notes that there is no response.
func (x *exchange) fail(status int, failure, reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.decide()
	if x.format == "" {
		x.format = x.tap.pickSocket(x.path, x.host)
	}
	if x.queue != nil && !x.early {
		return // the upstream switched the protocol, and then the client was not there to be told
	}
	x.meter.End(time.Now().UnixNano())
	x.reply = reply{status: int64(status), failure: failure, reason: reason, none: true}
	if x.queue == nil && x.format != "" && !x.request.bare {
		x.record()
	}
}

// end is called when the request has been served.
func (x *exchange) end() {
	x.request.free()
	x.request.end(false)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.decide()
	switch {
	case x.queue != nil:
	case x.failure != "" && x.format != "" && !x.request.bare:
		x.meter.End(time.Now().UnixNano())
		x.record()
	default:
		x.request.release()
		return
	}
	x.queue.close(false) // unless the end of the body has closed it
}

// answered reads the response's head and decides whether to record it.
func (t *Tap) answered(res *http.Response) error {
	if t.down.Load() && t.down.Swap(false) {
		t.Attempted(source.Address(t.upstream), nil)
		t.Logger.Info("the upstream answers again", "upstream", source.Address(t.upstream))
	}
	x, _ := res.Request.Context().Value(exchangeKey).(*exchange)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.decide()
	x.request.free()
	x.status = int64(res.StatusCode)
	x.meter.Head(time.Now().UnixNano())
	if res.StatusCode == http.StatusSwitchingProtocols && !x.early {
		return x.switched(res)
	}
	format, shape := t.pick(x.path, x.host, res.Header.Get("Content-Type"))
	if res.Header.Get("X-Vercel-Ai-Data-Stream") != "" { // lines, whose content type is text/plain
		if format == "" {
			format, _ = t.pick(x.path, x.host, "application/x-ndjson")
		}
		shape = body.Lines
	}
	switch {
	case res.Request.Method == http.MethodHead:
		format = ""
	case format == "" && res.StatusCode >= http.StatusBadRequest: // the request of a response like "Internal Server Error" is recorded without it
		if x.format == "" {
			x.format = t.pickSocket(x.path, x.host)
		}
		x.failure, x.reason = strconv.Itoa(res.StatusCode), res.Status
	case x.early && format != x.format: // its request is recorded as another's
		format = ""
	}
	if format == "" {
		x.none = true
		if x.failure == "" && x.queue == nil {
			x.request.release()
		}
		return nil
	}
	x.shape, x.encoding = shape, res.Header.Get("Content-Encoding")
	limit := t.MaxQueue
	if shape == body.Document || shape == body.Opaque {
		// A document is recorded as a whole, so nothing is gained by losing it sooner.
		limit = max(limit, 2*int(t.MaxBody))
	}
	if x.early {
		x.id = answeredBy("", res.Header)
		x.queue.allow(limit)
	} else {
		x.format, x.request.ids = format, answeredBy(x.request.ids, res.Header)
		x.record()
		x.queue.allow(limit)
	}
	res.Body = &teeBody{ReadCloser: res.Body, queue: x.queue, left: res.ContentLength}
	return nil
}

// record starts the goroutine that records the exchange. The caller holds mu.
func (x *exchange) record() {
	t := x.tap
	x.queue = newQueue(t.MaxQueue, &t.memory)
	t.counts.recorded.Add(1)
	t.recording.Add(1)
	t.open.Add(1)
	x.recorded = make(chan struct{})
	t.order.enter(x)
	go func() {
		defer t.recording.Done()
		defer t.order.leave(x)
		defer t.open.Add(-1)
		s := &stream{exchange: x}
		defer s.release()
		// A panic here must not break the traffic, which is in the same process.
		defer func() {
			if why := recover(); why != nil {
				t.Logger.Error("the recording of a response has failed", "origin", x.origin, "error", why, "stack", string(debug.Stack()))
			}
		}()
		s.run()
	}()
}
