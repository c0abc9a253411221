package source

import (
	"fmt"
	"log/slog"
	"net/url"
)

// Logger returns log with the source's name, or one that drops everything when log is nil.
func Logger(log *slog.Logger, name string) *slog.Logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return log.With("source", name)
}

// ParseURL parses the URL that a client is to connect to. Its scheme must be scheme,
// or that with an s.
func ParseURL(raw, scheme string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if u.Scheme != scheme && u.Scheme != scheme+"s" || u.Host == "" {
		return nil, fmt.Errorf("url: want %s://host/path or %[1]ss://host/path", scheme)
	}
	return u, nil
}
