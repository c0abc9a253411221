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
)

// leftOut are the fields of a message that no column holds.
var leftOut = map[string]string{
	"Key":           "hashed into message_id",
	"ParentKey":     "hashed into parent_message_id",
	"Tool.Duration": "duration_ns of the call says it",
	"Frame":         "a place in a batch that is gone",
	"Host.Observed": "differs between replays",
	"Host.Origin":   "of a letter, and of a stream in source_ledger",
	"Host.Offset":   "of a letter",
	"Host.Chat":     "response_id, or the spans, say it",
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

// TestRowsAreThoseOfDecode holds the columns against msg.Row, which is what
// earshot decode prints: the same names.
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
