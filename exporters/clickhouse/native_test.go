package clickhouse

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestNativeStoresTheSame stores a batch over HTTP and over the native protocol
// and reads both as the dashboards do.
func TestNativeStoresTheSame(t *testing.T) {
	batch := fullBatch("batch-1", 100)
	var want string
	for _, c := range []struct{ name, compression string }{{"http", "none"}, {"native", "none"}, {"native, lz4", "lz4"}, {"http, lz4", "lz4"}, {"http, zstd", "zstd"}} {
		t.Run(c.name, func(t *testing.T) {
			x, reader := exporter(t, func(s *Settings) {
				s.Conn.Compression = c.compression
				if strings.HasPrefix(c.name, "native") {
					s.Conn.DSN = nativeDSN(t)
				}
			})
			for range 2 { // the second is a retry
				x.batch = ""
				export1(t, x, batch)
			}
			got := visible(t, reader)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("stored:\n%s\nwant:\n%s", got, want)
			}
			if n := count(t, reader, "SELECT count() FROM messages"); n != "2000" {
				t.Errorf("%s rows after a retry", n)
			}
		})
	}
}

// TestNativeRefusesAnotherSchema has a column of another type. The native way
// fills the server's columns byte by byte and must not do so blindly.
func TestNativeRefusesAnotherSchema(t *testing.T) {
	x, reader := ownExporter(t, func(s *Settings) { s.Conn.DSN = nativeDSN(t) })
	if err := reader.Exec(t.Context(), "ALTER TABLE messages MODIFY COLUMN seq UInt32"); err != nil {
		t.Fatal(err)
	}
	err := x.Export(t.Context(), &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(3)...)})
	if !errors.Is(err, ErrSchema) || export.IsPermanent(err) || !strings.Contains(err.Error(), "column seq is UInt32") {
		t.Errorf("error %v", err)
	}
	if err := reader.Exec(t.Context(), "ALTER TABLE messages MODIFY COLUMN seq UInt64"); err != nil {
		t.Fatal(err)
	}
	export1(t, x, &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(3)...)})
	if got := count(t, reader, "SELECT count() FROM messages"); got != "3" {
		t.Errorf("%s rows once the column is right again", got)
	}
}

// TestServerErrorsAreClassified has the real server refuse rows, over both ways.
func TestServerErrorsAreClassified(t *testing.T) {
	for _, way := range []string{"http", "native"} {
		t.Run(way, func(t *testing.T) {
			x, reader := exporter(t, func(s *Settings) {
				if way == "native" {
					s.Conn.DSN = nativeDSN(t)
				}
			})
			if err := reader.Exec(t.Context(), "ALTER TABLE messages ADD CONSTRAINT no_secrets CHECK session_id != 'forbidden'"); err != nil {
				t.Fatal(err)
			}
			messages := sampleMessages(3)
			messages[1].Session = "forbidden"
			if err := x.Export(t.Context(), &export.Batch{ID: "a", Messages: exporttest.Records(messages...)}); !export.IsPermanent(err) {
				t.Errorf("a row that a constraint forbids: %v", err)
			}
			export1(t, x, &export.Batch{ID: "b", Messages: exporttest.Records(messages[0], messages[2])})
			if err := reader.Exec(t.Context(), "DROP TABLE messages SYNC"); err != nil {
				t.Fatal(err)
			}
			if err := x.Export(t.Context(), &export.Batch{ID: "c", Messages: exporttest.Records(messages[:1]...)}); err == nil || export.IsPermanent(err) {
				t.Errorf("no table: %v", err)
			}
		})
	}
}

// TestBlocksThatDoNotFit: a block with other columns than the server's, or one that is cut, is not sent.
func TestBlocksThatDoNotFit(t *testing.T) {
	var buf proto.Buffer
	rows := newDeadLetterRows()
	rows.add(&msg.DeadLetter{ID: msg.ID{1}, Payload: []byte("payload")})
	if err := rows.block.Encode(&buf); err != nil {
		t.Fatal(err)
	}
	columns := func() (out []column.Interface) {
		for _, c := range rows.block.Columns {
			col, err := column.Type(c.Type()).Column(c.Name, &column.ServerContext{Timezone: time.UTC})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, col)
		}
		return out
	}
	into := columns()
	if err := fill(into, buf.Buf); err != nil || into[0].Rows() != 1 {
		t.Errorf("a block: %v", err)
	}
	if err := fill(columns()[1:], buf.Buf); err == nil || !strings.Contains(err.Error(), "columns for") {
		t.Errorf("a column is missing: %v", err)
	}
	for cut := range buf.Buf {
		if err := fill(columns(), buf.Buf[:cut]); err == nil {
			t.Fatalf("a block of %d bytes is sent with %d", len(buf.Buf), cut)
		}
	}
}
