package native

import (
	"strconv"

	"github.com/ClickHouse/ch-go/proto"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Time is a column of type DateTime64(9) that holds Unix nanoseconds.
type Time struct {
	Zone string // of the column's type; none when empty
	proto.ColInt64
}

// Append appends a time in Unix nanoseconds.
func (c *Time) Append(ns int64) { c.ColInt64 = append(c.ColInt64, ns) }

// Type implements Column.
func (c *Time) Type() proto.ColumnType { return timeType(9, c.Zone) }

// Millis is a column of type DateTime64(3) that is given Unix nanoseconds.
type Millis struct {
	Zone string
	proto.ColInt64
}

// Append appends a time in Unix nanoseconds.
func (c *Millis) Append(ns int64) { c.ColInt64 = append(c.ColInt64, ns/1e6) }

// Type implements Column.
func (c *Millis) Type() proto.ColumnType { return timeType(3, c.Zone) }

func timeType(precision int, zone string) proto.ColumnType {
	if zone == "" {
		return proto.ColumnTypeDateTime64.With(itoa(precision))
	}
	return proto.ColumnTypeDateTime64.With(itoa(precision), "'"+zone+"'")
}
