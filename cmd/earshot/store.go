package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
)

func newStore() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "store",
		Short: "Run the embedded store alone",
		Long: `Run the embedded ClickHouse of a data directory without a sidecar, until it is
interrupted, and print its address. curl, a ClickHouse driver in HTTP mode and
Grafana's ClickHouse data source work against it.`,
		Example: `  earshot store -c earshot.yaml
  curl http://127.0.0.1:PORT -d "SELECT count() FROM earshot.messages"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			if !cfg.Embedded() {
				return usageError{fmt.Errorf("the configuration names a ClickHouse server; there is no embedded store")}
			}
			return app.RunStore(c.Context(), cfg, slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)), func(url string) {
				fmt.Fprintln(c.OutOrStdout(), url)
			})
		},
	}
	file.add(c)
	return c
}
