package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/earshot-dev/earshot/core/price"
)

// scripted is a server with the answers of a test: the rows of a query, or an error.
type scripted struct {
	driver.Conn
	answers func(sql string) ([][]any, error)

	mu   sync.Mutex
	sent []string // the statements without a result, in order
}

// errRow is an answer whose rows cannot be read, and errEnd one that ends with an error.
var errRow, errEnd = errors.New("a row that cannot be read"), errors.New("an answer that breaks off")

// scriptedConn returns a Conn to such a server.
func scriptedConn(answers func(sql string) ([][]any, error)) (*Conn, *scripted) {
	s := &scripted{answers: answers}
	return &Conn{db: s, database: DefaultDatabase, redacted: "scripted", throttle: &throttle{}}, s
}

// statements returns those that were sent since the last time.
func (s *scripted) statements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	return out
}

func (s *scripted) Exec(_ context.Context, sql string, _ ...any) error {
	s.mu.Lock()
	s.sent = append(s.sent, sql)
	s.mu.Unlock()
	_, err := s.answers(sql)
	return err
}

func (s *scripted) Query(_ context.Context, sql string, _ ...any) (driver.Rows, error) {
	rows, err := s.answers(sql)
	switch err {
	case errRow:
		return &listed{rows: rows, bad: errRow}, nil
	case errEnd:
		return &listed{rows: rows, failed: errEnd}, nil
	}
	return &listed{rows: rows}, err
}

func (s *scripted) QueryRow(_ context.Context, sql string, _ ...any) driver.Row {
	rows, err := s.answers(sql)
	return oneRow{listed{rows: rows, failed: err}}
}

func (s *scripted) Close() error { return nil }

// listed is a result; nil is a NULL, which leaves the target of a scan unchanged.
type listed struct {
	driver.Rows
	columns []driver.ColumnType
	rows    [][]any
	at      int
	bad     error // of the last row
	failed  error // behind the rows
	closing error
}

func (l *listed) ColumnTypes() []driver.ColumnType { return l.columns }
func (l *listed) Err() error                       { return l.failed }
func (l *listed) Close() error                     { return l.closing }

func (l *listed) Next() bool {
	l.at++
	return l.at <= len(l.rows)
}

func (l *listed) Scan(into ...any) error {
	if l.at == len(l.rows) && l.bad != nil {
		return l.bad
	}
	for i, v := range l.rows[l.at-1] {
		if to := reflect.ValueOf(into[i]).Elem(); v != nil {
			to.Set(reflect.ValueOf(v).Convert(to.Type()))
		}
	}
	return nil
}

type oneRow struct{ l listed }

func (r oneRow) Err() error           { return r.l.failed }
func (r oneRow) ScanStruct(any) error { return nil }

func (r oneRow) Scan(into ...any) error {
	if r.l.failed != nil {
		return r.l.failed
	}
	if !r.l.Next() {
		return sql.ErrNoRows
	}
	return r.l.Scan(into...)
}

// kind is the type of a column of a result.
type kind struct {
	driver.ColumnType
	name, kind string
	scan       reflect.Type
}

func (k kind) Name() string             { return k.name }
func (k kind) DatabaseTypeName() string { return k.kind }
func (k kind) ScanType() reflect.Type   { return k.scan }

// doubleOf returns an exporter whose statements go to a scripted server.
func doubleOf(c *Conn) *Exporter {
	return &Exporter{
		settings: Settings{Timeout: 30 * time.Second, Prices: price.Default(), SilentAfter: time.Minute, Logger: slog.New(slog.DiscardHandler)},
		conn:     c, keeper: keeper{stored: newArrivals()}, underived: underived{some: make(chan struct{}, 1)},
	}
}
