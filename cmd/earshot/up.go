package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/term"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/discover"
	"github.com/earshot-dev/earshot/core/ui"
)

func newUp() *cobra.Command {
	var file configFile
	var listen string
	var noOpen, all bool
	c := &cobra.Command{
		Use:   "up",
		Short: "Find the agents of this machine and show their work",
		Long: `Find the agents of this machine, read their conversations, the newest first, follow
them from now on, and serve pages over it all, until interrupted. It needs no
configuration; with -c, an earshot.yaml in the working directory or one that earshot
init wrote, it follows that. Data are kept in the user's data directory, so
the next start continues. A second earshot up shows the pages of the first.

The address of the pages is a line of its own; with a desktop they open by themselves. On
Linux they answer this user and root alone.`,
		Example: `  earshot up
  earshot up --no-open --listen 127.0.0.1:0`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			u := up{out: c.OutOrStdout(), err: c.ErrOrStderr(), open: !noOpen && desktop(c.OutOrStdout()), all: all}
			return u.run(c.Context(), c, &file, listen, c.Flags().Changed("listen"))
		},
	}
	file.add(c)
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "loopback `ADDRESS` of the pages; a free port when the default's is taken")
	c.Flags().BoolVar(&noOpen, "no-open", false, "print the address, and open no browser")
	anyUserFlag(c, &all)
	return c
}

// up is a run of the whole product in one process group: the sidecar with its decoders, the
// store, and the pages.
type up struct {
	out, err io.Writer
	open     bool
	all      bool // users of the machine see the pages
}

func (u up) run(ctx context.Context, c *cobra.Command, file *configFile, listen string, chosen bool) error {
	if err := checkLoopback(listen); err != nil {
		return err
	}
	cfg, err := u.load(ctx, c, file)
	if err != nil {
		return err
	}
	if err := knownFormats(cfg); err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	if text := app.SharedData(cfg.DataDir); text != "" {
		fmt.Fprintln(u.err, "warning: data_dir:", text)
	}
	if address, ok := notedPages(cfg.DataDir); ok {
		fmt.Fprintln(u.out, "Earshot runs already. Its pages:")
		u.show(ctx, address)
		return nil
	}
	l, err := listenLoopback(ctx, listen)
	if err != nil && !chosen {
		l, err = listenLoopback(ctx, "127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	defer l.Close()
	logFile, err := os.OpenFile(filepath.Join(cfg.DataDir, "earshot.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()

	var pages sync.WaitGroup
	var made []app.Exporter
	defer pages.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	log := logger(cfg, logFile)
	app.BoundMemory(ctx)
	p := newProgress(u.err)
	p.begin("starting")
	caught := caughtUp{after: 2 * time.Second, patience: 15 * time.Second}
	var reload <-chan *config.Config
	if file.found() {
		reload = file.watch(ctx, log)
	}
	err = app.Run(ctx, app.Settings{
		Config: cfg, Decoders: decoders(), Logger: log, Reload: reload, Fetch: p,
		Progress: func(n app.Progress) {
			if caught.now(n, time.Now()) {
				p.end()
				read := "there was nothing new"
				if n.Bytes > 0 {
					read = fmt.Sprintf("%s and %s in %s", byteSize(n.Bytes), count(int(n.Messages), "message"), time.Since(p.began).Round(100*time.Millisecond))
				}
				fmt.Fprintf(u.err, "Up to date: %s. Now following.\n", read)
			} else if !caught.done {
				p.show(n)
			}
		},
		Exporters: func(ctx context.Context, dsn string) (list []app.Exporter, err error) {
			made, err = newExporters(ctx, cfg, dsn, log)
			return made, err
		},
		Readers: func(ctx context.Context) ([]sdkmetric.Reader, error) { return newReaders(ctx, cfg, log) },
		Ready: func(app.Running) {
			pages.Go(func() { keepChanges(ctx, cfg, made, log) })
			pages.Go(func() {
				if err := u.serve(ctx, cfg, l, p); err != nil {
					stop(err)
				}
			})
		},
	})
	p.end()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("%w (the log is %s)", err, logFile.Name())
	}
	return nil
}

// load reads the configuration, or makes one for the agents of this machine.
func (u up) load(ctx context.Context, c *cobra.Command, file *configFile) (*config.Config, error) {
	if file.found() {
		return file.load(false)
	}
	r, err := find(ctx)
	if err != nil {
		return nil, err
	}
	if err := writeFound(u.out, r, now(c), false); err != nil {
		return nil, err
	}
	return upConfig(r)
}

// upConfig is the configuration with which earshot up follows the agents of a report.
func upConfig(r *discover.Report) (*config.Config, error) {
	text, err := configuration(r)
	if err != nil {
		return nil, err
	}
	return types().Parse("earshot up", append(text, "log: {level: info}\ntelemetry: {listen: \"127.0.0.1:0\"}\n"...), os.LookupEnv)
}

// serve serves the pages until ctx ends, and notes where.
func (u up) serve(ctx context.Context, cfg *config.Config, l net.Listener, p *progress) (err error) {
	r, err := openReader(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	pages, err := ui.New(r, r.prices)
	if err != nil {
		return err
	}
	address := "http://" + l.Addr().String() + "/"
	forget, err := notePages(cfg.DataDir, address)
	if err != nil {
		return err
	}
	defer forget()
	p.above(func() { u.show(ctx, address) })
	return serve(ctx, l, pages, u.all)
}

// show prints the address, and opens it on a desktop.
func (u up) show(ctx context.Context, address string) {
	fmt.Fprintln(u.out, address)
	if !u.open {
		return
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.CommandContext(ctx, opener, address).Start(); err != nil {
		slog.New(slog.NewTextHandler(u.err, nil)).Warn("no browser was opened", "error", err)
	}
}

// desktop reports whether a person sits at this machine.
func desktop(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("SSH_CONNECTION") != "" {
		return false
	}
	return runtime.GOOS == "darwin" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// caughtUp notices the first time that nothing new is read for a while and all of it is stored. A store that does not
// take the rows is waited for with patience.
type caughtUp struct {
	after, patience time.Duration
	bytes           int64
	since           time.Time
	done            bool
}

func (u *caughtUp) now(n app.Progress, now time.Time) bool {
	if u.done {
		return false
	}
	if n.Delivered != u.bytes || n.Undecoded > 0 || n.FilesLeft > 0 || u.since.IsZero() {
		u.bytes, u.since = n.Delivered, now
		return false
	}
	quiet := now.Sub(u.since)
	u.done = quiet > u.after && n.Stored || quiet > u.patience
	return u.done
}
