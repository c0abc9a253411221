package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

func newRun() *cobra.Command {
	var file configFile
	var idle time.Duration
	c := &cobra.Command{
		Use:   "run [-- COMMAND...]",
		Short: "Run the sidecar",
		Long: `Run the sidecar until it is interrupted. An interrupt ends the sources and waits
until the exporters have accepted everything that was read, ten seconds at most; the
rest is read again at the next start. An embedded store that hangs is killed then.

SIGHUP, or a change of the configuration file, applies the sources of the file as it
is now; unchanged sources stay open.

With --until-idle it exits with status 0 once every source is drained, nothing has
arrived for that long, and every exporter has accepted everything, and with 1 when the
server rejects the schema.

With a COMMAND it runs that, and records its traffic with its provider through taps on loopback
ports that end with it. ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL and
OLLAMA_HOST of its environment name the taps; input, output, signals and exit status are the
command's own. The rows go where those of the configuration go, beside a sidecar or earshot up
that is running or not. When the taps do not start, the command runs without them, after a warning.`,
		Example: `  earshot run -c earshot.yaml
  earshot run -c earshot.yaml --until-idle 5s
  earshot run -- python agent.py`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() == 0 {
				return cobra.MinimumNArgs(1)(c, args)
			}
			return cobra.NoArgs(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if c.Flags().Changed("until-idle") {
					return usageError{errors.New("--until-idle: a command ends by itself")}
				}
				return (&recorded{file: &file}).run(c, args)
			}
			cfg, err := file.load(false)
			if err != nil {
				return err
			}
			if c.Flags().Changed("until-idle") && idle <= 0 {
				return usageError{fmt.Errorf("--until-idle %s: must be positive", idle)}
			}
			if err := knownFormats(cfg); err != nil {
				return err
			}
			log := logger(cfg, c.ErrOrStderr())
			for _, text := range decoders().Warnings(cfg) {
				log.Warn(text)
			}
			if text := app.SharedData(cfg.DataDir); text != "" {
				log.Warn("data_dir: " + text)
			}
			p := newProgress(c.ErrOrStderr())
			var last app.Progress
			ctx, stop := context.WithCancelCause(c.Context())
			defer stop(nil)
			app.BoundMemory(ctx)
			var surveyed sync.WaitGroup
			var made []app.Exporter
			err = app.Run(ctx, app.Settings{
				Config: cfg, Decoders: decoders(), UntilIdle: idle, Logger: log, Reload: file.watch(ctx, log), Fetch: c.ErrOrStderr(),
				Progress: func(n app.Progress) { last = n; p.show(n) },
				Exporters: func(ctx context.Context, dsn string) ([]app.Exporter, error) {
					list, err := newExporters(ctx, cfg, dsn, log)
					made = list
					for i := range list {
						if store, ok := list[i].Exporter.(*clickhouse.Exporter); ok && idle > 0 {
							list[i].Exporter = &ending{store, stop}
						}
					}
					return list, err
				},
				Readers: func(ctx context.Context) ([]sdkmetric.Reader, error) { return newReaders(ctx, cfg, log) },
				Ready: func(r app.Running) {
					log.Info("running", "sources", len(cfg.Sources), "store", r.Store, "metrics", r.Metrics)
					surveyed.Go(func() { survey(c.Context(), cfg, log) })
					if idle == 0 {
						surveyed.Go(func() { keepChanges(ctx, cfg, made, log) })
					}
				},
			})
			stop(nil)
			surveyed.Wait()
			p.end()
			if err == nil || last != (app.Progress{}) { // it has begun
				log.Info("ended", "bytes", last.Bytes, "frames", last.Frames, "messages", last.Messages, "spans", last.Spans, "set_aside", last.Problems, "rows", last.Committed)
			}
			if err == nil && idle > 0 && last.Delivered == 0 {
				log.Info("there was nothing to read that had not been read before")
			}
			if cause := context.Cause(ctx); errors.Is(cause, clickhouse.ErrSchema) {
				return cause
			}
			return err
		},
	}
	file.add(c)
	c.Flags().DurationVar(&idle, "until-idle", 0, "exit once everything is read and nothing has come for this `DURATION`")
	return c
}

// knownFormats reports sources of a format that nothing decodes, before a run makes a
// data directory and tables.
func knownFormats(cfg *config.Config) error {
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		for _, f := range s.Formats() {
			if err := decoders().Has(cfg, f); err != nil {
				return usageError{fmt.Errorf("source %s: %w", s.Name, err)}
			}
		}
	}
	return nil
}

// survey logs the sources without files, and files that are not of their source's format.
// The file source itself logs files that it may not read.
func survey(ctx context.Context, cfg *config.Config, log *slog.Logger) {
	surveys, err := app.ReportFiles(ctx, decoders(), cfg, true, nil)
	if err != nil {
		if ctx.Err() == nil {
			log.Warn("the sources were not looked at", "error", err)
		}
		return
	}
	for i := range surveys {
		for _, text := range surveys[i].OtherWarnings() {
			log.Warn(text)
		}
	}
}

func byteSize(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 10_000_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	}
	return fmt.Sprintf("%d GB", n/1_000_000_000)
}
