package native

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
)

// keep is how much memory a column may hold on to between blocks.
const keep = 8 << 20

// Text is a column of type String. Its buffer has the form that goes on the
// wire, so that a text is copied exactly once: from the frame into the block.
type Text struct {
	buf  []byte
	rows int
}

// Append appends a text, unescaped, and returns its length in bytes.
func (c *Text) Append(t msg.Text) int {
	c.rows++
	raw, quoted := t.Alias()
	if !quoted {
		n := t.Len()
		c.buf = t.Append(binary.AppendUvarint(c.buf, uint64(n)))
		return n
	}
	// How long it will be is known after unescaping, and no more than now.
	at := len(c.buf)
	c.buf = binary.AppendUvarint(c.buf, uint64(len(raw)))
	body := len(c.buf)
	c.buf = t.Append(c.buf)
	n := len(c.buf) - body
	if end := at + binary.PutUvarint(c.buf[at:body], uint64(n)); end < body {
		c.buf = append(c.buf[:end], c.buf[body:]...)
	}
	return n
}

// AppendString appends s.
func (c *Text) AppendString(s string) {
	c.rows++
	c.buf = append(binary.AppendUvarint(c.buf, uint64(len(s))), s...)
}

// AppendBytes appends b.
func (c *Text) AppendBytes(b []byte) {
	c.rows++
	c.buf = append(binary.AppendUvarint(c.buf, uint64(len(b))), b...)
}

// AppendHex appends id in hex, or the empty string when it is all zeros.
func (c *Text) AppendHex(id []byte) {
	for _, b := range id {
		if b != 0 {
			c.rows++
			c.buf = hex.AppendEncode(append(c.buf, byte(2*len(id))), id)
			return
		}
	}
	c.AppendString("")
}

// Type implements Column.
func (c *Text) Type() proto.ColumnType { return proto.ColumnTypeString }

// Rows implements Column.
func (c *Text) Rows() int { return c.rows }

// EncodeColumn implements Column.
func (c *Text) EncodeColumn(b *proto.Buffer) { b.Buf = append(b.Buf, c.buf...) }

// Reset implements Column.
func (c *Text) Reset() {
	c.rows = 0
	if cap(c.buf) > keep {
		c.buf = nil
	}
	c.buf = c.buf[:0]
}
