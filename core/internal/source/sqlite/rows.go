package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	driver "modernc.org/sqlite"
	"modernc.org/sqlite/vfs"
)

// pool is the file system in which SQLite sees snapshots.
type pool struct {
	name  string
	fs    *vfs.FS
	mu    sync.Mutex
	next  int
	files map[string]*snapshot
}

func newPool() (*pool, error) {
	p := &pool{files: make(map[string]*snapshot)}
	var err error
	if p.name, p.fs, err = vfs.New(p); err != nil {
		return nil, fmt.Errorf("register file system: %w", err)
	}
	return p, nil
}

// Open implements fs.FS. There is no journal and no log.
func (p *pool) Open(name string) (fs.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.files[name]
	if s == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{s, io.NewSectionReader(s, 0, s.size)}, nil
}

// view is a snapshot that SQLite has opened.
type view struct {
	*snapshot
	pool *pool
	name string
	db   *sql.DB
	conn *sql.Conn
	made map[int]*query // by their index; nil: the database does not have the table
}

// sqliteLimitLength is SQLITE_LIMIT_LENGTH: the longest text or BLOB.
const sqliteLimitLength = 0

func (p *pool) open(ctx context.Context, s *snapshot, maxRow int) (_ *view, err error) {
	p.mu.Lock()
	p.next++
	v := &view{snapshot: s, pool: p, name: "db" + strconv.Itoa(p.next), made: make(map[int]*query)}
	p.files[v.name] = s
	p.mu.Unlock()
	defer func() {
		if err != nil {
			v.release()
		}
	}()
	v.db, err = sql.Open("sqlite", "file:"+v.name+"?vfs="+p.name+"&mode=ro&_pragma=query_only(1)&_pragma=cache_size(-2048)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)")
	if err != nil {
		return nil, err
	}
	if v.conn, err = v.db.Conn(ctx); err != nil {
		return nil, err
	}
	_, err = driver.Limit(v.conn, sqliteLimitLength, max(4*maxRow, 1<<20))
	return v, err
}

// Close closes the view and its snapshot.
func (v *view) Close() {
	v.release()
	v.snapshot.Close()
}

// release closes SQLite's connection to the snapshot.
func (v *view) release() {
	if v.conn != nil {
		_ = v.conn.Close()
	}
	if v.db != nil {
		_ = v.db.Close()
	}
	v.pool.mu.Lock()
	delete(v.pool.files, v.name)
	v.pool.mu.Unlock()
}

// query is how the rows of a table are read, with the columns that the database has.
type query struct {
	Table
	index   int // in the description
	columns []string
	keys    []int // of columns
	order   int   // of columns; -1: none
	json    []bool
	sql     string
	args    []any
}

// query makes the query of a table; nil when the database does not have it.
func (v *view) query(ctx context.Context, index int, t Table, maxRow int) (*query, error) {
	if q, ok := v.made[index]; ok {
		return q, nil
	}
	q, err := v.make(ctx, index, t, maxRow)
	if err == nil {
		v.made[index] = q
	}
	return q, err
}

