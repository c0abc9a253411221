package native

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// decode reads the block as the driver does and returns its rows by column.
func decode(t *testing.T, b *Block) map[string][]any {
	t.Helper()
	var buf chproto.Buffer
	if err := b.Encode(&buf); err != nil {
		t.Fatal(err)
	}
	got := proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
	in := bytes.NewReader(buf.Buf)
	r := chproto.NewReader(in)
	if err := got.Decode(r, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.UInt8(); err == nil {
		t.Fatal("bytes behind the block")
	}
	out := make(map[string][]any)
	for i, c := range got.Columns {
		if want := b.Columns[i].Type(); string(c.Type()) != want.String() {
			t.Errorf("column %s: type %s, want %s", c.Name(), c.Type(), want)
		}
		for row := range c.Rows() {
			out[c.Name()] = append(out[c.Name()], c.Row(row, false))
		}
	}
	return out
}

func TestTexts(t *testing.T) {
	long := strings.Repeat(`a\n`, 100) // 300 bytes with escapes, 200 without: both take two length bytes
	edge := strings.Repeat(`\n`, 70)   // 140 and 70: the length shrinks to one byte
	var c Text
	b := NewBlock([]Named{{"c", &c}})
	texts := []msg.Text{
		{}, msg.Plain("plain"), msg.Raw([]byte("raw \xff")), msg.Quoted([]byte("no escapes")),
		msg.Quoted([]byte(`tab\tquote\"ü😀`)), msg.Quoted([]byte(long)), msg.Quoted([]byte(edge)),
		msg.Quoted([]byte(strings.Repeat(`\u00e9`, 20000))), msg.Plain(strings.Repeat("x", 70000)),
	}
	for round := range 2 { // the second in used memory
		var want []any
		for _, x := range texts {
			if n := c.Append(x); n != len(x.String()) {
				t.Errorf("length %d, want %d", n, len(x.String()))
			}
			want = append(want, x.String())
		}
		c.AppendString("string")
		c.AppendBytes([]byte("bytes"))
		c.AppendHex([]byte{0xab, 0x01})
		c.AppendHex([]byte{0, 0})
		want = append(want, "string", "bytes", "ab01", "")
		if d := cmp.Diff(want, decode(t, b)["c"]); d != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, d)
		}
		b.Reset()
	}
}

func TestDictWidths(t *testing.T) {
	for _, distinct := range []int{1, 2, 255, 256, 257, 65535, 65536, 70000} {
		t.Run(fmt.Sprint(distinct), func(t *testing.T) {
			var c Dict
			b := NewBlock([]Named{{"c", &c}})
			var want []any
			for i := range distinct {
				for range 1 + i%2 {
					s := fmt.Sprint("v", i)
					c.Append(s)
					want = append(want, s)
				}
			}
			c.Append("")
			c.Append("v0")
			want = append(want, "", "v0")
			if d := cmp.Diff(want, decode(t, b)["c"]); d != "" {
				t.Errorf("(-want +got):\n%.2000s", d)
			}
			b.Reset()
			c.Append("after")
			if d := cmp.Diff([]any{"after"}, decode(t, b)["c"]); d != "" {
				t.Errorf("after reset (-want +got):\n%s", d)
			}
		})
	}
}

func TestNested(t *testing.T) {
	var m Map
	times, names, maps, texts := NewArray(&chproto.ColDateTime64{Precision: 9, PrecisionSet: true}), NewArray(&Dict{}), NewArray(&Map{}), NewArray(&Text{})
	b := NewBlock([]Named{{"m", &m}, {"times", times}, {"names", names}, {"maps", maps}, {"texts", texts}})
	for round := range 2 {
		for row := range 3 {
			for i := range row {
				k, v := fmt.Sprint("k", i), fmt.Sprint("v", row, i)
				m.Append(k, v)
				times.Of.AppendRaw(chproto.DateTime64(row*10 + i))
				names.Of.Append(k)
				maps.Of.Append(k, v)
				maps.Of.EndRow()
				texts.Of.AppendString(v)
			}
			m.EndRow()
			times.EndRow()
			names.EndRow()
			maps.EndRow()
			texts.EndRow()
		}
		at := func(ns int64) time.Time { return time.Unix(0, ns).UTC() }
		type kv = map[string]string
		want := map[string][]any{
			"m":     {kv{}, kv{"k0": "v1 0"}, kv{"k0": "v2 0", "k1": "v2 1"}},
			"times": {[]time.Time{}, []time.Time{at(10)}, []time.Time{at(20), at(21)}},
			"names": {[]string{}, []string{"k0"}, []string{"k0", "k1"}},
			"maps":  {[]kv{}, []kv{{"k0": "v1 0"}}, []kv{{"k0": "v2 0"}, {"k1": "v2 1"}}},
			"texts": {[]string{}, []string{"v1 0"}, []string{"v2 0", "v2 1"}},
		}
		if d := cmp.Diff(want, decode(t, b)); d != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, d)
		}
		b.Reset()
	}
}

