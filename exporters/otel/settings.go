package otel

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/semconv"
)

// The protocols and compressions.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http"

	CompressionGzip = "gzip"
	CompressionNone = "none"
)

// Settings of an Exporter. Only the Endpoint is required.
type Settings struct {
	// Endpoint is the receiver's URL, http:// or https://. Over HTTP /v1/traces is
	// added to its path unless it is there.
	Endpoint string
	// Protocol is grpc or http; by default grpc when the port is 4317.
	Protocol string
	// Headers of every request. Their values are never printed.
	Headers map[string]string
	// TLS is used with https; the system's roots when nil.
	TLS         *tls.Config
	Compression string        // gzip, the default, or none
	Timeout     time.Duration // of a request; 10 s when zero
	// MaxBytes bounds a request before compression; 3 MiB when zero, because
	// receivers refuse 4 MiB.
	MaxBytes int
	// Content puts messages, arguments and results on the spans.
	Content bool
	// NoTraces and NoLogs leave out a signal; logs are only sent with Content.
	NoTraces, NoLogs bool
	// Resource attributes of every span; service.name replaces the source's.
	Resource map[string]string
	Profile  *semconv.Profile // the default one when nil
	Logger   *slog.Logger     // slog.Default when nil
	_        struct{}
}

// String is the settings without the headers' values.
func (s Settings) String() string {
	keys := make([]string, 0, len(s.Headers))
	for k := range s.Headers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return fmt.Sprintf("{Endpoint:%s Protocol:%s Headers:%v Compression:%s Timeout:%s MaxBytes:%d Content:%t Resource:%v}",
		redact(s.Endpoint), s.Protocol, keys, s.Compression, s.Timeout, s.MaxBytes, s.Content, s.Resource)
}

// GoString keeps the headers out of %#v.
func (s Settings) GoString() string { return "otel.Settings" + s.String() }

// LogValue keeps the headers out of logs.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }

func redact(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "[not a URL]"
	}
	return u.Redacted()
}

// check fills in the defaults and returns the endpoint.
func (s *Settings) check() (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s.Endpoint))
	switch {
	case err != nil:
		return nil, errors.New("endpoint: not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("endpoint: scheme %q: want http or https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("endpoint: no host")
	case u.User != nil:
		return nil, errors.New("endpoint: credentials in the URL: use a header")
	}
	switch s.Protocol {
	case "":
		s.Protocol = protocolOf(s.Endpoint)
	case ProtocolGRPC, ProtocolHTTP:
	default:
		return nil, fmt.Errorf("protocol %q: want grpc or http", s.Protocol)
	}
	switch s.Compression {
	case "":
		s.Compression = CompressionGzip
	case CompressionGzip, CompressionNone:
	default:
		return nil, fmt.Errorf("compression %q: want gzip or none", s.Compression)
	}
	if s.Timeout <= 0 {
		s.Timeout = 10 * time.Second
	}
	if s.MaxBytes <= 0 {
		s.MaxBytes = 3 << 20
	}
	if s.Profile == nil {
		if s.Profile, err = semconv.New(""); err != nil {
			return nil, err
		}
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	return u, nil
}
