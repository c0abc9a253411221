package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/term"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/attach"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/freeport"
)

// recorded runs a command, and a sidecar of its own for it, with a tap for each provider.
//
// A sidecar that runs already keeps its checkpoint and journal to itself, so this one has a folder of its
// own below the data directory, and shares the store. Rows that it has not delivered at the end
// are delivered by the next one in that folder.
type recorded struct {
	file      *configFile
	delivered atomic.Int64 // bytes that the taps' readers have delivered
}

const (
	startWithin = 15 * time.Second // of the taps; then the command runs without
	quietFor    = 500 * time.Millisecond
	readWithin  = 10 * time.Second
	maxRuns     = 64 // at a time
)

func (r *recorded) run(c *cobra.Command, args []string) error {
	if _, err := exec.LookPath(args[0]); err != nil {
		return notStarted{err}
	}
	// A signal is for the command; we end after it.
	ctx := context.WithoutCancel(c.Context())
	env, end, err := r.start(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "earshot: %s is not recorded: %v\n", args[0], err)
		env, end = os.Environ(), func() {}
	}
	defer end()
	child := exec.Command(args[0], args[1:]...)
	child.Stdin, child.Stdout, child.Stderr, child.Env = os.Stdin, os.Stdout, os.Stderr, env
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return notStarted{err}
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				// A terminal sends these to the command itself.
				if (s == os.Interrupt || s == syscall.SIGQUIT) && term.IsTerminal(int(os.Stdin.Fd())) {
					continue
				}
				_ = child.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()
	err = child.Wait()
	close(done)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitStatus(128 + int(w.Signal()))
	}
	return exitStatus(exit.ExitCode())
}

// start starts the taps. It returns the environment for the command, and the function that
// ends the taps once everything is stored.
func (r *recorded) start(ctx context.Context) (env []string, end func(), err error) {
	cfg, err := r.file.load(true)
	if err != nil {
		return nil, nil, err
	}
	env, sources, err := taps(os.Environ())
	if err != nil {
		return nil, nil, err
	}
	with, err := types().Parse("taps", []byte(sources), os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	own := *cfg
	own.Sources, own.Telemetry.Listen, own.Store.Listen = with.Sources, "", ""
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- r.sidecar(ctx, cfg.DataDir, &own, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, nil, err
	case <-time.After(startWithin):
		cancel()
		return nil, nil, fmt.Errorf("the taps did not start within %s", startWithin)
	}
	return env, func() {
		r.settle()
		cancel()
		if err := <-ended; err != nil {
			fmt.Fprintln(os.Stderr, "earshot: the recording ended early:", err)
		}
	}, nil
}

// sidecar runs a sidecar in the first folder that no other one uses.
func (r *recorded) sidecar(ctx context.Context, dataDir string, cfg *config.Config, ready func()) error {
	for n := range maxRuns {
		cfg.DataDir = filepath.Join(dataDir, "runs", strconv.Itoa(n))
		if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
			return err
		}
		logFile, err := os.OpenFile(filepath.Join(cfg.DataDir, "earshot.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		err = r.once(ctx, dataDir, cfg, logger(cfg, logFile), ready)
		_ = logFile.Close()
		if !errors.Is(err, app.ErrInUse) {
			return err
		}
	}
	return fmt.Errorf("%d commands are recorded already", maxRuns)
}

func (r *recorded) once(ctx context.Context, dataDir string, cfg *config.Config, log *slog.Logger, ready func()) error {
	return app.Run(ctx, app.Settings{
		Config: cfg, StoreOf: dataDir, Decoders: decoders(), Logger: log,
		Progress:  func(n app.Progress) { r.delivered.Store(n.Delivered) },
		Exporters: func(ctx context.Context, dsn string) ([]app.Exporter, error) { return newExporters(ctx, cfg, dsn, log) },
		Readers:   func(ctx context.Context) ([]sdkmetric.Reader, error) { return newReaders(ctx, cfg, log) },
		Ready:     func(app.Running) { ready() },
	})
}

// settle waits until the journal has nothing more to read.
func (r *recorded) settle() {
	began, since, last := time.Now(), time.Now(), int64(-1)
	for time.Since(since) < quietFor && time.Since(began) < readWithin {
		if n := r.delivered.Load(); n != last {
			since, last = time.Now(), n
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// taps returns an environment in which each provider's base URL leads through a tap, and the
// configuration of these taps.
func taps(environ []string) (env []string, sources string, err error) {
	env = environ
	var b strings.Builder
	b.WriteString("sources:\n")
	providers := attach.Providers()
	free, err := freeport.Loopbacks(len(providers))
	if err != nil {
		return nil, "", err
	}
	for i, p := range providers {
		base := p.Base
		if own := os.Getenv(p.Variable); own != "" {
			base = own
		}
		through, upstream, err := attach.Through(base, free[i])
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", p.Variable, err)
		}
		env = append(env, p.Variable+"="+through)
		fmt.Fprintf(&b, "  - %s\n", attach.TapSource("run-"+p.Name, free[i], upstream, p.Routes))
	}
	return withoutProxy(env), b.String(), nil
}

// withoutProxy keeps a proxy of the environment out of the way to the taps.
func withoutProxy(env []string) []string {
	proxied := false
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		proxied = proxied || os.Getenv(name) != ""
	}
	if !proxied {
		return env
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		list := "127.0.0.1"
		if own := os.Getenv(name); own != "" {
			list = own + "," + list
		}
		env = append(env, name+"="+list)
	}
	return env
}
