package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/inspect"
)

func newTail() *cobra.Command {
	var file configFile
	var f inspect.TailFilter
	var output string
	var once bool
	c := &cobra.Command{
		Use:   "tail",
		Short: "Follow messages, or spans, as they are stored",
		Long: `Follow what is stored: first the latest of the past, then each message once it is
there, until Ctrl-C. Each message is told once, though a later version may complete
it. With --spans it is spans, as they end.

With -o json each is an object on a line of its own.`,
		Example: `  earshot tail
  earshot tail --kind delegation
  earshot tail --spans --session 0801e1da -o json | jq -c '[.kind, .name, .duration_ms]'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.Limit < 0 {
				return usageError{fmt.Errorf("--limit %d: must not be negative", f.Limit)}
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				return follow(ctx, r, inspect.NewTail(f), once, func(l inspect.TailLine) error {
					if output == "json" {
						b, err := json.Marshal(l)
						if err != nil {
							return err
						}
						_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", b)
						return err
					}
					return writeTailLine(c.OutOrStdout(), l)
				})
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	c.Flags().BoolVar(&f.Spans, "spans", false, "spans that have ended, instead of messages")
	c.Flags().StringVar(&f.Session, "session", "", "of the `SESSION` whose id begins so")
	c.Flags().StringVar(&f.Format, "format", "", "of this `FORMAT`")
	c.Flags().StringVar(&f.Kind, "kind", "", "of this `KIND`: user, assistant, tool_call, delegation, ...; of spans: chat, execute_tool, invoke_agent")
	c.Flags().BoolVar(&f.Hidden, "hidden", false, "also what a user interface would not show")
	c.Flags().IntVarP(&f.Limit, "limit", "n", 10, "`N` of the past to begin with")
	c.Flags().BoolVar(&once, "once", false, "only the past; do not follow")
	return c
}

// follow tells lines until ctx ends.
func follow(ctx context.Context, r *reader, t *inspect.Tail, once bool, tell func(inspect.TailLine) error) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := t.Next(ctx, r, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		for _, l := range list {
			if err := tell(l); err != nil {
				return err
			}
		}
		if once {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func writeTailLine(w io.Writer, l inspect.TailLine) error {
	width, color := terminal(w)
	if width == 0 {
		width = 160
	}
	what := l.Kind
	if l.Name != "" {
		what += " " + l.Name
	}
	if l.TookMS > 0 {
		what += " " + inspect.Span(time.Duration(l.TookMS*1e6))
	}
	head := fmt.Sprintf("%s  %-8s  %-14s  %-28s", l.TS.Format("15:04:05.000"), inspect.Clip(l.Session, 8), inspect.Clip(orUnknown(l.Agent), 14), inspect.Clip(what, 28))
	text := inspect.Clip(l.Text, max(20, width-72))
	if l.Error {
		text = "error: " + text
		if color {
			text = "\x1b[31m" + text + "\x1b[0m"
		}
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", head, text)
	return err
}
