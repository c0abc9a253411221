package clickhouse

import (
	"bytes"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	chblock "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
	"github.com/earshot-dev/earshot/core/semconv"
)

// leftOut are the fields of a message that no column holds.
var leftOut = map[string]string{
	"Key":           "hashed into message_id",
	"ParentKey":     "hashed into parent_message_id",
	"Tool.Duration": "duration_ns of the call has it",
	"Frame":         "an index in a batch that is gone",
	"Host.Observed": "differs between replays",
	"Host.Origin":   "of a dead letter, and of a stream in source_ledger",
	"Host.Offset":   "of a dead letter",
	"Host.Chat":     "response_id, or the spans, have it",
	"Host.Server":   "server.address of the spans",
}

// TestEveryFieldIsStored changes one field of a message at a time and looks for
// the difference in its row.
func TestEveryFieldIsStored(t *testing.T) {
	leftOut := maps.Clone(leftOut)
	r := newMessageRows()
	row := func(m *msg.Message) []byte {
		r.block.Reset()
		r.add(m)
		var buf proto.Buffer
		if err := r.block.Encode(&buf); err != nil {
			t.Fatal(err)
		}
		return buf.Buf
	}
	base := msg.Message{Time: 1}
	stands := row(&base)
	msgtest.EachField(base, func(name string, changed msg.Message) {
		seen := !bytes.Equal(stands, row(&changed))
		why, listed := leftOut[name]
		switch {
		case !seen && !listed:
			t.Errorf("%s is neither stored nor listed as left out", name)
		case seen && listed:
			t.Errorf("%s is stored, and listed as left out: %s", name, why)
		}
		delete(leftOut, name)
	})
	for name := range leftOut {
		t.Errorf("%s is listed and is no field", name)
	}
}

// TestRowsAreThoseOfDecode holds the columns against msg.Row, which earshot decode
// prints: the same names.
func TestRowsAreThoseOfDecode(t *testing.T) {
	want := map[string]bool{"is_deleted": true}
	for i := range reflect.TypeFor[msg.Row]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[msg.Row]().Field(i).Tag.Get("json"), ",")
		want[name] = true
	}
	delete(want, "tool_result") // which the server computes
	got := make(map[string]bool)
	for _, c := range newMessageRows().block.Columns {
		got[c.Name] = true
	}
	if !maps.Equal(want, got) {
		t.Errorf("columns %v, want %v", got, want)
	}
}

// constant are the columns of spans that have the same value in every row of one program.
var constant = map[string]bool{"convention": true}

// TestEveryColumnOfASpanDependsOnIt changes one field of a span at a time and looks for the
// columns that differ: every one of them does for some field.
func TestEveryColumnOfASpanDependsOnIt(t *testing.T) {
	profile, err := semconv.New("")
	if err != nil {
		t.Fatal(err)
	}
	w := newWriters(profile, Schema{})
	for _, c := range []struct {
		*table
		add func(*msg.Span)
	}{{&w.spans.table, w.spans.add}} {
		columns := func(s *msg.Span) (out [][]byte) {
			c.block.Reset()
			c.add(s)
			for _, col := range c.block.Columns {
				var buf proto.Buffer
				col.EncodeColumn(&buf)
				out = append(out, buf.Buf)
			}
			return out
		}
		depends := maps.Clone(constant)
		base := sampleSpan()
		waiting, open, chat, local, streamed, late := base, base, base, base, base, base
		waiting.Events = []msg.SpanEvent{{Time: base.Start, Name: msg.WaitStart.String()}}
		open.State, chat.Kind, local.Tool.Server = msg.SpanOpen, msg.SpanChat, ""
		streamed.Kind, streamed.FirstToken = msg.SpanChat, base.Start+1
		late.Worked = base.End + 1
		for _, of := range []msg.Span{base, chat} {
			first := columns(&of)
			differs := func(_ string, changed msg.Span) {
				for i, encoded := range columns(&changed) {
					if !bytes.Equal(first[i], encoded) {
						depends[c.block.Columns[i].Name] = true
					}
				}
			}
			for _, s := range []msg.Span{waiting, open, local, streamed, late} {
				differs("", s)
			}
			msgtest.EachField(of, differs)
		}
		for _, col := range c.block.Columns {
			if !depends[col.Name] {
				t.Errorf("%s.%s is the same for every span", c.name, col.Name)
			}
		}
	}
}

