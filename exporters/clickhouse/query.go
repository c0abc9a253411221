package clickhouse

import (
	"context"
	"fmt"
	"reflect"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Params are the values of {name:Type} placeholders, in their text form. The
// server puts them in; they are never part of the SQL.
type Params map[string]string

func (p Params) with(ctx context.Context) context.Context {
	if len(p) == 0 {
		return ctx
	}
	return chgo.Context(ctx, chgo.WithParameters(chgo.Parameters(p)))
}

// Column is a column of a result.
type Column struct {
	Name string
	Type string // as ClickHouse writes it
}

// Rows is a result that is read row by row:
//
//	for rows.Next() {
//		use(rows.Values())
//	}
//	return errors.Join(rows.Err(), rows.Close())
type Rows struct {
	Columns []Column
	conn    *Conn
	rows    driver.Rows
	into    []any           // pointers, one per column
	reset   []reflect.Value // what they point at, where a null does not overwrite
	values  []any
	err     error
}

// Query runs a statement that has a result.
func (c *Conn) Query(ctx context.Context, sql string, params Params) (*Rows, error) {
	rows, err := c.db.Query(params.with(ctx), sql)
	if err != nil {
		return nil, c.refused(err)
	}
	r := &Rows{conn: c, rows: rows}
	for _, t := range rows.ColumnTypes() {
		r.Columns = append(r.Columns, Column{t.Name(), t.DatabaseTypeName()})
		p := reflect.New(t.ScanType())
		r.into = append(r.into, p.Interface())
		if _, ok := value(p.Interface()); !ok {
			r.reset = append(r.reset, p.Elem())
		}
	}
	r.values = make([]any, len(r.into))
	return r, nil
}

// Next moves to the next row.
func (r *Rows) Next() bool {
	if r.err != nil || !r.rows.Next() {
		return false
	}
	for _, v := range r.reset {
		v.SetZero()
	}
	if err := r.rows.Scan(r.into...); err != nil {
		r.err = fmt.Errorf("clickhouse: read row: %w", err)
		return false
	}
	for i, p := range r.into {
		v, ok := value(p)
		if !ok {
			v = reflect.ValueOf(p).Elem().Interface()
		}
		r.values[i] = v
	}
	return true
}

// value is what a pointer of a common type points at. Reflection would allocate for each empty text and each small
// number as well, which most values of a wide row are.
func value(p any) (any, bool) {
	switch p := p.(type) {
	case *string:
		return *p, true
	case *uint64:
		return *p, true
	case *int64:
		return *p, true
	case *float64:
		return *p, true
	case *uint8:
		return *p, true
	case *bool:
		return *p, true
	case *time.Time:
		return *p, true
	case *[]string:
		return *p, true
	case *[]time.Time:
		return *p, true
	}
	return nil, false
}

// Values are the row's values, by column: string, bool, uint64, float64,
// time.Time, a map, a slice, or a pointer where the type is Nullable. The slice
// is valid until Next.
func (r *Rows) Values() []any { return r.values }

// Err is the error that ended the rows early.
func (r *Rows) Err() error {
	if r.err != nil {
		return r.err
	}
	if err := r.rows.Err(); err != nil {
		return fmt.Errorf("clickhouse: read rows: %w", r.conn.plain(err))
	}
	return nil
}

// Close ends the query.
func (r *Rows) Close() error {
	if err := r.rows.Close(); err != nil {
		return fmt.Errorf("clickhouse: close rows: %w", r.conn.plain(err))
	}
	return nil
}
