package app

import (
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/poll"
	"github.com/earshot-dev/earshot/core/internal/source/push"
	"github.com/earshot-dev/earshot/core/internal/source/sse"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/source/websocket"
)

// listen makes the listener that the configuration describes. The formats of a
// tap's routes are formats of its source, beside c.Format.
func (r *runner) listen(c *config.Source) (source.Listener, error) {
	switch c.Type {
	case config.TypeTap:
		return r.tap(c)
	case config.TypeSSE:
		s := c.SSE
		return sse.New(sse.Settings{
			Name: c.Name, Format: c.Format, URL: s.URL, Method: s.Method, Headers: revealed(s.Headers), Body: s.Body,
			Resume: sse.Resume(s.Resume), Logger: r.Logger,
		})
	case config.TypeWebSocket:
		s := c.WebSocket
		return websocket.New(websocket.Settings{
			Name: c.Name, Format: c.Format, URL: s.URL, Headers: revealed(s.Headers), Subprotocols: s.Subprotocols, Send: s.Send, Resume: s.Resume, Logger: r.Logger,
		})
	case config.TypeHTTP:
		s := c.HTTP
		front, err := s.TLS.Load()
		if err != nil {
			return nil, err
		}
		return push.New(push.Settings{
			Name: c.Name, Format: c.Format, Listen: s.Listen, Path: s.Path, Token: s.Token.Reveal(), MaxBody: int(s.MaxBody), TLS: front, Logger: r.Logger,
		})
	case config.TypePoll:
		s := c.Poll
		return poll.New(poll.Settings{
			Name: c.Name, Format: c.Format, URL: s.URL, Method: s.Method, Headers: revealed(s.Headers), Body: s.Body,
			Interval: time.Duration(s.Interval), Pages: poll.Pages(s.Pages), Logger: r.Logger,
		})
	}
	return nil, fmt.Errorf("type %s: not a listener", c.Type)
}

func (r *runner) tap(c *config.Source) (source.Listener, error) {
	s := c.Tap
	front, err := s.TLS.Load()
	if err != nil {
		return nil, err
	}
	behind, err := s.UpstreamTLS.Load()
	if err != nil {
		return nil, err
	}
	if r.loops == nil {
		r.loops = tap.NewLoops()
	}
	routes := make([]tap.Route, len(s.Routes))
	for i, route := range s.Routes {
		routes[i] = tap.Route(route)
	}
	return tap.New(tap.Settings{
		Name: c.Name, Format: c.Format, Listen: s.Listen, Upstream: s.Upstream, TLS: front, UpstreamTLS: behind, Routes: routes,
		MaxBody: int(s.MaxBody), Loops: r.loops, Logger: r.Logger,
	})
}

// revealed are headers as they are sent.
func revealed(headers map[string]config.Secret) map[string]string {
	out := make(map[string]string, len(headers))
	for k, v := range headers {
		out[k] = v.Reveal()
	}
	return out
}
