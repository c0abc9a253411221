package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
	"github.com/earshot-dev/earshot/core/retry"
)

// Client is a client of one event stream.
type Client struct {
	Settings
	url     *url.URL
	resume  *source.Resume // the request that continues the stream; nil: there is none
	origin  string
	http    *http.Client
	backoff retry.Backoff
	rec     source.Recorder
	pause   time.Duration // the pause that the server requests (retry:); 0: none
	last    uint64        // hash of the events of the connection before
	logged  string        // the last failure that was logged

	tried     atomic.Bool // to connect at least once
	connected atomic.Bool
}

// Idle implements source.Listener: the client has tried to connect and is not
// connected.
func (c *Client) Idle() bool { return c.tried.Load() && !c.connected.Load() }

// resumes reports whether all connections are one stream.
func (c *Client) resumes() bool { return c.Resume != None || c.resume != nil }

// errOver ends a stream for good: it is not requested again.
var errOver = errors.New("the stream is over")

// Run implements source.Listener. It may be called once.
func (c *Client) Run(ctx context.Context, rec source.Recorder) error {
	defer c.http.CloseIdleConnections()
	c.rec = rec
	var s *stream
	for {
		err := error(nil)
		if s == nil {
			s, err = c.begin(ctx)
		}
		if err == nil {
			err = c.connect(ctx, s)
		}
		c.connected.Store(false)
		c.tried.Store(true)
		switch {
		case errors.Is(err, errOver):
			s.finish()
			c.Attempted(c.origin, nil)
			c.Logger.Info("the stream is over", "origin", c.origin)
			<-ctx.Done()
			return nil
		case err != nil && ctx.Err() == nil:
			c.logFailure(err)
			c.Attempted(c.origin, err)
		}
		if !c.resumes() {
			s.close()
			s = nil
		}
		pause := max(c.backoff.Next(), c.pause)
		if busy := (*source.Answered)(nil); errors.As(err, &busy) {
			pause = max(pause, busy.After)
		}
		if ctx.Err() != nil || !retry.Wait(ctx, pause) {
			return nil
		}
	}
}

// logFailure logs a failure unless it repeats the last one.
func (c *Client) logFailure(err error) {
	if text := err.Error(); text != c.logged {
		c.logged = text
		c.Logger.Warn("not connected; it is tried again", "origin", c.origin, "error", err)
	}
}

// connect makes one connection and reads it to its end. The error is nil when the
// server has ended it by the protocol.
func (c *Client) connect(ctx context.Context, s *stream) error {
	if s.over {
		return errOver
	}
	r, err := c.request(&s.state)
	if err != nil {
		return err
	}
	// A server that sends no byte for IdleTimeout counts as half open.
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.IdleTimeout, func() { cancel(fmt.Errorf("no byte was received for %s", c.IdleTimeout)) })
	defer silence.Stop()
	c.connected.Store(true)
	s.startConnection(time.Now().UnixNano())
	res, err := c.http.Do(r.WithContext(alive))
	if err != nil {
		return c.cause(alive, err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := c.check(res, s); err != nil {
		return err
	}
	// No encoding is asked for; some servers and proxies send one all the same.
	in, err := body.Decode(res.Header.Get("Content-Encoding"), res.Body)
	if err != nil {
		return c.cause(alive, err)
	}
	defer func() { _ = in.Close() }()
	c.logged = ""
	c.Attempted(c.origin, nil)
	if s.recording == nil {
		if err := s.record(ctx, ""); err != nil {
			return err
		}
	}
	s.meter.Head(time.Now().UnixNano())
	s.state.ResponseInfo = source.ResponseInfo{Method: r.Method, Status: int64(res.StatusCode)}
	if c.resume != nil && s.state.Known() {
		s.state.Method = "" // this request only continues the run of an earlier one
	}
	buf := make([]byte, 32<<10)
	for {
		silence.Reset(c.IdleTimeout)
		n, err := in.Read(buf)
		silence.Stop() // recording may take its time
		if n > 0 {
			if err := s.feed(ctx, buf[:n], time.Now().UnixNano()); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return s.endConnection(ctx, nil, false)
		case err != nil:
			return s.endConnection(context.WithoutCancel(ctx), c.cause(alive, err), ctx.Err() != nil)
		}
	}
}

// cause returns why the client canceled a request, or err if it did not.
func (c *Client) cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err // without the URL, which may hold secrets
	}
	return err
}

// check checks the head of an answer.
func (c *Client) check(res *http.Response, s *stream) error {
	switch media := body.Media(res.Header.Get("Content-Type")); {
	case res.StatusCode == http.StatusNoContent:
		return errOver
	case (res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone) && c.resume != nil && s.state.Known():
		return errOver // the server has dropped the run
	case res.StatusCode != http.StatusOK:
		return source.NewAnswered(res, "the server answered "+res.Status)
	case media != "text/event-stream":
		return source.NewAnswered(res, fmt.Sprintf("the server answered with %q, which is no event stream (text/event-stream)", media))
	}
	return nil
}

// recorded returns the number of bytes of a frame, with the dropped ones.
func recorded(f *frame.Frame) int64 { return int64(len(f.Data)) + f.Dropped }
