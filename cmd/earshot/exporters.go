package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
	"github.com/earshot-dev/earshot/exporters/otel"
)

// exporters makes the configured destinations; dsn is that of the embedded store.
// A store that is not there yet, or refuses to have its tables made, is waited
// for; see ending for a run that does not.
func exporters(ctx context.Context, c *config.Config, dsn string, log *slog.Logger) ([]app.Exporter, error) {
	profile, err := semconv.New(c.Exporters.Semconv)
	if err != nil {
		return nil, err
	}
	settings := clickhouseSettings(c, dsn, log)
	settings.Profile = profile
	if settings.Prices, err = price.Load(c.Prices); err != nil {
		return nil, err
	}
	ch, err := clickhouse.New(ctx, settings)
	if err != nil {
		return nil, err
	}
	if err := ch.Prepare(ctx); err != nil {
		if errors.Is(err, clickhouse.ErrSchema) {
			log.Error("clickhouse rejects the schema; records wait in the spool until it is corrected", "error", err)
		} else {
			log.Warn("clickhouse is not reachable yet; records wait in the spool", "error", err)
		}
	}
	out := []app.Exporter{{Name: "clickhouse", Exporter: ch}}
	if o := c.Exporters.OTLP; o != nil {
		settings, err := otelSettings(o, log)
		if err != nil {
			return nil, fmt.Errorf("exporters.otlp: %w", err)
		}
		settings.Profile = profile
		x, err := otel.New(ctx, settings)
		if err != nil {
			return nil, fmt.Errorf("exporters.otlp: %w", err)
		}
		out = append(out, app.Exporter{Name: "otlp", Exporter: x})
	}
	return out, nil
}

// ending is the exporter of a run that is to end: a schema that the server refuses
// ends it, because waiting would not.
type ending struct {
	*clickhouse.Exporter
	end func(error)
}

func (x *ending) Export(ctx context.Context, b *export.Batch) error {
	err := x.Exporter.Export(ctx, b)
	if errors.Is(err, clickhouse.ErrSchema) {
		x.end(err)
	}
	return err
}

// metricsReaders returns the readers that send metrics, if an OTLP receiver is configured.
func metricsReaders(ctx context.Context, c *config.Config, log *slog.Logger) ([]sdkmetric.Reader, error) {
	o := c.Exporters.OTLP
	if o == nil || o.MetricsInterval == 0 {
		return nil, nil
	}
	settings, err := otelSettings(o, log)
	if err != nil {
		return nil, fmt.Errorf("exporters.otlp: %w", err)
	}
	m, err := otel.NewMetrics(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("exporters.otlp: %w", err)
	}
	return []sdkmetric.Reader{m.Reader(time.Duration(o.MetricsInterval))}, nil
}

// clickhouseSettings are those of the configured server, or of the embedded
// store when there is none.
func clickhouseSettings(c *config.Config, dsn string, log *slog.Logger) clickhouse.Settings {
	s := clickhouse.Settings{
		Conn: clickhouse.ConnSettings{DSN: dsn, Logger: log}, CreateSchema: true, Logger: log,
		SilentAfter: time.Duration(c.Now.SilentAfter), StuckAfter: time.Duration(c.Now.StuckAfter),
	}
	if x := c.Exporters.ClickHouse; x != nil {
		s.Conn = connSettings(x, log)
		s.Cluster, s.TTL = x.Cluster, ttl(x)
		s.CreateSchema, s.Timeout = x.CreateSchema, time.Duration(x.Timeout)
	}
	return s
}

func connSettings(x *config.ClickHouse, log *slog.Logger) clickhouse.ConnSettings {
	return clickhouse.ConnSettings{DSN: x.DSN.Reveal(), Database: x.Database, Compression: x.Compression, Logger: log}
}

func schemaOf(x *config.ClickHouse) clickhouse.Schema {
	return clickhouse.Schema{Database: x.Database, Cluster: x.Cluster, TTL: ttl(x)}
}

func ttl(x *config.ClickHouse) clickhouse.TTL {
	return clickhouse.TTL{
		Bodies: time.Duration(x.TTL.Bodies), Messages: time.Duration(x.TTL.Messages), Spans: time.Duration(x.TTL.Spans), Rollups: time.Duration(x.TTL.Rollups),
	}
}

func otelSettings(x *config.OTLP, log *slog.Logger) (otel.Settings, error) {
	tls, err := x.TLS.Load()
	if err != nil {
		return otel.Settings{}, err
	}
	headers := make(map[string]string, len(x.Headers))
	for k, v := range x.Headers {
		headers[k] = v.Reveal()
	}
	return otel.Settings{
		Endpoint: x.Endpoint, Protocol: x.Protocol, Headers: headers, TLS: tls, Compression: x.Compression, Timeout: time.Duration(x.Timeout),
		MaxBytes: int(x.MaxBatchBytes), Content: x.Content, Resource: x.Resource, Logger: log,
	}, nil
}
