package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/export"
)

var _ export.Erasable = (*Exporter)(nil)

// Eraser implements export.Erasable.
func (x *Exporter) Eraser() export.Eraser { return &eraser{x.conn, x.schema, x.Prepare} }

// eraser erases sessions from the tables.
type eraser struct {
	conn    *Conn
	schema  Schema
	prepare func(context.Context) error
}

// keysAtOnce bounds the sessions of one statement.
const keysAtOnce = 1000

// erasable is a table whose rows belong to sessions. key is the hash of a row's session, as
// export.Session.Key computes it: a server keeps the text of a mutation as long as the table, so
// that it must not name the session.
type erasable struct{ table, key string }

// erasables are the tables of the database that have a session.
func (x *eraser) erasables(ctx context.Context) (out []erasable, err error) {
	rows, err := x.conn.db.Query(ctx, `SELECT table, groupArray(name) FROM system.columns
		WHERE database = `+quoteText(x.conn.database)+` AND table IN (SELECT name FROM system.tables WHERE database = `+quoteText(x.conn.database)+` AND engine LIKE '%MergeTree%')
		GROUP BY table ORDER BY table`)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read columns: %w", x.conn.plain(err))
	}
	defer rows.Close()
	for rows.Next() {
		var t string
		var columns []string
		if err := rows.Scan(&t, &columns); err != nil {
			return nil, fmt.Errorf("clickhouse: read columns: %w", x.conn.plain(err))
		}
		tenant, session := "tenant", "session_id"
		switch {
		case slices.Contains(columns, "session_id") && slices.Contains(columns, "tenant"):
		case slices.Contains(columns, "SessionId") && slices.Contains(columns, "SpanAttributes"):
			tenant, session = "SpanAttributes['earshot.tenant']", "SessionId"
		case slices.Contains(columns, "began_by") && slices.Contains(columns, "tenant"):
			session = "began_by"
		default:
			continue
		}
		out = append(out, erasable{t, "lower(hex(SHA256(concat(toString(" + tenant + "), '\\0', " + session + "))))"})
	}
	return out, rows.Err()
}

// of is the condition of a session's rows.
func (t erasable) of(sessions []export.Session) string {
	keys := make([]string, len(sessions))
	for i, s := range sessions {
		keys[i] = quoteText(s.Key())
	}
	return t.key + " IN (" + strings.Join(keys, ", ") + ")"
}

// Find implements export.Eraser.
func (x *eraser) Find(ctx context.Context, s export.Selection) (out []export.Session, err error) {
	var parts []string
	add := func(table, where string) {
		parts = append(parts, "SELECT toString(tenant) AS t, session_id AS s FROM "+x.schema.name(table)+" WHERE session_id != '' AND ("+where+")")
	}
	if len(s.IDs) > 0 {
		ids := make([]string, len(s.IDs))
		for i, id := range s.IDs {
			ids[i] = quoteText(id)
		}
		for _, table := range []string{"messages", "spans", "sessions", "session_facts", "dead_letters", "streams", "verdicts", "findings"} {
			add(table, "session_id IN ("+strings.Join(ids, ", ")+")")
		}
	}
	if s.Begin != "" {
		add("sessions", "startsWith(session_id, "+quoteText(s.Begin)+")")
	}
	if s.User != "" {
		add("messages", "attributes['user'] = "+quoteText(s.User))
		parts = append(parts, "SELECT toString(tenant) AS t, session_id AS s FROM "+x.schema.name("session_facts")+" GROUP BY tenant, session_id HAVING argMaxIfMerge(user) = "+quoteText(s.User))
	}
	if s.Match != "" {
		re := quoteText(s.Match)
		add("messages", fmt.Sprintf("match(content, %[1]s) OR match(tool_arguments, %[1]s) OR match(delegate_task, %[1]s) OR arrayExists(v -> match(v, %[1]s), mapValues(attributes))", re))
		add("dead_letters", fmt.Sprintf("match(payload, %[1]s) OR match(error, %[1]s)", re))
	}
	if len(parts) == 0 {
		return nil, nil
	}
	rows, err := x.conn.db.Query(ctx, "SELECT DISTINCT t, s FROM ("+strings.Join(parts, " UNION ALL ")+") ORDER BY t, s")
	if err != nil {
		return nil, fmt.Errorf("clickhouse: find sessions: %w", x.conn.plain(err))
	}
	defer rows.Close()
	for rows.Next() {
		var f export.Session
		if err := rows.Scan(&f.Tenant, &f.ID); err != nil {
			return nil, fmt.Errorf("clickhouse: find sessions: %w", x.conn.plain(err))
		}
		out = append(out, f)
	}
	return out, rows.Err()
}

