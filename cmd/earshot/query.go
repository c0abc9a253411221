package main

import (
	"errors"
	"io"
	"strings"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

func newQuery() *cobra.Command {
	var file configFile
	var format string
	var keep bool
	c := &cobra.Command{
		Use:   "query 'SQL'",
		Short: "Query the tables",
		Long: `Run a query over the tables (messages, otel_traces, tool_calls, delegations,
open_spans, dead_letters, source_ledger, and the views v_*) and print its result.
Rows are read as they stand: of several versions of a row only the last is seen.
Without SQL it is read from standard input. On a terminal the result is a table;
elsewhere it is tab-separated with a line of names.

It works whether or not a sidecar runs: the running store is used, or one is
started for the moment.`,
		Example: `  earshot query 'SELECT tool_name, count() FROM tool_calls GROUP BY 1 ORDER BY 2 DESC'
  earshot query 'SELECT * FROM v_delegations ORDER BY duration_ms DESC LIMIT 5' --format Vertical`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			sql := ""
			if len(args) == 1 && args[0] != "-" {
				sql = args[0]
			} else {
				b, err := io.ReadAll(c.InOrStdin())
				if err != nil {
					return err
				}
				sql = string(b)
			}
			if strings.TrimSpace(sql) == "" {
				return usageError{errors.New("no SQL: pass it as the argument")}
			}
			if !c.Flags().Changed("format") {
				if width, _ := terminal(c.OutOrStdout()); width > 0 {
					format = "PrettyCompactMonoBlock"
				}
			}
			r, err := openReader(c.Context(), cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.Close()) }()
			width, _ := terminal(c.OutOrStdout())
			out := resultOutput(c.OutOrStdout(), clickhouse.FormatOf(format, sql), width > 0, keep)
			if err := r.conn.Format(c.Context(), out, format, sql, nil); err != nil {
				return queryError{err}
			}
			if f, ok := out.(*formulas); ok {
				return f.Close()
			}
			return nil
		},
	}
	file.add(c)
	c.Flags().StringVar(&format, "format", "TabSeparatedWithNames", "ClickHouse output `FORMAT`: JSONEachRow, CSV, Vertical, Pretty, ...")
	c.Flags().BoolVar(&keep, "keep-formulas", false, "leave fields of CSV that begin with =, +, - or @ as they are, which a spreadsheet runs")
	return c
}

// resultOutput is w for a result in a format. Formats that people read, and all on a terminal,
// cannot drive it; the bytes of others are for programs, but for the formulas in CSV.
func resultOutput(w io.Writer, format string, terminal, keepFormulas bool) io.Writer {
	format = strings.ToLower(format)
	switch {
	case strings.HasPrefix(format, "json") && terminal:
		w = jsonOutput(w)
	case strings.HasPrefix(format, "pretty"), format == "vertical", format == "markdown", terminal:
		w = bareOutput(w)
	default:
		w = rawOutput(w)
	}
	if strings.HasPrefix(format, "csv") && !keepFormulas {
		return &formulas{w: w}
	}
	return w
}

// queryError is an error of the store about a query, as short as it can be acted on.
type queryError struct{ error }

func (e queryError) Unwrap() error { return e.error }

// Error cuts the list of everything that could have come instead of a syntax error,
// two kilobytes of it, and names the way around the bound of results that are held.
func (e queryError) Error() string {
	text := "query: " + e.error.Error()
	const list, most = "Expected one of:", 120
	if at := strings.Index(text, list); at >= 0 && len(text) > at+most {
		end := at + most
		if comma := strings.LastIndex(text[:end], ","); comma > at {
			end = comma
		}
		text = text[:end] + ", …"
	}
	var refused *chgo.Exception
	if errors.As(e.error, &refused) && refused.Code == codeResultTooLarge {
		text += "\nIn this format the store holds the whole result. Formats that it streams have no bound: --format TSV, CSV or JSONEachRow; or end the query with SETTINGS max_result_bytes = 1000000000"
	}
	return text
}

// codeResultTooLarge is ClickHouse's TOO_MANY_ROWS_OR_BYTES.
const codeResultTooLarge = 396
