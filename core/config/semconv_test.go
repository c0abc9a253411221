package config

import (
	"strings"
	"testing"
)

// TestSemconv chooses the version of the conventions by key, else by the variable that
// the conventions have for it.
func TestSemconv(t *testing.T) {
	for _, c := range []struct{ key, optIn, want string }{
		{"", "", ""},
		{"", "gen_ai_latest_experimental", SemconvLatest},
		{"", "http, gen_ai_latest_experimental", SemconvLatest},
		{"", "http/dup", ""},
		{"exporters: {semconv: 1.41}\n", "gen_ai_latest_experimental", SemconvRelease},
		{"exporters: {semconv: \"1.41\"}\n", "", SemconvRelease},
		{"exporters: {semconv: genai-latest}\n", "", SemconvLatest},
	} {
		env := func(name string) (string, bool) {
			return c.optIn, name == "OTEL_SEMCONV_STABILITY_OPT_IN"
		}
		cfg, err := Parse("f", []byte("data_dir: d\nsources: [{name: a, type: file, format: legion, paths: [x]}]\n"+c.key), env)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Exporters.Semconv; got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.key, c.optIn, got, c.want)
		}
	}
	_, err := Parse("f", []byte("data_dir: d\nsources: [{name: a, type: file, format: legion, paths: [x]}]\nexporters: {semconv: genai-newest}\n"), nil)
	if err == nil || !strings.Contains(err.Error(), SemconvLatest) {
		t.Errorf("an unknown version: %v", err)
	}
}

func TestServerOfASource(t *testing.T) {
	for want, s := range map[string]Source{
		"127.0.0.1:7777":           {Tap: &TapSource{Upstream: "http://127.0.0.1:7777"}},
		"api.harbour.internal:443": {Tap: &TapSource{Upstream: "https://api.harbour.internal/base"}},
		"[::1]:80":                 {SSE: &SSESource{URL: "http://[::1]/stream"}},
		"harbour:443":              {WebSocket: &WebSocketSource{URL: "wss://harbour/ws"}},
		"harbour:8283":             {Poll: &PollSource{URL: "http://harbour:8283/v1"}},
		"":                         {File: &FileSource{}},
	} {
		if got := s.Server(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&Source{HTTP: &HTTPSource{Listen: "127.0.0.1:1"}}).Server(); got != "" {
		t.Errorf("a push is of %q", got)
	}
}
