package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/export"
)

var _ export.Superseder = (*Exporter)(nil)

// identity is the columns that identify the record of a table, and the others of the sort
// key. A record whose time has changed has another sort key than the version before.
type identity struct {
	table     string
	id, place []string
	format    string
	ver, gone string
	stored    string
}

var identities = []identity{
	{
		table: "messages", id: []string{"tenant", "message_id", "part_index"}, place: []string{"ts", "session_id"},
		format: "format", ver: "ver", gone: "is_deleted", stored: "ingest_ts",
	},
	{
		table: "spans", id: []string{"tenant", "span_id"}, place: []string{"ts", "session_id"},
		format: "format", ver: "ver", gone: "is_deleted", stored: "ingest_ts",
	},
}

// Supersede implements export.Superseder. Rows with one sort key replace each other; of
// those of one record that have several, because the decoder that read it again found
// another time, tombstones remove all but the newest.
func (x *Exporter) Supersede(ctx context.Context, formats []string) error {
	if len(formats) == 0 {
		return nil
	}
	quoted := make([]string, len(formats))
	for i, f := range formats {
		quoted[i] = quoteText(f)
	}
	for i := range identities {
		if err := x.conn.Exec(ctx, identities[i].statement(x.schema, strings.Join(quoted, ", "))); err != nil {
			return fmt.Errorf("%w: rows of %s that newer rows replace stay beside them", err, identities[i].table)
		}
	}
	return nil
}

// statement writes tombstones for all but the newest rows of each record of the formats. A
// tombstone has the sort key of its row and a version above it.
func (t *identity) statement(s Schema, formats string) string {
	id, place := strings.Join(t.id, ", "), strings.Join(t.place, ", ")
	at := make([]string, len(t.place))
	for i := range t.place {
		at[i] = fmt.Sprintf("old.%d", i+3)
	}
	table := s.name(t.table)
	return fmt.Sprintf(`INSERT INTO %s (%s, %s, %s, %s)
SELECT %s, %s, old.1 + 1, 1 FROM
(
    SELECT %s, arraySort(groupArray((%s, %s, %s))) AS versions
    FROM %s FINAL
    WHERE %s IN (%s)
    GROUP BY %s
    HAVING count() > 1
)
ARRAY JOIN arrayPopBack(versions) AS old
SETTINGS max_bytes_before_external_group_by = 200000000`,
		table, id, place, t.ver, t.gone,
		id, strings.Join(at, ", "),
		id, t.ver, t.stored, place, table, t.format, formats, id)
}
