package app

import (
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/file"
	"github.com/earshot-dev/earshot/core/internal/source/otlp"
	"github.com/earshot-dev/earshot/core/internal/source/poll"
	"github.com/earshot-dev/earshot/core/internal/source/push"
	"github.com/earshot-dev/earshot/core/internal/source/sqlite"
	"github.com/earshot-dev/earshot/core/internal/source/sse"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/source/websocket"
	"github.com/earshot-dev/earshot/core/semconv"
)

// SourceTypes are the types of source. Each is a folder: its configuration, its
// constructor and its text in config.example.yaml are in its config.go.
func SourceTypes() []spec.Type {
	return []spec.Type{
		file.Type(),
		tap.Type(),
		sse.Type(),
		websocket.Type(),
		push.Type(),
		poll.Type(),
		otlp.Type(telemetryRoutes()),
		sqlite.Type(),
	}
}

// telemetryRoutes are the formats of the telemetry that agents export over OTLP.
func telemetryRoutes() (out []otlp.Route) {
	for _, t := range semconv.Telemetry() {
		out = append(out, otlp.Route{Service: t.Service, Scope: t.Scope, Format: t.Format})
	}
	return out
}

// Rereadable reports whether a source can be read again from the beginning without the
// journal: it is one of files.
func Rereadable(s *config.Source) bool {
	_, ok := s.Section.(source.Rereadable)
	return ok
}
