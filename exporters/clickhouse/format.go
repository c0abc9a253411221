package clickhouse

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// ErrFormat is wrapped by the error about a format that cannot be written.
var ErrFormat = errors.New("unknown format")

// trailingFormat is a FORMAT clause at the end of a statement. FORMAT may also be
// the name of a column there: ORDER BY format DESC.
var trailingFormat = regexp.MustCompile(`(?is)^(.*\S)\s+FORMAT\s+([a-z][a-z0-9]*)\s*;?\s*$`)

// Format runs a statement and writes its result in a format of ClickHouse's,
// "Pretty" when it is empty. A FORMAT clause in the statement has precedence.
//
// Over HTTP the server writes the result and every format it has is there. The
// native protocol has none: there, TabSeparated, CSV (both also WithNames),
// JSONEachRow, Pretty and Vertical are written here, with nested values as JSON.
func (c *Conn) Format(ctx context.Context, w io.Writer, format, sql string, params Params) error {
	sql, format = splitFormat(sql, format)
	if c.http {
		return c.formatHTTP(ctx, w, format, sql, params)
	}
	return c.formatNative(ctx, w, format, sql, params)
}

// FormatOf is the format in which Format writes the result: the one at the end of the query, if
// there is one.
func FormatOf(format, sql string) string {
	_, format = splitFormat(sql, format)
	return format
}

func splitFormat(sql, format string) (string, string) {
	sql = strings.TrimRight(sql, "; \t\r\n")
	if m := trailingFormat.FindStringSubmatch(sql); m != nil && !slices.Contains([]string{"asc", "desc"}, strings.ToLower(m[2])) {
		sql, format = m[1], m[2]
	}
	return sql, cmp.Or(format, "Pretty")
}

func (c *Conn) formatHTTP(ctx context.Context, w io.Writer, format, sql string, params Params) error {
	r, err := c.db.QueryFormat(params.with(ctx), format, sql)
	if err != nil {
		return c.refused(err)
	}
	_, err = io.Copy(w, r)
	if closed := r.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return c.refused(err)
	}
	return nil
}

func (c *Conn) formatNative(ctx context.Context, w io.Writer, format, sql string, params Params) error {
	write, known := rowWriters[strings.ToLower(format)]
	if !known {
		return fmt.Errorf("clickhouse: %w %q: over the native protocol one of TabSeparated, CSV, JSONEachRow, Pretty, Vertical", ErrFormat, format)
	}
	rows, err := c.Query(ctx, sql, params)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	writing := write(out, rows)
	closed := rows.Close()
	for _, err := range []error{writing, rows.Err(), out.Flush(), closed} {
		if err != nil {
			return err
		}
	}
	return nil
}
