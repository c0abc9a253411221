package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	chblock "github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// gathered is the encoded rows of batches that wait for one insert into each table. They lie
// in a file without a name: in 34 inserts the rows of 500 MB of traffic cost the engine twice as
// much as in 9, and 64 MB of them in memory would be a third of the sidecar's. While one such file
// is being stored the next is filled: else decoders and engine, which have a processor each, would take turns.
type gathered struct {
	dir     string
	file    rowsFile
	size    int64
	batches []string // their ids
	first   int      // index of the first that was not put elsewhere
	piles   map[string]*pile
	stored  map[string]struct{} // tokens of the inserts that were accepted
	attempt attempt             // to store them
	buf     proto.Buffer
}

// rowsFile is the part of a file that gathering uses.
type rowsFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// pile is the blocks of one table.
type pile struct {
	table   *table
	blocks  []block
	periods map[int32]struct{}
}

// size is how many bytes the blocks have.
func (p *pile) size() (n int64) {
	for _, b := range p.blocks {
		n += int64(b.size)
	}
	return n
}

// block is an encoded block in the file.
type block struct {
	at         int64
	size, rows int
	batch      int // index of its batch
}

func (g *gathered) empty() bool { return g.first == len(g.batches) }

// Gather implements export.Gatherer. A batch that has to be cut has an Export of its own. Without room for its partitions, or on
// the disk, nothing of it is gathered. While the tables are made or looked at for the first time batches are gathered.
func (x *Exporter) Gather(b *export.Batch) bool {
	g := &x.gathered
	if x.unready.Load() || g.dir == "" || len(b.Rows) > 0 || g.size >= int64(x.settings.MaxInsertBytes) {
		return false
	}
	for _, next := range x.writers.jobs(b) {
		j := next()
		if len(j.rows) == 0 {
			continue
		}
		if parts := j.split(x.settings.MaxInsertBytes); len(parts) != 1 || !g.pile(j.table).fits(j) {
			return false
		}
	}
	if err := g.write(x.writers.jobs(b)); err != nil {
		x.settings.Logger.Warn("clickhouse: rows are sent at once, in smaller inserts", "error", err)
		g.undo()
		return false
	}
	g.batches = append(g.batches, b.ID)
	g.attempt.have = g.attempt.have.or(derivableOf(b))
	return true
}

// fits reports whether one insert may touch the partitions of both.
func (p *pile) fits(j *job) bool {
	if j.period == nil {
		return true
	}
	more := make(map[int32]struct{})
	for _, i := range j.rows {
		if n := j.period(i); !contains(p.periods, n) {
			more[n] = struct{}{}
		}
	}
	return len(p.periods)+len(more) <= maxPartitions
}

func contains(set map[int32]struct{}, n int32) bool {
	_, ok := set[n]
	return ok
}

func (g *gathered) pile(t *table) *pile {
	if g.piles == nil {
		g.piles, g.stored = make(map[string]*pile), make(map[string]struct{})
	}
	p := g.piles[t.name]
	if p == nil {
		p = &pile{table: t, periods: make(map[int32]struct{})}
		g.piles[t.name] = p
	}
	return p
}

