package engine

import (
	"runtime"
	"strings"
	"unsafe"
)

// connection is one connection of the library. It is not safe for concurrent use.
type connection struct {
	lib  *library
	ref  *handle // the result of chdb_connect, for chdb_close_conn
	conn handle
}

func (c *connection) close() {
	if c.ref != nil {
		c.lib.closeConn(c.ref)
		c.ref = nil
	}
}

// opener is one of the three calls that start a statement.
type opener func(conn handle, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, p1, p2, p3, p4 unsafe.Pointer, pn uintptr) handle

func (c *connection) open(call opener, sql, format string, params []Param) handle {
	names := textsOf(params, func(p Param) string { return p.Name })
	values := textsOf(params, func(p Param) string { return p.Value })
	q, qn := text(sql)
	f, fn := text(format)
	np, nl := names.pointers()
	vp, vl := values.pointers()
	h := call(c.conn, q, qn, f, fn, np, nl, vp, vl, uintptr(len(params)))
	runtime.KeepAlive(params)
	runtime.KeepAlive(names)
	runtime.KeepAlive(values)
	return h
}

// run executes sql to its end and holds the whole result.
func (c *connection) run(sql, format string, params []Param) (*Result, error) {
	r := &Result{lib: c.lib, h: c.open(c.lib.query, sql, format, params)}
	if msg := c.lib.resultError(r.h); msg != "" {
		r.Close()
		return nil, parseException(msg)
	}
	return r, nil
}

// lines runs sql, whose result must be one column of plain words, and returns its rows.
func (c *connection) lines(sql string) ([]string, error) {
	r, err := c.run(sql, "TSVRaw", nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return strings.Fields(string(r.Bytes())), nil
}

// Result is the whole output of a statement.
type Result struct {
	lib *library
	h   handle
}

// Bytes is the output in the format that was asked for, in the library's memory.
func (r *Result) Bytes() []byte { return bytesOf(r.lib, r.h) }

// Stats returns the rows and bytes that the statement read and wrote.
func (r *Result) Stats() Stats { return statsOf(r.lib, r.h) }

// Close frees the result.
func (r *Result) Close() {
	if r.h != 0 {
		r.lib.destroyResult(r.h)
		r.h = 0
	}
}

// Stats counts the rows and bytes of a statement in all tables, materialized views included.
type Stats struct {
	RowsRead, BytesRead, RowsWritten, BytesWritten uint64
}

func statsOf(lib *library, h handle) Stats {
	return Stats{
		RowsRead: lib.rowsRead(h), BytesRead: lib.bytesRead(h),
		RowsWritten: lib.rowsWritten(h), BytesWritten: lib.bytesWritten(h),
	}
}

func bytesOf(lib *library, h handle) []byte {
	n := lib.resultLength(h)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(lib.resultBuffer(h)), n)
}
