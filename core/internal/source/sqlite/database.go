package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// ReasonDatabase: a table, or the whole database, cannot be read.
const ReasonDatabase = "database_error"

// reasonLong: a row is longer than max_row.
const reasonLong = "row_too_long"

const (
	tailRows  = 256 // of the highest rowids that are read between two scans
	rest      = 9   // a read is followed by a pause of so many times its duration
	markPause = 10 * time.Second
	tries     = 40 // of a read while the agent writes
	timeout   = time.Minute
)

// database is one database that is followed.
type database struct {
	*Source
	tree     string // the directory in front of the wildcards of its pattern
	path     string
	rec      source.Recording
	sums     *sums
	known    bool // the sums are those of a scan
	recent   recent
	highest  []int64 // rowid of each table
	scanned  state   // the files when the last scan began
	tailed   state
	nextScan time.Time
	nextTail time.Time
	again    time.Time // when it is read again although its files are the same, because it could not be read; zero: it could
	view     *view
	log      *walIndex
	dirty    bool
	marked   time.Time
	problems map[string]bool
	backoff  retry.Backoff
}

// state is the state of the files of a database. An unchanged database has the same.
type state struct {
	main, wal       os.FileInfo
	mainSize, inWAL int64
	mainAt, walAt   time.Time
}

func stateOf(path string) (s state, err error) {
	if s.main, err = os.Stat(path); err != nil {
		return s, err
	}
	s.mainSize, s.mainAt = s.main.Size(), s.main.ModTime()
	if wal, err := os.Stat(path + "-wal"); err == nil {
		s.wal, s.inWAL, s.walAt = wal, wal.Size(), wal.ModTime()
	}
	return s, nil
}

func (s state) equal(o state) bool {
	return s.main != nil && o.main != nil && os.SameFile(s.main, o.main) && s.mainSize == o.mainSize && s.mainAt.Equal(o.mainAt) &&
		(s.wal == nil) == (o.wal == nil) && s.inWAL == o.inWAL && s.walAt.Equal(o.walAt) && (s.wal == nil || os.SameFile(s.wal, o.wal))
}

// settled reports whether a later change of the files cannot go unnoticed.
func (s state) settled() bool {
	return time.Since(s.mainAt) > settled && (s.wal == nil || time.Since(s.walAt) > settled)
}

// poll reads the changes. idle reports that everything that there is was read.
func (d *database) poll(ctx context.Context) (idle bool, err error) {
	now, err := stateOf(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	started := time.Now()
	if err == nil && now.equal(d.scanned) && (d.again.IsZero() || started.Before(d.again)) {
		return true, d.mark(false)
	}
	if err := d.open(ctx); err != nil {
		return false, err
	}
	if err != nil {
		return true, d.problem(ctx, "", err)
	}
	full := !started.Before(d.nextScan)
	switch {
	case full:
		err = d.scan(ctx)
		d.nextScan = time.Now().Add(rest * time.Since(started))
	case !now.equal(d.tailed) && !started.Before(d.nextTail):
		err = d.tail(ctx)
		d.nextTail = time.Now().Add(rest * time.Since(started))
	default:
		return false, nil
	}
	d.close()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, errBusy), errors.Is(err, errRecord):
		d.nextScan = time.Now().Add(d.backoff.Next())
		return false, err
	case err != nil: // it is read again when it changes, or later, as a permission or a mount is no change of the file
		d.scanned = now
		d.again = time.Now().Add(max(d.backoff.Next(), rest*time.Since(started)))
		return true, d.problem(ctx, "", err)
	}
	d.backoff.Reset()
	d.again, d.tailed = time.Time{}, now
	if full && now.settled() {
		d.scanned = now
	}
	return full && now.settled(), d.mark(false)
}

// open opens the recording.
func (d *database) open(ctx context.Context) error {
	if d.rec != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(d.path))
	rec, err := d.recorder.Begin(ctx, d.Format, source.ID{Key: "sqlite-" + hex.EncodeToString(sum[:8]), Origin: d.path, Anchor: time.Now().UnixNano()})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	d.rec = rec
	d.sums, d.known = readSums(rec.State())
	return nil
}

