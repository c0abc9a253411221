package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
	"github.com/earshot-dev/earshot/exporters/otel"
)

// exporters makes the configured destinations; dsn is that of the embedded store.
func exporters(ctx context.Context, c *config.Config, dsn string, log *slog.Logger) ([]app.Exporter, error) {
	ch, err := clickhouse.New(clickhouseSettings(c, dsn, log))
	if err != nil {
		return nil, err
	}
	if err := ch.Prepare(ctx); err != nil {
		// A server that is down now may be up when the first batch is ready.
		if clickhouse.IsPermanent(err) {
			return nil, err
		}
		log.Warn("clickhouse is not there yet; what is read waits for it", "error", err)
	}
	out := []app.Exporter{{Name: "clickhouse", Exporter: ch}}
	if o := c.Exporters.OTLP; o != nil {
		x, err := otel.New(otelSettings(o, log))
		if err != nil {
			return nil, fmt.Errorf("exporters.otlp: %w", err)
		}
		out = append(out, app.Exporter{Name: "otlp", Exporter: x})
	}
	return out, nil
}

// clickhouseSettings are those of the configured server, or of the embedded
// store when there is none.
func clickhouseSettings(c *config.Config, dsn string, log *slog.Logger) clickhouse.Settings {
	s := clickhouse.Settings{Conn: clickhouse.ConnSettings{DSN: dsn, Logger: log}, CreateSchema: true, Logger: log}
	if x := c.Exporters.ClickHouse; x != nil {
		s.Conn = connSettings(x, log)
		s.Schema = schemaOf(x)
		s.CreateSchema, s.Timeout = x.CreateSchema, time.Duration(x.Timeout)
	}
	return s
}

func connSettings(x *config.ClickHouse, log *slog.Logger) clickhouse.ConnSettings {
	return clickhouse.ConnSettings{DSN: x.DSN.Reveal(), Database: x.Database, Compression: x.Compression, Logger: log}
}

func schemaOf(x *config.ClickHouse) clickhouse.Schema {
	return clickhouse.Schema{
		Database: x.Database, Cluster: x.Cluster,
		TTL: clickhouse.TTL{Bodies: time.Duration(x.TTL.Bodies), Messages: time.Duration(x.TTL.Messages), Spans: time.Duration(x.TTL.Spans), Rollups: time.Duration(x.TTL.Rollups)},
	}
}
