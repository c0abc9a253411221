package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exchange is a recorded exchange with a provider.
type exchange struct {
	request []byte
	events  string
}

func recordedExchange(t *testing.T, format, name string) (x exchange) {
	t.Helper()
	f, err := os.Open(fixture(t, format+"/testdata/"+name+"/frames.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var fr struct{ Kind, Name, Data string }
		if err := json.Unmarshal(s.Bytes(), &fr); err != nil {
			t.Fatal(err)
		}
		switch {
		case fr.Kind == "request":
			x.request = []byte(fr.Data)
		case fr.Kind == "event" && fr.Name != "":
			x.events += "event: " + fr.Name + "\ndata: " + fr.Data + "\n\n"
		case fr.Kind == "event":
			x.events += "data: " + fr.Data + "\n\n"
		}
	}
	return x
}

// TestAgentAtAProvider has an agent ask each provider twice through a tap, the second
// time with the results of the calls of the first: one conversation, one run with its
// model turns and tools, and the tokens once.
func TestAgentAtAProvider(t *testing.T) {
	h := newHome(t)
	var mu sync.Mutex
	next := make(map[string][]string) // by path
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		events := next[q.URL.Path][0]
		next[q.URL.Path] = next[q.URL.Path][1:]
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		for event := range strings.SplitAfterSeq(events, "\n\n") {
			fmt.Fprint(w, event)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	tap := freeAddress(t)
	h.configure("sources:", providers(tap, server.URL))
	p := h.startRunning()

	paths := map[string]string{"anthropic-sse": "/v1/messages", "openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses"}
	for format, path := range paths {
		turn, answer := recordedExchange(t, format, "turn"), recordedExchange(t, format, "answer")
		mu.Lock()
		next[path] = []string{turn.events, answer.events}
		mu.Unlock()
		for _, x := range []exchange{turn, answer} {
			if got := string(h.post("http://"+tap+path, "application/json", x.request)); got != x.events {
				t.Errorf("%s: the client gets something else", format)
			}
		}
	}
	want := []string{"anthropic-sse\t1\t1\t2\t2\t99\t116", "openai-chat\t1\t1\t2\t2\t236\t52", "openai-responses\t1\t1\t1\t2\t332\t99"}
	sql := `SELECT format, uniqExact(session_id), uniqExact(run_id), countIf(kind = 'tool_result'), countIf(kind = 'usage'),
		sum(input_tokens), sum(output_tokens + reasoning_tokens) FROM messages GROUP BY format ORDER BY format`
	var got []string
	defer func() { t.Log(got) }()
	h.until("all messages", func() bool { got = h.tryQuery(sql); return cmp.Equal(want, got) })
	// Calls have ended with their results; a run is one span, and so is each turn of the model.
	h.until("the calls", func() bool {
		got = h.tryQuery("SELECT format, count() FROM tool_calls WHERE status IN ('ok', 'error') GROUP BY format ORDER BY format")
		return cmp.Equal([]string{"anthropic-sse\t2", "openai-chat\t2", "openai-responses\t1"}, got)
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	// The transport facts of each response are a row of its own, which names its model turn.
	if got := h.query(`SELECT count(), uniqExact(chat_span_id), countIf(chat_span_id IN (SELECT SpanId FROM otel_traces WHERE Operation = 'chat')), uniqExact(run_id) FROM v_streams`); !cmp.Equal([]string{"6\t6\t6\t3"}, got) {
		t.Errorf("responses, their spans, those that are there, runs: %q", got)
	}
	for name, want := range map[string]string{"invoke_agent%": "3", "chat%": "6", "execute_tool%": "5"} {
		if got := h.query("SELECT count() FROM otel_traces WHERE SpanName LIKE '" + name + "'"); !cmp.Equal([]string{want}, got) {
			t.Errorf("%s: %q spans, want %s", name, got, want)
		}
	}
}

// providers is a tap in front of all of them.
func providers(tap, upstream string) string {
	return fmt.Sprintf(`  - name: providers
    type: tap
    listen: %q
    upstream: %q
    routes:
      - {path: /v1/messages, format: anthropic-sse}
      - {path: /v1/chat/completions, format: openai-chat}
      - {path: /v1/responses, format: openai-responses}`, tap, upstream)
}
