package websocket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/timing"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/retry"
)

// Client is a client of one WebSocket.
type Client struct {
	Settings
	header  http.Header
	origin  string
	http    *http.Client
	backoff retry.Backoff
	resume  resumption
	logged  string // the last failure that was logged

	tried     atomic.Bool // to connect at least once
	connected atomic.Bool
	heard     atomic.Int64 // when bytes of the server came last, or were recorded; Unix ns
	recording atomic.Bool  // the recorder takes a message: meanwhile no answer is read
}

// state is the State of a recording.
type state struct {
	Subprotocol         string                     `json:"subprotocol,omitempty"`
	Seen                map[string]json.RawMessage `json:"seen,omitempty"` // the last values of the fields of Resume
	source.ResponseInfo                            // of the last connection
}

func (s *state) marshal() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // the values of Seen are parsed JSON
	}
	return b
}

// Idle implements source.Listener: the client has tried to connect and is not
// connected.
func (c *Client) Idle() bool { return c.tried.Load() && !c.connected.Load() }

// handshakeTimeout is how long a server may take to accept a connection.
const handshakeTimeout = 30 * time.Second

// Run implements source.Listener. It may be called once.
func (c *Client) Run(ctx context.Context, rec source.Recorder) error {
	defer c.http.CloseIdleConnections()
	for {
		err := c.connect(ctx, rec)
		c.connected.Store(false)
		c.tried.Store(true)
		if ctx.Err() != nil {
			return nil
		}
		if text := fmt.Sprint(err); text != c.logged {
			c.logged = text
			c.Logger.Warn("not connected; it is tried again", "origin", c.origin, "error", err)
		}
		c.Attempted(c.origin, err)
		pause := c.backoff.Next()
		if busy := (*source.Answered)(nil); errors.As(err, &busy) {
			pause = max(pause, busy.After)
		}
		if !retry.Wait(ctx, pause) {
			return nil
		}
	}
}

// connect makes one connection and records it to its end.
func (c *Client) connect(ctx context.Context, rec source.Recorder) error {
	c.connected.Store(true)
	meter := timing.Start(time.Now().UnixNano())
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	c.Attempted(c.origin, nil)
	meter.Head(time.Now().UnixNano())
	recording, err := rec.Begin(ctx, c.Format, source.ID{Key: c.key(), Origin: c.origin, Anchor: time.Now().UnixNano()})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	s := state{Subprotocol: conn.Subprotocol(), ResponseInfo: source.ResponseInfo{Method: http.MethodGet, Status: http.StatusSwitchingProtocols}}
	if s.Seen, err = c.resume.seen(recording.State()); err != nil {
		c.Logger.Warn("the state of a stream is not readable; it is not resumed", "origin", c.origin, "error", err)
	}
	err = c.receive(ctx, conn, recording, meter, &s)
	s.Timing = new(meter.Pace())
	err = errors.Join(err, recording.Mark(s.marshal()))
	if c.Resume == "" {
		err = errors.Join(err, recording.Close())
	}
	return err
}

// key names a stream that is resumed, in this process and the next.
func (c *Client) key() string {
	if c.Resume == "" {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", c.URL, c.Send, c.Resume)
	return "ws-" + hex.EncodeToString(h.Sum(nil)[:16])
}

func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, c.URL, &websocket.DialOptions{
		HTTPClient: c.http, HTTPHeader: c.header, Host: c.header.Get("Host"), Subprotocols: c.Subprotocols,
	})
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the URL, which may hold secrets
	}
	switch {
	case err != nil && res != nil && res.StatusCode != http.StatusSwitchingProtocols:
		return nil, source.NewAnswered(res, "the server answered "+res.Status+" instead of a WebSocket")
	case err != nil:
		return nil, err
	}
	conn.SetReadLimit(-1) // message enforces the limit
	return conn, nil
}