// mark stores the sums: in a while, or at once.
func (d *database) mark(now bool) error {
	if !d.dirty || !now && time.Since(d.marked) < markPause {
		return nil
	}
	if err := d.rec.Mark(d.sums.encode()); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	d.dirty, d.marked = false, time.Now()
	return nil
}

// errRecord: the recorder did not take a row.
var errRecord = errors.New("record")

// record records a version of a row, unless it was the last that was recorded.
func (d *database) record(ctx context.Context, r *row) error {
	if had, ok := d.recent.get(r.key); ok && had == r.hash {
		return nil
	}
	f := frame.Frame{Kind: frame.Line, At: time.Now().UnixNano(), Data: r.data}
	if r.size > 0 {
		f.Reason, f.Dropped = reasonLong, r.size
	}
	if err := d.rec.Record(ctx, &f); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	d.recent.put(r.key, r.hash)
	d.dirty = true
	return nil
}

// problem records, once, a part that cannot be read.
func (d *database) problem(ctx context.Context, table string, err error) error {
	text := err.Error()
	if d.problems[table+text] || len(d.problems) > 100 {
		return nil
	}
	d.Logger.Warn("not read", "database", d.path, "table", table, "error", err)
	data, _ := json.Marshal(map[string]string{"database": d.path, "table": table, "error": text}) // strings
	if err := d.rec.Record(ctx, &frame.Frame{Kind: frame.Line, At: time.Now().UnixNano(), Data: data, Reason: ReasonDatabase}); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	d.problems[table+text] = true
	return nil
}

// scan reads all tables, and records the rows of the buckets that have changed.
func (d *database) scan(ctx context.Context) error {
	var changed [buckets]bool
	var old map[uint64]bool
	if d.known {
		var now sums
		if _, err := d.walk(ctx, nil, func(r *row) error {
			now[d.bucket(r)] += mix(r.key, r.hash)
			return nil
		}); err != nil {
			return err
		}
		if now == *d.sums {
			return nil
		}
		for i := range now {
			changed[i] = now[i] != d.sums[i]
		}
		if len(d.recent.young) == 0 { // the process has begun
			var err error
			if old, err = d.older(ctx, &changed, &now); err != nil {
				return err
			}
		}
	}
	// The rows may have changed since: those that are recorded are summed again.
	var now sums
	whole, err := d.walk(ctx, nil, func(r *row) error {
		b, m := d.bucket(r), mix(r.key, r.hash)
		if d.known && !changed[b] {
			return nil
		}
		now[b] += m
		if old[m] {
			return nil
		}
		return d.record(ctx, r)
	})
	if err != nil || !whole {
		return err
	}
	for i := range now {
		if !d.known || changed[i] {
			d.sums[i] = now[i]
		}
	}
	d.known, d.dirty = true, true
	return nil
}

// older returns those versions in buckets that have changed that an earlier process recorded: where
// the newest rows of a bucket explain the change, all others.
func (d *database) older(ctx context.Context, changed *[buckets]bool, now *sums) (map[uint64]bool, error) {
	type version struct {
		id  int64
		mix uint64
	}
	found, n := make(map[int][]version), 0
	if _, err := d.walk(ctx, nil, func(r *row) error {
		if b := d.bucket(r); changed[b] && n < maxRecent {
			found[b] = append(found[b], version{r.id, mix(r.key, r.hash)})
			n++
		}
		return nil
	}); err != nil || n >= maxRecent {
		return nil, err
	}
	old := make(map[uint64]bool)
	for b, rows := range found {
		slices.SortFunc(rows, func(x, y version) int { return cmp.Compare(y.id, x.id) })
		for i, rest := 0, now[b]-d.sums[b]; i < len(rows); i++ {
			if rest -= rows[i].mix; rest == 0 {
				for _, r := range rows[i+1:] {
					old[r.mix] = true
				}
				break
			}
		}
	}
	return old, nil
}

// bucket is the bucket of a row: each table has its own.
func (d *database) bucket(r *row) int {
	each := buckets / len(d.tables)
	return r.table*each + int(r.key%uint64(each))
}

