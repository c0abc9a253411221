package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/price"
)

func newValidate() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration",
		Long: `Check a configuration: the file with line and column, the decoders (each is
started and asked whether it takes the source's options), the table of prices,
whether the stores can be reached, and whether a run could start here: the data
directory, the engine, the addresses to listen on. Paths that no file matches, files
that may not be read, and files of which the format's decoder understands next to
nothing are warnings: the configuration is valid with them.`,
		Example: `  earshot validate -c earshot.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(false)
			if err != nil {
				return err
			}
			problems, err := decoders().Check(c.Context(), cfg)
			if err != nil {
				return err
			}
			if len(problems) > 0 {
				return usageError{&config.Error{Problems: problems}}
			}
			if _, err := price.Load(cfg.Prices); err != nil {
				return usageError{err}
			}
			if !cfg.Embedded() {
				r, err := openReader(c.Context(), cfg)
				if err == nil {
					err = errors.Join(r.conn.Ping(c.Context()), r.Close())
				}
				if err != nil {
					return fmt.Errorf("exporters.clickhouse: %w", err)
				}
			}
			surveys, err := app.ReportFiles(c.Context(), decoders(), cfg, true, nil)
			if err != nil {
				return err
			}
			for _, text := range decoders().Warnings(cfg) {
				fmt.Fprintln(c.ErrOrStderr(), "warning: "+text)
			}
			if text := app.SharedData(cfg.DataDir); text != "" {
				fmt.Fprintln(c.ErrOrStderr(), "warning: data_dir: "+text)
			}
			for i := range surveys {
				for _, text := range surveys[i].Warnings() {
					fmt.Fprintln(c.ErrOrStderr(), "warning: "+text)
				}
			}
			if list := app.Environment(c.Context(), cfg); len(list) > 0 {
				return errors.New("the configuration is valid, but a run cannot start here:\n" + strings.Join(list, "\n"))
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), "valid")
			return err
		},
	}
	file.add(c)
	return c
}
