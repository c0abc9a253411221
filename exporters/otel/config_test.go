package otel

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
)

// problems is a configuration file that notes its problems.
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
		"logs and traces":  {func(c *Config) { c.Signals = []string{"logs", "traces"} }, nil},
		"a header":         {func(c *Config) { c.Headers = spec.Headers{"bad name": spec.NewSecret("x")} }, []string{`headers."bad name"`}},
		"tls of nothing":   {func(c *Config) { c.TLS = &spec.ClientTLS{} }, []string{"tls"}},
		"errors":           {func(c *Config) { c.Sample = &Sample{Errors: true, Wait: 1, MaxSize: 1} }, nil},
		"stuck":            {func(c *Config) { c.Sample = &Sample{Stuck: true, Wait: 1, MaxSize: 1} }, nil},
		"slow":             {func(c *Config) { c.Sample = &Sample{Slow: 1, Wait: 1, MaxSize: 1} }, nil},
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

// TestExample: the example shows every key, with a sample that has every key but those that are on.
func TestExample(t *testing.T) {
	c := Type().New().(*Config)
	Type().Example.On(c)
	for _, shown := range []reflect.Value{reflect.ValueOf(c).Elem(), reflect.ValueOf(c.Sample).Elem()} {
		for k := range shown.NumField() {
			if name := shown.Type().Field(k).Name; shown.Field(k).IsZero() && name != "Content" {
				t.Errorf("it does not show %s", name)
			}
		}
	}
}

// TestProtocolOfThePort: the protocol follows from the port, if it is not configured.
func TestProtocolOfThePort(t *testing.T) {
	for _, c := range []Config{
		{Endpoint: "http://h:4317", Protocol: ProtocolGRPC}, {Endpoint: "http://h:4318", Protocol: ProtocolHTTP}, {Endpoint: "http://h", Protocol: ProtocolHTTP}, {Endpoint: "http://h:x y", Protocol: ProtocolHTTP},
	} {
		want := c.Protocol
		c.Protocol = ""
		if c.Resolve(); c.Protocol != want {
			t.Errorf("%s is %s", c.Endpoint, c.Protocol)
		}
		c.Protocol = "given"
		if c.Resolve(); c.Protocol != "given" {
			t.Errorf("%s is %s, and another one was given", c.Endpoint, c.Protocol)
		}
	}
}

// TestSignals: an exporter sends the signals that are asked for, and logs with contents alone.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		signals     []string
		content     bool
		spans, logs int
	}{
		{[]string{"traces", "logs"}, true, 1, 1}, {[]string{"traces", "logs"}, false, 1, 0}, {[]string{"traces"}, true, 1, 0}, {[]string{"logs"}, true, 0, 1}, {[]string{"metrics"}, true, 0, 0},
	} {
		r := &receiver{logs: &logReceiver{}}
		config := Type().New().(*Config)
		config.Endpoint, config.Signals, config.Content = r.overHTTP(t), c.signals, c.content
		x, err := config.NewExporter(t.Context(), export.Env{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		if len(r.seen()) != c.spans || len(r.logs.requests) != c.logs {
			t.Errorf("%v, contents: %t: %d requests of spans, %d of logs", c.signals, c.content, len(r.seen()), len(r.logs.requests))
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, change := range []func(*Config){func(c *Config) { c.Endpoint = "ftp://nowhere" }, func(c *Config) { c.TLS = &spec.ClientTLS{CAFile: "testdata/none.pem"} }} {
		config := Type().New().(*Config)
		config.Endpoint = "http://127.0.0.1:4318"
		change(config)
		if _, err := config.NewExporter(t.Context(), export.Env{Logger: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%+v is no error", config)
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

// TestSampleIsGone: the file of a sampler is removed, with a warning, when sample is not configured any more, and stays while it is.
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
