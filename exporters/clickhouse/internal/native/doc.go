// Package native builds blocks of ClickHouse's Native format, column by column,
// without boxing a value or keeping a second copy of a text.
//
// A block at revision 0, which is what the HTTP interface takes:
//
//	uvarint columns, uvarint rows, then per column:
//	string name, string type, [state prefix,] the values
//
// The driver's own way (Batch.Append) takes any: each cell is boxed, each
// LowCardinality cell goes through a map[any]int twice and each Map is walked by
// reflection. On message rows of 1.8 kB that is seven times the CPU and a hundred
// times the allocations; see BenchmarkBlock in package clickhouse.
//
// Columns are not safe for concurrent use. Reset keeps their memory, up to a
// limit, so that one giant row does not stay allocated for ever.
package native
