package push

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// Config is a source of type http: it receives the requests of agents.
type Config struct {
	// Address to listen on.
	Listen string `yaml:"listen"`
	// Path that takes POST requests.
	Path string `yaml:"path"`
	// Bearer token that every request must carry. Empty: none. Never printed.
	Token spec.Secret `yaml:"token"`
	// Larger bodies are refused.
	MaxBody spec.Size `yaml:"max_body"`
	// TLS of the listener.
	TLS *spec.ServerTLS `yaml:"tls"`
	// Listens beyond loopback without tls and token, where only agents reach the address.
	AllowInsecure bool `yaml:"allow_insecure"`
}

// Type is the type http.
func Type() spec.Type {
	return spec.Type{
		Name: "http",
		New:  func() spec.Section { return &Config{Path: defaultPath, MaxBody: defaultMaxBody} },
		Example: spec.Example{
			Name: "push", Format: "grace",
			Off: func(s spec.Section) { s.(*Config).Listen = "127.0.0.1:7802" },
			On: func(s spec.Section) {
				c := s.(*Config)
				c.Token = spec.NewSecret("${PUSH_TOKEN:-change-me}")
				c.TLS = &spec.ServerTLS{CertFile: "tls/push.crt", KeyFile: "tls/push.key"}
			},
		},
	}
}

const (
	defaultPath    = "/"
	defaultMaxBody = 64 << 20
)

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	if check.Required("listen", c.Listen) && check.Address("listen", c.Listen) {
		check.Inbound("listen", c.Listen, c.Token, c.TLS, c.AllowInsecure)
	}
	if !strings.HasPrefix(c.Path, "/") {
		check.Report("path", "a path begins with /", "")
	}
	check.Token("token", c.Token)
	check.PositiveSize("max_body", c.MaxBody)
	c.TLS.Validate(check.In("tls"))
}

// ListenAddresses implements spec.Listening.
func (c *Config) ListenAddresses() map[string]string { return map[string]string{"listen": c.Listen} }

// NewListener implements source.Live.
func (c *Config) NewListener(env source.Env) (source.Listener, error) {
	front, err := c.TLS.Load()
	if err != nil {
		return nil, err
	}
	return New(Settings{Config: *c, Env: env, ServerTLS: front})
}

var _ source.Live = (*Config)(nil)

// Settings are the configuration of a server with its certificates, and limits that no
// file can change.
type Settings struct {
	Config
	source.Env
	ServerTLS *tls.Config // nil: none
	MaxMemory int64       // bytes of bodies that are being read; 0: 256 MiB

	// BodyTimeout is how long a JSON or NDJSON body may take; 0: 1 min. Events may
	// take as long as they like, with pauses of at most IdleTimeout; 0: 5 min.
	BodyTimeout time.Duration
	IdleTimeout time.Duration
	// RecordTimeout is how long a request waits for room in the journal; 0: 10 s.
	RecordTimeout time.Duration
	Grace         time.Duration // for requests in progress when the server stops; 0: 2 s
	_             struct{}
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
		s.Path = defaultPath
	}
	if s.MaxBody == 0 {
		s.MaxBody = defaultMaxBody
	}
	if s.MaxMemory == 0 {
		s.MaxMemory = max(256<<20, 2*int64(s.MaxBody)+1<<20)
	}
	s.Logger = s.Log()
}

// New returns a server, or an error that names the bad setting.
func New(settings Settings) (*Server, error) {
	settings.setDefaults()
	err := spec.Validate(&settings.Config)
	if settings.MaxMemory < 0 {
		err = errors.Join(err, errors.New("a limit is negative"))
	}
	if err != nil {
		return nil, fmt.Errorf("push %s: %w", settings.Name, err)
	}
	return &Server{
		Settings: settings,
		ready:    make(chan struct{}), keys: newKeys(), memory: body.Memory{Most: settings.MaxMemory},
	}, nil
}

var _ source.Listener = (*Server)(nil)
