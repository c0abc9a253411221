package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// responsesServer is a server of the Responses API whose clients name the response before theirs and nothing else, and
// ask for the response that runs in the background until it is there. To "wait" it never answers, at "break" it closes the connection.
func responsesServer(t *testing.T) http.HandlerFunc {
	var looked, made atomic.Int64
	response := func(w http.ResponseWriter, id, status, output string) {
		w.Header().Set("Content-Type", "application/json")
		usage, times := "null", ""
		if output != "" {
			usage = `{"input_tokens":10,"output_tokens":3,"total_tokens":13}`
		}
		if id == "resp_bg" {
			times = fmt.Sprintf(`"created_at":%d,`, made.Load())
			if output != "" {
				times += fmt.Sprintf(`"completed_at":%d,`, made.Load()+1)
			}
		}
		fmt.Fprintf(w, `{"id":%q,"object":"response",%s"status":%q,"model":"gpt-5","output":[%s],"usage":%s}`, id, times, status, output, usage)
	}
	text := func(id, said string) string {
		return fmt.Sprintf(`{"id":"msg_%s","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q}]}`, id, said)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var q struct {
			Before     string `json:"previous_response_id"`
			Background bool
			Input      json.RawMessage
		}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &q); err != nil {
				t.Error(err)
			}
		}
		switch prompt := string(q.Input); {
		case r.Method == http.MethodGet && looked.Add(1) == 1:
			response(w, "resp_bg", "in_progress", "")
		case r.Method == http.MethodGet:
			response(w, "resp_bg", "completed", text("bg", "It is charted."))
		case q.Background:
			made.Store(time.Now().Unix())
			response(w, "resp_bg", "queued", "")
		case strings.Contains(prompt, "wait"):
			<-r.Context().Done()
		case strings.Contains(prompt, "break"):
			panic(http.ErrAbortHandler)
		case q.Before == "":
			response(w, "resp_1", "completed", `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"sound","arguments":"{}"}`)
		case q.Before == "resp_1":
			response(w, "resp_2", "completed", text("2", "Four metres."))
		default:
			response(w, "resp_3", "completed", text("3", "Nine metres."))
		}
	}
}

// TestResponsesByTheirIDs has an agent that goes on from responses by their ids alone, has one made in the background and asks for it three times, waits
// for an answer that never comes and is cut off. A chain is one conversation, a response counts once and its run ends, what
// has no answer is open while its client waits and failed after that; and all is the same when it is decoded again.
func TestResponsesByTheirIDs(t *testing.T) {
	h := newHome(t)
	line, tap := h.tap("openai-responses", h.agent(responsesServer(t)))
	h.configure("sources:", line, "journal: {keep: 1h}")
	p := h.startRunning()
	ask := func(body string) { h.post(tap+"/v1/responses", "application/json", []byte(body)) }
	ask(`{"model":"gpt-5","input":"how deep?"}`)
	ask(`{"model":"gpt-5","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_1","output":"4 m"}]}`)
	ask(`{"model":"gpt-5","previous_response_id":"resp_2","input":"and there?"}`)
	ask(`{"model":"gpt-5","background":true,"input":"chart the bay"}`)
	const openRun = "SELECT count() FROM spans FINAL WHERE kind = 'run' AND state = 'open' AND run_id = (SELECT any(run_id) FROM messages WHERE content = "
	waiting := func(sql string) func() bool {
		return func() bool { return cmp.Equal([]string{"1"}, h.tryQuery(sql)) }
	}
	h.until("the run waits for what is in the background", waiting(openRun+"'chart the bay')"))
	time.Sleep(3 * time.Second) // it ends a second after it was made, and nobody asks for it
	for range 3 {
		res, err := http.Get(tap + "/v1/responses/resp_bg") //nolint:noctx // the test's own server
		h.must(err)
		_, err = io.Copy(io.Discard, res.Body)
		h.must(err)
		h.must(res.Body.Close())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, tap+"/v1/responses", strings.NewReader(`{"model":"gpt-5","input":"wait"}`))
		if err != nil {
			t.Error(err)
			return
		}
		if res, err := http.DefaultClient.Do(r); err == nil {
			t.Error("there was an answer")
			_ = res.Body.Close()
		}
	}()
	h.until("the request without an answer is open", waiting(openRun+"'wait')"))
	cancel()
	<-gone
	res, err := http.Post(tap+"/v1/responses", "application/json", strings.NewReader(`{"model":"gpt-5","input":"break"}`)) //nolint:noctx // the test's own server
	h.must(err)
	h.must(res.Body.Close())

	sql := `SELECT groupArray(content), uniqExact(session_id), uniqExact(run_id), sum(output_tokens) FROM
		(SELECT * FROM messages FINAL WHERE kind IN ('user', 'assistant', 'tool_result', 'usage') ORDER BY ts, seq)
		WHERE session_id IN (SELECT session_id FROM messages WHERE content = {prompt})`
	asked := func(prompt string) []string { return h.tryQuery(strings.ReplaceAll(sql, "{prompt}", "'"+prompt+"'")) }
	for prompt, want := range map[string]string{
		"how deep?":     "['how deep?','','4 m','Four metres.','','and there?','Nine metres.','']\t1\t2\t9",
		"chart the bay": "['chart the bay','It is charted.','']\t1\t1\t3",
	} {
		h.until(prompt, func() bool { return cmp.Equal([]string{want}, asked(prompt)) })
	}
	runs := `SELECT m.content, s.state, s.outcome, s.error_type FROM spans AS s FINAL
		INNER JOIN (SELECT run_id, content FROM messages FINAL WHERE kind = 'user') AS m ON m.run_id = s.run_id WHERE s.kind = 'run' ORDER BY 1`
	want := []string{"and there?\tclosed\tok\t", "break\topen\terror\tno_response", "chart the bay\tclosed\tok\t", "how deep?\tclosed\tok\t", "wait\tidle\terror\tclient_closed"} // who breaks off may try again
	var got []string
	defer func() { t.Log(got) }()
	h.until("how the runs ended", func() bool { got = h.tryQuery(runs); return cmp.Equal(want, got) })
	h.until("the response in the background ended before it was asked for", func() bool {
		return cmp.Equal([]string{"chat\t1", "run\t1"}, h.tryQuery("SELECT kind, duration_ns < 2e9 FROM spans FINAL WHERE run_id = (SELECT any(run_id) FROM messages WHERE content = 'chart the bay') ORDER BY 1"))
	})
	h.until("the call of the chain", func() bool {
		return cmp.Equal([]string{"1\tok"}, h.tryQuery("SELECT count(), any(status) FROM v_tool_calls"))
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	const rows = "SELECT * EXCEPT (ver, ingest_ts) FROM messages FINAL ORDER BY ALL"
	before := h.query(rows)
	h.stopStore()
	h.run("backfill")
	if diff := cmp.Diff(before, h.query(rows)); diff != "" {
		t.Errorf("decoded again (-before +after):\n%s", diff)
	}
}