// TestTimesAndVersionsOfASpan: the columns that are computed of a span: no duration before its end, no negative times, and versions in the order of its
// events, that of a tombstone just below the row that follows it.
func TestTimesAndVersionsOfASpan(t *testing.T) {
	const revision = 3 << 56
	type columns struct {
		ver, duration, worked, firstToken uint64
		alive                             int64
		outcome                           string
	}
	for _, c := range []struct {
		name string
		span msg.Span
		want columns
	}{
		{"open", msg.Span{State: msg.SpanOpen, Start: 10, End: 30, Worked: 40, Ver: revision | 9}, columns{ver: revision | 18, alive: 7}},
		{"idle", msg.Span{State: msg.SpanIdle, Start: 10, End: 30, Worked: 40, Ver: revision | 9, Outcome: msg.OutcomeOK}, columns{ver: revision | 19, duration: 20, worked: 30, outcome: "ok"}},
		{"closed", msg.Span{State: msg.SpanClosed, Start: 10, End: 30, Worked: 10, Ver: revision | closedBit | 9, Outcome: msg.OutcomeError}, columns{ver: revision | closedBit | 9, duration: 20, outcome: "error"}},
		{"idle, as a later state has it", msg.Span{State: msg.SpanIdle, Start: 30, End: 10, Ver: revision | closedBit | 9}, columns{ver: revision | closedBit | 9}},
		{"taken back", msg.Span{State: msg.SpanOpen, Ver: revision | 9, Tombstone: true}, columns{ver: revision | 17, alive: 7}},
		{"taken back, of no version", msg.Span{State: msg.SpanClosed, Tombstone: true}, columns{}},
		{"a response", msg.Span{State: msg.SpanClosed, Kind: msg.SpanChat, Start: 10, End: 10, FirstToken: 15}, columns{firstToken: 5}},
		{"before its request", msg.Span{State: msg.SpanClosed, Kind: msg.SpanChat, Start: 10, End: 10, FirstToken: 5}, columns{}},
		{"without a token", msg.Span{State: msg.SpanClosed, Kind: msg.SpanChat, Start: -10, End: -10, Worked: -10}, columns{}},
		{"of another kind", msg.Span{State: msg.SpanClosed, Kind: msg.SpanTool, Start: 10, End: 10, FirstToken: 15}, columns{}},
	} {
		s := &c.span
		if got := (columns{spanVersion(s), duration(s), worked(s), firstToken(s), whileOpen(s, 7), outcome(s)}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestFindingsOfSpans: each finding of the events of a span, with its tool and count; not those of one that another row replaces.
func TestFindingsOfSpans(t *testing.T) {
	event := func(name string, at int64, attrs ...msg.Attr) msg.SpanEvent {
		return msg.SpanEvent{Name: name, Time: at, Attrs: attrs}
	}
	found := []msg.SpanEvent{
		event("retry", 1), event(msg.EventFinding, 2, msg.Attr{Key: msg.FindingKind, Value: "repeat"}, msg.Attr{Key: msg.FindingTool, Value: "poll"}, msg.Attr{Key: msg.FindingCount, Value: "5"}, msg.Attr{Key: "other", Value: "x"}),
		event(msg.EventFinding, 3, msg.Attr{Key: msg.FindingKind, Value: "loop"}),
	}
	spans := exporttest.Records(msg.Span{ID: msg.SpanID{1}}, msg.Span{ID: msg.SpanID{2}, Events: found}, msg.Span{ID: msg.SpanID{3}, Events: found, Tombstone: true})
	want := []finding{{spans[1], 2, "repeat", "poll", 5}, {spans[1], 3, "loop", "", 0}}
	if got := findings(spans); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestAttributesOfASpan: the map of a span has the attributes that are in no column, and its events and links those of their own.
func TestAttributesOfASpan(t *testing.T) {
	profile, err := semconv.New("")
	if err != nil {
		t.Fatal(err)
	}
	s := sampleSpan()
	s.Kind, s.Server = msg.SpanChat, "api.example.org:8443"
	r := newSpanRows(profile)
	r.add(&s)
	var buf proto.Buffer
	if err := r.block.Encode(&buf); err != nil {
		t.Fatal(err)
	}
	in := chblock.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
	if err := in.Decode(proto.NewReader(bytes.NewReader(buf.Buf)), 0); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"attributes":        map[string]string{"server.address": "api.example.org", "server.port": "8443"},
		"events.attributes": []map[string]string{{}, {"error.type": "timeout"}},
		"events.name":       []string{"earshot.retry", "earshot.error"},
		"links.attributes":  []map[string]string{{"earshot.link": "previous_turn"}},
		"finish_reasons":    `["stop"]`,
	}
	got := make(map[string]any)
	for _, c := range in.Columns {
		if _, looked := want[c.Name()]; looked {
			got[c.Name()] = c.Row(0, false)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
