package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

func newDLQ() *cobra.Command {
	c := &cobra.Command{
		Use:   "dlq",
		Short: "List dead letters, show one, retry or resolve them",
		Long: `Dead letters are input that could not be decoded and rows that a store rejected,
with their bytes and their origin.`,
		Args: cobra.NoArgs,
	}
	c.AddCommand(newDLQList(), newDLQShow(), newDLQRetry(), newDLQResolve())
	return c
}

// letters reads dead letters from the table, and the records that exporters rejected from
// a local file too, which works without the store.
func letters(c *cobra.Command, cfg *config.Config, f inspect.DeadLetterFilter) ([]inspect.DeadLetter, error) {
	r, err := openReader(c.Context(), cfg)
	if err == nil {
		var list []inspect.DeadLetter
		list, err = inspect.DeadLetters(c.Context(), r, f)
		if err = errors.Join(err, r.Close()); err == nil {
			return list, nil
		}
	}
	local, localErr := app.RefusedRows(cfg)
	if localErr != nil || len(local) == 0 {
		return nil, errors.Join(err, localErr)
	}
	fmt.Fprintf(c.ErrOrStderr(), "earshot: %v\nearshot: these are the rows that were refused, from the local file\n", err)
	var out []inspect.DeadLetter
	for _, l := range slices.Backward(local) {
		if strings.HasPrefix(l.ID.String(), f.ID) && (f.Source == "" || l.Source == f.Source) && (f.Reason == "" || l.Reason == f.Reason) && (f.Resolved || !l.Resolved) {
			out = append(out, inspect.DeadLetter{
				ID: l.ID.String(), Tenant: l.Tenant, Source: l.Source, Format: l.Format, Session: l.Session, Stage: l.Stage, Reason: l.Reason,
				Detail: l.Detail, Origin: l.Origin, Offset: l.Offset, Payload: string(l.Payload), Bytes: uint64(l.Bytes), Seen: time.Unix(0, l.Seen).UTC(), Resolved: l.Resolved,
			})
		}
	}
	return out, nil
}

