package otel

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		if x.settings.Protocol != c.protocol {
			t.Errorf("%s: %s, want %s", c.settings.Endpoint, x.settings.Protocol, c.protocol)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
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
		r := &receiver{}
		x := exporter(t, r, ProtocolHTTP, func(s *Settings) { s.Compression = compression })
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		if got := r.seen()[0].header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: encoding %q", compression, got)
		}
		r = &receiver{}
		x = exporter(t, r, ProtocolGRPC, func(s *Settings) { s.Compression = compression })
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		if r.compression != want {
			t.Errorf("%q over gRPC: %q", compression, r.compression)
		}
		r.mu.Unlock()
	}
}

func TestPathAndTLS(t *testing.T) {
	r := &receiver{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /otlp/v1/traces", r.serve)
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	trust := &tls.Config{RootCAs: roots}
	for endpoint, ok := range map[string]bool{"/otlp": true, "/otlp/": true, "/otlp/v1/traces": true, "": false} {
		x, err := New(t.Context(), Settings{Endpoint: server.URL + endpoint, TLS: trust})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Export(t.Context(), turn()); (err == nil) != ok {
			t.Errorf("%q: %v", endpoint, err)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	x, err := New(t.Context(), Settings{Endpoint: server.URL + "/otlp"})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Export(t.Context(), turn()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a receiver that nobody vouches for: %v", err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
