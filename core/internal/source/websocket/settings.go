package websocket

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

// Settings say what to listen to.
type Settings struct {
	Name         string // of the source, for the log
	Format       string
	URL          string // ws:// or wss://
	Headers      map[string]string
	Subprotocols []string // to offer, the preferred one first
	Send         []string // text messages to send after connecting
	// Resume is a text message to send after those once something was heard: where to
	// go on. {{field}} in it stands for the JSON value, quotes included, that this field
	// of a message's object had last. All connections are then one stream, which goes on
	// after a restart; what was seen is kept unredacted. Empty: each connection is a
	// stream of its own.
	Resume string

	MaxMessage   int           // bytes of a message that are kept; 0: 64 MiB
	PingInterval time.Duration // 0: 20 s
	PingTimeout  time.Duration // 0: 10 s
	RetryMin     time.Duration // 0: 1 s
	RetryMax     time.Duration // 0: 30 s

	Logger *slog.Logger // nil: none
	_      struct{}
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
	s.Logger = source.Logger(s.Logger, s.Name)
}

// New returns a client, or an error that names the bad setting.
func New(settings Settings) (*Client, error) {
	settings.setDefaults()
	fail := func(err error) (*Client, error) { return nil, fmt.Errorf("websocket %s: %w", settings.Name, err) }
	u, err := source.ParseURL(settings.URL, "ws")
	switch {
	case err != nil:
		return fail(err)
	case settings.MaxMessage < 0 || settings.PingInterval < 0 || settings.PingTimeout < 0 || settings.RetryMin < 0 || settings.RetryMax < settings.RetryMin:
		return fail(errors.New("a limit is negative, or retry_max below retry_min"))
	}
	for _, p := range settings.Subprotocols {
		if p == "" || strings.ContainsAny(p, " ,;\t\r\n") {
			return fail(fmt.Errorf("subprotocol %q", p))
		}
	}
	resume, err := newResumption(settings.Resume)
	if err != nil {
		return fail(err)
	}
	header := make(http.Header, len(settings.Headers))
	for k, v := range settings.Headers {
		header.Set(k, v)
	}
	return &Client{
		Settings: settings, header: header, resume: resume, origin: source.Address(u),
		backoff: retry.Backoff{Min: settings.RetryMin, Max: settings.RetryMax},
		http:    &http.Client{Transport: newTransport()},
	}, nil
}

var _ source.Listener = (*Client)(nil)
