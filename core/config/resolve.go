package config

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

const defaultDatabase = "earshot"

// resolve fills in what follows from something else in the file: paths relative to
// its folder, the home directory for ~, and defaults that depend on another key.
func (l *loader) resolve(c *Config) {
	l.path("data_dir", &c.DataDir)
	l.path("plugin_dir", &c.PluginDir)
	l.path("prices", &c.Prices)
	l.path("store.binary", &c.Store.Binary)
	for i := range c.Sources {
		l.resolveSource("sources["+strconv.Itoa(i)+"]", &c.Sources[i])
	}
	if c.Exporters.Semconv == "" {
		c.Exporters.Semconv = l.optedIn()
	}
	if o := c.Exporters.OTLP; o != nil {
		l.clientTLS("exporters.otlp.tls", o.TLS)
		if o.Protocol == "" {
			o.Protocol = ProtocolHTTP
			if u, err := url.Parse(o.Endpoint); err == nil && u.Port() == "4317" {
				o.Protocol = ProtocolGRPC
			}
		}
	}
	if ch := c.Exporters.ClickHouse; ch != nil && ch.Database == "" {
		ch.Database = defaultDatabase
		if u, err := parseDSN(ch.DSN); err == nil && databaseOf(u) != "" {
			ch.Database = databaseOf(u)
		}
	}
}

// optedIn is the version of the conventions that the environment chooses, by the
// variable that they have for it; empty when it chooses none.
func (l *loader) optedIn() string {
	if l.env != nil {
		list, _ := l.env("OTEL_SEMCONV_STABILITY_OPT_IN")
		for value := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(value) == "gen_ai_latest_experimental" {
				return SemconvLatest
			}
		}
	}
	return ""
}

func (l *loader) resolveSource(path string, s *Source) {
	switch {
	case s.File != nil:
		for i := range s.File.Paths {
			l.path(path+".paths["+strconv.Itoa(i)+"]", &s.File.Paths[i])
		}
		for i := range s.File.Exclude {
			l.path(path+".exclude["+strconv.Itoa(i)+"]", &s.File.Exclude[i])
		}
	case s.Tap != nil:
		l.serverTLS(path+".tls", s.Tap.TLS)
		l.clientTLS(path+".upstream_tls", s.Tap.UpstreamTLS)
	case s.HTTP != nil:
		l.serverTLS(path+".tls", s.HTTP.TLS)
	}
}

func (l *loader) serverTLS(path string, t *ServerTLS) {
	if t != nil {
		l.path(path+".cert_file", &t.CertFile)
		l.path(path+".key_file", &t.KeyFile)
		l.path(path+".client_ca_file", &t.ClientCAFile)
	}
}

func (l *loader) clientTLS(path string, t *ClientTLS) {
	if t != nil {
		l.path(path+".ca_file", &t.CAFile)
		l.path(path+".cert_file", &t.CertFile)
		l.path(path+".key_file", &t.KeyFile)
	}
}

// path puts the home directory in the place of a leading ~, and makes a relative path
// one below the folder of the file.
func (l *loader) path(key string, p *string) {
	rest, ok := strings.CutPrefix(*p, "~")
	switch {
	case *p == "" || filepath.IsAbs(*p):
		return
	case !ok || rest != "" && rest[0] != '/':
		if l.dir != "" {
			*p = filepath.Join(l.dir, *p)
		}
		return
	}
	dir := ""
	if l.env != nil {
		dir, _ = l.env("HOME")
	}
	if dir == "" {
		l.report(key, "~ has no meaning: HOME is not set", "")
		return
	}
	*p = dir + rest
}
