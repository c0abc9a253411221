package clickhouse

import (
	"bytes"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/proto"

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
