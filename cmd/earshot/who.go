package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

func newWho() *cobra.Command {
	var file configFile
	var f inspect.WhoFilter
	var month, form, path string
	var where []string
	var keep bool
	span := since(30 * 24 * time.Hour)
	c := &cobra.Command{
		Use:   "who",
		Short: "Print whose work cost how much: by team, user, repository, ticket",
		Long: `Print the tokens and the cost of a time by the dimensions of who began the work. The cost
of a turn with all agents below it belongs to who began it, also where they are other
programs.

The dimensions are team, user, host, project, repository, branch, ticket, and those of the
rules in the section dimensions of the configuration. agent, model, source, format, session,
tenant and day (UTC) can be grouped by as well. The sums over the values of any of them,
unknown among them, are the usage that the providers have reported.

-o names the form: table, csv, json, jsonl or parquet. With --month and a form for programs the
result is a file for chargeback: each row has the month.`,
		Example: `  earshot who
  earshot who --by team,user --since 7d
  earshot who --by ticket --where team=engines
  earshot who --month 2026-11 --by team,model -o csv --output chargeback.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if !slices.Contains(whoForms, form) {
				return usageError{fmt.Errorf("--format %s: want %s", form, strings.Join(whoForms, ", "))}
			}
			f.To = now(c).Add(time.Minute)
			f.From = f.To.Add(-time.Duration(span))
			if month != "" {
				if c.Flags().Changed("since") {
					return usageError{errors.New("--since and --month exclude each other")}
				}
				if f.From, err = time.Parse("2006-01", month); err != nil {
					return usageError{fmt.Errorf("--month %s: want one such as 2026-11", month)}
				}
				f.To = f.From.AddDate(0, 1, 0)
			}
			f.Where = map[string]string{}
			for _, pair := range where {
				name, value, ok := strings.Cut(pair, "=")
				if !ok || f.Where[name] != "" {
					return usageError{fmt.Errorf("--where %s: want a dimension and a value once: team=engines", pair)}
				}
				f.Where[name] = value
			}
			if form == "table" && path != "" {
				return usageError{errors.New("--output needs a form for programs: -o csv, json, jsonl or parquet")}
			}
			sql, params, err := f.SQL()
			if err != nil {
				return usageError{err}
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				if file.found() {
					warnOtherRules(c, r)
				}
				if err := checkDimensions(ctx, r, f); err != nil {
					return err
				}
				if form == "table" {
					list, err := inspect.LoadWho(ctx, r, f)
					if err != nil {
						return err
					}
					if len(list) == 0 {
						_, err := fmt.Fprintf(c.OutOrStdout(), "no usage from %s to %s: --since or --month names another time\n", inspect.Stamp(f.From, now(c).Location()), inspect.Stamp(f.To, now(c).Location()))
						return err
					}
					return writeWho(c.OutOrStdout(), f.By, list)
				}
				if month != "" {
					sql = fmt.Sprintf("SELECT '%s' AS month, * FROM (%s)", f.From.Format("2006-01"), sql)
				}
				return writeRows(c, r, rowsOutput{form: form, path: path, keepFormulas: keep}, sql, params)
			})
		},
	}
	file.add(c)
	c.Flags().StringSliceVar(&f.By, "by", []string{"team", "user"}, "`DIMENSIONS` to group by")
	c.Flags().Var(&span, "since", "the usage of this `DURATION` until now: 24h, 7d, 2w")
	c.Flags().StringVar(&month, "month", "", "the usage of this `MONTH` (UTC), such as 2026-11")
	c.Flags().StringArrayVar(&where, "where", nil, "only the usage with this `DIMENSION=VALUE`; repeat it for more")
	c.Flags().StringVarP(&form, "format", "o", "table", "`FORM` of the result: table, csv, json, jsonl or parquet")
	c.Flags().StringVar(&path, "output", "", "write to this `FILE`")
	c.Flags().BoolVar(&keep, "keep-formulas", false, "leave fields of CSV that begin with =, +, - or @ as they are, which a spreadsheet runs")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(whoForms, cobra.ShellCompDirectiveNoFileComp))
	c.AddCommand(newWhoApply())
	return c
}

var whoForms = []string{"table", "csv", "json", "jsonl", "parquet"}

// warnOtherRules warns if the store's attribution follows other rules than the configuration has.
func warnOtherRules(c *cobra.Command, r *reader) {
	s, _ := schema(r.cfg, "")
	s.Database = r.conn.Database()
	if same, err := clickhouse.HasRules(c.Context(), r.conn, s, r.cfg.Dimensions); err == nil && !same {
		fmt.Fprintln(c.ErrOrStderr(), "The dimensions of the configuration have changed: earshot who apply, or a restart of the sidecar, applies them.")
	}
}

// writeWho prints the rows and their sum.
func writeWho(w io.Writer, by []string, list []inspect.WhoRow) error {
	var sum inspect.WhoRow
	rows, costs := make([][]string, 0, len(list)+1), make([]string, 0, len(list)+1)
	line := func(r *inspect.WhoRow, values []string) {
		t := r.Tokens
		costs = append(costs, r.Cost().Dollars())
		cells := []string{costs[len(costs)-1]}
		for _, n := range [...]uint64{t.Total(), t.Input, t.Output, t.CacheRead, t.CacheWrite, t.Reasoning, r.Responses} {
			cells = append(cells, strconv.FormatUint(n, 10))
		}
		rows = append(rows, append(slices.Clone(values), cells...))
	}
	for i := range list {
		r := &list[i]
		line(r, r.Values)
		total := sum.Cost().Plus(r.Cost())
		sum.Tokens, sum.CostUSD, sum.Unpriced, sum.Responses = total.Tokens, total.CostUSD, total.Unpriced, sum.Responses+r.Responses
	}
	values := make([]string, len(by))
	values[0] = "all"
	line(&sum, values)
	columns := make([]column, 0, len(by)+8)
	for _, name := range by {
		if name == "day" {
			name = "day (UTC)" // other times are local
		}
		columns = append(columns, column{name: name, least: 8})
	}
	columns = append(columns, column{name: "cost"}, column{name: "tokens", drop: 7}, column{name: "input", drop: 5}, column{name: "output", drop: 6},
		column{name: "cache_read", drop: 4}, column{name: "cache_write", drop: 3}, column{name: "reasoning", drop: 1}, column{name: "responses", drop: 2})
	_, err := writeFitted(w, columns, rows)
	if prices := inspect.PriceLegend(costs); err == nil && prices != "" {
		width, _ := terminal(w)
		_, err = fmt.Fprintln(w, "\n"+strings.Join(inspect.Lines("cost: "+prices, width), "\n"))
	}
	return err
}

// checkDimensions refuses a dimension that is neither built in nor one of the rules, and that no turn has: all of its values
// would be unknown.
func checkDimensions(ctx context.Context, r *reader, f inspect.WhoFilter) error {
	known := append(r.cfg.DimensionNames(), "agent", "model", "source", "format", "session", "tenant", "day")
	for _, name := range slices.Concat(f.By, slices.Sorted(maps.Keys(f.Where))) {
		if slices.Contains(known, name) {
			continue
		}
		stored, err := inspect.HasDimension(ctx, r, name)
		if err != nil {
			return err
		}
		if !stored {
			return usageError{fmt.Errorf("no dimension %s: %s", name, cmp.Or(config.DidYouMean(name, known), "there are "+strings.Join(known, " ")))}
		}
	}
	return nil
}

func newWhoApply() *cobra.Command {
	var file configFile
	c := &cobra.Command{
		Use:   "apply",
		Short: "Derive the dimensions of all work again, by the rules of the configuration",
		Long: `Apply the rules in the section dimensions to all work that the store has the facts of, and
write which dimensions each turn has. Messages and spans are left alone. A sidecar does the same
at its start; one that runs goes on with these rules. To apply them again changes nothing.`,
		Example: `  earshot who apply -c earshot.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			return withSchema(c, &file, "", func(s clickhouse.Schema, conn *clickhouse.Conn) error {
				done, err := clickhouse.ApplyRules(c.Context(), conn, s, cfg.Dimensions)
				if err != nil {
					return err
				}
				rules := "the rules"
				if done.Changed {
					rules = "new rules"
				}
				fmt.Fprintf(c.OutOrStdout(), "applied %s to the work of %d conversations\n", rules, done.Conversations)
				return nil
			})
		},
	}
	file.add(c)
	return c
}
