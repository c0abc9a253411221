package clickhouse

import (
	"context"
	"fmt"
)

// dropOldest drops the parts with the oldest rows while all tables are larger together than most
// bytes. It returns how many bytes they had, and the day or month of the last. Tables
// without partitions are small, and stay.
func (c *Conn) dropOldest(ctx context.Context, most int64) (dropped int64, upTo string, err error) {
	rows, err := c.db.Query(ctx, `SELECT table, name, partition_id, bytes_on_disk FROM system.parts WHERE database = `+quoteText(c.database)+` AND active
		ORDER BY partition_id = 'all', rightPad(partition_id, 8, '9'), min_block_number, table`)
	if err != nil {
		return 0, "", fmt.Errorf("clickhouse: read parts: %w", c.plain(err))
	}
	defer rows.Close()
	type part struct {
		table, name, partition string
		bytes                  uint64
	}
	var parts []part
	total := int64(0)
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.table, &p.name, &p.partition, &p.bytes); err != nil {
			return 0, "", fmt.Errorf("clickhouse: read parts: %w", c.plain(err))
		}
		total += int64(p.bytes)
		parts = append(parts, p)
	}
	if err := rows.Err(); err != nil {
		return 0, "", fmt.Errorf("clickhouse: read parts: %w", c.plain(err))
	}
	for _, p := range parts {
		if total-dropped <= most || p.partition == "all" {
			break
		}
		if err := c.Exec(ctx, "ALTER TABLE "+quoteName(c.database)+"."+quoteName(p.table)+" DROP PART "+quoteText(p.name)); err != nil {
			return dropped, upTo, err // one that is being merged goes the next time
		}
		dropped, upTo = dropped+int64(p.bytes), p.partition
	}
	return dropped, upTo, nil
}

// Identity names the tables of the database, as no others are named; empty when there are none.
func (c *Conn) Identity(ctx context.Context) (id string, err error) {
	rows, err := c.db.Query(ctx, "SELECT toString(uuid) FROM system.tables WHERE name = 'schema_migrations' AND database = "+quoteText(c.database))
	if err != nil {
		return "", fmt.Errorf("clickhouse: identity: %w", c.plain(err))
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&id); err != nil {
			return "", fmt.Errorf("clickhouse: identity: %w", err)
		}
	}
	return id, rows.Err()
}

// Size is how many bytes the tables take on the disk.
func (c *Conn) Size(ctx context.Context) (int64, error) {
	var n uint64
	if err := c.db.QueryRow(ctx, "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = "+quoteText(c.database)).Scan(&n); err != nil {
		return 0, fmt.Errorf("clickhouse: read parts: %w", c.plain(err))
	}
	return int64(n), nil
}
