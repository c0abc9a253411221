package codex

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestEveryLineIsAccountedFor: a line has messages, or it is a part of a copied history, whose
// length is in one message.
func TestEveryLineIsAccountedFor(t *testing.T) {
	copied := map[string]int{"child_forked": 6, "forked": 6, "resumed_copy": 6}
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			all, origin := lines(t, name)
			d := open(t, origin)
			left, noted := 0, ""
			for _, l := range all {
				var out decoder.Output
				if err := d.Decode(&frame.Frame{Data: l}, &out); err != nil {
					t.Fatal(err)
				}
				if len(out.Messages) == 0 {
					left++
				}
				for _, m := range out.Messages {
					if m.Attr("type") == "copied_history" {
						noted = m.Attr("records")
					}
				}
			}
			if left != copied[name] || left > 0 && noted != fmt.Sprint(left) {
				t.Errorf("%d lines are copied and %q are noted, want %d", left, noted, copied[name])
			}
		})
	}
}

// TestTextsAreEmittedOnce: in each order and number of the families that have a text.
func TestTextsAreEmittedOnce(t *testing.T) {
	want := map[string][]string{
		"older":    {"user List the beds.", "reasoning **Listing beds**", "assistant There are two beds: north and south.", "user Thanks.", "assistant You are welcome."},
		"items":    {"user Check the pump.", "reasoning ", "assistant The pump is stuck; there is a valve in the shed."},
		"pictures": {"user Which rose is \"this\"?\n", "user ", "assistant A dog rose.", "user And here?", "assistant Two more."},
		"turn": {
			"user Which pear trees are listed, and is \"Conférence\" among them?", "reasoning **Looking for the list**\n\nThe trees are in a file.",
			"reasoning **Choosing a command**", "assistant One pear is listed, Conférence; I marked it as checked.",
		},
		"resumed_copy": {"user Water them.", "assistant They are watered."},
		"forked":       {"user Sow peas too.", "assistant Peas are sown."},
	}
	for name, want := range want {
		var got []string
		for _, m := range playCase(t, name) {
			if m.Kind == msg.User || m.Kind == msg.Assistant || m.Kind == msg.Reasoning {
				got = append(got, m.Kind.String()+" "+m.Content.String())
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestSameTextTwice: a text that one family has twice occurred twice.
func TestSameTextTwice(t *testing.T) {
	const item = `{"timestamp":"2026-03-04T09:10:1%d.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}`
	const event = `{"timestamp":"2026-03-04T09:10:1%d.000Z","type":"event_msg","payload":{"type":"agent_message","message":"Done."}}`
	for name, order := range map[string][]string{
		"item first": {item, event, item, event}, "event first": {event, item, event, item}, "items alone": {item, item}, "together": {item, item, event, event},
	} {
		var all [][]byte
		for i, format := range order {
			all = append(all, fmt.Appendf(nil, format, i))
		}
		said := 0
		for _, m := range play(t, "", all...) {
			if m.Kind == msg.Assistant {
				said++
			}
		}
		if said != 2 {
			t.Errorf("%s: said %d times, want 2", name, said)
		}
	}
}

// TestNumberedCalls: a server may count the calls of each response. The calls of two responses are two, each with its result, its wait
// and its end, also if the first one has none; a line that is there twice is a repetition.
func TestNumberedCalls(t *testing.T) {
	line := func(second int, typ, payload string) []byte {
		return fmt.Appendf(nil, `{"timestamp":"2026-03-04T09:10:%02d.000Z","type":%q,"payload":{%s}}`, second, typ, payload)
	}
	call := func(second int, run string) []byte {
		return line(second, "response_item", fmt.Sprintf(`"type":"function_call","name":"exec_command","arguments":%q,"call_id":"call_0"`, fmt.Sprintf(`{"cmd":%q}`, run)))
	}
	output := func(second int, said string) []byte {
		return line(second, "response_item", fmt.Sprintf(`"type":"function_call_output","call_id":"call_0","output":%q`, said))
	}
	end := func(second, code int) []byte {
		return line(second, "event_msg", fmt.Sprintf(`"type":"exec_command_end","call_id":"call_0","exit_code":%d`, code))
	}
	first, lost, last := call(2, "ls"), call(5, "sleep"), call(8, "date")
	all := [][]byte{
		line(1, "session_meta", `"id":"019cb81c-a538-7000-8000-0000000000aa"`), line(1, "event_msg", `"type":"user_message","message":"When?"`),
		first, end(3, 0), output(4, "beds"), first, output(4, "beds"), lost, line(7, "event_msg", `"type":"user_message","message":"When?"`),
		last, line(9, "event_msg", `"type":"exec_approval_request","call_id":"call_0"`), end(10, 3), output(11, "Wednesday"),
	}
	ids, got := make(map[string]string), []string(nil)
	for _, m := range play(t, "rollout.jsonl", all...) {
		if m.Tool.CallID == "" {
			continue
		}
		if m.Kind == msg.ToolCall {
			ids[m.Tool.CallID] = m.Tool.Arguments.String()
			if m.Tool.ProtocolID != "call_0" {
				t.Errorf("%s has the id %q in the protocol", m.Key, m.Tool.ProtocolID)
			}
		}
		if m.Kind == msg.ToolResult || m.Signal == msg.WaitStart {
			got = append(got, fmt.Sprint(ids[m.Tool.CallID], " ", m.Kind, " ", m.Content, " ", m.Attr("exit_code")))
		}
	}
	want := []string{`{"cmd":"ls"} tool_result beds 0`, `{"cmd":"date"} status  `, `{"cmd":"date"} tool_result Wednesday 3`}
	if d := cmp.Diff(want, got); d != "" || len(ids) != 3 {
		t.Errorf("the calls %v (-want +got):\n%s", ids, d)
	}
}
