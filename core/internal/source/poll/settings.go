package poll

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

// Pages says how an API divides its answer.
type Pages string

// The ways.
const (
	None  Pages = ""
	AGNO  Pages = "agno"
	Letta Pages = "letta"
)

// Settings say what to ask.
type Settings struct {
	Name     string // of the source, for the log
	Format   string
	URL      string
	Method   string // empty: GET
	Headers  map[string]string
	Body     string
	Interval time.Duration // 0: 30 s
	Pages    Pages

	MaxBody int           // bytes of an answer that are kept; 0: 64 MiB
	Timeout time.Duration // of a request; 0: 1 min

	Logger *slog.Logger // nil: none
	_      struct{}
}

func (s *Settings) setDefaults() {
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if s.Interval == 0 {
		s.Interval = 30 * time.Second
	}
	if s.MaxBody == 0 {
		s.MaxBody = 64 << 20
	}
	if s.Timeout == 0 {
		s.Timeout = time.Minute
	}
	s.Logger = source.Logger(s.Logger, s.Name)
}

// maxPause is the longest pause after failures, unless the interval is longer.
const maxPause = 5 * time.Minute

// New returns a poller, or an error that names the bad setting.
func New(settings Settings) (*Poller, error) {
	settings.setDefaults()
	fail := func(err error) (*Poller, error) { return nil, fmt.Errorf("poll %s: %w", settings.Name, err) }
	u, err := source.ParseURL(settings.URL, "http")
	switch {
	case err != nil:
		return fail(err)
	case settings.Interval < 0 || settings.Timeout < 0 || settings.MaxBody < 0:
		return fail(errors.New("a limit is negative"))
	case strings.ContainsAny(settings.Method, " \t\r\n"):
		return fail(fmt.Errorf("method %q", settings.Method))
	}
	switch settings.Pages {
	case None, AGNO, Letta:
	default:
		return fail(fmt.Errorf("pages %q: neither agno nor letta", settings.Pages))
	}
	return &Poller{
		Settings: settings, url: u,
		backoff: retry.Backoff{Min: settings.Interval, Max: max(maxPause, settings.Interval)},
		http:    &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second}},
	}, nil
}

var _ source.Listener = (*Poller)(nil)