func (v *view) make(ctx context.Context, index int, t Table, maxRow int) (*query, error) {
	q := &query{Table: t, index: index, order: -1}
	rows, err := v.conn.QueryContext(ctx, "SELECT c.name, c.pk FROM pragma_table_list AS t, pragma_table_info(t.name) AS c WHERE t.name=? AND t.schema='main' AND t.type='table'", t.Table)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	primary := make(map[int]string)
	for rows.Next() {
		var name string
		var pk int
		if err := rows.Scan(&name, &pk); err != nil {
			return nil, err
		}
		wanted := len(t.Columns) == 0 || slices.Contains(t.Columns, name) || slices.Contains(t.Key, name) || name == t.Order
		if pk > 0 {
			primary[pk] = name
		}
		if wanted || pk > 0 && len(t.Key) == 0 {
			q.columns = append(q.columns, name)
		}
	}
	if err := rows.Err(); err != nil || len(q.columns) == 0 {
		return nil, err
	}
	key := t.Key
	if len(key) == 0 {
		for i := 1; primary[i] != ""; i++ {
			key = append(key, primary[i])
		}
	}
	for _, k := range key {
		if i := slices.Index(q.columns, k); i >= 0 {
			q.keys = append(q.keys, i)
		}
	}
	q.order = slices.Index(q.columns, t.Order)
	var sizes, values []string
	for _, c := range q.columns {
		q.json = append(q.json, slices.Contains(t.JSON, c))
		id := quote(c)
		sizes = append(sizes, "ifnull(octet_length("+id+"),0)")
		// The expression keeps the driver from making times of texts.
		values = append(values, fmt.Sprintf("CASE WHEN octet_length(%s)>%d THEN NULL ELSE %s END", id, maxRow, id))
	}
	q.sql = "SELECT rowid," + strings.Join(sizes, "+") + "," + strings.Join(values, ",") + " FROM " + quote(t.Table) + " WHERE rowid>?"
	if len(t.Prefixes) > 0 && len(q.keys) > 0 {
		var any []string
		id := quote(q.columns[q.keys[0]])
		for _, p := range t.Prefixes {
			any = append(any, "("+id+">=? AND "+id+"<?)")
			q.args = append(q.args, p, p+"\U0010FFFF")
		}
		q.sql += " AND (" + strings.Join(any, " OR ") + ")"
	}
	if t.Unless != "" && len(q.keys) > 0 {
		key := q.columns[q.keys[0]]
		var there bool
		err := v.conn.QueryRowContext(ctx, "SELECT count(*)>0 FROM pragma_table_info(?) WHERE name=?", t.Unless, key).Scan(&there)
		if err != nil {
			return nil, err
		}
		if there {
			q.sql += " AND NOT EXISTS (SELECT 1 FROM " + quote(t.Unless) + " AS other WHERE other." + quote(key) + "=" + quote(t.Table) + "." + quote(key) + ")"
		}
	}
	q.sql += " ORDER BY rowid LIMIT " + strconv.Itoa(chunkRows)
	return q, nil
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

const (
	chunkRows  = 512
	chunkBytes = 4 << 20
)

// row is one row as it is recorded.
type row struct {
	table int   // in the description
	id    int64 // rowid
	key   uint64
	hash  uint64
	order int64
	data  []byte // its frame
	size  int64  // of a row that is too long; its data has the key only
}

// chunk reads rows behind a rowid, in its order. more is whether there may be others.
func (v *view) chunk(ctx context.Context, q *query, after int64, maxRow int) (out []row, more bool, err error) {
	rows, err := v.conn.QueryContext(ctx, q.sql, append([]any{after}, q.args...)...)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = rows.Close() }()
	values := make([]any, len(q.columns)+2)
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	for size := 0; rows.Next(); {
		if err := rows.Scan(into...); err != nil {
			return nil, false, err
		}
		r := q.row(values, maxRow)
		out = append(out, r)
		if size += len(r.data); size > chunkBytes {
			return out, true, nil
		}
	}
	return out, len(out) == chunkRows, rows.Err()
}

// row makes the frame of a row.
func (q *query) row(values []any, maxRow int) row {
	r := row{table: q.index}
	r.id, _ = values[0].(int64)
	size, _ := values[1].(int64)
	values = values[2:]
	h := xxhash.New()
	_, _ = h.WriteString(q.Table.Table + "\x00" + strconv.Itoa(q.index))
	for _, k := range q.keys {
		_, _ = fmt.Fprintf(h, "\x00%v", plain(values[k]))
	}
	if len(q.keys) == 0 {
		_, _ = fmt.Fprintf(h, "\x00%d", r.id)
	}
	r.key = h.Sum64()
	if q.order >= 0 {
		r.order = instant(values[q.order])
	}
	long := size > int64(maxRow)
	if long {
		r.size = size
	}
	var b bytes.Buffer
	b.WriteString(`{"table":`)
	writeText(&b, q.Table.Table)
	b.WriteString(`,"row":{`)
	first := true
	for i, name := range q.columns {
		if long && !slices.Contains(q.keys, i) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeText(&b, name)
		b.WriteByte(':')
		q.value(&b, values[i], q.json[i])
	}
	b.WriteString("}}")
	r.data = b.Bytes()
	r.hash = xxhash.Sum64(r.data) + uint64(r.size)
	return r
}

// plain is a text as a string, whether the column has it as a text or as a BLOB.
func plain(v any) any {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v
}

func (q *query) value(b *bytes.Buffer, v any, isJSON bool) {
	switch v := plain(v).(type) {
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		n, err := json.Marshal(v)
		if err != nil { // infinite
			n = []byte("null")
		}
		b.Write(n)
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		if isJSON && json.Valid([]byte(v)) {
			// Lines of a frame have no line breaks of their own.
			if json.Compact(b, []byte(v)) == nil {
				return
			}
		}
		if strings.IndexByte(v, 0) >= 0 && !utf8.ValidString(v) {
			b.WriteString("null")
			return
		}
		writeText(b, v)
	default:
		b.WriteString("null")
	}
}

func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	b.Truncate(b.Len() - 1)
}

// instant is the value of an order column as one number that is comparable between tables: Unix
// seconds, milliseconds, microseconds or nanoseconds, or a text with a time.
func instant(v any) int64 {
	switch v := plain(v).(type) {
	case int64:
		return nanoseconds(float64(v), v)
	case float64:
		return nanoseconds(v, int64(v))
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999"} {
			if t, err := time.Parse(layout, v); err == nil {
				return t.UnixNano()
			}
		}
	}
	return 0
}

func nanoseconds(f float64, n int64) int64 {
	switch {
	case f < 0:
		return 0
	case f < 1e11:
		return int64(f * 1e9)
	case f < 1e14:
		return n * 1e6
	case f < 1e17:
		return n * 1e3
	}
	return n
}
