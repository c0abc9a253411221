package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/inspect"
)

func newChanges() *cobra.Command {
	var file configFile
	var output string
	f := inspect.ChangedFilter{Since: 7 * 24 * time.Hour}
	c := &cobra.Command{
		Use:   "changes",
		Short: "List when agents, tools and models changed, and with which version",
		Long: `List when the duration, the errors, the tokens or the calls of an agent, a tool or a
model changed: the point, the size with its 95 % interval, the numbers of runs on both
sides, and the version that it came with. A version is the set-up of an agent: its client,
model, effort, system prompt and tools.

The difference of an agent's duration is explained by the critical paths of turns before
and after, in parts that add up.

Runs are compared by ranks with those before, up to 30 days back. All series together have
at most --budget false alarms in 30 days, however often this is asked. docs/changes.md has
the method, and how small a change is found after how many runs.`,
		Example: `  earshot changes --since 7d
  earshot changes --since 24h --agent pilot -o json | jq -r '.changes[].since[]'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.Since < time.Minute:
				return usageError{fmt.Errorf("--since %s: must be a minute or more", f.Since)}
			case f.Budget <= 0:
				return usageError{fmt.Errorf("--budget %g: must be positive", f.Budget)}
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				f.Now, f.Prices = now(c), r.prices
				list, err := inspect.WhatChanged(ctx, r, f)
				if err != nil {
					return err
				}
				width, color := terminal(c.OutOrStdout())
				return writeDrawn(c, output, list, inspect.Style{Color: color, Width: width, Zone: f.Now.Location()})
			})
		},
	}
	file.add(c)
	formatFlag(c, &output, "table", "json")
	c.Flags().Var((*since)(&f.Since), "since", "found within this `DURATION`: 24h, 7d, 2w")
	c.Flags().StringVar(&f.Agent, "agent", "", "of this `AGENT` only")
	c.Flags().Float64Var(&f.Budget, "budget", 1, "false alarms in 30 days that may be expected, at most `N`")
	return c
}