// receive sends the configured messages and records each message of the server until the connection ends.
func (c *Client) receive(ctx context.Context, conn *websocket.Conn, recording source.Recording, meter *timing.Meter, s *state) error {
	send := c.Send
	again, resumes := c.resume.message(s.Seen)
	if resumes {
		send = append(send[:len(send):len(send)], again)
	}
	for _, text := range send {
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	alive, cancel := context.WithCancelCause(ctx)
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		c.ping(alive, conn, cancel)
	}()
	defer func() { cancel(nil); <-pinged }()
	var data []byte
	for {
		f, err := c.message(alive, conn, data[:0])
		if f != nil && f.Reason == source.ReasonBroken && len(s.Seen) > 0 {
			f = nil // the server sends it again
		}
		if f != nil {
			f.At = time.Now().UnixNano()
			meter.Chunk(f.At, len(f.Data)+int(f.Dropped), 1)
			c.recording.Store(true)
			e := recording.Record(ctx, f)
			c.heard.Store(time.Now().UnixNano())
			c.recording.Store(false)
			if e != nil {
				recording.Gap(source.ReasonRefused, 1, int64(len(f.Data))+f.Dropped)
				return fmt.Errorf("record: %w", e)
			}
			if f.Kind == frame.Text && f.Reason == "" && c.resume.note(s.Seen, f.Data) {
				if e := recording.Mark(s.marshal()); e != nil {
					return fmt.Errorf("mark: %w", e)
				}
			}
			c.backoff.Reset()
			c.logged = ""
			if data = f.Data; cap(data) > maxReused {
				data = nil
			}
		}
		if err == nil {
			continue
		}
		if cause := context.Cause(alive); cause != nil {
			return cause
		}
		if status := websocket.CloseStatus(err); status >= 0 {
			if c.Resume != "" {
				return fmt.Errorf("the server closed the connection: %w", err) // the stream continues
			}
			if e := recording.Record(ctx, &frame.Frame{Kind: frame.Close, At: time.Now().UnixNano()}); e != nil {
				return fmt.Errorf("record: %w", e)
			}
			return fmt.Errorf("the server closed the connection: %w", err)
		}
		return err
	}
}

// maxReused is the largest buffer that is reused for the next message.
const maxReused = 256 << 10

// message reads one message into buf. With an error it returns the beginning of a
// message, or nil.
func (c *Client) message(ctx context.Context, conn *websocket.Conn, buf []byte) (*frame.Frame, error) {
	kind, r, err := conn.Reader(ctx)
	if err != nil {
		return nil, err
	}
	f := &frame.Frame{Kind: frame.Binary}
	if kind == websocket.MessageText {
		f.Kind = frame.Text
	}
	f.Data, err = appendAll(buf, io.LimitReader(r, int64(c.MaxMessage)))
	if err == nil {
		if f.Dropped, err = io.Copy(io.Discard, r); f.Dropped > 0 {
			f.Reason = msg.ReasonTooLong
		}
	}
	if err == nil {
		return f, nil
	}
	if len(f.Data) == 0 {
		return nil, err
	}
	f.Reason = source.ReasonBroken
	return f, err
}

// appendAll appends r to its end.
func appendAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF { // not errors.Is: the error of a broken connection wraps io.EOF
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// ping pings the server every PingInterval, and calls gone when it is silent. The answer may be behind a long message, or not be
// read while the recorder has no room.
func (c *Client) ping(ctx context.Context, conn *websocket.Conn, gone context.CancelCauseFunc) {
	for retry.Wait(ctx, c.PingInterval) {
		asked := time.Now().UnixNano()
		answer, cancel := context.WithTimeout(ctx, c.PingTimeout)
		err := conn.Ping(answer)
		cancel()
		if err != nil && ctx.Err() == nil && !c.recording.Load() && c.heard.Load() < asked {
			gone(fmt.Errorf("the server does not answer a ping within %s", c.PingTimeout))
			return
		}
	}
}
