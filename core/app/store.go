package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/store"
)

// StoreSettings are the settings of the configuration's embedded store.
func StoreSettings(c *config.Config, log *slog.Logger) store.Settings {
	return store.Settings{
		Dir: filepath.Join(c.DataDir, "store"), Binary: c.Store.Binary, Engine: c.Store.Engine, MaxMemory: int64(c.Store.MaxMemory),
		Standby: time.Duration(c.Store.Standby), Logger: log,
	}
}

// Engine names the engine of the earshot-store beside this executable or in PATH, as NPM-PACKAGE@VERSION. It
// is empty without one.
func Engine(ctx context.Context) string { return store.Engine(ctx) }

// FetchEngine fetches the engine of the embedded store, unless it is on this machine, and announces
// that on out.
func FetchEngine(ctx context.Context, c *config.Config, out io.Writer) error {
	s := StoreSettings(c, nil)
	s.Fetch = out
	return store.Fetch(ctx, s)
}

// openGateway serves the store at store.listen.
func openGateway(s *store.Store, c *config.Config, log *slog.Logger) (*store.Gateway, error) {
	g, err := s.OpenGateway(store.GatewaySettings{
		Listen: c.Store.Listen, Token: c.Store.Token.Reveal(), WriterToken: c.Store.WriterToken.Reveal(), Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("store.listen: %w", err)
	}
	return g, nil
}

// OpenedStore is an embedded store that a command uses: one that runs already, or one of its own, which Close stops.
type OpenedStore struct {
	*store.Store
	DSN string
}

// OpenStore opens the embedded store for a reader.
func OpenStore(ctx context.Context, c *config.Config, log *slog.Logger) (*OpenedStore, error) {
	if _, err := os.Stat(StoreSettings(c, log).Dir); err != nil {
		return nil, fmt.Errorf("no store in %s: nothing has run with this data_dir yet; `earshot up` or `earshot run` begins", c.DataDir)
	}
	return openStoreAs(ctx, c, log, "reader")
}

// OpenStoreToWrite is OpenStore for a writer; the store need not be there yet.
func OpenStoreToWrite(ctx context.Context, c *config.Config, log *slog.Logger) (*OpenedStore, error) {
	return openStoreAs(ctx, c, log, "default")
}

func openStoreAs(ctx context.Context, c *config.Config, log *slog.Logger, user string) (*OpenedStore, error) {
	s, err := store.Open(ctx, StoreSettings(c, log))
	if err != nil {
		return nil, err
	}
	return &OpenedStore{s, s.DSN(user, "earshot")}, nil
}

// RunStore runs the embedded store until ctx ends, unless one runs already, and serves it at
// store.listen. It calls ready with the address, which has a reader's token, or, without
// store.listen, with that of the Unix socket.
func RunStore(ctx context.Context, c *config.Config, log *slog.Logger, ready func(address string)) error {
	s, err := store.Open(ctx, StoreSettings(c, log))
	if err != nil {
		return err
	}
	defer s.Close()
	address := "unix:" + s.Socket()
	if c.Store.Listen != "" {
		g, err := openGateway(s, c, log)
		if err != nil {
			return err
		}
		defer g.Close()
		address = g.URL()
	}
	ready(address)
	s.Supervise(ctx)
	<-ctx.Done()
	return nil
}
