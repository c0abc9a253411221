package push

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Settings say where to listen.
type Settings struct {
	Name   string // of the source, for the log
	Format string
	Listen string
	Path   string      // empty: /
	Token  string      // that every request must carry; empty: none
	TLS    *tls.Config // nil: none

	MaxBody   int   // bytes; 0: 64 MiB
	MaxMemory int64 // bytes of bodies that are being read; 0: 256 MiB

	// BodyTimeout is how long a JSON or NDJSON body may take; 0: 1 min. Events may
	// take as long as they like, with pauses of at most IdleTimeout; 0: 5 min.
	BodyTimeout time.Duration
	IdleTimeout time.Duration
	// RecordTimeout is how long a request waits for room in the journal; 0: 10 s.
	RecordTimeout time.Duration
	Grace         time.Duration // for requests in progress when it is to end; 0: 2 s

	Logger *slog.Logger // nil: none
	_      struct{}
}

func (s *Settings) setDefaults() {
	for _, d := range []struct {
		v  *time.Duration
		to time.Duration
	}{
		{&s.BodyTimeout, time.Minute}, {&s.IdleTimeout, 5 * time.Minute}, {&s.RecordTimeout, 10 * time.Second}, {&s.Grace, 2 * time.Second},
	} {
		if *d.v == 0 {
			*d.v = d.to
		}
	}
	if s.Path == "" {
		s.Path = "/"
	}
	if s.MaxBody == 0 {
		s.MaxBody = 64 << 20
	}
	if s.MaxMemory == 0 {
		s.MaxMemory = max(256<<20, int64(s.MaxBody))
	}
	s.Logger = source.Logger(s.Logger, s.Name)
}

// New returns a server, or an error that names the bad setting.
func New(settings Settings) (*Server, error) {
	settings.setDefaults()
	fail := func(err error) (*Server, error) { return nil, fmt.Errorf("push %s: %w", settings.Name, err) }
	switch {
	case settings.Listen == "":
		return fail(errors.New("listen: no address"))
	case !strings.HasPrefix(settings.Path, "/"):
		return fail(fmt.Errorf("path %q: it begins with /", settings.Path))
	case settings.MaxBody < 0 || settings.MaxMemory < 0:
		return fail(errors.New("a limit is negative"))
	}
	return &Server{
		Settings: settings, token: sha256.Sum256([]byte(settings.Token)),
		ready: make(chan struct{}), keys: newKeys(), streams: newStreams(),
	}, nil
}

var _ source.Listener = (*Server)(nil)
