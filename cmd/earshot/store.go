package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
)

func newStore() *cobra.Command {
	var file configFile
	var listen string
	c := &cobra.Command{
		Use:   "store",
		Short: "Serve the embedded store to curl, a ClickHouse driver or Grafana",
		Long: `Serve the embedded ClickHouse of a data directory until interrupted, with or
without a sidecar, and print its address: the Unix socket, or with --listen (or
store.listen) a loopback address with the user reader and a token, which is
random for each start unless store.token sets it. curl, a ClickHouse driver in
HTTP mode and Grafana's ClickHouse data source work against it.`,
		Example: `  earshot store -c earshot.yaml --listen 127.0.0.1:8123
  curl http://reader:TOKEN@127.0.0.1:8123 -d "SELECT count() FROM earshot.messages"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			if !cfg.Embedded() {
				return usageError{fmt.Errorf("the configuration names a ClickHouse server; there is no embedded store")}
			}
			if c.Flags().Changed("listen") {
				cfg.Store.Listen = listen
			}
			return app.RunStore(c.Context(), cfg, slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)), func(url string) {
				fmt.Fprintln(c.OutOrStdout(), url)
			})
		},
	}
	file.add(c)
	c.AddCommand(newStoreFetch())
	c.Flags().StringVar(&listen, "listen", "", "serve at this loopback `ADDRESS`; port 0 takes a free one")
	return c
}

func newStoreFetch() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "fetch",
		Short: "Fetch the engine of the embedded store, once",
		Long: `Fetch the ClickHouse engine, a library of about 180 MB, into the user's cache, unless it is
there: by npm, or without npm from the registry that npm's configuration names. It is
checked against the integrity of the release; where a platform has none in the release, against that of
the registry, and the first one is pinned in the data directory. earshot up, run and demo do the
same when they start, unless store.fetch is false.`,
		Example: "  earshot store fetch",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			if err := app.FetchEngine(c.Context(), cfg, c.OutOrStdout()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "The engine is on this machine: %s.\n", app.Engine(c.Context()))
			return err
		},
	}
	file.add(c)
	return c
}
