package native

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// sample is one column type with a value that depends on the row.
type sample struct {
	typ   string
	value func(i int) any
}

var samples = []sample{
	{"UInt64", func(i int) any { return uint64(i) }},
	{"String", func(i int) any { return strings.Repeat("s", i%300) }},
	{"FixedString(4)", func(i int) any { return fmt.Sprintf("%04d", i%10000) }},
	{"LowCardinality(String)", func(i int) any { return fmt.Sprint("k", i%300) }},
	{"Map(LowCardinality(String), String)", func(i int) any { return map[string]string{fmt.Sprint("k", i%7): "v"} }},
	{"Array(Map(LowCardinality(String), String))", func(i int) any {
		return make([]map[string]string, i%3)
	}},
	{"Array(LowCardinality(String))", func(i int) any { return make([]string, i%3) }},
	{"Nullable(Float64)", func(i int) any {
		if i%2 == 0 {
			return nil
		}
		v := float64(i)
		return &v
	}},
	{"DateTime64(9, 'UTC')", func(i int) any { return time.Unix(int64(i), int64(i)).UTC() }},
	{"Tuple(a UInt8, b String)", func(i int) any { return []any{uint8(i), "t"} }},
	{"Bool", func(i int) any { return i%2 == 0 }},
}

// encoded returns blocks of these row counts in the Native format of revision 0.
func encoded(t testing.TB, samples []sample, rows ...int) []byte {
	t.Helper()
	var out chproto.Buffer
	for _, n := range rows {
		b := &proto.Block{ServerContext: &column.ServerContext{}}
		for i, s := range samples {
			if err := b.AddColumn(fmt.Sprint("c", i), column.Type(s.typ)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			row := make([]any, len(samples))
			for j, s := range samples {
				row[j] = s.value(i)
			}
			if err := b.Append(row...); err != nil {
				t.Fatal(err)
			}
		}
		if n == 0 { // the driver would write a prefix that the engine leaves out
			out.PutUVarInt(uint64(len(samples)))
			out.PutUVarInt(0)
			for i, s := range samples {
				out.PutString(fmt.Sprint("c", i))
				out.PutString(s.typ)
			}
			continue
		}
		if err := b.Encode(&out, 0); err != nil {
			t.Fatal(err)
		}
	}
	return out.Buf
}

// decoded reads all rows of all blocks at a revision.
func decoded(t *testing.T, raw []byte, revision uint64) (rows [][]any) {
	t.Helper()
	r := chproto.NewReader(bytes.NewReader(raw))
	for {
		b := &proto.Block{ServerContext: &column.ServerContext{}}
		if err := b.Decode(r, revision); err != nil {
			if strings.Contains(err.Error(), io.EOF.Error()) {
				return rows
			}
			t.Fatal(err)
		}
		for i := range b.Rows() {
			var row []any
			for _, c := range b.Columns {
				row = append(row, c.Row(i, false))
			}
			rows = append(rows, row)
		}
	}
}

func TestWriterKeepsEveryRow(t *testing.T) {
	first, second := encoded(t, samples, 700), encoded(t, samples, 3, 0, 1200)
	want := decoded(t, append(bytes.Clone(first), second...), 0)
	for _, revision := range []uint64{54453, 54454, 54460} {
		var out bytes.Buffer
		w := NewWriter(&out, revision)
		for _, chunk := range [][]byte{first, second} {
			if n, err := w.Write(chunk); err != nil || n != len(chunk) {
				t.Fatalf("revision %d: %d, %v", revision, n, err)
			}
		}
		got := decoded(t, out.Bytes(), revision)
		if len(got) != 1903 || !reflect.DeepEqual(got, want) {
			t.Errorf("revision %d: %d rows, want the %d that went in", revision, len(got), len(want))
		}
	}
}

func TestWriterNamesWhatItCannotRead(t *testing.T) {
	var b chproto.Buffer
	b.PutUVarInt(1)
	b.PutUVarInt(1)
	b.PutString("state")
	b.PutString("AggregateFunction(uniqExact, String)")
	_, err := NewWriter(io.Discard, 54460).Write(b.Buf)
	if err == nil || !strings.Contains(err.Error(), "state") {
		t.Errorf("aggregate state: %v", err)
	}
	whole := encoded(t, samples, 10)
	for _, cut := range []int{1, 2, 10, len(whole) / 2, len(whole) - 1} {
		if _, err := NewWriter(io.Discard, 54460).Write(whole[:cut]); err == nil {
			t.Errorf("a block cut at %d of %d was taken", cut, len(whole))
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	chunk := encoded(b, []sample{samples[0], {"String", func(int) any { return strings.Repeat("x", 200) }}, samples[3], samples[4], samples[8]}, 65_409)
	w := NewWriter(io.Discard, 54460)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}
