package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// reader is a connection for reading, to the configured server or to the
// embedded store, which runs for as long as it is open if it does not already.
type reader struct {
	conn   *clickhouse.Conn
	close  func()
	prices *price.Table
}

var _ inspect.Querier = (*reader)(nil)

// openReader opens a reader. Rows are read as they stand: newer versions hide
// older ones without a FINAL in the query.
func openReader(ctx context.Context, c *config.Config) (*reader, error) {
	log := slog.New(slog.DiscardHandler)
	prices, err := price.Load(c.Prices)
	if err != nil {
		return nil, usageError{err}
	}
	r := &reader{close: func() {}, prices: prices}
	s := clickhouse.ConnSettings{}
	if x := clickhouseConfig(c); x != nil {
		s = x.Conn(log)
	} else {
		dsn, stop, err := app.OpenStore(ctx, c, log)
		if err != nil {
			return nil, err
		}
		r.close, s.DSN = stop, dsn
	}
	s.Final = true
	conn, err := clickhouse.Open(s)
	if err != nil {
		r.close()
		return nil, err
	}
	r.conn = conn
	return r, nil
}

func (r *reader) Close() error {
	err := r.conn.Close()
	r.close()
	return err
}

// Each implements inspect.Querier.
func (r *reader) Each(ctx context.Context, sql string, params map[string]string, row func([]any) error) error {
	return r.read(ctx, sql, params, func([]string) {}, row)
}

// Table implements ui.Querier.
func (r *reader) Table(ctx context.Context, sql string, head func([]string), row func([]any) error) error {
	return r.read(ctx, sql, nil, head, row)
}

func (r *reader) read(ctx context.Context, sql string, params map[string]string, head func([]string), row func([]any) error) error {
	rows, err := r.conn.Query(ctx, sql, params)
	if clickhouse.SchemaDiffers(err) {
		return fmt.Errorf("%w\nthe tables are not those of this version: `earshot schema diff` lists the differences; a sidecar, or `earshot schema apply`, brings them up to date", err)
	}
	if err != nil {
		return err
	}
	names := make([]string, 0, len(rows.Columns))
	for _, c := range rows.Columns {
		names = append(names, c.Name)
	}
	head(names)
	for rows.Next() {
		if err := row(rows.Values()); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
