package langgraph

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTogether: the replies that a node asks for at a time are whole, although their chunks are mixed.
func TestTogether(t *testing.T) {
	d, err := New().New(decoder.Stream{})
	if err != nil {
		t.Fatal(err)
	}
	var out decoder.Output
	event := func(name, data string) {
		if err := d.Decode(&frame.Frame{Kind: frame.Event, Name: name, Data: []byte(data)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	chunk := func(id, text, more string) {
		event("messages", fmt.Sprintf(`[{"content":%q,"type":"AIMessageChunk","id":"run--%s"%s},{"langgraph_node":"judges","langgraph_checkpoint_ns":"judges:1"}]`, text, id, more))
	}
	last := func(input int) string {
		return fmt.Sprintf(`,"response_metadata":{"finish_reason":"stop"},"usage_metadata":{"input_tokens":%d,"output_tokens":9}`, input)
	}
	event("metadata", `{"run_id":"fair"}`)
	chunk("pies", "The apple pie ", "")
	chunk("jams", "The plum jam ", "")
	chunk("pies", "is the best ", "")
	chunk("jams", "is too sweet.", "")
	chunk("pies", "of the fair.", last(110))
	chunk("jams", "", last(120))
	chunk("teas", "The tea is cold.", last(130))
	event("end", "null")

	var got []string
	for _, m := range msg.Fold(out.Messages) {
		switch {
		case m.Kind == msg.Assistant && m.Complete == msg.Complete:
			got = append(got, m.Content.String())
		case m.Kind == msg.Usage:
			got = append(got, fmt.Sprint(m.Usage.Input))
		}
	}
	want := []string{"The apple pie is the best of the fair.", "110", "The plum jam is too sweet.", "120", "The tea is cold.", "130"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
