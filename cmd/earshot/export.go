package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/interchange"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/price"
)

func newExport() *cobra.Command {
	var file configFile
	var format, output, tenant string
	c := &cobra.Command{
		Use:   "export SESSION --format atif|sft|openinference|otlp|jsonl",
		Short: "Write one conversation in a format that other programs read",
		Long: `Write a conversation in a format that other programs read. The beginning of a session's
id is enough.

  atif           a trajectory, ATIF v1.7, with those of sub-agents, tokens and cost
  sft            a line for each agent: the messages as Chat Completions has them, for
                 fine-tuning; divided where the context was compacted
  openinference  spans with the attributes of OpenInference, in OTLP/JSON
  otlp           spans with the attributes of OpenTelemetry, in OTLP/JSON
  jsonl          the rows of the table messages, as earshot decode prints them`,
		Example: `  earshot export 0801e1da --format atif --output trajectory.json
  earshot export 0801e1da --format sft >> train.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			write, ok := exports[format]
			if !ok {
				return usageError{fmt.Errorf("--format %q: one of atif sft openinference otlp jsonl", format)}
			}
			return read(c, &file, func(ctx context.Context, r *reader) (err error) {
				e := exported{reader: r}
				if e.rows, err = inspect.Messages(ctx, r, inspect.Ref{Tenant: tenant, ID: args[0]}); err != nil {
					return err
				}
				if len(e.rows) == 0 {
					return fmt.Errorf("session %s: it has no messages", args[0])
				}
				if output == "" || output == "-" {
					return e.write(ctx, jsonOutput(c.OutOrStdout()), write)
				}
				f, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
				if err != nil {
					return err
				}
				return errors.Join(e.write(ctx, f, write), f.Close())
			})
		},
	}
	file.add(c)
	tenantFlag(c, &tenant)
	c.Flags().StringVar(&format, "format", "", "atif, sft, openinference, otlp or jsonl (required)")
	c.Flags().StringVar(&output, "output", "", "write to this `FILE` instead of standard output")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"atif", "sft", "openinference", "otlp", "jsonl"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// exported is a conversation that is exported.
type exported struct {
	*reader
	rows []msg.Row
}

// exporter writes a conversation.
type exporter func(context.Context, *exported, io.Writer) error

func (e *exported) write(ctx context.Context, to io.Writer, format exporter) error {
	w := bufio.NewWriter(to)
	return errors.Join(format(ctx, e, w), w.Flush())
}

// exports are the writers of the formats.
var exports = map[string]exporter{
	"atif": func(_ context.Context, e *exported, w io.Writer) error {
		t := interchange.ATIF(e.rows, e.cost)
		if t == nil {
			return errors.New("no message of the conversation has a place in ATIF")
		}
		return interchange.Write(w, t)
	},
	"sft": func(_ context.Context, e *exported, w io.Writer) error {
		for _, chat := range interchange.SFT(interchange.ATIF(e.rows, nil)) {
			if err := interchange.Write(w, chat); err != nil {
				return err
			}
		}
		return nil
	},
	"openinference": func(ctx context.Context, e *exported, w io.Writer) error {
		spans, err := inspect.Spans(ctx, e, inspect.Ref{Tenant: e.rows[0].Tenant, ID: e.rows[0].SessionID})
		if err != nil {
			return err
		}
		return interchange.Write(w, interchange.OTLP(e.rows[0].Source, interchange.OpenInference(e.rows, spans)))
	},
	"otlp": func(ctx context.Context, e *exported, w io.Writer) error {
		spans, err := inspect.Spans(ctx, e, inspect.Ref{Tenant: e.rows[0].Tenant, ID: e.rows[0].SessionID})
		if err != nil {
			return err
		}
		return interchange.Write(w, interchange.OTLP(e.rows[0].Source, spans))
	},
	"jsonl": func(_ context.Context, e *exported, w io.Writer) error {
		for i := range e.rows {
			if err := interchange.Write(w, &e.rows[i]); err != nil {
				return err
			}
		}
		return nil
	},
}

// cost is that of a message's tokens.
func (e *exported) cost(r *msg.Row) (usd float64, ok bool) {
	count := func(name string) uint64 {
		n, _ := strconv.ParseUint(r.Attributes[name], 10, 64) // 0 where there is none
		return n
	}
	at, err := time.Parse(msg.TimeFormat, r.TS)
	if err != nil {
		return 0, false
	}
	u := price.Usage{
		Tokens: price.Tokens{
			Input: r.InputTokens, Output: r.OutputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens, Reasoning: r.ReasoningTokens,
			CacheWrite1h: count("cache_write_1h_tokens"),
		},
		Time: at, Tier: r.Attributes["tier"], Stated: count("stated_picodollars"),
	}
	if r.Attributes["response_id"] != "" {
		u.Prompt = r.InputTokens + r.CacheReadTokens + r.CacheWriteTokens
	}
	return e.prices.Model(r.Model).Cost(u)
}