func TestFixed(t *testing.T) {
	ts := chproto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC}
	ms := chproto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC}
	id := chproto.ColFixedStr{Size: 4}
	b := NewBlock([]Named{{"ts", &ts}, {"ms", &ms}, {"id", &id}})
	when := time.Date(2026, 2, 3, 4, 5, 6, 789123456, time.UTC)
	ts.AppendRaw(chproto.DateTime64(when.UnixNano()))
	ms.AppendRaw(chproto.DateTime64(when.UnixNano() / 1e6))
	id.Buf = hex.AppendEncode(id.Buf, []byte{0xbe, 0xef})
	want := map[string][]any{"ts": {when}, "ms": {when.Truncate(time.Millisecond)}, "id": {"beef"}}
	if d := cmp.Diff(want, decode(t, b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUnequalColumns(t *testing.T) {
	var a, c Text
	b := NewBlock([]Named{{"a", &a}, {"c", &c}})
	a.AppendString("x")
	var buf chproto.Buffer
	if err := b.Encode(&buf); err == nil || !strings.Contains(err.Error(), "column c has 0 rows of 1") {
		t.Errorf("error %v", err)
	}
}

func TestAGiantRowIsNotKept(t *testing.T) {
	var c Text
	c.AppendString(strings.Repeat("x", keep+1))
	c.Reset()
	if n := cap(c.buf); n > keep {
		t.Errorf("%d bytes kept", n)
	}
	c.AppendString("x")
	held := cap(c.buf)
	c.Reset()
	if cap(c.buf) != held {
		t.Error("memory of small rows is not kept")
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", `\n`, `\ud83d\ude00`, `\u00`, strings.Repeat(`\t`, 64)} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, quoted bool) {
		x := msg.Raw(raw)
		if quoted {
			x = msg.Quoted(raw)
		}
		var c Text
		b := NewBlock([]Named{{"c", &c}})
		c.AppendString("before")
		n := c.Append(x)
		c.AppendString("after")
		got := decode(t, b)["c"]
		if n != len(x.String()) || got[0] != "before" || got[1] != x.String() || got[2] != "after" {
			t.Errorf("length %d, got %q for %q", n, got, x.String())
		}
	})
}

// BenchmarkColumns appends and encodes the names and the texts of 2,000 rows: with the
// columns of this package, and with those of ch-go.
func BenchmarkColumns(b *testing.B) {
	const rows = 2000
	names := []string{"", "read_tide_table", "ask", "write_log"}
	body := msg.Quoted([]byte(strings.Repeat(`low water at \"noon\"\n`, 70)))
	run := func(name string, once func(i int), encode func(*chproto.Buffer), reset func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf chproto.Buffer
			for b.Loop() {
				buf.Reset()
				reset()
				for i := range rows {
					once(i)
				}
				encode(&buf)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
	var dict Dict
	run("Dict", func(i int) { dict.Append(names[i*7%4]) }, dict.EncodeColumn, dict.Reset)
	low := chproto.NewLowCardinality[string](new(chproto.ColStr))
	run("ColLowCardinality", func(i int) { low.Append(names[i*7%4]) }, func(buf *chproto.Buffer) {
		if err := low.Prepare(); err != nil {
			b.Fatal(err)
		}
		low.EncodeColumn(buf)
	}, low.Reset)
	var text Text
	run("Text", func(int) { text.Append(body) }, text.EncodeColumn, text.Reset)
	var str chproto.ColStr
	var scratch []byte
	run("ColStr", func(int) {
		scratch = body.Append(scratch[:0])
		str.AppendBytes(scratch)
	}, str.EncodeColumn, str.Reset)
}
