package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// metricsFile is where a sidecar notes the address of its metrics.
const metricsFile = "metrics.addr"

// countSampled counts the spans of an exporter that sends a part of the conversations.
func countSampled(m *telemetry.Metrics, e Exporter) {
	s, ok := e.Exporter.(export.Sampler)
	if !ok {
		return
	}
	m.Sampled.With(e.Name, "kept").Read(func() int64 { return s.Sampled().Kept })
	m.Sampled.With(e.Name, "dropped").Read(func() int64 { return s.Sampled().Dropped })
	m.SampleHeld.With(e.Name).Read(func() int64 { return int64(s.Sampled().Held) })
}

// listenMetrics opens telemetry.listen, before anything that takes long. The default is also
// that of every other program with OpenTelemetry's Prometheus exporter, so where the
// file does not name an address and the default is taken, a free one serves.
func (r *runner) listenMetrics(dir string) (err error) {
	addr := r.Config.Telemetry.Listen
	if addr == "" {
		return nil
	}
	r.server, err = telemetry.Listen(addr, r.metrics, r.Config.Telemetry.Pprof)
	if errors.Is(err, syscall.EADDRINUSE) {
		if r.Config.IsSet("telemetry.listen") {
			return fmt.Errorf("telemetry: %s is taken: telemetry.listen names another address, or \"\" for none", addr)
		}
		if r.server, err = telemetry.Listen("127.0.0.1:0", r.metrics, r.Config.Telemetry.Pprof); err == nil {
			r.Logger.Warn("the default address of the metrics is taken, so they are elsewhere; telemetry.listen decides it", "taken", addr, "metrics", "http://"+r.server.Addr()+"/metrics")
		}
	}
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	r.onClose(r.server.Close)
	note := filepath.Join(dir, metricsFile)
	if err := os.WriteFile(note, []byte(r.server.Addr()+"\n"), 0o600); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	r.onClose(func() { _ = os.Remove(note) })
	return nil
}

// MetricsAddress is where the sidecar of the data directory serves its metrics; empty
// when none runs that does.
func MetricsAddress(c *config.Config) string {
	b, err := os.ReadFile(filepath.Join(c.DataDir, metricsFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
