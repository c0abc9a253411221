package clickhouse

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// chunk is the size of a block, about. An insert is a sequence of blocks, which
// the server puts together again, so that one block is in memory however
// large a batch is. A row is never cut.
const chunk = 1 << 20

// blocks iterates over the rows of an insert: it fills the block with the next of them and
// reports whether there are any.
type blocks func() bool

// insert runs one INSERT. The token makes it safe to run again after a failure
// whose outcome is not known.
func (x *Exporter) insert(ctx context.Context, j *job, next blocks, token string) error {
	settings := chgo.Settings{
		"async_insert":               0, // an answer means that the rows are stored
		"insert_deduplication_token": token,
		// A retry must not count twice in the tables of materialized views either.
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		// The indexes of a small part are thrown away by the first merge, which builds its
		// own. Building the full-text one here as well doubled the cost of an insert, and the
		// others are two files each, up to half of the files of a part.
		"materialize_skip_indexes_on_insert": 0,
		// Rows of one key are put together by the next merge and by FINAL. Doing so in
		// every insert copies all of its text once more, to find next to nothing.
		"optimize_on_insert": 0,
	}
	if !x.conn.http {
		return x.insertNative(chgo.Context(ctx, chgo.WithSettings(settings)), j, next)
	}
	if x.wire.compress != nil {
		settings["decompress"] = 1
	}
	x.wire.buf.Reset()
	b := &body{block: j.block, next: next, wire: x.wire}
	err := x.conn.db.InsertFormat(chgo.Context(ctx, chgo.WithSettings(settings)), "Native", j.insert, b)
	if broken := b.stop(); broken != nil {
		return broken
	}
	return err
}

// insertNative hands the blocks to the driver's batch. The driver's columns are
// filled by decoding ours, as they are when a server sends them: there is no way
// to append to them that does not box every cell.
func (x *Exporter) insertNative(ctx context.Context, j *job, next blocks) (err error) {
	batch, err := x.conn.db.PrepareBatch(ctx, j.insert)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = batch.Abort() // the returned error has more detail
		}
	}()
	into := batch.Columns()
	if len(into) != len(j.block.Columns) {
		return fmt.Errorf("server has %d columns for %d", len(into), len(j.block.Columns))
	}
	for i, col := range j.block.Columns {
		if have, want := into[i].Type(), col.Type().String(); string(have) != want {
			return fmt.Errorf("%w: column %s is %s, and rows are written as %s", ErrSchema, col.Name, have, want)
		}
	}
	for next() {
		x.wire.buf.Reset()
		if err := fill(into, j, &x.wire.buf); err != nil {
			return err
		}
		if err := batch.Flush(); err != nil {
			return err
		}
	}
	return batch.Send()
}

func fill(into []column.Interface, j *job, buf *proto.Buffer) error {
	rows := j.block.Rows()
	for _, col := range j.block.Columns {
		if n := col.Rows(); n != rows {
			return fmt.Errorf("block: column %s has %d rows of %d", col.Name, n, rows)
		}
		if s, ok := col.Column.(proto.StateEncoder); ok {
			s.EncodeState(buf)
		}
		col.EncodeColumn(buf)
	}
	r := proto.NewReader(bytes.NewReader(buf.Buf))
	for i, col := range into {
		if s, ok := col.(column.CustomSerialization); ok {
			if err := s.ReadStatePrefix(r); err != nil {
				return fmt.Errorf("column %s: %w", j.block.Columns[i].Name, err)
			}
		}
		if err := col.Decode(r, rows); err != nil {
			return fmt.Errorf("column %s: %w", j.block.Columns[i].Name, err)
		}
	}
	return nil
}
