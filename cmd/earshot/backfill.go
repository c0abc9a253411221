package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/msg"
)

func newBackfill() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "backfill [SOURCE...]",
		Short: "Decode all sources again from the beginning, with the current decoders",
		Long: `Decode the files of all file sources again from the beginning, and the traffic that
the journal keeps of the others (journal.keep), with the current decoders, and store
the rows. Every row keeps its id, and of two versions of a row the newer decoder's
replaces the other, so that the tables end as if that decoder had read everything
from the start. A sidecar may run beside it on the same data_dir.

Run it after an upgrade of a decoder. Rows whose input no longer exists stay as they
are.`,
		Example: `  earshot backfill -c earshot.yaml
  earshot backfill claude -c earshot.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := file.loadSources(c.Context())
			if err != nil {
				return err
			}
			if err := knownSources(cfg, args); err != nil {
				return usageError{err}
			}
			n, err := backfill(c, cfg, args, nil)
			if err == nil {
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s read, %d messages, %d spans, %d set aside\n", byteSize(n.Bytes), n.Messages, n.Spans, n.Problems)
			}
			return err
		},
	}
	file.add(c)
	return c
}

func knownSources(c *config.Config, names []string) error {
	var all []string
	for i := range c.Sources {
		all = append(all, c.Sources[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("no source %s: there are %s", name, strings.Join(all, " "))
		}
	}
	return nil
}

// backfill decodes sources again, with progress on a terminal.
func backfill(c *cobra.Command, cfg *config.Config, sources []string, letter func(*msg.DeadLetter)) (last app.Progress, err error) {
	log := logger(cfg, c.ErrOrStderr())
	p := newProgress(c.ErrOrStderr())
	defer p.end()
	err = app.Backfill(c.Context(), app.Settings{
		Config: cfg, Decoders: decoders(), Logger: log,
		Progress: func(n app.Progress) { last = n; p.show(n) },
		Exporters: func(ctx context.Context, dsn string) ([]app.Exporter, error) {
			return newExportersBeside(ctx, cfg, dsn, log, false)
		},
	}, sources, letter)
	return last, err
}

// writers opens the exporters, and the embedded store if it is one of them.
func writers(ctx context.Context, cfg *config.Config, f func([]app.Exporter) error) error {
	log, dsn := slog.New(slog.DiscardHandler), ""
	if cfg.Embedded() {
		store, err := app.OpenStoreToWrite(ctx, cfg, log)
		if err != nil {
			return err
		}
		defer store.Close()
		dsn = store.DSN
	}
	list, err := newExportersBeside(ctx, cfg, dsn, log, true)
	if err != nil {
		return err
	}
	err = f(list)
	for _, x := range list {
		err = errors.Join(err, x.Close(ctx))
	}
	return err
}
