package otel

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
)

// problems is a configuration file that notes what is wrong with it.
type problems map[string]string

func (p problems) Report(path, message, _ string) { p[path] = message }
func (p problems) IsSet(string) bool              { return false }
func (p problems) Quote(_, value string) string   { return strconv.Quote(value) }

// TestProblemsOfDestinations: each key of a destination that cannot work is named, and none of one that can.
func TestProblemsOfDestinations(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"as it is":    {func(*Config) {}, nil},
		"an endpoint": {func(c *Config) { c.Endpoint = "collector:4318" }, []string{"endpoint"}},
		"names": {func(c *Config) {
			c.Protocol, c.Compression, c.Signals = "thrift", "zstd", []string{"traces", "profiles"}
		}, []string{"compression", "protocol", "signals[1]"}},
		"no signals":       {func(c *Config) { c.Signals = nil }, []string{"signals"}},
		"logs of nothing":  {func(c *Config) { c.Signals = []string{"logs"} }, []string{"signals"}},
		"logs":             {func(c *Config) { c.Signals, c.Content = []string{"logs"}, true }, nil},
		"traces alone":     {func(c *Config) { c.Signals = []string{"traces"} }, nil},
		"no limits":        {func(c *Config) { c.Timeout, c.MaxBatchBytes, c.MetricsInterval = 0, 0, -1 }, []string{"max_batch_bytes", "metrics_interval", "timeout"}},
		"a share":          {func(c *Config) { c.Sample = &Sample{Share: 0.1, Wait: spec.Duration(time.Minute), MaxSize: 1 << 20} }, nil},
		"a sample of none": {func(c *Config) { c.Sample = &Sample{Slow: -1} }, []string{"sample.max_size", "sample.slow", "sample.wait"}},
		"nothing chosen":   {func(c *Config) { c.Sample = &Sample{Wait: spec.Duration(time.Minute), MaxSize: 1 << 20} }, []string{"sample"}},
	} {
		p, config := make(problems), Type().New().(*Config)
		config.Endpoint, config.Protocol = "http://127.0.0.1:4318", ProtocolHTTP
		c.change(config)
		config.Validate(spec.NewCheck(p, "", "otel"))
		if d := cmp.Diff(c.want, slices.Sorted(maps.Keys(p))); d != "" {
			t.Errorf("%s: -want +got:\n%s%v", name, d, p)
		}
	}
}

// TestReaderOfMetrics: metrics are sent if they are among the signals and have an interval.
func TestReaderOfMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		set          func(*Config)
		reader, fail bool
	}{
		"default":          {func(*Config) {}, true, false},
		"without interval": {func(c *Config) { c.MetricsInterval = 0 }, false, false},
		"spans alone":      {func(c *Config) { c.Signals = []string{"traces"} }, false, false},
		"no endpoint":      {func(c *Config) { c.Endpoint = "ftp://nowhere" }, false, true},
		"no certificate":   {func(c *Config) { c.TLS = &spec.ClientTLS{CAFile: "testdata/none.pem"} }, false, true},
	} {
		config := Type().New().(*Config)
		config.Endpoint = "http://127.0.0.1:4318"
		c.set(config)
		config.Resolve()
		reader, err := config.NewReader(t.Context(), export.Env{Logger: slog.New(slog.DiscardHandler)})
		if (reader != nil) != c.reader || (err != nil) != c.fail {
			t.Errorf("%s: %v, %v", name, reader, err)
		}
		if reader != nil {
			_ = reader.Shutdown(t.Context())
		}
	}
}

// TestSampleIsGone: what a sampler held is removed, with a warning, when sample is not configured any more, and stays while it is.
func TestSampleIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		sample, chosen bool
		file, warned   bool
	}{
		"gone": {false, false, false, true}, "chosen elsewhere": {true, true, false, true}, "as it was": {true, false, true, false},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "sample", "otlp.jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		for again := range 2 {
			if again == 0 {
				if err := os.WriteFile(path, []byte(`{"names":["a"]}`+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			config := Type().New().(*Config)
			config.Endpoint = "http://127.0.0.1:4318"
			if c.sample {
				config.Sample = new(Sample)
				config.Sample.SetDefaults()
			}
			config.Resolve()
			x, err := config.NewExporter(t.Context(), export.Env{Name: "otlp", StateDir: dir, Chosen: c.chosen, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(path); (err == nil) != c.file {
				t.Errorf("%s: the file is there: %t", name, err == nil)
			}
			if warned := strings.Contains(log.String(), "not sent"); warned != (c.warned && again == 0) {
				t.Errorf("%s, start %d: %s", name, again, log.String())
			}
		}
	}
}