func newDLQList() *cobra.Command {
	var file configFile
	var f inspect.DeadLetterFilter
	var output string
	c := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the latest first",
		Example: `  earshot dlq list --reason invalid_json
  earshot dlq list --all -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			list, err := letters(c, cfg, f)
			if err != nil {
				return err
			}
			if output == "json" {
				if list == nil {
					list = []inspect.DeadLetter{}
				}
				return writeJSON(c.OutOrStdout(), list)
			}
			if len(list) == 0 {
				_, err := fmt.Fprintln(c.OutOrStdout(), "no dead letters")
				return err
			}
			rows := make([][]string, 0, len(list))
			for _, l := range list {
				state := "open"
				if l.Resolved {
					state = "resolved"
				}
				rows = append(rows, []string{
					l.ID[:12], l.Seen.In(now(c).Location()).Format("2006-01-02 15:04:05"), l.Source, l.Stage, l.Reason, state, fmt.Sprint(l.Bytes), fmt.Sprintf("%s:%d", l.Origin, l.Offset), inspect.Clip(l.Detail, 60),
				})
			}
			_, err = writeFitted(c.OutOrStdout(), []column{
				{name: "id", least: 8, id: true}, {name: zoned("set aside", now(c)), drop: 4}, {name: "source", least: 8}, {name: "stage", drop: 2}, {name: "reason"}, {name: "state", drop: 1},
				{name: "bytes", drop: 3}, {name: "origin:offset", least: 16, drop: 5, path: true}, {name: "error", least: 16},
			}, rows)
			return err
		},
	}
	file.add(c)
	outputFlag(c, &output)
	c.Flags().StringVar(&f.Source, "source", "", "of this `SOURCE`")
	c.Flags().StringVar(&f.Reason, "reason", "", "set aside for this `REASON`")
	c.Flags().BoolVar(&f.Resolved, "all", false, "resolved ones too")
	c.Flags().IntVarP(&f.Limit, "limit", "n", 50, "at most `N`")
	return c
}

func newDLQShow() *cobra.Command {
	var file configFile
	var output string
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a dead letter with its bytes",
		Long:    `Show a dead letter with its bytes. The beginning of its id is enough.`,
		Example: `  earshot dlq show 5f0c2a`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			list, err := letters(c, cfg, inspect.DeadLetterFilter{ID: args[0], Resolved: true, Payload: true, Limit: 2})
			if err != nil {
				return err
			}
			switch len(list) {
			case 0:
				return fmt.Errorf("no dead letter %s", args[0])
			case 1:
			default:
				return fmt.Errorf("%s is the beginning of more than one id", args[0])
			}
			l := list[0]
			if output == "json" {
				return writeJSON(c.OutOrStdout(), l)
			}
			w := c.OutOrStdout()
			for _, line := range [][2]string{
				{"id", l.ID}, {"set aside", l.Seen.In(now(c).Location()).Format(time.RFC3339)}, {"source", l.Source + " (" + l.Format + ", tenant " + l.Tenant + ")"}, {"session", l.Session},
				{"stage", l.Stage}, {"reason", l.Reason}, {"error", l.Detail}, {"origin", fmt.Sprintf("%s:%d", l.Origin, l.Offset)},
				{"bytes", fmt.Sprintf("%d, %d of them kept", l.Bytes, len(l.Payload))}, {"resolved", fmt.Sprint(l.Resolved)},
			} {
				if line[1] != "" {
					fmt.Fprintf(w, "%-10s %s\n", line[0], line[1])
				}
			}
			fmt.Fprintln(w)
			_, err = fmt.Fprintln(w, printable(l.Payload))
			return err
		},
	}
	file.add(c)
	outputFlag(c, &output)
	return c
}

// printable is a text as it is if a terminal can show it, and as a hex dump if not.
func printable(s string) string {
	for _, r := range s {
		if r == '\uFFFD' || r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			return strings.TrimSuffix(hex.Dump([]byte(s)), "\n")
		}
	}
	return s
}

func newDLQRetry() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "retry [ID...]",
		Short: "Retry dead letters, after an upgrade of a decoder or a store",
		Long: `Retry dead letters: all unresolved ones, or those whose ids begin with an argument.
Rows that a store rejected are offered to it again. Input that a decoder rejected is
decoded again with its whole source, because the meaning of a record can depend on
those before it (earshot backfill does the same); so its messages have the ids, the
order and the traces of a first pass. Dead letters that succeed are marked as
resolved.`,
		Example: `  earshot dlq retry -c earshot.yaml
  earshot dlq retry 5f0c2a`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := file.loadSources(c.Context())
			if err != nil {
				return err
			}
			return retry(c, cfg, args)
		},
	}
	file.add(c)
	return c
}

func newDLQResolve() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "resolve ID...",
		Short: "Mark dead letters as resolved without another try",
		Long: `Mark dead letters as resolved, by their ids or the beginnings of them. This is for
those that have nothing to try again: batches of a damaged spool, a decoder's state
of input that is gone. earshot doctor then no longer reports them.`,
		Example: `  earshot dlq resolve 5f0c2a`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			r, err := openReader(c.Context(), cfg)
			if err != nil {
				return err
			}
			var rows []msg.DeadLetter
			for _, id := range args {
				list, e := inspect.DeadLetters(c.Context(), r, inspect.DeadLetterFilter{ID: id, Payload: true, Limit: -1})
				if e == nil && len(list) == 0 {
					e = fmt.Errorf("no unresolved dead letter %s", id)
				}
				err = errors.Join(err, e)
				for _, l := range list {
					rows = append(rows, letterRow(l))
				}
			}
			if err = errors.Join(err, r.Close()); err != nil {
				return err
			}
			err = writers(c.Context(), cfg, func(list []app.Exporter) error {
				return errors.Join(app.ResolveRefused(cfg, rows), app.Resolve(c.Context(), list, rows))
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d resolved\n", len(rows))
			return err
		},
	}
	file.add(c)
	return c
}

func retry(c *cobra.Command, cfg *config.Config, ids []string) error {
	wanted := func(id string) bool {
		return len(ids) == 0 || slices.ContainsFunc(ids, func(p string) bool { return strings.HasPrefix(id, p) })
	}
	r, err := openReader(c.Context(), cfg)
	if err != nil {
		return err
	}
	list, err := inspect.DeadLetters(c.Context(), r, inspect.DeadLetterFilter{Payload: true, Limit: -1})
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(l inspect.DeadLetter) bool { return strings.HasPrefix(l.ID, id) }) {
			return fmt.Errorf("no unresolved dead letter %s; `earshot dlq list` lists them", id)
		}
	}
	// Those of decoders and readers, by source.
	open := make(map[string]inspect.DeadLetter)
	sources := make(map[string]bool)
	refused := 0
	for _, l := range list {
		if !wanted(l.ID) {
			continue
		}
		if l.Stage == "export" {
			refused++
			continue
		}
		open[l.ID] = l
		sources[l.Source] = true
	}
	var readable []string
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; sources[s.Name] && app.Rereadable(s) {
			readable = append(readable, s.Name)
			delete(sources, s.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		fmt.Fprintf(c.ErrOrStderr(), "earshot: source %s cannot be read again; its dead letters stay\n", name)
	}
	var resolved []msg.DeadLetter
	if len(readable) > 0 {
		var mu sync.Mutex
		still := make(map[string]bool)
		_, err := backfill(c, cfg, readable, func(l *msg.DeadLetter) {
			mu.Lock()
			still[l.ID.String()] = true
			mu.Unlock()
		})
		if err != nil {
			return err
		}
		for id, l := range open {
			if !still[id] && slices.Contains(readable, l.Source) {
				resolved = append(resolved, letterRow(l))
			}
		}
	}
	err = writers(c.Context(), cfg, func(list []app.Exporter) error {
		rows, err := app.RetryRefused(c.Context(), cfg, list, func(id msg.ID) bool { return wanted(id.String()) })
		resolved = append(resolved, rows...)
		return errors.Join(err, app.Resolve(c.Context(), list, resolved))
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d tried, %d resolved\n", len(open)+refused, len(resolved))
	return err
}

// letterRow is the row of a letter, in its next version.
func letterRow(l inspect.DeadLetter) msg.DeadLetter {
	d := msg.DeadLetter{
		Tenant: l.Tenant, Source: l.Source, Format: l.Format, Session: l.Session, Stage: l.Stage, Reason: l.Reason, Detail: l.Detail,
		Origin: l.Origin, Offset: l.Offset, Payload: []byte(l.Payload), Bytes: int64(l.Bytes), Seen: l.Seen.UnixNano(), Ver: l.Ver + 1,
	}
	_ = d.ID.UnmarshalText([]byte(l.ID)) // the column has nothing else
	return d
}
