package sse

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Config is a source of type sse: a client of a server-sent event stream.
type Config struct {
	// URL of the stream, http:// or https://.
	URL string `yaml:"url"`
	// Method of the request.
	Method string `yaml:"method"`
	// Headers of the request. The values are never printed.
	Headers spec.Headers `yaml:"headers"`
	// Body of the request.
	Body string `yaml:"body"`
	// How to continue after a broken connection: last_event_id (the SSE standard), auto (as
	// the decoder describes its format), or empty: each connection is its own stream.
	Resume string `yaml:"resume"`
	// The request that continues the stream, for a server whose format does not describe
	// it.
	ResumeRequest *source.Resume `yaml:"resume_request"`
}

// How a stream is resumed.
const (
	None        = ""
	LastEventID = "last_event_id"
	Auto        = "auto"
)

// Type is the type sse.
func Type() spec.Type {
	return spec.Type{
		Name: "sse",
		New:  func() spec.Section { return &Config{Method: http.MethodGet} },
		Example: spec.Example{
			Name: "letta", Format: "letta",
			Off: func(s spec.Section) { s.(*Config).URL = "http://127.0.0.1:8283/v1/runs/r1/stream" },
			On: func(s spec.Section) {
				c := s.(*Config)
				c.Headers = spec.ExampleHeaders()
				c.ResumeRequest = &source.Resume{
					Run: "run_id", Nested: "parent_run_id", Session: "session_id", Number: "seq_id",
					Path: "/v1/runs/{{run}}/stream", Method: http.MethodGet, Parameters: map[string]string{"starting_after": "{{number}}"},
					In: source.InQuery, End: source.EndEmpty,
				}
			},
		},
	}
}

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	check.Request(c.URL, c.Method, c.Headers, c.Body)
	check.OneOf("resume", c.Resume, None, LastEventID, Auto)
	if c.ResumeRequest != nil {
		if c.Resume != None {
			check.Report("resume", "excludes resume_request", "leave one of them out")
		}
		c.ResumeRequest.Validate(check.In("resume_request"))
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
	MaxEvent    int           // bytes of an event that are kept; 0: 64 MiB
	IdleTimeout time.Duration // 0: 5 min
	RetryMin    time.Duration // 0: 1 s
	RetryMax    time.Duration // 0: 30 s
	_           struct{}
}

func (s *Settings) setDefaults() {
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if s.MaxEvent == 0 {
		s.MaxEvent = 64 << 20
	}
	if s.IdleTimeout == 0 {
		s.IdleTimeout = 5 * time.Minute
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
	err := spec.Validate(&settings.Config)
	if settings.MaxEvent < 0 || settings.IdleTimeout < 0 || settings.RetryMin < 0 || settings.RetryMax < settings.RetryMin {
		err = errors.Join(err, errors.New("a limit is negative, or retry_max below retry_min"))
	}
	if err != nil {
		return nil, fmt.Errorf("sse %s: %w", settings.Name, err)
	}
	resume := settings.ResumeRequest
	if settings.Resume == Auto {
		if resume, err = source.ParseResume(settings.Formats[settings.Format].Resume); err != nil {
			return nil, fmt.Errorf("sse %s: resume: auto: %w", settings.Name, err)
		}
	}
	u, err := url.Parse(settings.URL)
	if err != nil {
		return nil, fmt.Errorf("sse %s: url: %w", settings.Name, err)
	}
	return &Client{
		Settings: settings, url: u, resume: resume, origin: source.Address(u),
		backoff: retry.Backoff{Min: settings.RetryMin, Max: settings.RetryMax},
		http: &http.Client{CheckRedirect: source.Redirect, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		}},
	}, nil
}

var _ source.Listener = (*Client)(nil)
