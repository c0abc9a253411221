package otel

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/earshot-dev/earshot/core/semconv"
)

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		settings Settings
		protocol string
		err      string
	}{
		{Settings{Endpoint: "http://h:4318"}, ProtocolHTTP, ""},
		{Settings{Endpoint: "http://h:4317"}, ProtocolGRPC, ""},
		{Settings{Endpoint: "https://h:4317", Protocol: "http"}, ProtocolHTTP, ""},
		{Settings{Endpoint: "https://h/otlp", Protocol: "grpc"}, ProtocolGRPC, ""},
		{Settings{Endpoint: "h:4317"}, "", `scheme "h"`},
		{Settings{Endpoint: ""}, "", "scheme"},
		{Settings{Endpoint: "http://"}, "", "no host"},
		{Settings{Endpoint: "http://u:p@h"}, "", "use a header"},
		{Settings{Endpoint: "http://h:x y"}, "", "not a URL"},
		{Settings{Endpoint: "http://h", Protocol: "udp"}, "", `protocol "udp"`},
		{Settings{Endpoint: "http://h", Compression: "rar"}, "", `compression "rar"`},
	} {
		x, err := New(t.Context(), c.settings)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "otel: ") {
				t.Errorf("%s: error %v, want one with %q", c.settings.Endpoint, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.settings.Endpoint, err)
			continue
		}
		if s := x.settings; s.Protocol != c.protocol || s.Compression != CompressionGzip || s.Timeout != 10*time.Second || s.MaxBytes != 3<<20 || s.Profile.Latest() || s.Logger != slog.Default() {
			t.Errorf("%s: %+v, want %s", c.settings.Endpoint, s, c.protocol)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestSettingsStay: those that are set are as they were.
func TestSettingsStay(t *testing.T) {
	latest, err := semconv.New(semconv.GenAILatest)
	if err != nil {
		t.Fatal(err)
	}
	s := Settings{Endpoint: "http://h:4317", Protocol: ProtocolHTTP, Compression: CompressionNone, Timeout: 1, MaxBytes: 1, Profile: latest, Logger: slog.New(slog.DiscardHandler), Headers: map[string]string{"b": "secret", "a": "secret"}}
	was := s
	if _, err := s.check(); err != nil || !reflect.DeepEqual(s, was) {
		t.Errorf("%v, %v", s, err)
	}
	for endpoint, want := range map[string]string{"http://h": "http://h", "http://u:secret@h": "http://u:xxxxx@h", "http://h:x y": "[not a URL]"} {
		s.Endpoint = endpoint
		if got := s.String(); got != "{Endpoint:"+want+" Protocol:http Headers:[a b] Compression:none Timeout:1ns MaxBytes:1 Content:false Resource:map[]}" {
			t.Error(got)
		}
	}
}

func TestHeadersAreSentAndNotPrinted(t *testing.T) {
	const secret = "t0ken"
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{}
		var settings Settings
		x := exporter(t, r, protocol, func(s *Settings) {
			s.Headers = map[string]string{"x-api-key": secret}
			settings = *s
		})
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		if got := r.seen()[0].header.Get("X-Api-Key"); got != secret {
			t.Errorf("header %q", got)
		}
		says := fmt.Sprintf("%v %+v %#v %s", settings, settings, &settings, settings.LogValue())
		if strings.Contains(says, secret) || !strings.Contains(says, "x-api-key") {
			t.Error(says)
		}
	})
}

// TestTheEnvironmentIsTheAgents: variables that are meant for the agent's own
// SDK do not lead Earshot's spans elsewhere.
func TestTheEnvironmentIsTheAgents(t *testing.T) {
	for k, v := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/x",
		"OTEL_EXPORTER_OTLP_HEADERS": "x-agent=1", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
	} {
		t.Setenv(k, v)
	}
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{}
		x := exporter(t, r, protocol, func(s *Settings) { s.Compression = CompressionNone })
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		h := r.seen()[0].header
		if h.Get("X-Agent") != "" || h.Get("Content-Encoding") != "" {
			t.Errorf("headers %v", h)
		}
	})
}

func TestCompression(t *testing.T) {
	for compression, want := range map[string]string{"": "gzip", CompressionGzip: "gzip", CompressionNone: ""} {
		r := &receiver{logs: &logReceiver{}}
		x := exporter(t, r, ProtocolHTTP, func(s *Settings) { withContent(s); s.Compression = compression })
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		if got := r.seen()[0].header.Get("Content-Encoding"); got != want || r.logs.encoding != want || len(r.logs.records) != 1 {
			t.Errorf("%q: encoding %q, of logs %q", compression, got, r.logs.encoding)
		}
		for _, logs := range []bool{false, true} {
			r := &receiver{logs: &logReceiver{}}
			x := exporter(t, r, ProtocolGRPC, func(s *Settings) { s.Compression, s.Content, s.NoTraces = compression, logs, logs })
			if err := x.Export(t.Context(), turn()); err != nil {
				t.Fatal(err)
			}
			r.mu.Lock()
			if r.compression != want || (len(r.logs.records) == 1) != logs || (len(r.requests) == 0) != logs {
				t.Errorf("%q over gRPC, logs: %t: %q", compression, logs, r.compression)
			}
			r.mu.Unlock()
		}
	}
}

func TestPathAndTLS(t *testing.T) {
	r := &receiver{logs: &logReceiver{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /otlp/v1/traces", r.serve)
	mux.HandleFunc("POST /otlp/v1/logs", r.logs.serve)
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	trust := &tls.Config{RootCAs: roots}
	secure := credentials.NewServerTLSFromCert(&server.TLS.Certificates[0])
	for endpoint, ok := range map[string]bool{server.URL + "/otlp": true, server.URL + "/otlp/": true, server.URL + "/otlp/v1/traces": true, server.URL + "/otlp/v1/logs": true, server.URL: false, "grpc": true} {
		for _, trust := range []*tls.Config{trust, nil} {
			s := Settings{Endpoint: endpoint, TLS: trust, Content: true, Logger: slog.New(slog.DiscardHandler)}
			if endpoint == "grpc" {
				s.Endpoint, s.Protocol = strings.Replace(r.overGRPC(t, grpc.Creds(secure)), "http:", "https:", 1), ProtocolGRPC
			}
			x, err := New(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			spans, logs := len(r.seen()), len(r.logs.records)
			err = x.Export(t.Context(), turn())
			if want := ok && trust != nil; (err == nil) != want || want && (len(r.seen()) != spans+1 || len(r.logs.records) != logs+1) {
				t.Errorf("%s, trusted: %t: %v", endpoint, trust != nil, err)
			}
			if trust == nil && !strings.Contains(err.Error(), "certificate") {
				t.Errorf("a receiver that nobody vouches for: %v", err)
			}
			x.settings.NoTraces = true // the logs have a connection of their own
			if err := x.Export(t.Context(), turn()); (err == nil) != (ok && trust != nil) && endpoint != server.URL {
				t.Errorf("%s, trusted: %t: logs: %v", endpoint, trust != nil, err)
			}
			if err := x.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
