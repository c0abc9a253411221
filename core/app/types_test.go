package app

import (
	"path"
	"testing"

	"github.com/earshot-dev/earshot/plugins"
)

// TestTelemetryRoutes: the formats of agents' telemetry have decoders, and the patterns are globs.
func TestTelemetryRoutes(t *testing.T) {
	routes := telemetryRoutes()
	for _, r := range routes {
		if plugins.Bundled()[r.Format] == nil {
			t.Errorf("no decoder of %s", r.Format)
		}
		for _, pattern := range []string{r.Service, r.Scope} {
			if _, err := path.Match(pattern, "x"); err != nil {
				t.Errorf("%q: %v", pattern, err)
			}
		}
	}
	if last := routes[len(routes)-1]; last.Service != "" || last.Scope != "" {
		t.Errorf("the last route does not match everything: %+v", last)
	}
}
