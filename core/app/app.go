// Package app composes a sidecar from a configuration and runs it: sources read frames,
// decoder processes make messages of them, the pipeline assembles spans, and delivery hands
// batches to the exporters. It is the only door from the commands into the engine.
package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
)

// Exporter is a destination with its name.
type Exporter struct {
	Name string
	export.Exporter
}

// Settings are set by a command, beside the user's configuration.
type Settings struct {
	Config *config.Config
	// StoreOf, if set, is the data directory whose embedded store takes the rows, instead of the
	// configuration's. Any number of sidecars write to one store.
	StoreOf string
	// Decoders finds the executable of a format's decoder.
	Decoders Decoders
	// Exporters makes the destinations. dsn is that of the embedded store, and empty
	// when the configuration names a server.
	Exporters func(ctx context.Context, dsn string) ([]Exporter, error)
	// Readers, if set, makes the readers of the GenAI metrics beside /metrics. They are
	// closed with the sidecar.
	Readers func(ctx context.Context) ([]sdkmetric.Reader, error)
	// UntilIdle ends the run once every source is drained, no frame has arrived for that
	// long, and every exporter has accepted everything. Zero: run until ctx ends.
	UntilIdle time.Duration
	// Drain is how long the shutdown may take after the end of ctx; 10 s.
	Drain  time.Duration
	Logger *slog.Logger
	// Reload, if set, delivers configurations whose sources replace the running ones. Their
	// other changes need a restart, and are logged.
	Reload <-chan *config.Config
	// Settle is how long the frames of a source that ends may take to be with the exporters or in their spools; 30 s.
	Settle time.Duration
	// Progress, if set, is called about ten times a second while there is any, else once.
	Progress func(Progress)
	// Fetch, if set, is where the fetch of the embedded store's engine is announced. Without it a missing
	// engine is an error.
	Fetch io.Writer
	// Ready, if set, is called once everything runs.
	Ready func(Running)
}

// Running is a sidecar that runs.
type Running struct {
	Store   string // address of the embedded store without a token; empty when there is none
	Metrics string // address; empty when it is off
}

// ErrInUse means that another process uses the data directory.
var ErrInUse = checkpoint.ErrLocked

// Run runs a sidecar until ctx ends or it is idle.
func Run(ctx context.Context, s Settings) error {
	if s.Drain <= 0 {
		s.Drain = 10 * time.Second
	}
	if s.Settle <= 0 {
		s.Settle = 30 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	r := newRunner(s, nil)
	defer r.close()
	err := r.prepare(ctx)
	if err != nil && ctx.Err() != nil {
		s.Logger.Info("interrupted before everything had started", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	return r.run(ctx)
}
