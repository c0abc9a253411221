package native

import (
	"math"

	"github.com/ClickHouse/ch-go/proto"
)

// Dict is a column of type LowCardinality(String): each distinct text once, and
// its index per row. Entry 0 is the empty text, as the server expects.
type Dict struct {
	index Text
	texts []string
	at    map[string]uint32
	keys  []uint32

	// The successor of a text is as a rule the one that it had before: the same text in a
	// column of names, the next one in a map whose keys come in an order of their own.
	last uint32
	next []uint32 // by text
}

// Append appends s. The column keeps no reference to it beyond the next Reset.
func (c *Dict) Append(s string) {
	if len(c.texts) == 0 {
		if c.at == nil {
			c.at = make(map[string]uint32)
		}
		c.text("")
	}
	key := c.next[c.last]
	if c.texts[key] != s {
		var known bool
		if key, known = c.at[s]; !known {
			key = c.text(s)
		}
		c.next[c.last] = key
	}
	c.last = key
	c.keys = append(c.keys, key)
}

// text adds a text, which is expected to be followed by itself.
func (c *Dict) text(s string) uint32 {
	key := uint32(len(c.texts))
	c.index.AppendString(s)
	c.texts, c.next = append(c.texts, s), append(c.next, key)
	c.at[s] = key
	return key
}

// Type implements Column.
func (c *Dict) Type() proto.ColumnType {
	return proto.ColumnTypeLowCardinality.Sub(proto.ColumnTypeString)
}

// Rows implements Column.
func (c *Dict) Rows() int { return len(c.keys) }

// The head of LowCardinality data: the version of the keys, and a word whose low
// byte is the width of the keys and whose flags mean that the dictionary follows.
const (
	sharedDictionaries = 1
	dictionaryIsHere   = 1<<9 | 1<<10
)

// EncodeState implements proto.StateEncoder.
func (c *Dict) EncodeState(b *proto.Buffer) { b.PutInt64(sharedDictionaries) }

// EncodeColumn implements Column.
func (c *Dict) EncodeColumn(b *proto.Buffer) {
	if len(c.keys) == 0 {
		return
	}
	n := c.index.rows
	width := proto.KeyUInt8
	switch {
	case n > math.MaxUint16+1:
		width = proto.KeyUInt32
	case n > math.MaxUint8+1:
		width = proto.KeyUInt16
	}
	b.PutInt64(dictionaryIsHere | int64(width))
	b.PutInt64(int64(n))
	c.index.EncodeColumn(b)
	b.PutInt64(int64(len(c.keys)))
	switch width {
	case proto.KeyUInt8:
		for _, k := range c.keys {
			b.Buf = append(b.Buf, byte(k))
		}
	case proto.KeyUInt16:
		for _, k := range c.keys {
			b.Buf = append(b.Buf, byte(k), byte(k>>8))
		}
	default:
		for _, k := range c.keys {
			b.PutUInt32(k)
		}
	}
}

// Reset implements Column.
func (c *Dict) Reset() {
	c.index.Reset()
	clear(c.at)
	clear(c.texts)
	c.texts, c.next, c.keys, c.last = c.texts[:0], c.next[:0], c.keys[:0], 0
}
