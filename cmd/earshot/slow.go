package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/inspect"
)

func newSlow() *cobra.Command {
	var file configFile
	var f inspect.SlowFilter
	var output string
	c := &cobra.Command{
		Use:   "slow",
		Short: "List the slowest delegations with their bottlenecks",
		Long: `List the slowest delegations of the last hour, the slowest first, each with the split
of its wall time and its bottleneck.

The duration is the time that the caller waited, from the call to its result. The boards
and v_delegations have that of the delegate's run, from the call to the run's end, which
is "worked_ms" in -o json. They differ where the result was reported later.

Every instant is in exactly one bucket, and the buckets add up to the duration:
  model_ttft    waiting for a model's first token
  model_stream  a model streaming (all of its time if no first token was recorded)
  tool          a tool
  sub_agent     an agent below the delegate
  wait          waiting for a person: a permission, a paused run
  retry         attempts that failed and were repeated
  idle          no recorded activity: framework, queue, hand-over
Of steps that overlap, the one that gates its successor has the time. Running work
counts until now. An asynchronous delegation, or one whose result never arrived (lost),
lasts as long as the run that it caused.

The bottleneck is the group of steps with most of the critical path, with how much
earlier the delegation would have ended without it. "earshot explain TRACE" explains it
in words, "earshot show --trace TRACE" draws it; the beginning of a trace's id is
enough.`,
		Example: `  earshot slow
  earshot slow --since 24h -n 5
  earshot slow --session 0801e1da -o json | jq '.[0].bottleneck'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.Limit < 1:
				return usageError{fmt.Errorf("--limit %d: must be positive", f.Limit)}
			case f.Since < time.Second:
				return usageError{fmt.Errorf("--since %s: must be a second or more", f.Since)}
			case f.Session.ID != "" && !c.Flags().Changed("since"):
				f.Since = 0
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				f.Now, f.Prices = now(c), r.prices
				list, err := inspect.Slow(ctx, r, f)
				if err != nil {
					return err
				}
				if len(list) == 0 {
					if err := sayNothingSlow(ctx, c.ErrOrStderr(), r, f); err != nil {
						return err
					}
				}
				if output == "json" {
					if list == nil {
						list = []inspect.SlowDelegation{}
					}
					return writeJSON(c.OutOrStdout(), list)
				}
				return writeSlow(c.OutOrStdout(), list, f.Now)
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	f.Since = time.Hour
	c.Flags().Var((*since)(&f.Since), "since", "that ran within this `DURATION`, as 90m, 24h, 7d, 2w; all of the session with --session")
	c.Flags().StringVar(&f.Session.ID, "session", "", "of this `SESSION`; the beginning of its id is enough")
	tenantFlag(c, &f.Session.Tenant)
	c.Flags().IntVarP(&f.Limit, "limit", "n", 20, "at most `N`")
	return c
}

// sayNothingSlow prints how to widen an empty window.
func sayNothingSlow(ctx context.Context, w io.Writer, r *reader, f inspect.SlowFilter) error {
	last, err := inspect.Latest(ctx, r)
	switch {
	case err != nil:
		return err
	case last.IsZero():
		fmt.Fprintln(w, "no delegations: no agent has handed work to another one yet")
	case f.Session.ID != "":
		fmt.Fprintf(w, "no delegations of session %s\n", f.Session.ID)
	default:
		fmt.Fprintf(w, "no delegations in the last %s; the latest ended at %s: try --since %s\n", inspect.Span(f.Since), inspect.Stamp(last, f.Now.Location()), reach(f.Now.Sub(last)))
	}
	return nil
}

// reach is a duration of whole hours or days, as --since takes it, that is longer.
func reach(d time.Duration) string {
	if d < 96*time.Hour {
		return fmt.Sprintf("%dh", int(d/time.Hour)+1)
	}
	return fmt.Sprintf("%dd", int(d/(24*time.Hour))+1)
}

func writeSlow(w io.Writer, list []inspect.SlowDelegation, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	width, color := terminal(w)
	rows, costs := make([][]string, 0, len(list)), make([]string, 0, len(list))
	for i := range list {
		d := &list[i]
		costs = append(costs, d.Spent.Dollars())
		guilty, saves := "", ""
		if d.Bottleneck != nil {
			guilty = d.Bottleneck.String()
			if t := time.Duration(d.Bottleneck.SavesMS * 1e6); t > 0 && d.Bottleneck.SpanID != d.SpanID { // it is no part of itself
				saves = inspect.Span(t) + " earlier"
			}
		}
		lasted := inspect.Span(d.Wall)
		if d.Status != "" {
			lasted += " " + d.Status
		}
		rows = append(rows, []string{ // whole, but for a terminal
			d.Started.In(now.Location()).Format("2006-01-02 15:04:05"), inspect.Clip(d.Pair(), len(d.Pair())), lasted,
			inspect.Bar(d.Split, 20, color), d.Top(), inspect.Clip(guilty, len(guilty)), saves, costs[i], d.TraceID,
		})
	}
	shown, err := writeFitted(w, []column{
		{name: zoned("began", now), drop: 5}, {name: "who → whom", least: 20}, {name: "took"}, {name: "where the time went", drop: 4}, {name: "mostly", drop: 3},
		{name: "bottleneck", least: 26, ends: true}, {name: "without it", drop: 2}, {name: "cost", drop: 1}, {name: "trace", least: 8, id: true},
	}, rows)
	if err != nil {
		return err
	}
	lines := append([]string{""}, inspect.Lines(inspect.BarLegend, width)...)
	if prices := inspect.PriceLegend(costs); prices != "" && slices.Contains(shown, "cost") {
		lines = append(lines, inspect.Lines("cost: "+prices, width)...)
	}
	lines = append(lines, inspect.Lines(fmt.Sprintf("earshot explain %.8s  explains it;  earshot show --trace %[1]s  draws it", list[0].TraceID), width)...)
	_, err = fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func newExplain() *cobra.Command {
	var file configFile
	var output, tenant string
	c := &cobra.Command{
		Use:   "explain TRACE",
		Short: "Explain in words where the time of one turn was spent",
		Long: `Explain where the time of one turn was spent: its split, its bottlenecks and how much
earlier it would have ended without each, failures, running work, and skewed clocks.
Below, the split of every run and delegation in the buckets of "earshot slow". The
beginning of a trace's id is enough. Of a conversation's id it is the latest turn.`,
		Example: `  earshot explain 4bf92f35
  earshot explain 0801e1da-22c4-4a1f-9a4e-5c1b6c1f0d11
  earshot explain 4bf92f35 -o json | jq -r '.text[]'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return read(c, &file, func(ctx context.Context, r *reader) error {
				t, err := inspect.LoadTurn(ctx, r, inspect.Ref{Tenant: tenant, ID: args[0]}, r.prices, now(c))
				if err != nil {
					return err
				}
				width, color := terminal(c.OutOrStdout())
				return writeDrawn(c, output, t.Explain(), inspect.Style{Color: color, Width: width, Zone: now(c).Location()})
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	tenantFlag(c, &tenant)
	return c
}
