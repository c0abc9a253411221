package otel

import (
	"encoding/json"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/earshot-dev/earshot/core/semconv"
)

// TestStructure: JSON is a value of OTLP, each number as exact as it can be.
func TestStructure(t *testing.T) {
	for text, want := range map[string]string{
		`7`: "int_value:7", `-9007199254740993`: "int_value:-9007199254740993", `0.5`: "double_value:0.5", `1e3`: "double_value:1000", `1e999`: `string_value:"1e999"`, `true`: "bool_value:true",
		`"a"`: `string_value:"a"`, `null`: "", `[1,"a"]`: `array_value:{values:{int_value:1} values:{string_value:"a"}}`,
		`{"b":1,"a":{}}`: `kvlist_value:{values:{key:"a" value:{kvlist_value:{}}} values:{key:"b" value:{int_value:1}}}`,
	} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(structure(v).String(), "  ", " "); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// TestASpanOfItsOperationAlone: a limit that no span fits into takes all attributes but the operation, and the note of what was dropped is true.
func TestASpanOfItsOperationAlone(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, nil)
	s := &tracepb.Span{Name: strings.Repeat("n", 300), Events: []*tracepb.Span_Event{{}}, Links: []*tracepb.Span_Link{{}, {}}}
	for _, key := range []string{"a", semconv.KeyOperation, "b"} {
		s.Attributes = append(s.Attributes, pair(key, text(strings.Repeat("v", 9))))
	}
	x.trim(s, 1)
	if len(s.Attributes) != 2 || s.Attributes[0].Key != semconv.KeyOperation || s.Attributes[1].Key != semconv.KeyTrimmed || s.Attributes[1].Value.GetIntValue() != 6 {
		t.Errorf("%v", s.Attributes)
	}
	if s.DroppedAttributesCount != 2 || s.DroppedEventsCount != 1 || s.DroppedLinksCount != 2 || len(s.Name) != shortName {
		t.Errorf("%v", s)
	}
}

// TestMetricsOverGRPC: a receiver that is down is no error of the start, in either protocol.
func TestMetricsOverGRPC(t *testing.T) {
	for _, protocol := range []string{ProtocolHTTP, ProtocolGRPC} {
		m, err := NewMetrics(t.Context(), Settings{Endpoint: "http://127.0.0.1:1", Protocol: protocol})
		if err != nil {
			t.Fatal(protocol, err)
		}
		if m.Exporter == nil {
			t.Fatal(protocol, " has no client")
		}
		if err := m.Shutdown(t.Context()); err != nil {
			t.Error(protocol, err)
		}
	}
}
