package assemble_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
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
		r.tree(false) // each parent is there
		if all := r.all(); first == "" {
			first, firstName = all, order
		} else if all != first {
			t.Fatalf("%s and %s differ:\n%s", firstName, order, short(difference(first, all)))
		}
	})
}

// alone reads recordings where the kind of hops that they have is the only one that is read, and where only others are: there
// each run of the format is apart.
func alone(t *testing.T, list []recording, format string, hops, others assemble.Hops, want map[string]string) {
	t.Helper()
	for _, read := range []assemble.Hops{hops, others} {
		r := newReader(t, list)
		r.hops = read
		r.start()
		for i := range list {
			for r.next(i) {
			}
			r.commit()
			r.start()
		}
		r.end()
		for run, place := range r.under(format) {
			expected := want[run]
			if read == others && !strings.Contains(expected, "native_id 100") { // what the recording itself says
				expected = "apart"
			}
			if place != expected {
				t.Errorf("with %+v: %s is %s, want %s", read, run, place, expected)
			}
		}
	}
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
		alone(t, list, "mcp", assemble.Hops{Calls: true}, assemble.Hops{Texts: true, Turns: true}, want)
	}
}

// TestTextHops: a message to an agent of A2A is below the call of the transcript that had its text as
// an argument, and the run of the agent's task below the message.
func TestTextHops(t *testing.T) {
	s := lampStory()
	text := "Where will the tide be at noon?"
	for i, from := range []float64{61, 661} {
		c := &s.turns[1+2*i].steps[0].calls[0]
		c.tool, c.args = "mcp__fleet__send_message", fmt.Sprintf(`{"agent":"pilot","message":%q}`, text)
		c.from, c.to = from, from+3
	}
	w := &wire{recording{format: "a2a", origin: "/data/a2a/fleet.jsonl"}, s.start}
	send := func(rpc int, from, to float64) {
		context := fmt.Sprintf("c0ffee00-0000-4000-8000-00000000000%d", rpc)
		w.ask(rpc, from, to, "message/send", object{"message": object{
			"messageId": fmt.Sprint("tide-", rpc), "contextId": context, "role": "user", "parts": []object{{"kind": "text", "text": text}},
		}}, object{"kind": "task", "id": fmt.Sprint("task-", rpc), "contextId": context, "status": object{"state": "completed"}, "artifacts": []object{
			{"artifactId": "a", "parts": []object{{"kind": "text", "text": "High."}}},
		}})
	}
	send(1, 61.5, 63)
	send(2, 661.5, 663)
	send(3, 800, 801)
	want := map[string]string{
		"hop:tide-1": "toolu_left by prompt 90", "hop:tide-2": "toolu_lonely by prompt 90", "hop:tide-3": "apart",
		"task-1": "tide-1 by native_id 100", "task-2": "tide-2 by native_id 100", "task-3": "tide-3 by native_id 100",
	}
	oneTree(t, append(s.transcript(), w.recording), "a2a", want)
	alone(t, append(s.transcript(), w.recording), "a2a", assemble.Hops{Texts: true}, assemble.Hops{Calls: true, Turns: true}, want)
}