// write encodes the rows of a batch into the file.
func (g *gathered) write(jobs []func() *job) error {
	if g.file == nil {
		if err := os.MkdirAll(g.dir, 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(g.dir, "rows-")
		if err != nil {
			return err
		}
		g.file = f
		if err := os.Remove(f.Name()); err != nil { // it is there as long as it is open
			return err
		}
	}
	for _, next := range jobs {
		if err := g.append(next()); err != nil {
			return err
		}
	}
	return nil
}

func (g *gathered) append(j *job) error {
	if len(j.rows) == 0 {
		return nil
	}
	defer j.block.Reset()
	p, next := g.pile(j.table), j.blocks(part{0, len(j.rows)})
	for next() {
		g.buf.Reset()
		if err := j.block.Encode(&g.buf); err != nil {
			return err
		}
		n, err := g.file.WriteAt(g.buf.Buf, g.size)
		if err != nil {
			return err
		}
		p.blocks = append(p.blocks, block{at: g.size, size: n, rows: j.block.Rows(), batch: len(g.batches)})
		g.size += int64(n)
	}
	if j.period != nil {
		for _, i := range j.rows {
			p.periods[j.period(i)] = struct{}{}
		}
	}
	return nil
}

// undo drops the blocks of a batch that is not among the batches.
func (g *gathered) undo() {
	n := len(g.batches)
	for _, p := range g.piles {
		for len(p.blocks) > 0 && p.blocks[len(p.blocks)-1].batch >= n {
			p.blocks = p.blocks[:len(p.blocks)-1]
		}
	}
	if g.empty() {
		g.reset()
	}
}

// reset forgets everything. The file is emptied and kept for the next.
func (g *gathered) reset() {
	g.size, g.batches, g.first, g.piles, g.attempt = 0, g.batches[:0], 0, nil, attempt{}
	if g.file != nil {
		_ = g.file.Truncate(0) // else the next rows overwrite it
	}
}

func (g *gathered) close() {
	if g.file != nil {
		_ = g.file.Close()
	}
}

// Part implements export.Gatherer.
func (x *Exporter) Part() (store func(context.Context) error) {
	x.parted, x.gathered = x.gathered, x.parted
	return x.storeParted
}

// storeParted stores the rows that are set apart. An insert that was accepted is not sent again as long as the batches are the same.
func (x *Exporter) storeParted(ctx context.Context) error {
	g := &x.parted
	if g.empty() {
		return nil
	}
	if err := x.Prepare(ctx); err != nil {
		return x.conn.mayPass(ctx, err)
	}
	g.attempt.begin(time.Now(), derivable{})
	if err := x.storeGathered(ctx, g); err != nil {
		return err
	}
	x.stored(ctx, &g.attempt)
	g.reset()
	return nil
}

// storeGathered runs the inserts of the gathered rows. They stay, with which of the inserts were accepted.
func (x *Exporter) storeGathered(ctx context.Context, g *gathered) error {
	id := msg.HashKey(g.batches[g.first:]...)
	for _, t := range x.writers.tables() {
		p := g.piles[t.name]
		if p == nil || len(p.blocks) == 0 {
			continue
		}
		token := id + "-" + t.name
		if _, ok := g.stored[token]; ok {
			continue
		}
		n, rows := 0, 0
		next := func(to *proto.Buffer) error {
			if n == len(p.blocks) {
				return io.EOF
			}
			at := p.blocks[n]
			n, rows = n+1, rows+at.rows
			return g.read(at, to)
		}
		if err := x.inserts.run(ctx, insertion{table: t, next: next, token: token, size: p.size()}); err != nil {
			return x.conn.classify(ctx, fmt.Errorf("clickhouse: insert %d gathered rows into %s: %w", rows, t.name, err))
		}
		g.stored[token] = struct{}{}
	}
	return nil
}

// read appends a block of the file.
func (g *gathered) read(b block, to *proto.Buffer) error {
	from := len(to.Buf)
	to.Ensure(b.size)
	_, err := g.file.ReadAt(to.Buf[from:from+b.size], b.at)
	return err
}

// Ungather implements export.Gatherer.
func (x *Exporter) Ungather(put func(*export.Batch) error) error {
	if a := x.parted.attempt; !a.began.IsZero() {
		x.attempt.begin(a.began, a.have)
	}
	if err := x.parted.take(x.writers.tables(), put); err != nil {
		return err
	}
	return x.gathered.take(x.writers.tables(), put)
}

// take calls put for each batch, and forgets those that it takes.
func (g *gathered) take(tables []*table, put func(*export.Batch) error) error {
	for ; g.first < len(g.batches); g.first++ {
		out := &export.Batch{ID: g.batches[g.first] + "g"}
		for _, t := range tables {
			p := g.piles[t.name]
			for n := 0; p != nil && n < len(p.blocks) && p.blocks[n].batch == g.first; n++ {
				var buf proto.Buffer
				if err := g.read(p.blocks[n], &buf); err != nil {
					return fmt.Errorf("clickhouse: gathered rows of %s: %w", t.name, err)
				}
				out.Rows = append(out.Rows, export.Rows{Table: t.name, Count: p.blocks[n].rows, Data: buf.Buf})
			}
		}
		if err := put(out); err != nil {
			return err
		}
		for _, p := range g.piles {
			for len(p.blocks) > 0 && p.blocks[0].batch == g.first {
				p.blocks = p.blocks[1:]
			}
		}
	}
	g.reset()
	return nil
}

// exportRows stores the rows of a batch that was gathered.
func (x *Exporter) exportRows(ctx context.Context, b *export.Batch) error {
	for n, r := range b.Rows {
		var t *table
		for _, have := range x.writers.tables() {
			if have.name == r.Table {
				t = have
			}
		}
		if t == nil {
			return export.Permanent(fmt.Errorf("clickhouse: rows of a table %q, which is not written any more", r.Table))
		}
		token := fmt.Sprintf("%s-%s-%d", b.ID, r.Table, n)
		if _, ok := x.accepted[token]; ok {
			continue
		}
		sent := false
		next := func(to *proto.Buffer) error {
			if sent {
				return io.EOF
			}
			sent = true
			to.Buf = append(to.Buf, r.Data...)
			return nil
		}
		if err := x.inserts.run(ctx, insertion{table: t, next: next, token: token, size: int64(len(r.Data))}); err != nil {
			return x.conn.classify(ctx, fmt.Errorf("clickhouse: insert %d rows into %s: %w", r.Count, r.Table, err))
		}
		x.accepted[token] = struct{}{}
	}
	return nil
}

// Split implements export.Gatherer.
func (x *Exporter) Split(b *export.Batch) (halves [2]*export.Batch, ok bool) {
	if len(b.Rows) != 1 || b.Rows[0].Count < 2 {
		return halves, false
	}
	r := b.Rows[0]
	for i, cut := range [2][2]int{{0, r.Count / 2}, {r.Count / 2, r.Count}} {
		part, err := cutRows(r, cut[0], cut[1])
		if err != nil {
			x.settings.Logger.Error("clickhouse: gathered rows cannot be read", "table", r.Table, "error", err)
			return halves, false
		}
		halves[i] = &export.Batch{ID: b.ID + fmt.Sprint(i), Rows: []export.Rows{part}}
	}
	return halves, true
}

// cutRows returns some of the rows of a block. It boxes every value: it is for the block in
// which a row is refused.
func cutRows(r export.Rows, from, to int) (export.Rows, error) {
	out := export.Rows{Table: r.Table, Count: to - from}
	in := chblock.Block{ServerContext: &column.ServerContext{}}
	if err := in.Decode(proto.NewReader(bytes.NewReader(r.Data)), 0); err != nil {
		return out, err
	}
	some := chblock.NewBlock()
	for _, c := range in.Columns {
		if err := some.AddColumn(c.Name(), c.Type()); err != nil {
			return out, err
		}
	}
	shown := make(map[string]any)
	for n := from; n < to; n++ {
		row := make([]any, len(in.Columns))
		for i, c := range in.Columns {
			row[i] = c.Row(n, false)
			shown[c.Name()] = row[i]
		}
		if err := some.Append(row...); err != nil {
			return out, err
		}
	}
	var buf proto.Buffer
	if err := some.Encode(&buf, 0); err != nil {
		return out, err
	}
	out.Data = buf.Buf
	if out.Count == 1 {
		text, err := json.Marshal(shown)
		if err != nil {
			return out, err
		}
		out.Shown = strings.ToValidUTF8(string(text), "\ufffd")
	}
	return out, nil
}

var _ export.Gatherer = (*Exporter)(nil)
