package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// conversationStep has the bodies of a step, each of them unique: a prompt, the arguments and
// the result of a tool, an answer.
type conversationStep struct{ prompt, arguments, result, answer string }

type object = map[string]any
type list = []any

// inventConversation generates a conversation. Its words are random, so that a store cannot
// compress repetitions of ours.
func inventConversation(turns int) (instructions string, steps []conversationStep) {
	rng := rand.New(rand.NewPCG(7, 60))
	words := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%x ", rng.Uint32N(1<<20))
		}
		return b.String()
	}
	instructions = words(12_000)
	for range turns {
		steps = append(steps, conversationStep{words(300), `{"where": "` + words(100) + `"}`, words(800), words(900)})
	}
	return instructions, steps
}

// snapshot is one transfer of a format, which repeats the whole conversation so far: a request
// to path, and the body of its response.
type snapshot struct{ request, response any }

func anthropic(instructions string, steps []conversationStep) (out []snapshot) {
	var memory list
	ask := func(id, stop string, content ...any) {
		out = append(out, snapshot{
			object{"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": instructions, "messages": memory},
			object{"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content, "stop_reason": stop, "usage": object{"input_tokens": 9, "output_tokens": 9}},
		})
		memory = append(memory, object{"role": "assistant", "content": content})
	}
	for n, s := range steps {
		call := fmt.Sprint("toolu_", n)
		memory = append(memory, object{"role": "user", "content": s.prompt})
		ask(fmt.Sprint("msg_a", n), "tool_use", object{"type": "tool_use", "id": call, "name": "chart", "input": json.RawMessage(s.arguments)})
		memory = append(memory, object{"role": "user", "content": list{object{"type": "tool_result", "tool_use_id": call, "content": s.result}}})
		ask(fmt.Sprint("msg_b", n), "end_turn", object{"type": "text", "text": s.answer})
	}
	return out
}

func chat(instructions string, steps []conversationStep) (out []snapshot) {
	memory := list{object{"role": "system", "content": instructions}}
	ask := func(id, finish string, message object) {
		message["role"] = "assistant"
		out = append(out, snapshot{
			object{"model": "gpt-5-mini", "messages": memory},
			object{"id": id, "object": "chat.completion", "created": 1793000000, "model": "gpt-5-mini", "choices": list{object{"index": 0, "message": message, "finish_reason": finish}},
				"usage": object{"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}},
		})
		memory = append(memory, message)
	}
	for n, s := range steps {
		call := fmt.Sprint("call_", n)
		memory = append(memory, object{"role": "user", "content": s.prompt})
		ask(fmt.Sprint("chatcmpl-a", n), "tool_calls", object{"content": nil, "tool_calls": list{object{"id": call, "type": "function", "function": object{"name": "chart", "arguments": s.arguments}}}})
		memory = append(memory, object{"role": "tool", "tool_call_id": call, "content": s.result})
		ask(fmt.Sprint("chatcmpl-b", n), "stop", object{"content": s.answer})
	}
	return out
}

func responses(instructions string, steps []conversationStep) (out []snapshot) {
	var input list
	ask := func(id string, item object) {
		out = append(out, snapshot{
			object{"model": "gpt-5", "instructions": instructions, "prompt_cache_key": "5e550000-0000-4000-8000-0000000000b1", "input": input},
			object{"id": id, "object": "response", "created_at": 1793000200, "status": "completed", "model": "gpt-5", "output": list{item},
				"usage": object{"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}},
		})
		input = append(input, item)
	}
	for n, s := range steps {
		call := fmt.Sprint("call_", n)
		input = append(input, object{"type": "message", "role": "user", "content": list{object{"type": "input_text", "text": s.prompt}}})
		ask(fmt.Sprint("resp_a", n), object{"id": fmt.Sprint("fc_", n), "type": "function_call", "status": "completed", "call_id": call, "name": "chart", "arguments": s.arguments})
		input = append(input, object{"type": "function_call_output", "call_id": call, "output": s.result})
		ask(fmt.Sprint("resp_b", n), object{"id": fmt.Sprint("msg_", n), "type": "message", "role": "assistant", "status": "completed", "content": list{object{"type": "output_text", "text": s.answer}}})
	}
	return out
}

// memories are the snapshots of myagent's memory, which has no instructions.
func memories(_ string, steps []conversationStep) (out []snapshot) {
	var memory list
	send := func(event string, content any) {
		out = append(out, snapshot{request: object{"event": event, "timestamp": fmt.Sprintf("2026-03-02T09:%02d:%02d.1", len(out)/60, len(out)%60), "session_id": "s", "content": content, "seq": len(out) + 1}})
	}
	send("agent.session_created", "Session created successfully")
	for n, s := range steps {
		call := fmt.Sprint("call_", n)
		memory = append(memory, object{"role": "user", "content": s.prompt},
			object{"role": "assistant", "tool_calls": list{object{"id": call, "type": "function", "function": object{"name": "chart", "arguments": s.arguments}}}})
		send("agent.llm_message", object{"messages": memory, "total_messages": len(memory)})
		memory = append(memory, object{"role": "tool", "tool_call_id": call, "name": "chart", "content": s.result}, object{"role": "assistant", "content": s.answer})
		send("agent.llm_message", object{"messages": memory, "total_messages": len(memory)})
	}
	return out
}

// reloads are the runs of a session, fetched again after every tenth. A run has its
// instructions, and the whole conversation so far as history.
func reloads(instructions string, steps []conversationStep) (out []snapshot) {
	var runs, history list
	for n, s := range steps {
		id, at := fmt.Sprint("run-", n), 1780000000+60*n
		message := func(part, role string, more object) object {
			more["id"], more["role"], more["created_at"], more["from_history"] = id+part, role, at, false
			return more
		}
		call := object{"tool_call_id": "call-" + id, "tool_name": "chart", "tool_args": json.RawMessage(s.arguments)}
		own := list{
			message("u", "user", object{"content": s.prompt}),
			message("c", "assistant", object{"tool_calls": list{object{"id": "call-" + id, "type": "function", "function": object{"name": "chart", "arguments": s.arguments}}}}),
			message("r", "tool", object{"content": s.result, "tool_call_id": call["tool_call_id"], "tool_name": "chart", "tool_args": call["tool_args"], "tool_call_error": false}),
			message("a", "assistant", object{"content": s.answer}),
		}
		messages := append(append(list{message("s", "system", object{"content": instructions})}, history...), own...)
		for _, m := range own {
			old := object{}
			for k, v := range m.(object) {
				old[k] = v
			}
			old["from_history"] = true
			history = append(history, old)
		}
		runs = append(runs, object{"run_id": id, "session_id": "s", "agent_id": "pilot", "run_input": s.prompt, "content": s.answer, "messages": messages,
			"tools":   list{object{"tool_call_id": call["tool_call_id"], "tool_name": "chart", "tool_args": call["tool_args"], "tool_call_error": false, "result": s.result}},
			"metrics": object{"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}, "created_at": at, "status": "COMPLETED"})
		if n%10 == 9 {
			out = append(out, snapshot{request: runs})
		}
	}
	return out
}

// TestBodiesAreStoredOnce sends a conversation of sixty turns, in every format that repeats it
// with each step, through the whole sidecar, and measures the tables: they have the bytes of
// the conversation, not the sum of the transfers. Only the instructions repeat, with each
// prompt; they are adjacent, and take almost no space. The last columns are the bytes of the
// bodies on disk, and their bytes if each were stored once under its hash.
func TestBodiesAreStoredOnce(t *testing.T) {
	const turns = 60
	instructions, steps := inventConversation(turns)
	formats := []struct {
		name, path string
		send       func(string, []conversationStep) []snapshot
	}{
		{"anthropic-sse", "/v1/messages", anthropic},
		{"openai-chat", "/v1/chat/completions", chat},
		{"openai-responses", "/v1/responses", responses},
		{"llm-message", "", memories},
		{"agno", "", reloads},
	}
	h := newHome(t)
	answers := make(chan []byte, 1)
	upstream := h.agent(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(<-answers)
	})
	tap, memory, reload := freeAddress(t), freeAddress(t), freeAddress(t)
	h.configure("sources:", providers(tap, upstream), fmt.Sprintf(`  - {name: memory, type: http, format: llm-message, listen: %q}
  - {name: reload, type: http, format: agno, listen: %q}`, memory, reload))
	p := h.startRunning()
	sent := make(map[string]int)
	for _, f := range formats {
		var stream []byte
		for _, s := range f.send(instructions, steps) {
			request, err := json.Marshal(s.request)
			h.must(err)
			response, err := json.Marshal(s.response)
			h.must(err)
			sent[f.name] += len(request)
			switch f.name {
			case "llm-message":
				stream = append(append(stream, request...), '\n')
			case "agno":
				h.post("http://"+reload+"/", "application/json", request)
			default:
				sent[f.name] += len(response)
				answers <- response
				h.post("http://"+tap+f.path, "application/json", request)
			}
		}
		if stream != nil {
			h.post("http://"+memory+"/", "application/x-ndjson", stream)
		}
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	h.drain()

	var scratch []string // tables of one format's messages: all, and of those with the same content one
	for _, f := range formats {
		for name, of := range map[string]string{all(f.name): "", each(f.name): "LIMIT 1 BY content"} {
			scratch = append(scratch, "CREATE TABLE "+name+" AS messages", "ALTER TABLE "+name+" MODIFY SETTING min_bytes_for_wide_part = 0",
				// One hour and one part: the rows of two are compressed apart.
				fmt.Sprintf("INSERT INTO %s SELECT * REPLACE (toDateTime64('2026-01-01 00:00:00', 9, 'UTC') AS ts) FROM messages FINAL WHERE format = '%s' %s", name, f.name, of),
				"OPTIMIZE TABLE "+name+" FINAL")
		}
	}
	h.admin(scratch...)
	var table strings.Builder
	fmt.Fprintf(&table, "%-18s%12s%12s%12s%12s%12s%12s\n", "format", "sent", "unique", "stored", "sent/stored", "on disk", "by hash")
	for _, f := range formats {
		once, again := 0, turns*len(instructions)
		if f.name == "llm-message" {
			again = 0 // it sends none
		}
		for _, s := range steps {
			once += len(s.prompt) + len(s.arguments) + len(s.result) + len(s.answer)
		}
		var stored, disk, hashed int
		const weigh = "(SELECT sum(column_data_compressed_bytes) FROM system.parts_columns WHERE active AND table = '%s' AND column IN ('content', 'tool_arguments', 'delegate_task'))"
		row := h.query("SELECT (SELECT sum(length(content) + length(tool_arguments) + length(delegate_task)) FROM " + all(f.name) + "), " +
			fmt.Sprintf(weigh, all(f.name)) + ", " + fmt.Sprintf(weigh, each(f.name)))
		_, err := fmt.Sscan(row[0], &stored, &disk, &hashed)
		h.must(err)
		fmt.Fprintf(&table, "%-18s%12d%12d%12d%12.1f%12d%12d\n", f.name, sent[f.name], once+again/turns, stored, float64(sent[f.name])/float64(stored), disk, hashed)
		if runs := h.query("SELECT uniqExact(run_id) FROM messages FINAL WHERE run_id != '' AND format = '" + f.name + "'"); runs[0] != strconv.Itoa(turns) {
			t.Errorf("%s: %s runs of %d turns", f.name, runs[0], turns)
		}
		if want := once + again; stored > want*105/100 || stored < want*95/100 {
			t.Errorf("%s: %d bytes are stored, want %d", f.name, stored, want)
		}
		if disk == 0 || disk > hashed*12/10 {
			t.Errorf("%s: bodies take %d bytes on disk, and %d if each were stored once", f.name, disk, hashed)
		}
	}
	t.Logf("%d turns, bytes:\n%s", turns, &table)
}

func all(format string) string { return "all_" + strings.ReplaceAll(format, "-", "_") }

func each(format string) string { return "each_" + strings.ReplaceAll(format, "-", "_") }
