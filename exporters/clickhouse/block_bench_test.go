package clickhouse

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/earshot-dev/earshot/core/msg"
)

// sampleMessages returns n messages with a content of about 1.6 kB, half of it
// in texts that still carry their JSON escapes, as decoders emit them.
func sampleMessages(n int) []msg.Message {
	kinds := []msg.Kind{msg.User, msg.Assistant, msg.ToolCall, msg.ToolResult}
	roles := []msg.Role{msg.RoleUser, msg.RoleAssistant, msg.RoleAssistant, msg.RoleTool}
	body := []byte(strings.Repeat(`The tide table says \"low water at noon\", so the boat leaves at nine.\n`, 22))
	out := make([]msg.Message, n)
	for i := range out {
		k := i % len(kinds)
		m := &out[i]
		session := fmt.Sprintf("session-%03d", i/200%100)
		*m = msg.Message{
			Key: fmt.Sprintf("m%d", i), Session: session, Run: session + "/run", Kind: kinds[k], Role: roles[k],
			Agent: msg.Agent{ID: "agent-7", Name: "harbour-pilot", Kind: msg.KindAgent},
			Model: "tern-2", Provider: "anthropic", ResponseID: fmt.Sprintf("resp-%d", i/2),
			Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano() + int64(i)*int64(time.Second/4), Precision: msg.Millis,
			Complete: msg.Complete, Content: msg.Quoted(body),
			Attrs: []msg.Attr{{Key: "cwd", Value: "/srv/harbour"}, {Key: "version", Value: "3.1.4"}},
		}
		if k == 1 {
			m.Content = msg.Plain(string(body))
		}
		if k >= 2 {
			m.Tool = msg.Tool{CallID: fmt.Sprintf("call-%d", i/4), Name: "read_tide_table"}
		}
		if k == 2 {
			m.Tool.Arguments, m.Content = msg.Raw([]byte(`{"port":"Nordhavn","day":"2026-03-01"}`)), msg.Text{}
		}
		h := &m.Host
		h.Tenant, h.Source, h.Format, h.Seq, h.Ver = "default", "legion", "legion", uint64(i), uint64(i)+1<<60
		h.ID = msg.NewID(h.Tenant, h.Format, m.Session, m.Key)
		h.TraceID = msg.NewTraceID(h.Tenant, h.Format, m.Session, m.Run)
		h.SpanID = msg.NewSpanID(h.Tenant, h.Format, m.Session, msg.SpanChat, m.ResponseID)
	}
	return out
}

// driverBlock returns an empty block of the driver with the columns of ours.
func driverBlock(tb testing.TB, r *messageRows) *proto.Block {
	b := proto.NewBlock()
	for _, c := range r.block.Columns {
		if err := b.AddColumn(c.Name, column.Type(c.Type())); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

// driverRow returns m as the driver takes it: the columns of messageRows by their names in
// msg.Row.
func driverRow(r *messageRows, m *msg.Message) []any {
	row := reflect.ValueOf(m.Row())
	named := make(map[string]any, row.NumField())
	for i := range row.NumField() {
		name, _, _ := strings.Cut(row.Type().Field(i).Tag.Get("json"), ",")
		named[name] = row.Field(i).Interface()
	}
	named["ts"], named["is_deleted"] = time.Unix(0, m.Time), uint8(0)
	if named["attributes"].(map[string]string) == nil {
		named["attributes"] = map[string]string{}
	}
	out := make([]any, len(r.block.Columns))
	for i, c := range r.block.Columns {
		out[i] = named[c.Name]
	}
	return out
}

// driverRows returns the messages as driverRow does.
func driverRows(r *messageRows, messages []msg.Message) [][]any {
	out := make([][]any, len(messages))
	for i := range messages {
		out[i] = driverRow(r, &messages[i])
	}
	return out
}

// BenchmarkBlock compares the ways from messages to the bytes of a block.
func BenchmarkBlock(b *testing.B) {
	const rows = 2000
	messages := sampleMessages(rows)
	ours := newMessageRows()
	size := 0
	for i := range messages {
		m := &messages[i]
		size += m.Content.Len() + m.Tool.Arguments.Len() + m.Delegation.Task.Len()
	}
	run := func(name string, once func(buf *chproto.Buffer) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			var buf chproto.Buffer
			for b.Loop() {
				buf.Reset()
				if err := once(&buf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			b.ReportMetric(rows, "records/op")
		})
	}
	run("columns", func(buf *chproto.Buffer) error {
		ours.block.Reset()
		for i := range messages {
			ours.add(&messages[i])
		}
		return ours.block.Encode(buf)
	})
	boxed := driverRows(ours, messages)
	run("driver-append", func(buf *chproto.Buffer) error {
		block := driverBlock(b, ours)
		for _, row := range boxed {
			if err := block.Append(row...); err != nil {
				return err
			}
		}
		return block.Encode(buf, 0)
	})
	ch := newChColumns()
	run("ch-go-columns", func(buf *chproto.Buffer) error {
		ch.input.Reset()
		for i := range messages {
			ch.add(&messages[i])
		}
		block := chproto.Block{Columns: len(ch.input), Rows: rows}
		return block.EncodeRawBlock(buf, 0, ch.input)
	})
}

// TestRowsAreCheap holds that rows are written without an allocation each, and in less
// time than the driver's own way takes in the same run.
func TestRowsAreCheap(t *testing.T) {
	const rows = 500
	messages := sampleMessages(rows)
	r := newMessageRows()
	var buf chproto.Buffer
	columns := func() {
		buf.Reset()
		r.block.Reset()
		for i := range messages {
			r.add(&messages[i])
		}
		if err := r.block.Encode(&buf); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, columns); n > rows/10 {
		t.Errorf("%d rows allocate %v times", rows, n)
	}
	boxed := driverRows(r, messages)
	driver := func() {
		buf.Reset()
		block := driverBlock(t, r)
		for _, row := range boxed {
			if err := block.Append(row...); err != nil {
				t.Fatal(err)
			}
		}
		if err := block.Encode(&buf, 0); err != nil {
			t.Fatal(err)
		}
	}
	// The least of several has the least of other load in it.
	least := func(f func()) time.Duration {
		best := time.Hour
		for range 15 {
			began := time.Now()
			f()
			best = min(best, time.Since(began))
		}
		return best
	}
	if ours, theirs := least(columns), least(driver); ours > theirs {
		t.Errorf("columns take %s, the driver's batch %s", ours, theirs)
	}
}
