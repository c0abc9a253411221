package config_test

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/config"
)

// TestSemconv chooses the version of the conventions by key, else by the variable that
// the conventions have for it.
func TestSemconv(t *testing.T) {
	for _, c := range []struct{ key, optIn, want string }{
		{"", "", ""},
		{"", "gen_ai_latest_experimental", config.SemconvLatest},
		{"", "http, gen_ai_latest_experimental", config.SemconvLatest},
		{"", "http/dup", ""},
		{"exporters: {semconv: 1.41}\n", "gen_ai_latest_experimental", config.SemconvRelease},
		{"exporters: {semconv: \"1.41\"}\n", "", config.SemconvRelease},
		{"exporters: {semconv: genai-latest}\n", "", config.SemconvLatest},
	} {
		env := func(name string) (string, bool) {
			return c.optIn, name == "OTEL_SEMCONV_STABILITY_OPT_IN"
		}
		cfg, err := types.Parse("f", []byte("data_dir: d\nsources: [{name: a, type: file, format: legion, paths: [x]}]\n"+c.key), env)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Exporters.Semconv; got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.key, c.optIn, got, c.want)
		}
	}
	_, err := types.Parse("f", []byte("data_dir: d\nsources: [{name: a, type: file, format: legion, paths: [x]}]\nexporters: {semconv: genai-newest}\n"), nil)
	if err == nil || !strings.Contains(err.Error(), config.SemconvLatest) {
		t.Errorf("an unknown version: %v", err)
	}
}
