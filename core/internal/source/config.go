package source

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/url"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// Env holds the values that a source gets from the sidecar beside its own configuration.
type Env struct {
	Name        string // of the source
	Format      string
	Formats     map[string]Format // of the traffic
	Connections *Connections      // of the process; nil: none is shared
	Logger      *slog.Logger      // nil: none
	// Attempt is called with how each attempt to read a server ends: nil when it answers as it should. It may be nil.
	Attempt func(origin string, err error)
}

// Format is how the decoder of a format describes its traffic; see decoder.Info.
type Format struct {
	MetadataFiles         []string
	Documents             []string
	Resume, Pages, Tables json.RawMessage
}

// Attempted calls Attempt.
func (e *Env) Attempted(origin string, err error) {
	if e.Attempt != nil {
		e.Attempt(origin, err)
	}
}

// Log is the log of the source: with its name, or one that drops everything.
func (e *Env) Log() *slog.Logger { return Logger(e.Logger, e.Name) }

// Logger returns log with the source's name, or one that drops everything when log is nil.
func Logger(log *slog.Logger, name string) *slog.Logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return log.With("source", name)
}

// Live is the configuration of a source whose traffic passes once: it is recorded in the
// journal, and decoded from there.
type Live interface {
	spec.Section
	NewListener(Env) (Listener, error)
}

// Rereadable is the configuration of a source that is its own journal: it can be read
// again from any position.
type Rereadable interface {
	spec.Section
	NewSource(Env) (Files, error)
	// FromBeginning is the configuration that reads everything there is.
	FromBeginning() Rereadable
}

// Remote is the configuration of a source that reads the traffic of a server.
type Remote interface {
	// Server is host:port of the server.
	Server() string
}

// ServerOf is host:port of a URL; empty when it has no host.
func ServerOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" || u.Scheme == "wss" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
