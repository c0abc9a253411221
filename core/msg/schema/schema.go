// Package schema describes, once, each field of a message and each column of a table: where
// the value is in Go, its number in the protocol of decoder processes, its name and type in
// ClickHouse, and its meaning.
//
// go generate writes from it:
//
//	core/internal/wire/message_gen.go         the codec of messages
//	core/proto/…/decoder.proto, PROTOCOL.md   the messages of the protocol, their table
//	core/sdk/python, core/sdk/typescript      the messages in these languages; the second needs npm
//	core/msg/row_gen.go                       a message as `earshot decode` prints it
//	exporters/clickhouse/rows_gen.go          the writers of rows
//
// The migrations of exporters/clickhouse render the columns of their tables from it. A test
// fails when a generated file is stale.
//
// A new field of a message takes three edits: core/msg/message.go; message.go here, its line
// of the record and of Attributes or of the table; and, for a column, a migration. A field in
// neither is listed with the reason in exporters/clickhouse/fields_test.go.
// A new column of a span that a field or an expression has takes two: a line in spans.go,
// with the number of its migration as Since, and the migration:
//
//	{{add "spans" "attempt"}};
//
// in exporters/clickhouse/migrations/NNNN_name.sql, which also replaces the views over the table
// that are to have the column. Without Since the column is added to the migration that
// makes the table, and databases that are there do not get it. Then go generate ./core/msg/schema.
package schema

//go:generate go run ./internal/generate ../../..
//go:generate go -C ../../internal/tools run ./protogen -gen "go tool protoc-gen-go" -I ../../proto -out ../../proto earshot/decoder/v1/decoder.proto
//go:generate go -C ../../internal/tools run ./protogen -gen python -I ../../proto/earshot/decoder/v1 -out ../../sdk/python decoder.proto
//go:generate go -C ../../internal/tools run ./protogen -gen "npm exec --yes --package=@bufbuild/protoc-gen-es@2.13.0 -- protoc-gen-es" -param target=ts,import_extension=js -I ../../proto/earshot/decoder/v1 -out ../../sdk/typescript decoder.proto

import (
	"slices"
	"strings"
)

// Record is a message of the protocol that carries a struct of package msg.
type Record struct {
	Name   string // in decoder.proto, and of the Go type
	Doc    string
	Fields []Field
}

// Field is one field of a Record.
type Field struct {
	Path    string // in the Go struct: Tool.CallID
	Number  int    // in decoder.proto
	Range   int    // of a msg.Text: the number of its range, NAME_at
	Comment string
	Type    string // in decoder.proto, where the Go type leaves a choice
	Max     int    // greater values of a peer are cut to it
}

// Table is a table of ClickHouse that rows are written to.
type Table struct {
	Name    string
	Rows    string // the Go type that writes its rows
	Record  string // the parameter of its method add
	Doc     string // of that type
	Profile bool   // its columns depend on the semantic conventions in use
	Columns []Column
}

// Column is one column of a Table.
type Column struct {
	Name string
	Type string // with its codec
	// From is the value of a row: a Go expression, or the name of a method in parentheses
	// that appends to this column and its neighbours with the same From. It is empty where
	// the server computes the value.
	From    string
	Comment string
	// Binary is an id that is stored as its bytes; other FixedString columns have it in hex.
	Binary bool
	// Row is the value in msg.Row, for messages only, where it is not From; "-" leaves the
	// column out.
	Row     string
	Default string // DEFAULT, ALIAS or MATERIALIZED, and an expression
	// Since is the migration that adds the column; zero is the baseline, or the one that makes the table.
	Since int
}

// SQLType is the column's type without its codec.
func (c *Column) SQLType() string {
	t, _, _ := strings.Cut(c.Type, " CODEC(")
	return t
}

// Codec is the clause CODEC(…), or empty.
func (c *Column) Codec() string {
	if _, codec, ok := strings.Cut(c.Type, " CODEC("); ok {
		return "CODEC(" + codec
	}
	return ""
}

// Attribute is a value of a message without a column: an entry of the column attributes.
type Attribute struct {
	Key  string
	From string // a Go expression; the entry is left out when it is empty
}

// Of returns the table of that name, the computed one, or the view.
func Of(name string) (Table, bool) {
	for _, t := range slices.Concat(Tables, Views, Rollups, Facts) {
		if t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}

// The types of columns. The codecs were measured with the first release's schema: T64 for
// counts, Delta for times and versions, which ascend.
const (
	set      = "LowCardinality(String)"
	setZ     = "LowCardinality(String) CODEC(ZSTD(1))"
	text     = "String CODEC(ZSTD(1))"
	nanos    = "DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1))"
	millis   = "DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1))"
	count    = "UInt64 CODEC(T64, ZSTD(1))"
	size     = "UInt32 CODEC(T64, ZSTD(1))"
	ordered  = "UInt64 CODEC(Delta(8), ZSTD(1))"
	bytes    = "Int64 CODEC(ZSTD(1))"
	flag     = "Bool"
	deleted  = "UInt8 CODEC(ZSTD(1))"
	spanHex  = "FixedString(16) CODEC(ZSTD(1))"
	pairs    = "Map(LowCardinality(String), String) CODEC(ZSTD(1))"
	pairList = "Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1))"
	textList = "Array(String) CODEC(ZSTD(1))"
)
