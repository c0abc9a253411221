package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// insertion is one INSERT.
type insertion struct {
	*table
	// next appends the next block, encoded; io.EOF: there are no more.
	next func(to *proto.Buffer) error
	// token makes it safe to run again after a failure whose outcome is not known.
	token string
	size  int64 // bytes of its rows, if they are known to be many
}

// largeInsert is the size from which an insert builds the indexes of its part: no merge may come that would.
const largeInsert = 32 << 20

// textIndex is the full-text index of messages. To build it takes a quarter of the engine's time of a backlog's inserts, and the merge
// of a day that is over builds it again from the contents. So where settled.go looks after those days, no insert builds it.
const textIndex = "idx_fts"

// inserter runs inserts, one at a time.
type inserter struct {
	conn     *Conn
	settings *Settings
	wire     *wire
	ended    func(error) // called with the outcome of each
}

// run runs an insert in the time that it may take.
func (x *inserter) run(ctx context.Context, i insertion) error {
	limit := x.settings.longest(i.size)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	err := x.insert(ctx, i)
	x.ended(err)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("no answer in %s: %w", limit, err)
	}
	return err
}

var errTimeout = errors.New("insert timed out")

// longest is how long an insert of so many bytes may take.
func (s *Settings) longest(size int64) time.Duration {
	return s.Timeout * time.Duration(1+size/(32<<20))
}

// insert runs one INSERT.
func (x *inserter) insert(ctx context.Context, i insertion) error {
	settings := chgo.Settings{
		"async_insert":               0, // an answer means that the rows are stored
		"insert_deduplication_token": i.token,
		// A retry must not count twice in the tables of materialized views that people add either.
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		// The indexes of a small part are thrown away by the first merge, which builds its
		// own. Building the full-text one here as well doubled the cost of an insert, and the
		// others are two files each, up to half of the files of a part.
		"materialize_skip_indexes_on_insert": 0,
		// Rows of one key are put together by the next merge and by FINAL. Doing so in
		// every insert copies all of its text once more, to find next to nothing.
		"optimize_on_insert": 0,
	}
	if x.settings.Cluster != "" {
		// Otherwise an answer means that the rows are in a queue on the disk of one node, and the
		// checkpoint would move past rows that are lost with it.
		settings["distributed_foreground_insert"] = 1
		if x.settings.Quorum != "" {
			settings["insert_quorum"] = x.settings.Quorum
		}
	}
	if i.size >= largeInsert {
		settings["materialize_skip_indexes_on_insert"] = 1
		settings["min_insert_block_size_bytes"] = 2 * i.size // one part, not a large and a small one
		if settlesDays(x.conn, x.settings) {
			settings["exclude_materialize_skip_indexes_on_insert"] = textIndex
		}
	}
	if !x.conn.http {
		return x.insertNative(chgo.Context(ctx, chgo.WithSettings(settings)), i)
	}
	if x.wire.compress != nil {
		settings["decompress"] = 1
	}
	x.wire.buf.Reset()
	b := &body{next: i.next, wire: x.wire}
	err := x.conn.db.InsertFormat(chgo.Context(ctx, chgo.WithSettings(settings)), "Native", i.table.insert, b)
	if broken := b.stop(); broken != nil {
		return broken
	}
	return err
}

// insertNative hands the blocks to the driver's batch. The driver's columns are
// filled by decoding ours, as they are when a server sends them: there is no way
// to append to them that does not box every cell.
func (x *inserter) insertNative(ctx context.Context, i insertion) (err error) {
	batch, err := x.conn.db.PrepareBatch(ctx, i.table.insert)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = batch.Abort() // the returned error has more detail
		}
	}()
	into := batch.Columns()
	if len(into) != len(i.block.Columns) {
		return fmt.Errorf("server has %d columns for %d", len(into), len(i.block.Columns))
	}
	for n, col := range i.block.Columns {
		if have, want := into[n].Type(), col.Type().String(); string(have) != want {
			return fmt.Errorf("%w: column %s is %s, and rows are written as %s", ErrSchema, col.Name, have, want)
		}
	}
	for {
		x.wire.buf.Reset()
		if err := i.next(&x.wire.buf); errors.Is(err, io.EOF) {
			return batch.Send()
		} else if err != nil {
			return err
		}
		if err := fill(into, x.wire.buf.Buf); err != nil {
			return err
		}
		if err := batch.Flush(); err != nil {
			return err
		}
	}
}

// fill decodes a block into the driver's columns, which have the order of the block's.
func fill(into []column.Interface, encoded []byte) error {
	r := proto.NewReader(bytes.NewReader(encoded))
	columns, err := r.UVarInt()
	if err != nil {
		return err
	}
	rows, err := r.UVarInt()
	if err != nil {
		return err
	}
	if int(columns) != len(into) {
		return fmt.Errorf("block has %d columns for %d", columns, len(into))
	}
	for _, col := range into {
		name, err := r.Str()
		if err != nil {
			return err
		}
		if _, err := r.Str(); err != nil { // its type
			return err
		}
		if s, ok := col.(column.CustomSerialization); ok {
			if err := s.ReadStatePrefix(r); err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
		}
		if err := col.Decode(r, int(rows)); err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
	}
	return nil
}
