package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/inspect"
)

func newDiff() *cobra.Command {
	var file configFile
	var output, versions, tenant string
	window := 24 * time.Hour
	c := &cobra.Command{
		Use:   "diff A B | --versions V1,V2 | --since DURATION",
		Short: "Compare two traces, sessions, versions or stretches of time",
		Long: `Compare two traces or two sessions step by step: calls of the same tool and
delegations to the same agent are paired in their order, at each depth, those with
the same arguments first. It names the first step at which they diverge, and the
difference in time, tokens and cost. The beginning of an id is enough.

Without ids compare agents, tools and delegations of two samples: the last DURATION
with the one before, or two versions of the agent's program within it. The 95th
percentile is the duration of one of them, so the parts of its critical path explain
the difference, and add up to it.`,
		Example: `  earshot diff 4bf92f35 00f067aa
  earshot diff --since 7d
  earshot diff --since 30d --versions 2.1.38,2.1.39 -o json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return errors.New("two traces or sessions are compared: A and B")
			}
			if len(args) == 0 && tenant != "" {
				return errors.New("--tenant is of the sessions A and B")
			}
			if len(args) == 2 && (versions != "" || c.Flags().Changed("since")) {
				return errors.New("A and B exclude --since and --versions")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			at := now(c)
			a, b := inspect.Sample{From: at.Add(-2 * window), To: at.Add(-window)}, inspect.Sample{From: at.Add(-window), To: at}
			if versions != "" {
				first, second, two := strings.Cut(versions, ",")
				if !two || first == "" || second == "" {
					return usageError{fmt.Errorf("--versions %s: want V1,V2", versions)}
				}
				a.From, a.To, a.Version, b.Version = b.From, b.To, first, second
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				width, color := terminal(c.OutOrStdout())
				style := inspect.Style{Color: color, Width: width, Zone: at.Location()}
				if len(args) == 2 {
					d, err := inspect.Diff(ctx, r, inspect.Ref{Tenant: tenant, ID: args[0]}, inspect.Ref{Tenant: tenant, ID: args[1]}, r.prices, at)
					if err != nil {
						return err
					}
					return writeDrawn(c, output, d, style)
				}
				list, err := inspect.Changes(ctx, r, a, b, r.prices, at)
				if err != nil {
					return err
				}
				if output == "json" {
					return writeJSON(c.OutOrStdout(), map[string]any{"a": a, "b": b, "changes": list})
				}
				if len(list) == 0 && versions == "" {
					_, err := fmt.Fprintf(c.OutOrStdout(), "nothing ran from %s to %s: --since names a longer time\n", inspect.Stamp(a.From, at.Location()), inspect.Stamp(b.To, at.Location()))
					return err
				}
				return inspect.WriteChanges(c.OutOrStdout(), a, b, list, style)
			})
		},
	}
	file.add(c)
	formatFlag(c, &output, "table", "json")
	tenantFlag(c, &tenant)
	c.Flags().Var((*since)(&window), "since", "compare the last `DURATION` with the one before: 90m, 24h, 7d, 2w")
	c.Flags().StringVar(&versions, "versions", "", "compare these two `VERSIONS` of the agent's program within --since")
	return c
}