// Count implements export.Eraser.
func (x *eraser) Count(ctx context.Context, e *export.Erasure) (out []export.TableRows, err error) {
	tables, err := x.erasables(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		n, err := x.count(ctx, t, e.Sessions)
		if err != nil {
			return nil, err
		}
		if t.table == x.dataTable("dead_letters") {
			ids, err := x.letters(ctx, e)
			if err != nil {
				return nil, err
			}
			n += uint64(len(ids))
		}
		if n > 0 {
			out = append(out, export.TableRows{Table: t.table, Rows: n})
		}
	}
	return out, nil
}

// dataTable is the table that has the rows, without its database.
func (x *eraser) dataTable(table string) string {
	if x.schema.Cluster != "" {
		table += "_local"
	}
	return table
}

func (x *eraser) count(ctx context.Context, t erasable, sessions []export.Session) (total uint64, err error) {
	for part := range slices.Chunk(sessions, keysAtOnce) {
		var n uint64
		if err := x.conn.db.QueryRow(ctx, "SELECT count() FROM "+x.schema.name(t.table)+" WHERE "+t.of(part)).Scan(&n); err != nil {
			return 0, fmt.Errorf("clickhouse: count rows of %s: %w", t.table, x.conn.plain(err))
		}
		total += n
	}
	return total, nil
}

