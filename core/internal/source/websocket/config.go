package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Config is a source of type websocket: a client of one WebSocket.
type Config struct {
	// URL of the socket, ws:// or wss://.
	URL string `yaml:"url"`
	// Headers of the handshake. The values are never printed.
	Headers spec.Headers `yaml:"headers"`
	// Subprotocols to offer, the preferred one first.
	Subprotocols []string `yaml:"subprotocols"`
	// Text frames to send after connecting, such as a subscription.
	Send []string `yaml:"send"`
	// Text frame to send after those when the client reconnects: where to resume.
	// {{field}} is replaced by the JSON value, quotes included, that this field had in
	// the last message with it. All connections are then one stream, after a restart
	// too; the values are kept unredacted. Empty: each connection is its own stream.
	Resume string `yaml:"resume"`
}

// Type is the type websocket.
func Type() spec.Type {
	return spec.Type{
		Name: "websocket",
		New:  func() spec.Section { return &Config{} },
		Example: spec.Example{
			Name: "manus", Format: "llm-message",
			Off: func(s spec.Section) { s.(*Config).URL = "ws://127.0.0.1:8889" },
			On: func(s spec.Section) {
				c := s.(*Config)
				c.Headers = spec.ExampleHeaders()
				c.Subprotocols = []string{"agent.v1"}
				c.Send = []string{`{"type":"subscribe"}`}
				c.Resume = `{"action":"reconnect","run_id":{{run_id}},"last_event_index":{{event_index}}}`
			},
		},
	}
}

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	check.URL("url", c.URL, "ws", "wss")
	check.Headers("headers", c.Headers)
	for i, p := range c.Subprotocols {
		if at := spec.Index("subprotocols", i); !spec.IsToken(p) {
			check.Report(at, "not a subprotocol: "+check.Quote(at, p), "")
		}
	}
	if _, err := newResumption(c.Resume); err != nil {
		check.Report("resume", err.Error(), "")
	}
}

// Server implements source.Remote.
func (c *Config) Server() string { return source.ServerOf(c.URL) }

// NewListener implements source.Live.
func (c *Config) NewListener(env source.Env) (source.Listener, error) {
	return New(Settings{Config: *c, Env: env})
}

var _ source.Live = (*Config)(nil)

// Settings are the configuration of a client, and limits that no file can change.
type Settings struct {
	Config
	source.Env
	MaxMessage   int           // bytes of a message that are kept; 0: 64 MiB
	PingInterval time.Duration // 0: 20 s
	PingTimeout  time.Duration // 0: 10 s
	RetryMin     time.Duration // 0: 1 s
	RetryMax     time.Duration // 0: 30 s
	_            struct{}
}

func (s *Settings) setDefaults() {
	if s.MaxMessage == 0 {
		s.MaxMessage = 64 << 20
	}
	if s.PingInterval == 0 {
		s.PingInterval = 20 * time.Second
	}
	if s.PingTimeout == 0 {
		s.PingTimeout = 10 * time.Second
	}
	if s.RetryMin == 0 {
		s.RetryMin = time.Second
	}
	if s.RetryMax == 0 {
		s.RetryMax = 30 * time.Second
	}
	s.Logger = s.Log()
}

// New returns a client, or an error that names the bad setting.
func New(settings Settings) (*Client, error) {
	settings.setDefaults()
	if err := spec.Validate(&settings.Config); err != nil {
		return nil, fmt.Errorf("websocket %s: %w", settings.Name, err)
	}
	if settings.MaxMessage < 0 || settings.PingInterval < 0 || settings.PingTimeout < 0 || settings.RetryMin < 0 || settings.RetryMax < settings.RetryMin {
		return nil, fmt.Errorf("websocket %s: %w", settings.Name, errors.New("a limit is negative, or retry_max below retry_min"))
	}
	resume, err := newResumption(settings.Resume)
	if err != nil {
		return nil, fmt.Errorf("websocket %s: resume: %w", settings.Name, err)
	}
	header := make(http.Header, len(settings.Headers))
	for name, value := range settings.Headers {
		header.Set(name, value.Reveal())
	}
	c := &Client{
		Settings: settings, header: header, resume: resume, origin: source.Origin(settings.URL),
		backoff: retry.Backoff{Min: settings.RetryMin, Max: settings.RetryMax},
	}
	c.http = &http.Client{CheckRedirect: source.Redirect, Transport: newTransport(&c.heard)}
	return c, nil
}

var _ source.Listener = (*Client)(nil)
