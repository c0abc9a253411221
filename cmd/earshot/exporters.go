package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// types are the components that a configuration may name.
func types() config.Types {
	return config.Types{Sources: app.SourceTypes(), Exporters: exporters.Types()}
}

// newExporters makes the configured exporters, and the one of the embedded store, whose DSN
// is dsn.
func newExporters(ctx context.Context, c *config.Config, dsn string, log *slog.Logger) ([]app.Exporter, error) {
	env, err := exporterEnv(c, log)
	if err != nil {
		return nil, err
	}
	env.StoreDSN = dsn
	return exportersIn(ctx, c, env)
}

// newExportersBeside is newExporters of a process that may run beside the sidecar: files of the
// sidecar's exporters are not touched. chosen: the records were to be sent before.
func newExportersBeside(ctx context.Context, c *config.Config, dsn string, log *slog.Logger, chosen bool) ([]app.Exporter, error) {
	env, err := exporterEnv(c, log)
	if err != nil {
		return nil, err
	}
	env.StoreDSN, env.StateDir, env.Chosen = dsn, "", chosen
	return exportersIn(ctx, c, env)
}

func exportersIn(ctx context.Context, c *config.Config, env export.Env) (out []app.Exporter, err error) {
	for _, t := range exporters.Types() {
		names := c.Exporters.Of(t)
		if names == nil && t.Name == config.StoreExporter {
			names = []string{t.Name}
		}
		for _, env.Name = range names {
			section := c.Exporters.Sections[env.Name]
			if section == nil {
				section = &clickhouse.Config{}
			}
			x, ok := section.(export.Config)
			if !ok {
				return nil, fmt.Errorf("exporters.%s: has no constructor", env.Name)
			}
			made, err := x.NewExporter(ctx, env)
			if err != nil {
				return nil, fmt.Errorf("exporters.%s: %w", env.Name, err)
			}
			out = append(out, app.Exporter{Name: env.Name, Exporter: made})
		}
	}
	return out, nil
}

// newReaders makes the readers that send the metrics.
func newReaders(ctx context.Context, c *config.Config, log *slog.Logger) ([]sdkmetric.Reader, error) {
	env, err := exporterEnv(c, log)
	if err != nil {
		return nil, err
	}
	var out []sdkmetric.Reader
	for name, section := range c.Exporters.Sections {
		x, ok := section.(interface {
			NewReader(context.Context, export.Env) (sdkmetric.Reader, error)
		})
		if !ok {
			continue
		}
		r, err := x.NewReader(ctx, env)
		if err != nil {
			return nil, fmt.Errorf("exporters.%s: %w", name, err)
		}
		if r != nil {
			out = append(out, r)
		}
	}
	return out, nil
}

func exporterEnv(c *config.Config, log *slog.Logger) (env export.Env, err error) {
	env = export.Env{Dimensions: c.Dimensions, Budgets: c.Budgets, SilentAfter: time.Duration(c.Now.SilentAfter), StoreMaxAge: time.Duration(c.Store.MaxAge), StoreMaxSize: int64(c.Store.MaxSize),
		StateDir: c.DataDir, TempDir: filepath.Join(c.DataDir, "tmp"), Logger: log}
	if env.Profile, err = semconv.New(c.Exporters.Semconv); err != nil {
		return env, err
	}
	env.Prices, err = price.Load(c.Prices)
	return env, err
}

// clickhouseConfig is the section exporters.clickhouse; nil without one.
func clickhouseConfig(c *config.Config) *clickhouse.Config {
	x, _ := c.Exporters.Sections[config.StoreExporter].(*clickhouse.Config)
	return x
}

// ending is the exporter of a run that is to end: a schema that the server refuses
// ends it, because waiting would not.
type ending struct {
	*clickhouse.Exporter
	end func(error)
}

func (x *ending) Export(ctx context.Context, b *export.Batch) error {
	return x.check(x.Exporter.Export(ctx, b))
}

// Part implements export.Gatherer.
func (x *ending) Part() func(context.Context) error {
	store := x.Exporter.Part()
	return func(ctx context.Context) error { return x.check(store(ctx)) }
}

// Identity implements export.Stored: it is called before the first Export.
func (x *ending) Identity(ctx context.Context) (id string, newest int64, err error) {
	id, newest, err = x.Exporter.Identity(ctx)
	return id, newest, x.check(err)
}

func (x *ending) check(err error) error {
	if errors.Is(err, clickhouse.ErrSchema) {
		x.end(err)
	}
	return err
}
