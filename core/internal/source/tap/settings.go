package tap

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Settings say what to stand in front of.
type Settings struct {
	Name     string // of the source, for the log
	Listen   string // address for the clients
	Upstream string // the agent server: http:// or https://, with or without a path

	TLS         *tls.Config // in front; nil: none
	UpstreamTLS *tls.Config // behind; nil: the system's authorities

	// Format of what is recorded when there are no Routes.
	Format string
	// Routes pick what is recorded. The first match wins.
	Routes []Route

	MaxBody   int   // bytes of a body, event or message that are kept; 0: 64 MiB
	MaxQueue  int   // bytes of one stream that wait to be recorded; 0: 8 MiB
	MaxMemory int64 // bytes of all streams that wait or are in no frame yet; 0: 256 MiB

	// Grace is how long requests may go on when the tap is to end; 0: 2 s.
	Grace time.Duration
	// Loops is shared by the taps of a process; nil: this one is alone.
	Loops *Loops

	Logger *slog.Logger // nil: none
	_      struct{}
}

// Route picks traffic. An empty criterion matches everything.
type Route struct {
	Path        string // glob of the path
	Host        string // without port
	ContentType string // media type of the response
	Format      string
}

// How long the request of a response may take to arrive once the response has
// begun, before it is recorded without its end.
const requestPatience = time.Second

func (s *Settings) setDefaults() {
	if s.MaxBody == 0 {
		s.MaxBody = 64 << 20
	}
	if s.MaxQueue == 0 {
		s.MaxQueue = 8 << 20
	}
	if s.MaxMemory == 0 {
		s.MaxMemory = 256 << 20
	}
	if s.Grace == 0 {
		s.Grace = 2 * time.Second
	}
	if s.Loops == nil {
		s.Loops = NewLoops()
	}
	s.Logger = source.Logger(s.Logger, s.Name)
}

// New returns a tap, or an error that names the bad setting.
func New(settings Settings) (*Tap, error) {
	settings.setDefaults()
	fail := func(err error) (*Tap, error) { return nil, fmt.Errorf("tap %s: %w", settings.Name, err) }
	upstream, err := url.Parse(settings.Upstream)
	switch {
	case err != nil:
		return fail(fmt.Errorf("upstream: %w", err))
	case upstream.Scheme != "http" && upstream.Scheme != "https" || upstream.Host == "":
		return fail(fmt.Errorf("upstream %q: want http://host or https://host", settings.Upstream))
	case upstream.RawQuery != "" || upstream.Fragment != "":
		return fail(errors.New("upstream: a query or fragment belongs to requests"))
	case settings.Listen == "":
		return fail(errors.New("listen: no address"))
	case settings.Format == "" && len(settings.Routes) == 0:
		return fail(errors.New("neither a format nor routes"))
	case settings.MaxBody < 0 || settings.MaxQueue < 0 || settings.MaxMemory < 0:
		return fail(errors.New("a limit is negative"))
	}
	for _, r := range settings.Routes {
		if r.Format == "" {
			return fail(errors.New("a route without format"))
		}
		if !doublestar.ValidatePattern(r.Path) {
			return fail(fmt.Errorf("route path %q: not a glob", r.Path))
		}
	}
	t := &Tap{Settings: settings, upstream: upstream, ready: make(chan struct{})}
	t.memory.free.Store(settings.MaxMemory)
	t.proxy = t.newProxy()
	return t, nil
}

var _ source.Listener = (*Tap)(nil)
