package native

import "github.com/ClickHouse/ch-go/proto"

// Map is a column of type Map(LowCardinality(String), String). A row is any
// number of Keys and Values, and then EndRow.
type Map struct {
	Keys    Dict
	Values  Text
	offsets proto.ColUInt64
}

// Append appends an entry to the row.
func (c *Map) Append(key, value string) {
	c.Keys.Append(key)
	c.Values.AppendString(value)
}

// EndRow ends the row.
func (c *Map) EndRow() { c.offsets = append(c.offsets, uint64(c.Values.rows)) }

// Type implements Column.
func (c *Map) Type() proto.ColumnType {
	return proto.ColumnTypeMap.Sub(c.Keys.Type(), c.Values.Type())
}

// Rows implements Column.
func (c *Map) Rows() int { return len(c.offsets) }

// EncodeState implements proto.StateEncoder.
func (c *Map) EncodeState(b *proto.Buffer) { c.Keys.EncodeState(b) }

// EncodeColumn implements Column.
func (c *Map) EncodeColumn(b *proto.Buffer) {
	c.offsets.EncodeColumn(b)
	c.Keys.EncodeColumn(b)
	c.Values.EncodeColumn(b)
}

// Reset implements Column.
func (c *Map) Reset() {
	c.Keys.Reset()
	c.Values.Reset()
	c.offsets.Reset()
}

// Array is a column of type Array(T). A row is any number of values appended to
// Of, and then EndRow.
type Array[C Column] struct {
	Of      C
	offsets proto.ColUInt64
}

// NewArray returns an empty column of arrays.
func NewArray[C Column](of C) *Array[C] { return &Array[C]{Of: of} }

// EndRow ends the row.
func (c *Array[C]) EndRow() { c.offsets = append(c.offsets, uint64(c.Of.Rows())) }

// Type implements Column.
func (c *Array[C]) Type() proto.ColumnType { return c.Of.Type().Array() }

// Rows implements Column.
func (c *Array[C]) Rows() int { return len(c.offsets) }

// EncodeState implements proto.StateEncoder.
func (c *Array[C]) EncodeState(b *proto.Buffer) {
	if s, ok := any(c.Of).(proto.StateEncoder); ok {
		s.EncodeState(b)
	}
}

// EncodeColumn implements Column.
func (c *Array[C]) EncodeColumn(b *proto.Buffer) {
	c.offsets.EncodeColumn(b)
	c.Of.EncodeColumn(b)
}

// Reset implements Column.
func (c *Array[C]) Reset() {
	c.Of.Reset()
	c.offsets.Reset()
}
