package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// reader is a connection for reading, to the configured server or to the
// embedded store, which runs for as long as it is open if it does not already.
type reader struct {
	cfg    *config.Config
	conn   *clickhouse.Conn
	close  func()
	again  func(context.Context) error // makes a store answer that has ended
	prices *price.Table
	how    clickhouse.ConnSettings
}

var _ inspect.Querier = (*reader)(nil)

// read runs f with a reader of the configured store.
func read(c *cobra.Command, file *configFile, f func(ctx context.Context, r *reader) error) (err error) {
	cfg, err := file.load(true)
	if err != nil {
		return err
	}
	r, err := openReader(c.Context(), cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return f(c.Context(), r)
}

// openReader opens a reader. Rows are read as they stand: newer versions hide
// older ones without a FINAL in the query.
func openReader(ctx context.Context, c *config.Config) (*reader, error) {
	return openReaderAs(ctx, c, false)
}

// openReaderAs is openReader, or for questions that the sidecar asks by itself: for these the embedded store has nothing
// flushed, and it does not keep its engine open behind them, as it does behind a person's.
func openReaderAs(ctx context.Context, c *config.Config, bySelf bool) (*reader, error) {
	log := slog.New(slog.DiscardHandler)
	prices, err := price.Load(c.Prices)
	if err != nil {
		return nil, usageError{err}
	}
	r := &reader{cfg: c, close: func() {}, again: waitForServer, prices: prices}
	s := clickhouse.ConnSettings{}
	if x := clickhouseConfig(c); x != nil {
		s = x.Conn(log)
	} else {
		store, err := app.OpenStore(ctx, c, log)
		if err != nil {
			return nil, err
		}
		r.close, r.again, s.DSN = store.Close, store.Again, store.DSN
	}
	s.Final, s.Writer = true, bySelf
	conn, err := clickhouse.Open(s)
	if err != nil {
		r.close()
		return nil, err
	}
	r.conn, r.how = conn, s
	return r, nil
}

// foreign returns another reader of the same store for statements that are not ours: the server refuses
// writes, files and networks, and ends them after that time. It is to be closed before r.
func (r *reader) foreign(ctx context.Context, longest time.Duration) (*reader, error) {
	readOnly := false
	err := r.Each(ctx, `SELECT toUInt64(getSetting('readonly'))`, nil, func(v []any) error {
		level, ok := v[0].(uint64)
		readOnly = ok && level > 0
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the rights of the store's user: %w", err)
	}
	s := r.how
	s.ReadOnly, s.MaxTime = !readOnly, longest // a user who may only read may not change settings
	conn, err := clickhouse.Open(s)
	if err != nil {
		return nil, err
	}
	return &reader{cfg: r.cfg, conn: conn, close: func() {}, again: r.again, prices: r.prices, how: s}, nil
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

// read runs a query, and once more if the store ended before it sent a row: that of a sidecar ends with the
// sidecar, and any may be killed.
func (r *reader) read(ctx context.Context, sql string, params map[string]string, head func([]string), row func([]any) error) error {
	begun := false
	once := func(v []any) error { begun = true; return row(v) }
	err := r.tryRead(ctx, sql, params, head, once)
	if begun || !r.conn.CutOff(err) {
		return err
	}
	if failed := r.again(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	return r.tryRead(ctx, sql, params, head, once)
}

// waitForServer is how a server of the user's, or a proxy, is made to answer again.
func waitForServer(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return ctx.Err()
}

func (r *reader) tryRead(ctx context.Context, sql string, params map[string]string, head func([]string), row func([]any) error) error {
	rows, err := r.conn.Query(ctx, sql, params)
	if clickhouse.SchemaDiffers(err) && !errors.Is(err, clickhouse.ErrNoTables) {
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
