package poll

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

// Config is a source of type poll: it requests a reload API again and again.
type Config struct {
	// URL to request, http:// or https://.
	URL string `yaml:"url"`
	// Method of the request.
	Method string `yaml:"method"`
	// Headers of the request. The values are never printed.
	Headers spec.Headers `yaml:"headers"`
	// Body of the request.
	Body string `yaml:"body"`
	// Pause between two requests.
	Interval spec.Duration `yaml:"interval"`
	// How to turn pages: auto (as the decoder describes its format), or empty: one answer
	// has everything.
	Pages string `yaml:"pages"`
	// The request of a page, for a server whose format does not describe it.
	PageRequest *Pages `yaml:"page_request"`
}

// How an API divides its answer.
const (
	None = ""
	Auto = "auto"
)

// Type is the type poll.
func Type() spec.Type {
	return spec.Type{
		Name: "poll",
		New: func() spec.Section {
			return &Config{Method: http.MethodGet, Interval: spec.Duration(defaultInterval)}
		},
		Example: spec.Example{
			Name: "backfill", Format: "agno",
			Off: func(s spec.Section) { s.(*Config).URL = "http://127.0.0.1:7777/sessions/s1/runs" },
			On: func(s spec.Section) {
				c := s.(*Config)
				c.Headers = spec.ExampleHeaders()
				c.PageRequest = &Pages{
					Items: "data", Number: "page", Total: "meta.total_pages", Size: 100,
					Each: &Each{List: "/sessions", ID: "session_id", Path: "/{{id}}/runs", Without: []string{"page", "limit"}},
				}
			},
		},
	}
}

const defaultInterval = 30 * time.Second

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	check.Request(c.URL, c.Method, c.Headers, c.Body)
	check.Positive("interval", c.Interval)
	check.OneOf("pages", c.Pages, None, Auto)
	if c.PageRequest != nil {
		if c.Pages != None {
			check.Report("pages", "excludes page_request", "leave one of them out")
		}
		c.PageRequest.Validate(check.In("page_request"))
	}
}

// Server implements source.Remote.
func (c *Config) Server() string { return source.ServerOf(c.URL) }

// NewListener implements source.Live.
func (c *Config) NewListener(env source.Env) (source.Listener, error) {
	return New(Settings{Config: *c, Env: env})
}

var _ source.Live = (*Config)(nil)

// Settings are the configuration of a poller, and limits that no file can change.
type Settings struct {
	Config
	source.Env
	MaxBody int           // bytes of an answer that are kept; 0: 64 MiB
	Timeout time.Duration // of a request; 0: 1 min
	_       struct{}
}

func (s *Settings) setDefaults() {
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if s.Interval == 0 {
		s.Interval = spec.Duration(defaultInterval)
	}
	if s.MaxBody == 0 {
		s.MaxBody = 64 << 20
	}
	if s.Timeout == 0 {
		s.Timeout = time.Minute
	}
	s.Logger = s.Log()
}

// maxPause is the longest pause after failures, unless the interval is longer.
const maxPause = 5 * time.Minute

// New returns a poller, or an error that names the bad setting.
func New(settings Settings) (*Poller, error) {
	settings.setDefaults()
	err := spec.Validate(&settings.Config)
	if settings.Timeout < 0 || settings.MaxBody < 0 {
		err = errors.Join(err, errors.New("a limit is negative"))
	}
	if err != nil {
		return nil, fmt.Errorf("poll %s: %w", settings.Name, err)
	}
	pages := settings.PageRequest
	if settings.Pages == Auto {
		pages = new(Pages)
		if err := source.ParsePreset(settings.Formats[settings.Format].Pages, pages); err != nil {
			return nil, fmt.Errorf("poll %s: pages: auto: %w", settings.Name, err)
		}
	}
	u, err := url.Parse(settings.URL)
	if err != nil {
		return nil, fmt.Errorf("poll %s: url: %w", settings.Name, err)
	}
	interval := time.Duration(settings.Interval)
	return &Poller{
		Settings: settings, url: u, interval: interval, pages: pages, failing: make(map[uint64]*failing),
		backoff: retry.Backoff{Min: interval, Max: max(maxPause, interval)},
		http:    &http.Client{CheckRedirect: source.Redirect, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second}},
	}, nil
}

var _ source.Listener = (*Poller)(nil)