// TestTurnHops: the turns of an agent that an ACP client runs are below the turns that the client asked
// for, in the session that both name.
func TestTurnHops(t *testing.T) {
	start := time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC)
	session := "019cb81c-a538-7000-8000-0000000000e1"
	w := &wire{recording{format: "acp", origin: "/data/wrap/acp/editor.jsonl"}, start}
	w.ask(0, 0, 0.5, "session/new", object{"cwd": "/srv"}, object{"sessionId": session})
	rollout := recording{format: "codex", origin: "/home/ada/.codex/sessions/rollout-" + session + ".jsonl"}
	record := func(at float64, typ string, payload object) {
		rollout.frames = append(rollout.frames, frame.Frame{Kind: frame.Line, Data: line(object{
			"timestamp": start.Add(time.Duration(at * float64(time.Second))).Format("2006-01-02T15:04:05.000Z"), "type": typ, "payload": payload,
		})})
	}
	record(0.25, "session_meta", object{"id": session, "cwd": "/srv", "originator": "codex_acp", "cli_version": "0.146.0", "source": "vscode", "model_provider": "openai"})
	want := make(map[string]string)
	turns := make(map[string]string)
	for i, at := range []float64{10, 700, 720} {
		id := fmt.Sprintf("019cb81c-a920-7000-8000-00000000000%d", i)
		text := fmt.Sprintf("Trim the wick, the %d. time.", i)
		if i < 2 {
			w.ask(1+i, at, at+9, "session/prompt", object{"sessionId": session, "prompt": []object{{"type": "text", "text": text}}}, object{"stopReason": "end_turn"})
		}
		record(at+1, "event_msg", object{"type": "task_started", "turn_id": id})
		record(at+1.25, "response_item", object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": text}}, "id": fmt.Sprint("msg_", i)})
		record(at+8, "response_item", object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": "Done."}}, "id": fmt.Sprint("msg_a", i)})
		record(at+8.5, "event_msg", object{"type": "task_complete", "turn_id": id, "last_agent_message": "Done."})
		want[id], turns[text] = "apart", id
	}
	r := newReader(t, []recording{w.recording})
	for r.next(0) {
	}
	r.end()
	messages, _ := r.valid()
	for _, m := range messages {
		if m.Kind == msg.User {
			want[turns[m.Content.String()]] = m.Run + " by native_id 0"
		}
	}
	oneTree(t, []recording{w.recording, rollout}, "codex", want)
	alone(t, []recording{w.recording, rollout}, "codex", assemble.Hops{Turns: true}, assemble.Hops{Calls: true, Texts: true}, want)
	orders(t, []recording{w.recording, rollout}, func(order string, r *reader) { // both sides are recorded
		times := make(map[string]string)
		for run, place := range want {
			if place != "apart" {
				times[session+" "+run] = "0 1.5 7.5 0 false"
			}
		}
		if d := cmp.Diff(times, r.hopTimes("codex")); d != "" {
			t.Fatalf("%s (-want +got):\n%s", order, d)
		}
	})
}

// TestTracedHops: a call that passes a traceparent is below the call whose span it names, without the
// arguments and whenever it was: the clock of the server is wrong.
func TestTracedHops(t *testing.T) {
	s := lampStory()
	s.turns = s.turns[:2]
	w := &wire{recording{format: "mcp", origin: "/data/wrap/mcp/lamp-1.jsonl"}, s.start.Add(-time.Hour)}
	for n := range s.turns {
		params := object{"name": "wind", "arguments": object{"turns": n}, "_meta": object{
			"traceparent": fmt.Sprintf("00-%032x-%08x%08x-01", s.start.Unix()*100+int64(n), n+1, 3), // its third span: interaction, llm_request, tool
		}}
		w.ask(n, float64(60*n)+1.5, float64(60*n)+2, "tools/call", params, object{"content": []object{}})
	}
	want := make(map[string]string)
	r := newReader(t, []recording{w.recording})
	for r.next(0) {
	}
	r.end()
	for run := range r.under("mcp") {
		want[run] = "toolu_first by traceparent 0"
		if strings.HasPrefix(run, "call:rpc:1") {
			want[run] = "toolu_left by traceparent 0"
		}
	}
	oneTree(t, append(s.traces(), w.recording), "mcp", want)
	alone(t, append(s.traces(), w.recording), "mcp", assemble.Hops{Calls: true}, assemble.Hops{Turns: true}, want)
	alone(t, append(s.traces(), w.recording), "mcp", assemble.Hops{Texts: true}, assemble.Hops{}, want)
}

// TestManyHops reads a recording of more calls than a session remembers before the transcript: each is
// below its call, as in the other order.
func TestManyHops(t *testing.T) {
	s := &story{session: "5e55aaaa-0000-4000-8000-0000000000d2", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC)}
	w := &wire{recording{format: "mcp", origin: "/data/wrap/mcp/lamp-1.jsonl"}, s.start}
	var calls []toolCall
	for n := range 280 {
		from := float64(10 + 4*n)
		calls = append(calls, toolCall{id: fmt.Sprint("toolu_", n), tool: "mcp__lamp__turn", args: fmt.Sprintf(`{"degrees": %d}`, n), result: "ok", from: from, to: from + 3})
		w.ask(n, from+1, from+2, "tools/call", object{"name": "turn", "arguments": object{"degrees": n}}, object{"content": []object{}})
	}
	for i := range calls {
		s.turns = append(s.turns, turn{prompt: fmt.Sprintf("d00d0000-0000-4000-8000-%012d", i), text: "Turn", at: calls[i].from - 0.5, end: calls[i].to, steps: []step{
			{request: fmt.Sprint("req_", i), id: fmt.Sprint("msg_", i), from: calls[i].from - 0.5, to: calls[i].from, in: 1, out: 1, calls: calls[i : i+1]},
		}})
	}
	var trees []string
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		r := newReader(t, append(s.transcript(), w.recording))
		for _, i := range order {
			for r.next(i) {
			}
			r.commit()
			r.start()
		}
		r.end()
		for run, place := range r.under("mcp") {
			if !strings.HasSuffix(place, " by prompt 90") {
				t.Errorf("order %v: %s is %s", order, run, place)
			}
		}
		trees = append(trees, r.tree(false))
	}
	if trees[0] != trees[1] {
		t.Errorf("the orders differ:\n%.3000s", short(difference(trees[0], trees[1])))
	}
}

