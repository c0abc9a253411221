package sse

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Resume says how a stream is taken up again.
type Resume string

// The ways.
const (
	None        Resume = ""
	LastEventID Resume = "last_event_id"
	AGNO        Resume = "agno"
	Letta       Resume = "letta"
)

// Settings say what to listen to.
type Settings struct {
	Name    string // of the source, for the log
	Format  string
	URL     string
	Method  string // empty: GET
	Headers map[string]string
	Body    string
	Resume  Resume

	MaxEvent    int           // bytes of an event that are kept; 0: 64 MiB
	IdleTimeout time.Duration // 0: 5 min
	RetryMin    time.Duration // 0: 1 s
	RetryMax    time.Duration // 0: 30 s

	Logger *slog.Logger // nil: none
	_      struct{}
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
	s.Logger = source.Logger(s.Logger, s.Name)
}

// New returns a client, or an error that names the bad setting.
func New(settings Settings) (*Client, error) {
	settings.setDefaults()
	fail := func(err error) (*Client, error) { return nil, fmt.Errorf("sse %s: %w", settings.Name, err) }
	u, err := source.ParseURL(settings.URL, "http")
	switch {
	case err != nil:
		return fail(err)
	case settings.MaxEvent < 0 || settings.IdleTimeout < 0 || settings.RetryMin < 0 || settings.RetryMax < settings.RetryMin:
		return fail(errors.New("a limit is negative, or retry_max below retry_min"))
	}
	switch settings.Resume {
	case None, LastEventID, AGNO, Letta:
	default:
		return fail(fmt.Errorf("resume %q: not one of last_event_id agno letta", settings.Resume))
	}
	if strings.ContainsAny(settings.Method, " \t\r\n") {
		return fail(fmt.Errorf("method %q", settings.Method))
	}
	return &Client{
		Settings: settings, url: u, origin: source.Address(u),
		backoff: retry.Backoff{Min: settings.RetryMin, Max: settings.RetryMax},
		http: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		}},
	}, nil
}

var _ source.Listener = (*Client)(nil)
