package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
)

// The demo's traffic: files as agents write them, whose times are filled in so
// that they lie a few minutes back. All of it is invented.
//
//go:embed all:demo
var demoFiles embed.FS

// demoMark makes a directory one that the demo may empty.
const demoMark = ".earshot-demo"

func newDemo() *cobra.Command {
	var dir string
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole product on bundled traffic",
		Long: `Write the transcripts of two agents into a directory, start two agent servers (one
answers with an event stream, one speaks over a WebSocket) and talk to them through
taps, run a sidecar on it all with the real parts (decoder processes, the journal,
the embedded ClickHouse), and print the result: the sessions, one conversation as a
tree, and the commands that show more.`,
		Example: `  earshot demo
  earshot demo --keep     # leave the store running until Ctrl-C`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return (&demo{dir: dir, keep: keep, out: c.OutOrStdout(), err: c.ErrOrStderr(), cmd: c}).run(c.Context())
		},
	}
	c.Flags().StringVar(&dir, "dir", "earshot-demo", "`DIR` to work in; emptied first")
	c.Flags().BoolVar(&keep, "keep", false, "leave the store running until interrupted")
	return c
}

type demo struct {
	dir      string
	keep     bool
	out, err io.Writer
	cmd      *cobra.Command
}

func (d *demo) run(ctx context.Context) error {
	agents, err := d.liveAgents()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		for _, a := range agents {
			_ = a.server.Close()
		}
	}()
	if err := d.prepare(agents); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	file := filepath.Join(d.dir, "earshot.yaml")
	cfg, err := types().Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	log := logger(cfg, d.err)
	fmt.Fprintf(d.out, "Reading the transcripts in %s with %s, and listening to two agents through taps\n", d.dir, file)
	p := newProgress(d.err)
	var last app.Progress
	var talked error
	began := time.Now()
	err = app.Run(ctx, app.Settings{
		Config: cfg, Decoders: decoders(), UntilIdle: time.Second, Logger: log, Fetch: d.err,
		Progress: func(n app.Progress) { last = n; p.show(n) },
		// The sidecar is not idle before this returns.
		Ready: func(app.Running) {
			for _, a := range agents {
				talked = errors.Join(talked, d.talk(ctx, a))
			}
		},
		Exporters: func(ctx context.Context, dsn string) ([]app.Exporter, error) { return newExporters(ctx, cfg, dsn, log) },
	})
	p.end()
	if err := errors.Join(err, talked); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "%d lines and frames, %d messages, %d spans, stored in %s\n\n", last.Frames, last.Messages, last.Spans, inspect.Span(time.Since(began)))
	return d.show(ctx, cfg, file)
}

// prepare writes the traffic and the configuration.
func (d *demo) prepare(agents []*liveAgent) error {
	mark := filepath.Join(d.dir, demoMark)
	if entries, err := os.ReadDir(d.dir); err == nil && len(entries) > 0 {
		if _, err := os.Stat(mark); err != nil {
			return usageError{fmt.Errorf("%s is not empty and not of an earlier demo", d.dir)}
		}
		if err := os.RemoveAll(d.dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	base := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	err := fs.WalkDir(demoFiles, "demo", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := render(path, base)
		if err != nil {
			return err
		}
		to := filepath.Join(d.dir, "traffic", strings.TrimSuffix(strings.TrimPrefix(path, "demo/"), ".tmpl"))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		// Times that a line lacks are taken from its file.
		written := base.Add(2 * time.Minute)
		return os.Chtimes(to, written, written)
	})
	if err != nil {
		return err
	}
	taps := ""
	for _, a := range agents {
		taps += fmt.Sprintf("  - {name: %s, type: tap, format: %s, listen: %q, upstream: %q}\n", a.name, a.format, a.tap, "http://"+a.upstream)
	}
	return os.WriteFile(filepath.Join(d.dir, "earshot.yaml"), []byte(fmt.Sprintf(`# Written by earshot demo.
data_dir: data
sources:
  - {name: legion, type: file, format: legion, paths: ["traffic/legion/sessions/*/messages.jsonl"]}
  - {name: claude, type: file, format: claude-code, paths: ["traffic/claude-code/**/*.jsonl"]}
%stelemetry: {listen: ""}
log: {level: warn}
`, taps)), 0o600)
}

// render fills in a file's times, in seconds after base: {{iso 1.5}}, {{unix 1.5}},
// {{naive 1.5}} without a zone, and {{sec 1}} in whole seconds.
func render(path string, base time.Time) ([]byte, error) {
	text, err := demoFiles.ReadFile(path)
	if err != nil {
		return nil, err
	}
	at := func(s float64) time.Time { return base.Add(time.Duration(s * float64(time.Second))).UTC() }
	t, err := template.New(path).Funcs(template.FuncMap{
		"iso":   func(s float64) string { return at(s).Format("2006-01-02T15:04:05.000Z07:00") },
		"sec":   func(s float64) string { return fmt.Sprint(at(s + 120).Unix()) },
		"naive": func(s float64) string { return at(s).Format("2006-01-02T15:04:05.000000") },
		"unix":  func(s float64) string { return fmt.Sprintf("%.3f", float64(at(s).UnixMilli())/1000) },
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, nil)
	return b.Bytes(), err
}

// show prints the result.
func (d *demo) show(ctx context.Context, cfg *config.Config, file string) (err error) {
	r, err := openReader(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	list, err := inspect.Sessions(ctx, r, inspect.Filter{})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("demo: nothing was stored")
	}
	if err := writeSessions(d.cmd, list); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	one := list[0]
	if at := slices.IndexFunc(list, func(s inspect.Session) bool { return s.Delegations > 0 }); at >= 0 {
		one = list[at]
	}
	width, color := terminal(d.out)
	if err := inspect.WriteSession(ctx, d.out, r, inspect.Ref{ID: one.ID}, inspect.Style{Color: color, Width: width}); err != nil {
		return err
	}
	fmt.Fprintf(d.out, `
Look further:
  %[3]s sessions -c %[1]s
  %[3]s show %[2]s -c %[1]s --full
  %[3]s slow -c %[1]s --since 1d  # which delegation was slow, and why
  %[3]s query 'SELECT tool_name, count(), avg(duration_ms) FROM v_tool_calls GROUP BY 1' -c %[1]s
  %[3]s store --listen 127.0.0.1:0 -c %[1]s   # for curl, Grafana or a driver
`, file, one.ID[:min(8, len(one.ID))], os.Args[0])
	if d.keep {
		cfg.Store.Listen = "127.0.0.1:0"
		return app.RunStore(ctx, cfg, slog.New(slog.DiscardHandler), func(address string) {
			fmt.Fprintf(d.out, "The store's address, until you interrupt this: %s\n", address)
		})
	}
	_, err = fmt.Fprintf(d.out, "All of it as pages in a browser: %s ui -c %s\n", os.Args[0], file)
	return err
}
