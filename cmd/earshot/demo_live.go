package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/freeport"
	"github.com/earshot-dev/earshot/core/replay"
)

// liveAgent is an agent server of the demo: it plays a recording to each client; and the
// address of the tap in front of it.
type liveAgent struct {
	name, format, file string
	socket             bool
	upstream, tap      string
	server             *http.Server
}

// liveAgents starts the demo's agent servers: one answers a POST with an event
// stream, one speaks over a WebSocket.
func (d *demo) liveAgents() ([]*liveAgent, error) {
	agents := []*liveAgent{
		{name: "harbour", format: "agno", file: "agno.frames.jsonl"},
		{name: "tides", format: "llm-message", file: "llm-message.ws.jsonl", socket: true},
	}
	for _, a := range agents {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		a.upstream = l.Addr().String()
		if a.tap, err = freeport.Loopback(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		file := filepath.Join(d.dir, "traffic", "live", a.file)
		open := func() (replay.Frames, io.Closer, error) { return openRecording(file) }
		a.server = &http.Server{Handler: &replay.Server{Open: open}, ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = a.server.Serve(l) }()
	}
	return agents, nil
}

// talk is a client that talks to the agent through its tap, to the end of the
// answer.
func (d *demo) talk(ctx context.Context, a *liveAgent) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for { // until the tap listens
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.tap)
		if err == nil {
			_ = c.Close()
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("demo: %s: %w", a.name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	err := d.ask(ctx, a)
	if err != nil {
		err = fmt.Errorf("demo: %s: %w", a.name, err)
	}
	return err
}

func (d *demo) ask(ctx context.Context, a *liveAgent) error {
	if a.socket {
		c, _, err := websocket.Dial(ctx, "ws://"+a.tap+"/ws", nil)
		if err != nil {
			return err
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 20)
		for {
			if _, _, err := c.Read(ctx); websocket.CloseStatus(err) == websocket.StatusNormalClosure {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	prompt, err := d.prompt(a)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.tap+"/teams/harbour/runs", bytes.NewReader(prompt))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary=----lantern7d1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// prompt is the first frame of the recording: the client's request.
func (d *demo) prompt(a *liveAgent) ([]byte, error) {
	f, err := os.Open(filepath.Join(d.dir, "traffic", "live", a.file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := fixture.NewReader(f, fixture.Frames)
	if err != nil {
		return nil, err
	}
	b, err := in.Next()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(b.Frames[0].Data), nil
}
