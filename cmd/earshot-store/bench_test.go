package main

import (
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Rows of some 300 bytes through the driver into a MergeTree table, and back.
func BenchmarkDriver(b *testing.B) {
	const rows = 50_000
	text := strings.Repeat("lorem ipsum ", 20)
	attrs := map[string]string{"model": "m-1", "provider": "p"}
	for _, c := range []struct {
		name string
		c    *clickhouse.Compression
	}{{"plain", nil}, {"lz4", &clickhouse.Compression{Method: clickhouse.CompressionLZ4}}} {
		conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{"localhost"}, DialContext: shared.dial, Protocol: clickhouse.HTTP, Compression: c.c})
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		if err := conn.Exec(b.Context(), "CREATE OR REPLACE TABLE bench (id UInt64, role LowCardinality(String), text String, attrs Map(LowCardinality(String), String)) ENGINE = MergeTree ORDER BY id"); err != nil {
			b.Fatal(err)
		}
		b.Run("insert/"+c.name, func(b *testing.B) {
			for b.Loop() {
				batch, err := conn.PrepareBatch(b.Context(), "INSERT INTO bench")
				if err != nil {
					b.Fatal(err)
				}
				for i := range rows {
					if err := batch.Append(uint64(i), "assistant", text, attrs); err != nil {
						b.Fatal(err)
					}
				}
				if err := batch.Send(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
		b.Run("select/"+c.name, func(b *testing.B) {
			for b.Loop() {
				r, err := conn.Query(b.Context(), "SELECT * FROM bench LIMIT 50000")
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for r.Next() {
					n++
				}
				if err := r.Err(); err != nil || n != rows {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
		b.Run("ping/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if err := conn.Ping(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
