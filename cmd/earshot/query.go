package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

func newQuery() *cobra.Command {
	var file configFile
	var format, path string
	var keep bool
	c := &cobra.Command{
		Use:   "query 'SQL'",
		Short: "Query the tables",
		Long: `Run a query over the tables (messages, otel_traces, tool_calls, delegations,
open_spans, dead_letters, source_ledger, and the views v_*) and print its result.
Rows are read as they stand: of several versions of a row only the last is seen.
Without SQL it is read from standard input. On a terminal the result is a table;
elsewhere it is tab-separated with a line of names.

-o names the form: table, csv, tsv, json, jsonl or parquet, or any output format of
ClickHouse. These six have no bound of size for a SELECT; the columns of a table are as
wide as in its first thousand rows. The embedded store holds other results until they
are whole: those of SHOW, DESCRIBE and EXPLAIN as a table, those of other formats, and
those with a FORMAT such as JSON in the SQL. Beyond 64 MiB they are an error, unless the
query ends with SETTINGS max_result_bytes = N. --output writes a file, which is there only once it is whole.

It works whether or not a sidecar runs: the running store is used, or one is
started for the moment.`,
		Example: `  earshot query 'SELECT tool_name, count() FROM tool_calls GROUP BY 1 ORDER BY 2 DESC'
  earshot query 'SELECT * FROM v_delegations ORDER BY duration_ms DESC LIMIT 5' -o Vertical
  earshot query 'SELECT * FROM v_turns' -o csv --output turns.csv`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
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
			if width, _ := terminal(c.OutOrStdout()); path == "" && width > 0 && !c.Flags().Changed("format") {
				format = "table"
			}
			return read(c, &file, func(ctx context.Context, r *reader) error {
				return writeRows(c, r, rowsOutput{form: format, path: path, keepFormulas: keep}, sql, nil)
			})
		},
	}
	file.add(c)
	c.Flags().StringVarP(&format, "format", "o", "tsv", "`FORM` of the result: table, csv, tsv, json, jsonl, parquet, or an output format of ClickHouse: Vertical, Markdown, ...")
	c.Flags().Lookup("format").DefValue = "table on a terminal, else tsv"
	c.Flags().StringVar(&path, "output", "", "write to this `FILE`")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"table", "csv", "tsv", "json", "jsonl", "parquet"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().BoolVar(&keep, "keep-formulas", false, "leave fields of CSV that begin with =, +, - or @ as they are, which a spreadsheet runs")
	return c
}

// forms are the output formats of ClickHouse for short names. An array of JSON is made of its rows,
// because the store would hold it until it is whole.
var forms = map[string]string{
	"table": "PrettyCompactMonoBlock", "csv": "CSVWithNames", "tsv": "TabSeparatedWithNames", "json": "JSONEachRow", "jsonl": "JSONEachRow", "parquet": "Parquet",
}

// rowsOutput is where the result of a query goes, and in which form: a name of forms, or a format of
// ClickHouse.
type rowsOutput struct {
	form, path   string
	keepFormulas bool
}

// writeRows writes the result of a query.
func writeRows(c *cobra.Command, r *reader, o rowsOutput, sql string, params clickhouse.Params) (err error) {
	form, format := o.form, cmp.Or(forms[o.form], o.form)
	if stated := clickhouse.FormatOf(format, sql); stated != format { // at the end of the SQL
		form, format = "", stated
	}
	shown := 0 // columns of the terminal that shows the result
	to := c.OutOrStdout()
	if o.path == "" {
		shown, _ = terminal(to)
	} else {
		f, failed := newResultFile(o.path, c.ErrOrStderr())
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, f.close(err == nil)) }()
		to = f
	}
	out := resultOutput(to, format, shown > 0, o.keepFormulas)
	switch form {
	case "json":
		out = &rowArray{w: out}
	case "csv", "tsv":
		if head := emptyResult(c.Context(), r.conn, format, sql, params); head != "" {
			format = strings.TrimSuffix(format, "WithNames")
			if _, err := io.WriteString(out, head); err != nil {
				return queryError{err}
			}
		}
	case "table":
		if names, types, ok := strings.Cut(emptyResult(c.Context(), r.conn, "TabSeparatedWithNamesAndTypes", sql, params), "\n"); ok {
			format, out = "TabSeparated", newGrid(out, strings.Split(names, "\t"), strings.Split(strings.TrimSpace(types), "\t"))
		}
	}
	if err := r.conn.Format(c.Context(), out, format, sql, params); err != nil {
		return queryError{err}
	}
	switch out := out.(type) {
	case *formulas:
		return out.Close()
	case *rowArray:
		return out.Close()
	case *grid:
		return out.Close()
	}
	return nil
}

// emptyResult is the result of a query without its rows: the names of its columns. The store streams rows, and
// holds a result that begins with something else. It is empty for a statement that is no SELECT, which goes on
// as it is.
func emptyResult(ctx context.Context, conn *clickhouse.Conn, format, sql string, params clickhouse.Params) string {
	var names bytes.Buffer
	sql = strings.TrimRight(sql, "; \t\r\n")
	if err := conn.Format(ctx, &names, format, "SELECT * FROM (\n"+sql+"\n) LIMIT 0", params); err != nil {
		return "" // the query itself reports it
	}
	return names.String()
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
		text += "\nIn this format the store holds the whole result. Forms that it streams have no bound: -o table, tsv, csv, json, jsonl or parquet; or end the query with SETTINGS max_result_bytes = 1000000000"
	}
	return text
}

// codeResultTooLarge is ClickHouse's TOO_MANY_ROWS_OR_BYTES.
const codeResultTooLarge = 396