// tail reads the rows of the highest rowids.
func (d *database) tail(ctx context.Context) error {
	from := make([]int64, len(d.highest))
	top := make([]int64, len(d.highest))
	for i, n := range d.highest {
		from[i], top[i] = n-tailRows, n
	}
	_, err := d.walk(ctx, from, func(r *row) error {
		had, known := d.recent.get(r.key)
		if err := d.record(ctx, r); err != nil || known && had == r.hash {
			return err
		}
		if known {
			d.sums[d.bucket(r)] -= mix(r.key, had)
		}
		if known || r.id > top[r.table] {
			d.sums[d.bucket(r)] += mix(r.key, r.hash)
		}
		return nil
	})
	return err
}

// cursor is where the walk is in a table.
type cursor struct {
	*query
	after int64
	rows  []row
	more  bool
}

// walk visits the rows of all tables behind the rowids, merged by their order. whole reports
// that each table was read to its end.
func (d *database) walk(ctx context.Context, from []int64, visit func(*row) error) (whole bool, err error) {
	if err := d.renew(ctx); err != nil {
		return false, err
	}
	var open []*cursor
	for i, t := range d.tables {
		c := &cursor{after: -1 << 63, more: true}
		if i < len(from) {
			c.after = from[i]
		}
		c.query = &query{Table: t, index: i}
		open = append(open, c)
	}
	whole = true
	for {
		var next *cursor
		for _, c := range open {
			if len(c.rows) == 0 && c.more {
				if err := d.fill(ctx, c); errors.Is(err, errTable) {
					whole = false
					if err := d.problem(ctx, c.Table.Table, err); err != nil {
						return false, err
					}
				} else if err != nil {
					return false, err
				}
			}
			if len(c.rows) > 0 && (next == nil || c.rows[0].order < next.rows[0].order) {
				next = c
			}
		}
		if next == nil {
			return whole, nil
		}
		r := &next.rows[0]
		if err := visit(r); err != nil {
			return false, err
		}
		d.highest[r.table] = max(d.highest[r.table], r.id)
		next.rows = next.rows[1:]
	}
}

// errTable: a table cannot be read, or not to its end.
var errTable = errors.New("table")

// fill reads the next rows of a table, from a snapshot that is valid afterwards.
func (d *database) fill(ctx context.Context, c *cursor) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for range tries {
		if d.view == nil {
			if err := d.renew(ctx); err != nil {
				return err
			}
		}
		q, err := d.view.query(ctx, c.index, c.Table, int(d.MaxRow))
		var rows []row
		more := false
		if err == nil && q != nil {
			rows, more, err = d.view.chunk(ctx, q, c.after, int(d.MaxRow))
		}
		if !d.view.valid() {
			d.close()
			if !retry.Wait(ctx, time.Millisecond) {
				return ctx.Err()
			}
			continue
		}
		c.rows, c.more = rows, more && err == nil
		if len(rows) > 0 {
			c.after = rows[len(rows)-1].id
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w %s: %w", errTable, c.Table.Table, err)
		}
		return ctx.Err()
	}
	return errBusy
}

// renew opens a snapshot, when none is open.
func (d *database) renew(ctx context.Context) error {
	if d.view != nil && d.view.valid() {
		return nil
	}
	d.close()
	for range tries {
		s, err := openSnapshot(d.tree, d.path, d.log)
		if err == nil && !s.fresh() && s.valid() {
			d.log = s.log
			v, err := d.pool.open(ctx, s, int(d.MaxRow))
			if err == nil {
				d.view = v
				return nil
			}
			right := s.valid()
			s.Close()
			if right || ctx.Err() != nil { // else it was overwritten while SQLite read it
				return err
			}
		} else if err == nil {
			s.Close()
		} else if !errors.Is(err, errBusy) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !retry.Wait(ctx, settled/4) {
			return ctx.Err()
		}
	}
	return errBusy
}

func (d *database) close() {
	if d.view != nil {
		d.view.Close()
		d.view = nil
	}
}
