package otel

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config/spec"
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
