package assemble_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// wire is a recording of both directions of a connection, in the form of earshot wrap.
type wire struct {
	recording
	start time.Time
}

func (h *wire) add(at float64, dir string, message object) {
	message["jsonrpc"] = "2.0"
	h.frames = append(h.frames, frame.Frame{Kind: frame.Line, Data: line(object{
		"t": h.start.Add(time.Duration(at * float64(time.Second))).UTC().Format(time.RFC3339Nano), "dir": dir, "frame": message,
	})})
}

// ask adds a request and its answer.
func (h *wire) ask(id int, from, to float64, method string, params, result object) {
	h.add(from, "out", object{"id": id, "method": method, "params": params})
	h.add(to, "in", object{"id": id, "result": result})
}

// under is which call, or which turn, each run of a format is below, and the evidence.
func (r *reader) under(format string) map[string]string {
	_, spans := r.valid()
	byID := make(map[msg.SpanID]msg.Span)
	for _, s := range spans {
		byID[s.ID] = s
	}
	out := make(map[string]string)
	for _, s := range spans {
		if s.Kind != msg.SpanRun || s.Format != format {
			continue
		}
		up, ok := byID[s.Parent]
		place := "apart"
		if ok {
			place = fmt.Sprintf("%s by %s %d", cmpOr(up.Tool.CallID, up.Run), s.Delegate.Link, s.Delegate.Confidence)
			if up.TraceID != s.TraceID {
				r.t.Errorf("%s is below %s, in another trace", s.Run, up.ID)
			}
		}
		out[s.Run] = place
	}
	return out
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// oneTree reads recordings in each order of formats and interleaved, and compares all rows, and
// which call each run of the format is below.
func oneTree(t *testing.T, list []recording, format string, want map[string]string) {
	t.Helper()
	first, firstName := "", ""
	orders(t, list, func(order string, r *reader) {
		if d := cmp.Diff(want, r.under(format)); d != "" {
			t.Fatalf("%s (-want +got):\n%s", order, d)
		}
		r.tree() // each parent is there
		if all := r.all(); first == "" {
			first, firstName = all, order
		} else if all != first {
			t.Fatalf("%s and %s differ:\n%s", firstName, order, short(difference(first, all)))
		}
	})
}

// short is a difference without the ends of its lines.
func short(s string) string {
	var b strings.Builder
	for _, l := range strings.Split(s, "\n") {
		fmt.Fprintf(&b, "%.400s\n", l)
	}
	return b.String()
}

// lampStory has calls of a tool behind a server: alike one after the other, alike at once, and in
// two turns.
func lampStory() *story {
	turn := func(n string, at float64, calls ...toolCall) turn {
		return turn{prompt: "d00d0000-0000-4000-8000-00000000000" + n, text: "Turn the lamp", at: at, end: at + 9, steps: []step{
			{request: "req_" + n, id: "msg_" + n, from: at, to: at + 1, in: 9, out: 9, text: "I turn it.", calls: calls},
			{request: "req_" + n + "b", id: "msg_" + n + "b", from: at + 8, to: at + 8.5, in: 9, out: 9, text: "It turns."},
		}}
	}
	north := func(id string, from, to float64) toolCall {
		return toolCall{id: id, tool: "mcp__lamp__turn", args: `{"towards": "north", "degrees": 90}`, result: "It shines.", from: from, to: to}
	}
	other := north("toolu_other", 61, 64)
	other.args, other.tool = `{"towards":"south"}`, "Read"
	s := &story{session: "5e55aaaa-0000-4000-8000-0000000000d1", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC)}
	s.turns = append(s.turns,
		turn("1", 0, north("toolu_first", 1, 4)),
		turn("2", 60, north("toolu_left", 61, 64), other),
		turn("3", 580, north("toolu_one", 581, 586), north("toolu_two", 581, 587)),
		turn("4", 660, north("toolu_lonely", 661, 664)),
		turn("5", 720, north("toolu_crowded", 721, 724)),
	)
	return s
}

// TestToolCallHops: the calls of a server that earshot wrap recorded are below the calls of the
// transcript: by the id that the client sends along, else by the arguments and the time. One without
// an unambiguous cause stays apart.
func TestToolCallHops(t *testing.T) {
	for _, ids := range []bool{true, false} {
		s := lampStory()
		w := &wire{recording{format: "mcp", origin: "/data/wrap/mcp/lamp-1.jsonl"}, s.start}
		w.ask(0, -2, -1.9, "initialize", object{"protocolVersion": "2025-11-25", "clientInfo": object{"name": "claude-code"}}, object{"protocolVersion": "2025-11-25", "serverInfo": object{"name": "Lamp Room"}})
		call := func(rpc int, id string, from, to float64) {
			params := object{"name": "turn", "arguments": object{"degrees": 90, "towards": "north"}}
			if ids && id != "" {
				params["_meta"] = object{"claudecode/toolUseId": id}
			}
			w.ask(rpc, from, to, "tools/call", params, object{"content": []object{{"type": "text", "text": "It shines."}}})
		}
		call(1, "toolu_first", 1.25, 3.5)
		call(2, "toolu_left", 61.25, 63)
		call(3, "toolu_one", 581.25, 585)
		call(4, "toolu_two", 581.5, 586)
		call(5, "toolu_crowded", 721.25, 722)
		call(6, "", 722.25, 723) // who made it?
		call(7, "", 900, 901)    // a caller that is not read
		hash := ""
		r := newReader(t, []recording{w.recording})
		for r.next(0) {
		}
		r.end()
		for run := range r.under("mcp") {
			if rest, ok := strings.CutPrefix(run, "call:rpc:7/"); ok {
				hash = "/" + rest
			}
		}
		want := map[string]string{
			"call:rpc:1" + hash: "toolu_first by prompt 90", "call:rpc:2" + hash: "toolu_left by prompt 90",
			"call:rpc:3" + hash: "toolu_one by prompt 60", "call:rpc:4" + hash: "toolu_two by prompt 60",
			"call:rpc:5" + hash: "apart", "call:rpc:6" + hash: "apart", "call:rpc:7" + hash: "apart",
		}
		if ids {
			want = map[string]string{
				"call:toolu_first": "toolu_first by native_id 0", "call:toolu_left": "toolu_left by native_id 0", "call:toolu_one": "toolu_one by native_id 0",
				"call:toolu_two": "toolu_two by native_id 0", "call:toolu_crowded": "toolu_crowded by native_id 0", "call:rpc:6" + hash: "toolu_crowded by prompt 90", "call:rpc:7" + hash: "apart",
			}
		}
		list := append(s.transcript(), w.recording)
		oneTree(t, list, "mcp", want)
		oneTree(t, slices.Concat(list, s.logs()), "mcp", want)
	}
}
