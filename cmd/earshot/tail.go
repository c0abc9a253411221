package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

func newTail() *cobra.Command {
	var file configFile
	var f inspect.TailFilter
	var output string
	var once, raw bool
	var match string
	c := &cobra.Command{
		Use:   "tail",
		Short: "Follow messages or spans as they are stored, or raw frames as they are read",
		Long: `Follow the tables: print the latest messages of the past, then each new message, until
Ctrl-C. Each message is printed once, though a later version may complete it. With
--spans, print spans as they end.

With --raw, print the frames that the running sidecar of the data directory passes to
its decoders from now on: redacted, whether or not a decoder recognizes them. A slow
reader blocks nothing; frames that it misses are counted.

With -o json each is an object on a line of its own.`,
		Example: `  earshot tail
  earshot tail --kind delegation
  earshot tail --raw --source agno --match RunError
  earshot tail --spans --session 0801e1da -o json | jq -c '[.kind, .name, .duration_ms]'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.Limit < 0 {
				return usageError{fmt.Errorf("--limit %d: must not be negative", f.Limit)}
			}
			if err := knownKind(f); err != nil {
				return usageError{fmt.Errorf("--kind: %w", err)}
			}
			if raw {
				for _, name := range []string{"spans", "session", "kind", "hidden", "limit", "once"} {
					if c.Flags().Changed(name) {
						return usageError{fmt.Errorf("--%s: frames have no such thing: --source, --format and --match pick them", name)}
					}
				}
				return tailFrames(c, &file, app.FrameFilter{Source: f.Source, Format: f.Format, Match: match}, output == "json")
			}
			if c.Flags().Changed("match") {
				return usageError{errors.New("--match: is for --raw")}
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				noteFormat(c, r.cfg, f.Format)
				return follow(ctx, r, inspect.NewTail(f), once, func(l inspect.TailLine) error {
					if output == "json" {
						b, err := json.Marshal(l)
						if err != nil {
							return err
						}
						_, err = fmt.Fprintf(jsonOutput(c.OutOrStdout()), "%s\n", b)
						return err
					}
					return writeTailLine(c.OutOrStdout(), l, now(c))
				})
			})
		},
	}
	file.add(c)
	outputFlag(c, &output)
	c.Flags().BoolVar(&f.Spans, "spans", false, "spans that have ended, instead of messages")
	c.Flags().BoolVar(&raw, "raw", false, "frames as they are read, instead of messages")
	c.Flags().StringVar(&match, "match", "", "with --raw: frames that contain this `TEXT`")
	c.Flags().StringVar(&f.Source, "source", "", "of this `SOURCE` of the configuration")
	c.Flags().StringVar(&f.Session, "session", "", "of the `SESSION` whose id begins so")
	c.Flags().StringVar(&f.Format, "format", "", "of this `FORMAT`")
	c.Flags().StringVar(&f.Kind, "kind", "", "of this `KIND`: user, assistant, tool_call, delegation, ...; of spans: chat, execute_tool, invoke_agent")
	c.Flags().BoolVar(&f.Hidden, "hidden", false, "also messages that a user interface would not show")
	c.Flags().IntVarP(&f.Limit, "limit", "n", 10, "`N` of the past to begin with")
	c.Flags().BoolVar(&once, "once", false, "only the past; do not follow")
	return c
}

// knownKind is an error for a kind that no message or span has: nothing would ever be printed.
func knownKind(f inspect.TailFilter) error {
	if f.Kind == "" {
		return nil
	}
	if !f.Spans {
		_, err := msg.ParseKind(f.Kind)
		return err
	}
	var operations []string
	for k := msg.SpanRun; k <= msg.SpanWorkflow; k++ {
		if op := semconv.Operation(k); !slices.Contains(operations, op) {
			operations = append(operations, op)
		}
	}
	if !slices.Contains(operations, f.Kind) {
		return fmt.Errorf("operation %q: not one of %s", f.Kind, strings.Join(operations, " "))
	}
	return nil
}

// tailFrames prints the frames that the sidecar reads, until Ctrl-C or until it ends.
func tailFrames(c *cobra.Command, file *configFile, f app.FrameFilter, asJSON bool) error {
	cfg, err := file.load(true)
	if err != nil {
		return err
	}
	ctx := c.Context()
	frames, err := app.Watch(ctx, cfg, f)
	if err != nil {
		return fmt.Errorf("tail --raw: %w", err)
	}
	defer frames.Close()
	for d := json.NewDecoder(frames); ; {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case ctx.Err() != nil || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("tail --raw: %w", err)
		}
		if asJSON {
			_, err = fmt.Fprintf(jsonOutput(c.OutOrStdout()), "%s\n", raw)
		} else {
			var l app.Frame
			if err := json.Unmarshal(raw, &l); err != nil {
				return fmt.Errorf("tail --raw: %w", err)
			}
			err = writeFrame(c.OutOrStdout(), l, now(c))
		}
		if err != nil {
			return err
		}
	}
}

func writeFrame(w io.Writer, l app.Frame, now time.Time) error {
	if l.Missed > 0 {
		if _, err := fmt.Fprintf(w, "… %d frames were not shown\n", l.Missed); err != nil {
			return err
		}
	}
	what, text := l.Kind, l.Data
	if l.Name != "" {
		what += " " + l.Name
	}
	if text == "" {
		text = l.Base64
	}
	if l.Reason != "" {
		text = l.Reason + ": " + text
	}
	room := len(text) // whole, but for a terminal
	if width, _ := terminal(w); width > 0 {
		room = max(20, width-84)
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s  %s %8d  %s\n", clock(l.TS, now), cell(l.Source, 12), cell(l.Format, 14), cell(what, 24), l.Bytes,
		inspect.Clip(text, room))
	return err
}

// follow prints lines until ctx ends.
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

// cell is a text in that many columns.
func cell(s string, n int) string { return inspect.Pad(inspect.Clip(s, n), n) }

func writeTailLine(w io.Writer, l inspect.TailLine, now time.Time) error {
	width, color := terminal(w)
	if width == 0 {
		width = 160
	}
	what := l.Kind
	if l.Name != "" {
		what += " " + l.Name
	}
	took := ""
	if l.TookMS > 0 {
		took = " " + inspect.Span(time.Duration(l.TookMS*1e6))
	}
	head := clock(l.TS, now) + "  " + inspect.Pad(inspect.First(l.Session, 8), 8)
	if agent := cell(inspect.Agent(l.Agent, l.Format), 14); width >= 100 {
		head += "  " + agent
	}
	kind := 28
	if width < 80 {
		kind = 14
	}
	head += "  " + inspect.Pad(inspect.Clip(what, kind-len(took))+took, kind)
	text := l.Text
	if l.Error {
		text = "error: " + text
	}
	text = inspect.Clip(text, max(10, width-inspect.Visible(head)-2))
	if l.Error {
		if color {
			text = "\x1b[31m" + text + "\x1b[0m"
		}
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", head, text)
	return err
}

// clock is a time of today, or the day and the minute of another; sixteen columns.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return fmt.Sprintf("%16s", t.Format("15:04:05.000"))
	}
	return t.Format("2006-01-02 15:04")
}
