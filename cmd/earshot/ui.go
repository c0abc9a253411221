package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/loopback"
	"github.com/earshot-dev/earshot/core/ui"
)

func newUI() *cobra.Command {
	var file configFile
	var listen string
	c := &cobra.Command{
		Use:   "ui",
		Short: "Serve pages over the conversations",
		Long: `Serve pages on this machine, until interrupted: the slow delegations and their bottlenecks,
traces with their critical path, a search of everything, the conversations turn by
turn, the boards, the tools, and the open work. It needs no Grafana, and works whether or not a sidecar runs.
It does not authenticate, so it listens on loopback only.`,
		Example: `  earshot ui
  earshot ui -c earshot.yaml --listen 127.0.0.1:8090`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := listenLoopback(c.Context(), listen)
			if err != nil {
				return err
			}
			defer l.Close()
			return read(c, &file, func(ctx context.Context, r *reader) error {
				pages, err := ui.New(r, r.prices)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "http://%s\n", l.Addr())
				return serve(ctx, l, pages)
			})
		},
	}
	file.add(c)
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "loopback `ADDRESS`; port 0 takes a free one")
	return c
}

func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil || !loopback.Is(address) {
		return nil, usageError{fmt.Errorf("--listen %q is no loopback address such as 127.0.0.1:8090", address)}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken: --listen 127.0.0.1:0 finds a free port", address)
	}
	return l, err
}

// serve serves until ctx ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ui: %w", err)
	}
	return nil
}