// letters are the ids of the dead letters of no session that have a match, or the id of a session.
func (x *eraser) letters(ctx context.Context, e *export.Erasure) (ids []string, err error) {
	var where []string
	for _, s := range e.Sessions {
		if export.Searchable(s.ID) {
			where = append(where, fmt.Sprintf("position(payload, %[1]s) > 0 OR position(error, %[1]s) > 0", quoteText(s.ID)))
		}
	}
	if e.Match != "" {
		where = append(where, fmt.Sprintf("match(payload, %[1]s) OR match(error, %[1]s)", quoteText(e.Match)))
	}
	for part := range slices.Chunk(where, keysAtOnce) {
		more, err := x.column(ctx, "SELECT DISTINCT toString(dl_id) FROM "+x.schema.name("dead_letters")+" WHERE session_id = '' AND ("+strings.Join(part, " OR ")+")")
		if err != nil {
			return nil, fmt.Errorf("clickhouse: find dead letters: %w", x.conn.plain(err))
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

// column returns the rows of a query of one column.
func (x *eraser) column(ctx context.Context, sql string) (out []string, err error) {
	rows, err := x.conn.db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// plain is text that every encoding of it has as it is.
var plain = regexp.MustCompile(`[A-Za-z0-9 .,:;_=()-]{20,}`)

// textsAtMost bounds the pieces of text that are looked for.
const textsAtMost = 24

// Texts implements export.Eraser: pieces of the longest texts.
func (x *eraser) Texts(ctx context.Context, e *export.Erasure) ([]string, error) {
	t := erasable{"messages", "lower(hex(SHA256(concat(toString(tenant), '\\0', session_id))))"}
	var found []string
	for part := range slices.Chunk(e.Sessions, keysAtOnce) {
		texts, err := x.column(ctx, "SELECT DISTINCT substring(arrayJoin([content, tool_arguments, delegate_task]), 1, 4096) AS text FROM "+
			x.schema.name(t.table)+" WHERE "+t.of(part)+" AND text != '' ORDER BY length(text) DESC, text LIMIT 200")
		if err != nil {
			return nil, fmt.Errorf("clickhouse: read texts: %w", x.conn.plain(err))
		}
		for _, text := range texts {
			if p := longest(plain.FindAllString(text, -1)); p != "" {
				found = append(found, p)
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	found = slices.Compact(found)
	found = found[:min(len(found), 4*textsAtMost)]
	own, err := x.own(ctx, t, e.Sessions, found)
	return own[:min(len(own), textsAtMost)], err
}

// longest returns the middle of the longest text.
func longest(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	text := slices.MaxFunc(texts, func(a, b string) int { return len(a) - len(b) })
	if over := len(text) - 64; over > 0 {
		text = text[over/2:][:64]
	}
	return text
}

// own returns the texts that no other session has.
func (x *eraser) own(ctx context.Context, t erasable, sessions []export.Session, texts []string) (out []string, err error) {
	if len(texts) == 0 || len(sessions) > keysAtOnce {
		return nil, nil
	}
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quoteText(text)
	}
	var shared []uint64
	if err := x.conn.db.QueryRow(ctx, fmt.Sprintf("SELECT arrayMap(n -> toUInt64(n), sumForEach(arrayMap(p -> p > 0, multiSearchAllPositions(concat(content, '\\n', tool_arguments, '\\n', delegate_task), [%s])))) FROM %s WHERE NOT (%s)",
		strings.Join(quoted, ", "), x.schema.name(t.table), t.of(sessions))).Scan(&shared); err != nil {
		return nil, fmt.Errorf("clickhouse: compare texts: %w", x.conn.plain(err))
	}
	for i, text := range texts {
		if i >= len(shared) || shared[i] == 0 {
			out = append(out, text)
		}
	}
	return out, nil
}

// Erase implements export.Eraser. A mutation rewrites the parts that have rows of the sessions,
// with their indexes; the parts of before are removed from the disk at once.
func (x *eraser) Erase(ctx context.Context, e *export.Erasure) error {
	if err := x.prepare(ctx); err != nil {
		return x.conn.mayPass(ctx, err)
	}
	tables, err := x.erasables(ctx)
	if err != nil {
		return err
	}
	if err := x.noteHours(ctx, tables, e); err != nil {
		return err
	}
	ids, err := x.letters(ctx, e)
	if err != nil {
		return err
	}
	var all []string
	for _, t := range tables {
		all = append(all, t.table)
	}
	for _, r := range rollups() {
		all = append(all, x.dataTable(r.table))
	}
	defer x.awake(ctx)()
	set, reset := x.whileErasing()
	if err = x.alter(ctx, all, "MODIFY SETTING "+set); err == nil {
		x.conn.deriving.Lock()
		err = x.eraseRows(ctx, tables, ids, e)
		x.conn.deriving.Unlock()
	}
	if err == nil {
		err = x.awaitRemoval(ctx, all)
	}
	return errors.Join(err, x.alter(ctx, all, "RESET SETTING "+reset))
}

func (x *eraser) eraseRows(ctx context.Context, tables []erasable, letters []string, e *export.Erasure) error {
	for _, t := range tables {
		for part := range slices.Chunk(e.Sessions, keysAtOnce) {
			if n, err := x.count(ctx, t, part); err != nil {
				return err
			} else if n == 0 {
				continue
			}
			if err := x.mutate(ctx, t.table, t.of(part)); err != nil {
				return err
			}
		}
	}
	for part := range slices.Chunk(letters, keysAtOnce) {
		if err := x.mutate(ctx, x.dataTable("dead_letters"), "dl_id IN ('"+strings.Join(part, "', '")+"')"); err != nil {
			return err
		}
	}
	for _, r := range rollups() {
		if err := x.rollAgain(ctx, r, e.Hours[r.table]); err != nil {
			return err
		}
	}
	return nil
}

// mutate removes rows of a table for good, on all replicas.
func (x *eraser) mutate(ctx context.Context, table, where string) error {
	if err := x.conn.Exec(ctx, "ALTER TABLE "+x.schema.name(table)+x.schema.onCluster()+" DELETE WHERE "+where+" SETTINGS mutations_sync = 2"); err != nil {
		return fmt.Errorf("clickhouse: erase from %s: %w", table, err)
	}
	return nil
}

// noteHours notes the hours that have rows of the sessions.
func (x *eraser) noteHours(ctx context.Context, tables []erasable, e *export.Erasure) error {
	if e.Hours == nil {
		e.Hours = make(map[string][]int64)
	}
	for _, r := range rollups() {
		at := slices.IndexFunc(tables, func(t erasable) bool { return t.table == x.dataTable(r.of) })
		if at < 0 {
			continue
		}
		hours := e.Hours[r.table]
		for part := range slices.Chunk(e.Sessions, keysAtOnce) {
			var more []int64
			if err := x.conn.db.QueryRow(ctx, "SELECT groupUniqArray(toInt64(toUnixTimestamp(toStartOfHour(ts)))) FROM "+x.schema.name(r.of)+" WHERE "+tables[at].of(part)).Scan(&more); err != nil {
				return fmt.Errorf("clickhouse: hours of %s: %w", r.of, x.conn.plain(err))
			}
			hours = append(hours, more...)
		}
		slices.Sort(hours)
		e.Hours[r.table] = slices.Compact(hours)
	}
	if e.Save == nil {
		return nil
	}
	return e.Save()
}

// rollAgain computes hours of a rollup again, and removes the versions of before. Counts that outlive their rows stay
// in an hour of which rows have expired: nothing else has them. The longest pauses name their sessions, and none stays.
func (x *eraser) rollAgain(ctx context.Context, r rollup, hours []int64) error {
	kept, now := x.schema.TTL.kept(r.of), time.Now()
	table := x.dataTable(r.table)
	for part := range slices.Chunk(hours, hoursAtOnce) {
		var at []string
		for _, h := range part {
			if kept <= 0 || !r.outlives || time.Unix(h, 0).Add(kept).After(now) {
				at = append(at, "toDateTime("+strconv.FormatInt(h, 10)+", 'UTC')")
			}
		}
		if len(at) == 0 {
			continue
		}
		list := strings.Join(at, ", ")
		if err := x.conn.Exec(ctx, r.compute(x.schema, list, uint64(now.UnixMicro()))); err != nil {
			return fmt.Errorf("%s: %w", r.table, err)
		}
		var partitions []string
		if err := x.conn.db.QueryRow(ctx, "SELECT groupUniqArray(_partition_id) FROM "+x.schema.name(r.table)+" WHERE toStartOfHour(ts) IN ("+list+")").Scan(&partitions); err != nil {
			return fmt.Errorf("clickhouse: %s: %w", r.table, err)
		}
		for _, p := range partitions {
			if err := x.conn.Exec(ctx, "OPTIMIZE TABLE "+x.schema.name(table)+x.schema.onCluster()+" PARTITION ID "+quoteText(p)+" FINAL"); err != nil {
				return fmt.Errorf("clickhouse: %s: %w", r.table, err)
			}
		}
		if err := x.mutate(ctx, table, "is_deleted = 1 AND toStartOfHour(ts) IN ("+list+")"); err != nil {
			return err
		}
	}
	return nil
}

// formerFor is how long the parts that a mutation replaced may take to be gone.
const formerFor = 2 * time.Minute

// whileErasing are settings of tables: a part is synced before the one that it replaces is removed,
// and that is removed at once instead of minutes later.
func (x *eraser) whileErasing() (set, reset string) {
	set, reset = "min_rows_to_fsync_after_merge = 1, old_parts_lifetime = 1", "min_rows_to_fsync_after_merge, old_parts_lifetime"
	if !x.schema.Sync {
		set, reset = set+", fsync_part_directory = 1", reset+", fsync_part_directory"
	}
	if x.conn.embedded { // it looks every ten seconds, to idle
		set, reset = set+", merge_tree_clear_old_parts_interval_seconds = 1", reset+", merge_tree_clear_old_parts_interval_seconds"
	}
	return set, reset
}

// awakeEvery is how often awake has the engine look.
const awakeEvery = 200 * time.Millisecond

// awake has the engine of the embedded store look for work on its tables until stop is called. To idle it looks seconds after it found
// none or no room (cmd/earshot-store/internal/engine, calm), and its pool has room for four parts: a mutation of more would wait for these
// seconds between each four, and so would the removal of the parts of before.
func (x *eraser) awake(ctx context.Context) (stop func()) {
	if !x.conn.embedded {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(ctx, awakeEvery) == nil {
			_ = x.conn.Exec(ctx, "SYSTEM START MERGES") // none are stopped; without it the erasure takes longer
		}
	}()
	return func() { cancel(); <-done }
}

// alter changes tables, also those behind one that cannot be changed.
func (x *eraser) alter(ctx context.Context, tables []string, how string) (err error) {
	for _, t := range tables {
		if failed := x.conn.Exec(ctx, "ALTER TABLE "+x.schema.name(t)+x.schema.onCluster()+" "+how); failed != nil {
			err = errors.Join(err, fmt.Errorf("clickhouse: %s: %w", t, failed))
		}
	}
	return err
}

// awaitRemoval returns when the files of the parts of tables that are not in use any more are
// gone. Empty parts stay for a while.
func (x *eraser) awaitRemoval(ctx context.Context, tables []string) error {
	quoted := make([]string, len(tables))
	for i, t := range tables {
		quoted[i] = quoteText(t)
	}
	for end := time.Now().Add(formerFor); ; {
		var n uint64
		if err := x.conn.db.QueryRow(ctx, "SELECT count() FROM system.parts WHERE database = "+quoteText(x.conn.database)+" AND NOT active AND rows > 0 AND table IN ("+strings.Join(quoted, ", ")+")").Scan(&n); err != nil {
			return fmt.Errorf("clickhouse: read parts: %w", x.conn.plain(err))
		}
		if n == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("clickhouse: %d parts with erased rows are still on the disk: a long query may read them", n)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
