package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
)

func newSessions() *cobra.Command {
	var file configFile
	var f inspect.Filter
	var output string
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List conversations",
		Long:  `List conversations, the one with the latest message first.`,
		Example: `  earshot sessions --since 24h
  earshot sessions --search "refund" -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.Limit < 1 {
				return usageError{fmt.Errorf("--limit %d: must be positive", f.Limit)}
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				list, err := inspect.Sessions(ctx, r, f)
				if err != nil {
					return err
				}
				if output == "json" {
					if list == nil {
						list = []inspect.Session{}
					}
					err = writeJSON(c.OutOrStdout(), list)
				} else {
					err = writeSessions(c, list)
				}
				if err != nil || len(list) > 0 {
					return err
				}
				noteFormat(c, r.cfg, f.Format)
				why, err := nothingToShow(ctx, r.cfg, r)
				for _, text := range why {
					fmt.Fprintln(c.ErrOrStderr(), text)
				}
				return err
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	c.Flags().Var((*since)(&f.Since), "since", "with a message within this `DURATION`: 90m, 24h, 7d, 2w")
	c.Flags().StringVar(&f.Search, "search", "", "with this `TEXT` in id, agents, title, first prompt, project or branch")
	c.Flags().StringVar(&f.Format, "format", "", "of this `FORMAT`")
	tenantFlag(c, &f.Tenant)
	c.Flags().IntVarP(&f.Limit, "limit", "n", 50, "at most `N`")
	return c
}

// tenantFlag adds --tenant, which picks one of the conversations that have an id.
func tenantFlag(c *cobra.Command, tenant *string) {
	c.Flags().StringVar(tenant, "tenant", "", "of this `TENANT`")
}

// noteFormat prints that no decoder has a name that may be mistyped. Rows of a decoder that is gone are found all the same.
func noteFormat(c *cobra.Command, cfg *config.Config, format string) {
	known := decoders().Names
	for i := range cfg.Sources {
		known = append(known, cfg.Sources[i].Format)
	}
	if format != "" && !slices.Contains(known, format) {
		fmt.Fprintf(c.ErrOrStderr(), "no source and no bundled decoder has the format %s: %s\n", format, cmp.Or(config.DidYouMean(format, known), "earshot plugin list has their names"))
	}
}

func writeSessions(c *cobra.Command, list []inspect.Session) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(c.OutOrStdout(), "no sessions")
		return err
	}
	at := now(c)
	rows := make([][]string, 0, len(list))
	several := slices.ContainsFunc(list, func(s inspect.Session) bool { return s.Tenant != list[0].Tenant })
	for _, s := range list {
		tokens := "" // of a conversation without any none are known
		if s.Tokens > 0 {
			tokens = fmt.Sprint(s.Tokens)
		}
		rows = append(rows, []string{
			inspect.Clip(s.ID, 256), s.Format, s.Started.In(at.Location()).Format("2006-01-02 15:04"), inspect.Span(s.Last.Sub(s.Started)),
			fmt.Sprint(s.Turns), fmt.Sprint(s.Messages), fmt.Sprint(s.ToolCalls), fmt.Sprint(s.Delegations), fmt.Sprint(s.Errors), tokens,
			inspect.Clip(strings.Join(s.Agents, ","), 24),
			inspect.Clip(inspect.Base(s.Project), 24), inspect.Clip(s.Branch, 20), inspect.Clip(s.Version, 12), inspect.Clip(s.Title, 48),
		})
	}
	columns := []column{
		{name: "session", least: 8, id: true}, {name: "format", drop: 3}, {name: zoned("started", at)}, {name: "lasted", drop: 7}, {name: "turns", drop: 8}, {name: "messages", drop: 1},
		{name: "tools", drop: 6}, {name: "delegations", drop: 5}, {name: "errors", drop: 9}, {name: "tokens", drop: 4}, {name: "agents", least: 8, drop: 2},
		{name: "project", least: 8, drop: 10}, {name: "branch", least: 6, drop: 4}, {name: "version", least: 5, drop: 2}, {name: "title", least: 20},
	}
	if several {
		columns = slices.Insert(columns, 1, column{name: "tenant"})
		for i := range rows {
			rows[i] = slices.Insert(rows[i], 1, inspect.Clip(list[i].Tenant, 24))
		}
	}
	_, err := writeFitted(c.OutOrStdout(), columns, rows)
	return err
}

func newShow() *cobra.Command {
	var file configFile
	var output string
	var full bool
	var trace, tenant string
	c := &cobra.Command{
		Use:   "show SESSION | --trace TRACE",
		Short: "Show one conversation turn by turn, or one turn as a waterfall",
		Long: `Show a conversation: for each turn the user's prompt, the steps behind the scenes
(model turns, tools, delegations and the agents below them, with times, durations and
tokens), and the answer. The beginning of a session's id is enough.

With --trace, draw one turn as a waterfall: a bar per span on the scale of the whole
turn, spans on the critical path solid and marked with *.`,
		Example: `  earshot show 0801e1da
  earshot show --trace 4bf92f35
  earshot show 0801e1da --full | less -R`,
		Args: func(c *cobra.Command, args []string) error {
			if trace != "" && len(args) > 0 {
				return errors.New("SESSION and --trace TRACE exclude each other")
			}
			if trace == "" && len(args) != 1 {
				return errors.New("one SESSION, or --trace TRACE, is required")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return read(c, &file, func(ctx context.Context, r *reader) error {
				width, color := terminal(c.OutOrStdout())
				style := inspect.Style{Color: color, Width: width, Full: full, Zone: now(c).Location()}
				if trace != "" {
					t, err := inspect.LoadTrace(ctx, r, trace, r.prices, now(c))
					if err != nil {
						return err
					}
					return writeDrawn(c, output, t.Waterfall(), style)
				}
				if output != "json" {
					return inspect.WriteSession(ctx, c.OutOrStdout(), r, inspect.Ref{Tenant: tenant, ID: args[0]}, style)
				}
				conv, err := inspect.Load(ctx, r, inspect.Ref{Tenant: tenant, ID: args[0]}, inspect.LongTexts)
				if err != nil {
					return err
				}
				return writeJSON(c.OutOrStdout(), conv)
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	tenantFlag(c, &tenant)
	c.Flags().StringVar(&trace, "trace", "", "draw this `TRACE` as a waterfall; the beginning of its id is enough")
	c.Flags().BoolVar(&full, "full", false, "whole texts instead of their beginnings")
	return c
}

// drawn replaces control characters, which a terminal would obey.
type drawn interface {
	Write(w io.Writer, st inspect.Style) error
}

// writeDrawn writes v as JSON or draws it.
func writeDrawn(c *cobra.Command, output string, v drawn, st inspect.Style) error {
	if output == "json" {
		return writeJSON(c.OutOrStdout(), v)
	}
	return v.Write(c.OutOrStdout(), st)
}
