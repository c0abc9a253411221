// Package native builds blocks of ClickHouse's Native format, column by column,
// without boxing a value or keeping a second copy of a text.
//
// A block at revision 0, which is what the HTTP interface takes:
//
//	uvarint columns, uvarint rows, then per column:
//	string name, string type, [state prefix,] the values
//
// Why not the driver's way: Batch.Append takes any, so each cell is boxed, each
// LowCardinality cell goes through a map[any]int twice and each Map is walked by
// reflection. A message row of 1.8 kB, half of its text with JSON escapes, costs
// (BenchmarkBlock in package clickhouse; the two in brackets once, with the same):
//
//	these columns                        1.0 us    0 allocations
//	ch-go's columns                      1.8 us    0.03
//	Batch.Append                         9.3 us   37
//	[Batch.Append with pointers only     7.8 us   17]
//	[Batch.Column(i).Append of slices   14.8 us   90]
//
// Columns are not safe for concurrent use. Reset keeps their memory, up to a
// limit, so that one giant row does not stay allocated for ever.
package native
