package native

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
)

// Column is a column of a block in the making. The columns of package
// ch-go/proto are Columns too.
type Column interface {
	Type() proto.ColumnType
	Rows() int
	EncodeColumn(b *proto.Buffer)
	Reset()
}

// Named is a column under its name.
type Named struct {
	Name string
	Column
}

// Block is a list of columns, all with the same number of rows.
type Block struct {
	Columns []Named

	wire []wireColumn
}

// wireColumn is the part of a column before its values: its name, type and state.
type wireColumn struct {
	head  []byte
	state proto.StateEncoder
}

// NewBlock returns a block of these columns.
func NewBlock(columns []Named) *Block {
	b := &Block{Columns: columns}
	for _, c := range columns {
		var head proto.Buffer
		head.PutString(c.Name)
		head.PutString(c.Type().String())
		w := wireColumn{head: head.Buf}
		w.state, _ = c.Column.(proto.StateEncoder)
		b.wire = append(b.wire, w)
	}
	return b
}

// Rows is the number of rows of the first column, and so of all.
func (b *Block) Rows() int {
	if len(b.Columns) == 0 {
		return 0
	}
	return b.Columns[0].Rows()
}

// Encode appends the block. Columns of unequal length are an error.
func (b *Block) Encode(to *proto.Buffer) error {
	rows := b.Rows()
	to.PutInt(len(b.Columns))
	to.PutInt(rows)
	for i, c := range b.Columns {
		if n := c.Rows(); n != rows {
			return fmt.Errorf("block: column %s has %d rows of %d", c.Name, n, rows)
		}
		w := &b.wire[i]
		to.Buf = append(to.Buf, w.head...)
		if rows == 0 {
			continue
		}
		if w.state != nil {
			w.state.EncodeState(to)
		}
		c.EncodeColumn(to)
	}
	return nil
}

// Reset empties the block.
func (b *Block) Reset() {
	for _, c := range b.Columns {
		c.Column.Reset()
	}
}
