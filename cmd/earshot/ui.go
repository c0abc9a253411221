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
	var all bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Serve pages over the conversations",
		Long: `Serve pages on this machine, until interrupted: the slow delegations and their bottlenecks,
traces with their critical path, a search of everything, the conversations turn by
turn, the boards, the tools, and the open work. It needs no Grafana, and works whether or not a sidecar runs.
It has no password: it listens on loopback only, and on Linux it answers this user and root alone. With
--any-user it answers all users, as behind a proxy that authenticates.`,
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
				return serve(ctx, l, pages, all)
			})
		},
	}
	file.add(c)
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "loopback `ADDRESS`; port 0 takes a free one")
	anyUserFlag(c, &all)
	return c
}

func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	if err := checkLoopback(address); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken: --listen 127.0.0.1:0 finds a free port", address)
	}
	return l, err
}

// checkLoopback refuses an address that --listen cannot have.
func checkLoopback(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || !loopback.Is(address) {
		return usageError{fmt.Errorf("--listen %q is no loopback address such as 127.0.0.1:8090", address)}
	}
	return nil
}

// anyUserFlag adds the flag for serve.
func anyUserFlag(c *cobra.Command, all *bool) {
	c.Flags().BoolVar(all, "any-user", false, "serve the pages to every user of this machine")
}

// foreignKey is the key of the error with which loopback.Own refuses a connection, in the context of its requests.
type foreignKey struct{}

// serve serves until ctx ends: the processes of this user, or those of all.
func serve(ctx context.Context, l net.Listener, h http.Handler, all bool) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	if !all {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, foreignKey{}, loopback.Own(c))
		}
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if foreign := r.Context().Value(foreignKey{}); foreign != nil {
				http.Error(w, fmt.Sprintf("This is served to the user alone who started it: %v. With --any-user it is served to all.", foreign), http.StatusForbidden)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ui: %w", err)
	}
	return nil
}
