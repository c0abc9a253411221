// Package native raises ClickHouse's Native format from revision 0, which the
// embedded engine writes, to the revision that a client asked for with
// client_protocol_version.
//
//	revision 0:  columns rows { name type data }...
//	later:       info columns rows { name type flag data }...
//
// info is 8 bytes without a meaning here; flag, from revision 54454 on, means that
// the column has no custom serialization. The data of a column is the same in
// both and is copied as it is. The driver's own decoders are only used to find
// where a column ends (1.5 GB/s on the development machine, see the benchmark).
package native

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// blockInfo is field 1 (is_overflows) = false, field 2 (bucket_num) = -1, end.
var blockInfo = []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}

// Writer raises blocks to a revision. Each Write must hold whole blocks.
type Writer struct {
	dst     *bufio.Writer
	flag    []byte   // the bytes between the type and the data of a column
	columns []finder // by position: the blocks of a result are alike
}

// finder knows how long the data of a column is.
type finder struct {
	typ    string
	column column.Interface
}

// NewWriter makes a Writer to dst for a client of this revision, above 0.
func NewWriter(dst io.Writer, revision uint64) *Writer {
	w := &Writer{dst: bufio.NewWriterSize(dst, 64<<10)}
	if revision >= proto.DBMS_MIN_REVISION_WITH_CUSTOM_SERIALIZATION {
		w.flag = []byte{0}
	}
	return w
}

// Write raises the blocks in p. A type that the driver does not know is an
// error: it could not be read on the other side either.
func (w *Writer) Write(p []byte) (int, error) {
	src := bytes.NewReader(p)
	buffered := bufio.NewReaderSize(src, 128<<10) // large enough that ch-go reads through it
	in := input{Reader: chproto.NewReader(buffered), at: func() int { return len(p) - src.Len() - buffered.Buffered() }}
	for in.at() < len(p) {
		if err := w.block(in, p); err != nil {
			return 0, fmt.Errorf("native: %w", err)
		}
	}
	return len(p), w.dst.Flush()
}

// input reads a chunk and knows its place in it.
type input struct {
	*chproto.Reader
	at func() int
}

func (w *Writer) block(in input, p []byte) error {
	columns, err := in.UVarInt()
	if err != nil {
		return err
	}
	rows, err := in.UVarInt()
	if err != nil {
		return err
	}
	var counts [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(counts[:], columns)
	n += binary.PutUvarint(counts[n:], rows)
	w.dst.Write(blockInfo)
	w.dst.Write(counts[:n])
	for i := range int(columns) {
		head := in.at()
		name, err := in.Str()
		if err != nil {
			return err
		}
		typ, err := in.Str()
		if err != nil {
			return err
		}
		data := in.at()
		w.dst.Write(p[head:data])
		w.dst.Write(w.flag)
		c, err := w.column(i, name, typ)
		if err != nil {
			return err
		}
		if rows > 0 {
			if err := skip(in.Reader, c, int(rows)); err != nil {
				return fmt.Errorf("column %s %s: %w", name, typ, err)
			}
		}
		if _, err := w.dst.Write(p[data:in.at()]); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) column(i int, name, typ string) (column.Interface, error) {
	if i == len(w.columns) {
		w.columns = append(w.columns, finder{})
	}
	if w.columns[i].typ != typ {
		c, err := column.Type(typ).Column(name, &column.ServerContext{})
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		w.columns[i] = finder{typ, c}
	}
	w.columns[i].column.Reset()
	return w.columns[i].column, nil
}

func skip(r *chproto.Reader, c column.Interface, rows int) error {
	if s, ok := c.(column.CustomSerialization); ok {
		if err := s.ReadStatePrefix(r); err != nil {
			return err
		}
	}
	return c.Decode(r, rows)
}
