// Package native builds blocks of ClickHouse's Native format, column by column, without
// boxing a value or keeping a second copy of a text. Values enter by the Append methods of a
// column; a Block encodes them.
//
// A block at revision 0, which the HTTP interface accepts:
//
//	uvarint columns, uvarint rows, then per column:
//	string name, string type, [state prefix,] the values
//
// Why not the driver's way: Batch.Append takes any, so each cell is boxed, each
// LowCardinality cell goes through a map[any]int twice and each Map is walked by
// reflection. A message row of 1.8 kB, half of its text with JSON escapes, costs
// (BenchmarkBlock in package clickhouse; the two in brackets were measured once, with the
// same row):
//
//	these columns                        1.0 us    0 allocations
//	ch-go's columns                      1.4 us    0.03
//	Batch.Append                         9.3 us   37
//	[Batch.Append with pointers only     7.8 us   17]
//	[Batch.Column(i).Append of slices   14.8 us   90]
//
// Numbers, times and fixed strings are columns of ch-go. Four are ours:
//
//   - Dict: a value takes 5.1 ns and ch-go's ColLowCardinality 10.1 ns (BenchmarkColumns);
//     a row has 14, and the attributes of a span some 30 more. ch-go's also keeps the strings
//     of a block after Reset, and such a string pins the whole response it was decoded from.
//   - Text: as fast as ColStr, and it drops the buffer of a giant row at Reset.
//   - Map and Array: an entry is appended where it is found. ch-go's take a slice for each
//     row, and columns that decode.
//
// Columns are not safe for concurrent use. Reset keeps their memory, up to a limit, so that
// one giant row does not stay allocated.
package native
