package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// Config is a source of type otlp: it receives traces, logs and metrics of OpenTelemetry.
type Config struct {
	// OTLP over gRPC.
	GRPC GRPC `yaml:"grpc"`
	// OTLP over HTTP, in protobuf and JSON, at /v1/traces, /v1/logs and /v1/metrics.
	HTTP HTTP `yaml:"http"`
	// Which resources and scopes have which format; the first match wins. What matches none has
	// the source's format. Without that the agents whose telemetry is known have their own, and
	// all else is otel-genai.
	Routes []Route `yaml:"routes"`
	// Bearer token that every request must carry. Empty: none. Never printed.
	Token spec.Secret `yaml:"token"`
	// Larger requests are refused.
	MaxBody spec.Size `yaml:"max_body"`
	// TLS of both listeners.
	TLS *spec.ServerTLS `yaml:"tls"`
	// Listens beyond loopback without tls and token, where only agents reach the address.
	AllowInsecure bool `yaml:"allow_insecure"`

	known []Route // of a source without a format; the last one matches everything
}

// GRPC is the listener of OTLP over gRPC.
type GRPC struct {
	// Address to listen on. Empty turns it off.
	Listen string `yaml:"listen"`
}

// HTTP is the listener of OTLP over HTTP.
type HTTP struct {
	// Address to listen on. Empty turns it off.
	Listen string `yaml:"listen"`
}

// Type is the type otlp. known are the routes of a source that has no format; the last one
// matches everything.
func Type(known []Route) spec.Type {
	return spec.Type{
		Name: "otlp",
		New: func() spec.Section {
			return &Config{GRPC: GRPC{defaultGRPC}, HTTP: HTTP{defaultHTTP}, MaxBody: defaultMaxBody, known: known}
		},
		Example: spec.Example{
			Name: "otel",
			On: func(s spec.Section) {
				c := s.(*Config)
				c.Token = spec.NewSecret("${OTLP_TOKEN:-change-me}")
				c.TLS = &spec.ServerTLS{CertFile: "tls/otlp.crt", KeyFile: "tls/otlp.key"}
				c.Routes = []Route{{Service: "parcel-*", Scope: "parcel.agent", Format: "acme"}}
			},
		},
	}
}

const (
	defaultGRPC    = "127.0.0.1:4317"
	defaultHTTP    = "127.0.0.1:4318"
	defaultMaxBody = 16 << 20
)

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	for key, address := range c.ListenAddresses() {
		if check.Address(key, address) {
			check.Inbound(key, address, c.Token, c.TLS, c.AllowInsecure)
		}
	}
	if c.GRPC.Listen == "" && c.HTTP.Listen == "" {
		check.Report("http.listen", "neither grpc nor http has an address", "")
	}
	for i := range c.Routes {
		c.Routes[i].validate(check.In(spec.Index("routes", i)))
	}
	check.Token("token", c.Token)
	check.PositiveSize("max_body", c.MaxBody)
	c.TLS.Validate(check.In("tls"))
}

func (r *Route) validate(check *spec.Check) {
	check.Format("format", r.Format, "")
	for key, pattern := range map[string]string{"service": r.Service, "scope": r.Scope} {
		if _, err := path.Match(pattern, ""); err != nil {
			check.Report(key, "not a glob: "+check.Quote(key, pattern), "")
		}
	}
}

// RoutedFormats implements spec.Routing.
func (c *Config) RoutedFormats(own string) (out []string) {
	routes := c.Routes
	if own == "" {
		routes = append(routes[:len(routes):len(routes)], c.known...)
	}
	for i := range routes {
		out = append(out, routes[i].Format)
	}
	return out
}

// ListenAddresses implements spec.Listening.
func (c *Config) ListenAddresses() map[string]string {
	out := make(map[string]string, 2)
	for key, address := range map[string]string{"grpc.listen": c.GRPC.Listen, "http.listen": c.HTTP.Listen} {
		if address != "" {
			out[key] = address
		}
	}
	return out
}

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
	MaxMemory int64       // bytes of requests that are being read and of their frames; 0: 256 MiB

	BodyTimeout   time.Duration // how long a request may take to arrive; 0: 1 min
	RecordTimeout time.Duration // how long it waits for room in the journal; 0: 5 s
	Grace         time.Duration // for requests in progress when the server stops; 0: 2 s
	IdleClose     time.Duration // after which the stream of a resource that sends nothing is closed; 0: 10 min
	_             struct{}
}

func (s *Settings) setDefaults() {
	for _, d := range []struct {
		v  *time.Duration
		to time.Duration
	}{
		// Exporters wait 10 s for an answer.
		{&s.BodyTimeout, time.Minute}, {&s.RecordTimeout, 5 * time.Second}, {&s.Grace, 2 * time.Second},
		{&s.IdleClose, 10 * time.Minute},
	} {
		if *d.v == 0 {
			*d.v = d.to
		}
	}
	if s.MaxBody == 0 {
		s.MaxBody = defaultMaxBody
	}
	if s.MaxMemory == 0 {
		s.MaxMemory = max(256<<20, 4*int64(s.MaxBody))
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
	r := &router{routes: settings.Routes, format: settings.Format}
	if n := len(settings.known); r.format == "" && n > 0 {
		r.routes = append(r.routes[:len(r.routes):len(r.routes)], settings.known[:n-1]...)
		r.format = settings.known[n-1].Format
	}
	if r.format == "" {
		err = errors.Join(err, errors.New("no format"))
	}
	if err != nil {
		return nil, fmt.Errorf("otlp %s: %w", settings.Name, err)
	}
	s := &Server{
		Settings: settings, router: r,
		ready: make(chan struct{}), signals: make(map[string]*signal), memory: body.Memory{Most: settings.MaxMemory},
	}
	for _, g := range signals() {
		s.signals[g.path], s.signals[g.method] = g, g
	}
	return s, nil
}

var _ source.Listener = (*Server)(nil)
