package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

const (
	// changesEvery is how often a sidecar looks for changes, changesFirst when it does first, and changesBack how far back.
	// Changes that were found before are stored again, the same.
	changesEvery, changesFirst = time.Hour, 5 * time.Minute
	changesBack                = 48 * time.Hour
)

// keepChanges looks for changes each hour, until ctx ends, and stores them: alerts and boards read v_changes.
func keepChanges(ctx context.Context, cfg *config.Config, list []app.Exporter, log *slog.Logger) {
	var store *clickhouse.Exporter
	for i := range list {
		if x, ok := list[i].Exporter.(*clickhouse.Exporter); ok {
			store = x
		}
	}
	if store == nil {
		return
	}
	var history inspect.RunHistory
	next := time.NewTimer(changesFirst)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		began := time.Now()
		n, err := storeChanges(ctx, cfg, store, &history, began)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("changes were not looked for, and v_changes is behind", "error", err)
		default:
			log.Debug("changes were looked for", "found", n, "took", time.Since(began).Round(time.Millisecond))
		}
		next.Reset(max(changesEvery, 50*time.Since(began)))
	}
}

// storeChanges stores the changes that were found within changesBack, and returns how many.
func storeChanges(ctx context.Context, cfg *config.Config, store *clickhouse.Exporter, history *inspect.RunHistory, now time.Time) (int, error) {
	r, err := openReaderAs(ctx, cfg, true)
	if err != nil {
		return 0, err
	}
	found, err := history.WhatChanged(ctx, r, inspect.ChangedFilter{Since: changesBack, Now: now, Prices: r.prices})
	if closed := r.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return 0, err
	}
	rows := make([]clickhouse.ChangeRow, 0, len(found.Changes))
	for i := range found.Changes {
		c := &found.Changes[i]
		rows = append(rows, clickhouse.ChangeRow{
			Tenant: c.Tenant, Found: c.Found, At: c.At, Kind: c.Kind, Agent: c.Agent, Name: c.Name, Model: c.Model, Metric: c.Metric, Test: c.Test, Since: c.Since,
			RunsBefore: uint32(c.A.Runs), RunsAfter: uint32(c.B.Runs), P50Before: c.A.Median, P50After: c.B.Median, P95Before: c.A.P95, P95After: c.B.P95,
			MeanBefore: c.A.Mean, MeanAfter: c.B.Mean, Ratio: c.Ratio, Low: c.Low, High: c.High,
			Summary:     c.Title() + ": " + c.Metric + " " + c.Shift() + " " + c.Cause() + ". " + strings.Join(c.Detail(), " "),
			TraceBefore: c.TraceA, TraceAfter: c.TraceB, Version: uint64(now.UnixMicro()),
		})
	}
	return len(rows), store.StoreChanges(ctx, rows)
}