// hopTimes are the parts of the time of each hop, in seconds.
func (r *reader) hopTimes(format string) map[string]string {
	_, spans := r.valid()
	out := make(map[string]string)
	for _, s := range spans {
		if s.Kind == msg.SpanRun && s.Format == format && s.Hop != (msg.Hop{}) {
			second := func(n int64) float64 { return float64(n) / 1e9 }
			out[s.Session+" "+s.Run] = fmt.Sprint(second(s.Hop.Queue), " ", second(s.Hop.Transport), " ", second(s.Hop.Server), " ", second(s.Hop.Return), " ", s.Hop.Crowded)
		}
	}
	return out
}

// TestTransport: the time that a request took longer at its client than at its server, where both were recorded, is
// transport; where one was, the transport is not known and not invented.
func TestTransport(t *testing.T) {
	s := lampStory()
	s.turns = s.turns[:2]
	record := func(name string, n int, from, to func(at float64) float64) recording {
		w := &wire{recording{format: "mcp", origin: "/data/wrap/mcp/" + name + ".jsonl"}, s.start}
		for i, c := range []toolCall{s.turns[0].steps[0].calls[0], s.turns[1].steps[0].calls[0]}[:n] {
			w.ask(1+i, from(c.from), to(c.to), "tools/call", object{"name": "turn", "arguments": object{"degrees": 90, "towards": "north"}, "_meta": object{"claudecode/toolUseId": c.id}}, object{"content": []object{}})
		}
		return w.recording
	}
	client := record("lamp-client", 2, func(at float64) float64 { return at + 0.25 }, func(at float64) float64 { return at - 0.25 })
	server := record("lamp-server", 1, func(at float64) float64 { return at + 0.5 }, func(at float64) float64 { return at - 0.5 })
	want := map[string]string{
		"lamp-client call:toolu_first": "0.25 0.5 2 0.25 false", "lamp-server call:toolu_first": "0.5 0 2 0.5 false",
		"lamp-client call:toolu_left": "0.25 0 2.5 0.25 false",
	}
	first, firstName := "", ""
	orders(t, append(s.transcript(), client, server), func(order string, r *reader) {
		if d := cmp.Diff(want, r.hopTimes("mcp")); d != "" {
			t.Fatalf("%s (-want +got):\n%s", order, d)
		}
		if all := r.all(); first == "" {
			first, firstName = all, order
		} else if all != first {
			t.Fatalf("%s and %s differ:\n%s", firstName, order, short(difference(first, all)))
		}
	})
}

// TestManyAlike: more calls of the same arguments at once than are remembered are not linked, and are marked so.
func TestManyAlike(t *testing.T) {
	const n = 300
	s := &story{session: "5e55aaaa-0000-4000-8000-0000000000d3", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC)}
	w := &wire{recording{format: "mcp", origin: "/data/wrap/mcp/lamp-1.jsonl"}, s.start}
	var calls []toolCall
	for i := range n {
		calls = append(calls, toolCall{id: fmt.Sprint("toolu_alike_", i), tool: "mcp__lamp__turn", args: `{"degrees": 90}`, result: "ok", from: 10, to: 60})
		w.ask(i, 20, 50, "tools/call", object{"name": "turn", "arguments": object{"degrees": 90}}, object{"content": []object{}})
	}
	s.turns = []turn{{prompt: "d00d0000-0000-4000-8000-0000000000a1", text: "Turn", at: 0, end: 70, steps: []step{{request: "req_1", id: "msg_1", from: 1, to: 10, in: 1, out: 1, calls: calls}}}}
	r := newReader(t, append(s.transcript(), w.recording))
	for i := range 2 {
		for r.next(i) {
		}
		r.commit()
	}
	r.end()
	crowded := 0
	for run, place := range r.under("mcp") {
		if place != "apart" {
			t.Errorf("%s is %s", run, place)
		}
	}
	for _, parts := range r.hopTimes("mcp") {
		if strings.HasSuffix(parts, " true") {
			crowded++
		}
	}
	if crowded != n {
		t.Errorf("%d of %d say so", crowded, n)
	}
}
