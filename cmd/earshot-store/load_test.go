package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// 32 clients on 8 connections: every row that was sent is there, exactly once.
func TestConcurrentClients(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (client UInt32, n UInt64, text String) ENGINE = MergeTree ORDER BY (client, n)", "database", db)
	const clients, batches, rows = 32, 4, 250
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			conn := shared.open(t, func(o *clickhouse.Options) {
				o.Auth.Database = db
				o.DialTimeout = time.Minute
				o.ReadTimeout = time.Minute
			})
			for b := range batches {
				batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
				if err != nil {
					t.Error(err)
					return
				}
				for i := range rows {
					if err := batch.Append(uint32(c), uint64(b*rows+i), strings.Repeat("x", i)); err != nil {
						t.Error(err)
						return
					}
				}
				if err := batch.Send(); err != nil {
					t.Error(err)
					return
				}
				var n uint64
				if err := conn.QueryRow(t.Context(), "SELECT count() FROM t WHERE client = $1", uint32(c)).Scan(&n); err != nil || n != uint64((b+1)*rows) {
					t.Errorf("client %d sees %d rows behind its batch %d, %v", c, n, b, err)
				}
			}
		})
	}
	wg.Wait()
	if got := shared.query(t, "SELECT count(), uniqExact(client, n) FROM t", "database", db); got != fmt.Sprintf("%d\t%[1]d", clients*batches*rows) {
		t.Errorf("table has %s", got)
	}
}

func TestBigBatch(t *testing.T) {
	db := database(t)
	conn := shared.open(t, func(o *clickhouse.Options) {
		o.Auth.Database = db
		o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
		o.ReadTimeout = time.Minute
	})
	if err := conn.Exec(t.Context(), "CREATE TABLE t (a UInt64, b String, c LowCardinality(String), d Map(LowCardinality(String), String)) ENGINE = MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	const n = 300_000
	text := strings.Repeat("lorem ", 40) // 75 MB in all, more than the block size of text formats
	columns := []any{make([]uint64, n), slices.Repeat([]string{text}, n), slices.Repeat([]string{"assistant"}, n), slices.Repeat([]map[string]string{{"model": "m-1"}}, n)}
	for i := range columns[0].([]uint64) {
		columns[0].([]uint64)[i] = uint64(i)
	}
	for i, c := range columns {
		if err := batch.Column(i).Append(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	var rows, sum, parts uint64
	if err := conn.QueryRow(t.Context(), "SELECT count(), sum(a), uniqExact(_part) FROM t WHERE length(b) = $1", len(text)).Scan(&rows, &sum, &parts); err != nil {
		t.Fatal(err)
	}
	if rows != n || sum != n*(n-1)/2 || parts != 1 {
		t.Errorf("%d rows with sum %d in %d parts; a batch is one part, or it is not all or nothing", rows, sum, parts)
	}
}

// Hundreds of megabytes go through in both directions while the store stays as it is.
func TestMemoryStaysFlat(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a UInt64, b String) ENGINE = Null", "database", db)
	const limit = 400 << 20 // held whole, the smaller of the two would be 690 MiB
	peak := func(read func(sample func())) int64 {
		before, top := shared.rss(t), int64(0)
		read(func() { top = max(top, shared.rss(t)-before) })
		return top
	}

	grown := peak(func(sample func()) {
		resp, err := shared.client.Post(shared.url, "", strings.NewReader("SELECT number, repeat('x', 500) FROM numbers(1200000) FORMAT RowBinary"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var total int64
		for {
			n, err := io.CopyN(io.Discard, resp.Body, 100<<20)
			total += n
			sample()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if total != 1_200_000*(8+2+500) {
			t.Errorf("got %d bytes", total)
		}
	})
	t.Logf("select of 600 MB: %d MiB more", grown>>20)
	if grown > limit {
		t.Errorf("a select of 600 MB took %d MiB", grown>>20)
	}

	// JSON cannot be streamed, so there is a limit. The engine's memory by then
	// depends on the state of its allocator (200 to 590 MiB were seen);
	// held whole, the text alone is 1,045 MiB and its buffer twice that.
	const refused = 700 << 20
	grown = peak(func(sample func()) {
		a := shared.post(t, "SELECT materialize(repeat('x', 500)) FROM numbers(2000000) FORMAT JSON")
		sample()
		if a.code() != 396 {
			t.Errorf("1 GB of JSON: %d", a.status)
		}
		if a := shared.post(t, "SELECT materialize(repeat('x', 500)) FROM numbers(300000) FORMAT JSON", "max_result_bytes", "1000000000"); a.status != 200 {
			t.Errorf("with another limit: %.200s", a.body)
		}
	})
	t.Logf("refused result of 1 GB: %d MiB more", grown>>20)
	if grown > refused {
		t.Errorf("a refused result took %d MiB", grown>>20)
	}

	grown = peak(func(sample func()) {
		line := []byte("7," + strings.Repeat("x", 997) + "\n")
		chunk := []byte(strings.Repeat(string(line), 1000))
		r, w := io.Pipe()
		go func() {
			for i := range 350 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
				if i%50 == 49 {
					sample()
				}
			}
			w.Close()
		}()
		a := shared.do(t, call{body: r, params: values("query", "INSERT INTO t FORMAT CSV", "database", db), timeout: 2 * time.Minute})
		if a.status != 200 || !strings.Contains(a.header.Get("X-ClickHouse-Summary"), `"written_rows":"350000"`) {
			t.Errorf("insert: %d %s %s", a.status, a.body, a.header.Get("X-ClickHouse-Summary"))
		}
	})
	t.Logf("insert of 350 MB: %d MiB more", grown>>20)
	if grown > limit {
		t.Errorf("an insert of 350 MB took %d MiB", grown>>20)
	}
}

// When a client disconnects, its statement ends.
func TestClientGoesAway(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a", "database", db)
	running := func(id string) string {
		return shared.query(t, "SELECT count() FROM system.processes WHERE startsWith(Settings['query_cache_tag'], '"+id+"#')")
	}
	cases := map[string]string{
		"aggregates":    "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)",
		"sends rows":    "SELECT number FROM numbers(1000000000000)",
		"holds JSON":    "SELECT sum(sipHash64(number)) FROM numbers(1000000000000) FORMAT JSON",
		"insert select": "INSERT INTO t SELECT number FROM numbers(1000000000000)",
	}
	for name, sql := range cases {
		t.Run(name, func(t *testing.T) {
			id := "gone-" + strings.ReplaceAll(name, " ", "-")
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, shared.url+"/?"+values("query_id", id, "database", db).Encode(), strings.NewReader(sql))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := shared.client.Transport.RoundTrip(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
			waitFor(t, "the statement to run", func() bool { return running(id) == "1" })
			leave()
			<-done
			waitFor(t, "the statement to end", func() bool { return running(id) == "0" })
		})
	}
	t.Run("half an insert", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		r, w := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, shared.url+"/?"+values("query_id", "gone-insert", "database", db, "query", "INSERT INTO t FORMAT CSV").Encode(), r)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := shared.client.Transport.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		}()
		before := shared.query(t, "SELECT count() FROM t", "database", db)
		if _, err := io.WriteString(w, strings.Repeat("1\n", 100_000)); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the insert to run", func() bool { return running("gone-insert") == "1" })
		leave()
		w.CloseWithError(context.Canceled)
		<-done
		waitFor(t, "the insert to end", func() bool { return running("gone-insert") == "0" })
		if got := shared.query(t, "SELECT count() FROM t", "database", db); got != before {
			t.Errorf("%s rows, %s before: half an insert was stored", got, before)
		}
	})
}
