package tap

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Config is a source of type tap: a reverse proxy in front of an agent server.
type Config struct {
	// Address that the clients connect to, instead of the agent server's.
	Listen string `yaml:"listen"`
	// The agent server, http:// or https://.
	Upstream string `yaml:"upstream"`
	// TLS in front, towards the clients.
	TLS *spec.ServerTLS `yaml:"tls"`
	// TLS behind, towards an https:// upstream.
	UpstreamTLS *spec.ClientTLS `yaml:"upstream_tls"`
	// Which responses to record, and in which format. The first match wins; a response
	// that matches none is passed through unrecorded. Without routes everything has the
	// source's format.
	Routes []Route `yaml:"routes"`
	// Bodies are recorded up to this size. The traffic itself has no limit.
	MaxBody spec.Size `yaml:"max_body"`
	// Listens beyond loopback without tls.client_ca_file, where only agents reach the address.
	AllowInsecure bool `yaml:"allow_insecure"`
}

// Route picks traffic of a tap. An empty criterion matches everything.
type Route struct {
	// Glob of the request's path; * stays within a segment, ** does not.
	Path string `yaml:"path"`
	// Host of the request, without the port.
	Host string `yaml:"host"`
	// Media type of the response, without parameters.
	ContentType string `yaml:"content_type"`
	// Format of the matching responses.
	Format string `yaml:"format"`
}

// Type is the type tap.
func Type() spec.Type {
	return spec.Type{
		Name: "tap",
		New:  func() spec.Section { return &Config{MaxBody: defaultMaxBody} },
		Example: spec.Example{
			Name: "agno", Format: "agno",
			Off: func(s spec.Section) {
				c := s.(*Config)
				c.Listen, c.Upstream = "127.0.0.1:7801", "http://127.0.0.1:7777"
			},
			On: func(s spec.Section) {
				c := s.(*Config)
				c.TLS = &spec.ServerTLS{CertFile: "tls/tap.crt", KeyFile: "tls/tap.key", ClientCAFile: "tls/clients.crt"}
				c.UpstreamTLS = &spec.ClientTLS{CAFile: "tls/agents.crt", CertFile: "tls/earshot.crt", KeyFile: "tls/earshot.key", ServerName: "agents.internal"}
				c.Routes = []Route{{Path: "/v1/messages", Host: "agents.internal", ContentType: "text/event-stream", Format: "anthropic-sse"}}
			},
		},
	}
}

const defaultMaxBody = 64 << 20

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	if check.Required("listen", c.Listen) && check.Address("listen", c.Listen) {
		proves := c.TLS != nil && c.TLS.ClientCAFile != ""
		check.Exposed("listen", c.Listen, proves, c.AllowInsecure, "tls with client_ca_file")
	}
	check.URL("upstream", c.Upstream, "http", "https")
	c.TLS.Validate(check.In("tls"))
	c.UpstreamTLS.Validate(check.In("upstream_tls"), "upstream", c.Upstream)
	for i := range c.Routes {
		c.Routes[i].validate(check.In(spec.Index("routes", i)))
	}
	check.PositiveSize("max_body", c.MaxBody)
}

func (r *Route) validate(check *spec.Check) {
	check.Format("format", r.Format, "")
	if r.Path != "" && !strings.HasPrefix(r.Path, "/") && !strings.HasPrefix(r.Path, "**") {
		check.Report("path", "a path begins with / or **", "")
	} else if !doublestar.ValidatePattern(r.Path) {
		check.Report("path", "not a glob: "+check.Quote("path", r.Path), "")
	}
	if strings.ContainsAny(r.Host, ":/") {
		check.Report("host", "a host without scheme and port, got "+check.Quote("host", r.Host), "")
	}
	if kind, sub, ok := strings.Cut(r.ContentType, "/"); r.ContentType != "" && (!ok || !spec.IsToken(kind) || !spec.IsToken(sub)) {
		check.Report("content_type", "a media type like text/event-stream, got "+check.Quote("content_type", r.ContentType), "")
	}
}

// RoutedFormats implements spec.Routing.
func (c *Config) RoutedFormats(string) []string {
	out := make([]string, len(c.Routes))
	for i := range c.Routes {
		out[i] = c.Routes[i].Format
	}
	return out
}

// ListenAddresses implements spec.Listening.
func (c *Config) ListenAddresses() map[string]string { return map[string]string{"listen": c.Listen} }

// Server implements source.Remote.
func (c *Config) Server() string { return source.ServerOf(c.Upstream) }

// NewListener implements source.Live.
func (c *Config) NewListener(env source.Env) (source.Listener, error) {
	front, err := c.TLS.Load()
	if err != nil {
		return nil, err
	}
	behind, err := c.UpstreamTLS.Load()
	if err != nil {
		return nil, err
	}
	return New(Settings{Config: *c, Env: env, ServerTLS: front, ClientTLS: behind})
}

var _ source.Live = (*Config)(nil)

// Settings are the configuration of a tap with its certificates, and limits that no file
// can change.
type Settings struct {
	Config
	source.Env
	ServerTLS *tls.Config // in front; nil: none
	ClientTLS *tls.Config // behind; nil: the system's authorities

	MaxQueue  int           // bytes of one stream that wait to be recorded; 0: 8 MiB
	MaxMemory int64         // bytes of all streams that wait or are in no frame yet; 0: 256 MiB
	Grace     time.Duration // of requests in progress when the tap stops; 0: 2 s
	// HeadPatience is how long the head of a response is awaited before its request is recorded without it; 0: 2 s.
	HeadPatience time.Duration
	_            struct{}
}

// How long the request of a response may take to arrive once the response has
// begun, before it is recorded without its end.
const requestTimeout = time.Second

func (s *Settings) setDefaults() {
	if s.MaxBody == 0 {
		s.MaxBody = defaultMaxBody
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
	if s.HeadPatience == 0 {
		s.HeadPatience = 2 * time.Second
	}
	if s.Connections == nil {
		s.Connections = source.NewConnections()
	}
	s.Logger = s.Log()
}

// New returns a tap, or an error that names the bad setting.
func New(settings Settings) (*Tap, error) {
	settings.setDefaults()
	err := spec.Validate(&settings.Config)
	upstream, parseErr := url.Parse(settings.Upstream)
	switch {
	case parseErr != nil:
		err = errors.Join(err, errors.New("upstream: not a URL"))
	case upstream.RawQuery != "" || upstream.Fragment != "":
		err = errors.Join(err, errors.New("upstream: a query or fragment belongs to requests"))
	case settings.Format == "" && len(settings.Routes) == 0:
		err = errors.Join(err, errors.New("neither a format nor routes"))
	case settings.MaxQueue < 0 || settings.MaxMemory < 0:
		err = errors.Join(err, errors.New("a limit is negative"))
	}
	if err != nil {
		return nil, fmt.Errorf("tap %s: %w", settings.Name, err)
	}
	t := &Tap{Settings: settings, upstream: upstream, ready: make(chan struct{}), resume: make(map[string]*source.Resume)}
	for name, f := range settings.Formats {
		if len(f.Resume) == 0 {
			continue
		}
		// The traffic does not depend on it.
		if t.resume[name], err = source.ParseResume(f.Resume); err != nil {
			delete(t.resume, name)
			t.Logger.Warn("resumed runs of the format are recorded in pieces", "format", name, "error", err)
		}
	}
	t.memory.free.Store(settings.MaxMemory)
	t.proxy = t.newProxy()
	return t, nil
}

var _ source.Listener = (*Tap)(nil)
