package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repeatingServer is a server that repeats ids, as Ollama and others do: a few response ids in
// turn, and call_0 for every call. It answers a question with "look" in it by a call as long as
// fewer results than that are in the request.
func repeatingServer(ids int) http.HandlerFunc {
	var asked atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n := asked.Add(1)
		results, looks := 0, false
		for _, m := range q.Messages {
			if m.Role == "tool" {
				results++
			}
			looks = looks || m.Content == "look twice"
		}
		answer, stop := fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, n), "stop"
		if looks && results < 2 {
			answer, stop = fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"look","arguments":"{\"at\":%d}"}}]}`, results), "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		id := fmt.Sprint("chatcmpl-", n%int64(ids))
		fmt.Fprintf(w, "data: {\"id\":%q,\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"small\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", id, answer)
		fmt.Fprintf(w, "data: {\"id\":%q,\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"small\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n", id, stop)
	}
}

// TestIdsThatRepeat has agents at a server that repeats its ids: one prompt many times, one
// chat of many turns, a conversation that uses one call id twice, and two sources that begin
// with the same words. Every prompt, answer, call, result and token is stored once, also after
// everything is decoded again.
func TestIdsThatRepeat(t *testing.T) {
	h := newHome(t)
	upstream := h.agent(repeatingServer(3))
	one, two := freeAddress(t), freeAddress(t)
	h.configure("sources:",
		fmt.Sprintf("  - {name: one, type: tap, format: openai-chat, listen: %q, upstream: %q}", one, upstream),
		fmt.Sprintf("  - {name: two, type: tap, format: openai-chat, listen: %q, upstream: %q}", two, upstream),
		"journal: {keep: 1h}")
	p := h.startRunning()
	type message map[string]any
	ask := func(tap string, list []message) {
		body, err := json.Marshal(map[string]any{"model": "small", "stream": true, "messages": list})
		h.must(err)
		h.post("http://"+tap+"/v1/chat/completions", "application/json", body)
	}
	user := func(s string) message { return message{"role": "user", "content": s} }
	const scheduled, turns = 20, 12
	for range scheduled {
		ask(one, []message{user("is all well?")})
	}
	chat := []message{}
	for n := range turns {
		chat = append(chat, user(fmt.Sprint("question ", n)))
		ask(one, chat)
		chat = append(chat, message{"role": "assistant", "content": "yes"})
	}
	looks := []message{user("look twice")}
	for n := range 3 {
		ask(one, looks)
		looks = append(looks, message{"role": "assistant", "tool_calls": []message{{"id": "call_0", "type": "function", "function": message{"name": "look", "arguments": "{}"}}}},
			message{"role": "tool", "tool_call_id": "call_0", "content": fmt.Sprint("result ", n)})
	}
	ask(two, []message{user("is all well?")})

	const exchanges = scheduled + turns + 3 + 1
	want := []string{
		fmt.Sprintf("one\t%d\t%d\t2\t2\t%d", scheduled+turns+1, scheduled+turns+1, 5*(exchanges-1)),
		"two\t1\t1\t0\t0\t5",
	}
	sql := `SELECT source, uniqExactIf(content, kind = 'assistant'), countIf(kind = 'user'), uniqExactIf(content, kind = 'tool_result'),
		uniqExactIf(tool_arguments, kind = 'tool_call'), sum(output_tokens) FROM messages FINAL GROUP BY source ORDER BY source`
	var got []string
	defer func() { t.Log(got) }()
	check := func() bool { got = h.tryQuery(sql); return cmp.Equal(want, got) }
	h.until("all messages", check)
	spans := `SELECT countIf(Operation = 'chat'), countIf(Operation = 'invoke_agent') FROM otel_traces FINAL`
	h.until("a span for each response and each prompt", func() bool {
		got = h.tryQuery(spans)
		return cmp.Equal([]string{fmt.Sprintf("%d\t%d", exchanges, scheduled+turns+2)}, got)
	})
	h.until("the calls", func() bool {
		got = h.tryQuery("SELECT count(), uniqExact(span_id), any(tool_call_id), uniqExact(tool_call_id) FROM v_tool_calls WHERE status = 'ok'")
		return cmp.Equal([]string{"2\t2\tcall_0\t1"}, got)
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	before := h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages FINAL ORDER BY ALL")
	h.stopStore() // the command starts it
	h.run("backfill")
	if diff := cmp.Diff(before, h.query("SELECT * EXCEPT (ver, ingest_ts) FROM messages FINAL ORDER BY ALL")); diff != "" {
		t.Errorf("decoded again (-before +after):\n%s", diff)
	}
}
