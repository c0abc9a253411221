package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBackfillGivesTheSameRows reads streams from every transport, with pauses after which open
// messages are flushed: through a tap, by clients, by push, from a file that grows. A backfill,
// which has no pauses, changes no row, and decode, which reads the recording alone, prints the
// same spans.
func TestBackfillGivesTheSameRows(t *testing.T) {
	h := newHome(t)
	agno := h.paced(fixture(t, "agno/testdata/team_nested/frames.jsonl"))
	letta := h.paced(h.serverSide(fixture(t, "letta/testdata/turn/frames.jsonl")))
	grace := h.paced(h.serverSide(fixture(t, "grace/testdata/agent/frames.jsonl")))
	claude := h.paced(fixture(t, "anthropic-sse/testdata/turn/frames.jsonl"))
	chat := h.paced(fixture(t, "openai-chat/testdata/turn/frames.jsonl"))
	lines, err := os.ReadFile(fixture(t, "legion/testdata/delegation_task/in.jsonl"))
	h.must(err)

	agnoTap, agnoURL := h.tap("agno", "http://"+h.replay(agno))
	claudeTap, claudeURL := h.tap("anthropic-sse", "http://"+h.replay(claude))
	chatTap, chatURL := h.tap("openai-chat", "http://"+h.replay(chat))
	socket, push := fixture(t, "llm-message/testdata/turn/in.ws.jsonl"), freeAddress(t)
	h.configure("journal: {keep: 1h}", "delivery: {idle_close: 15s, idle_call: 15s}", "sources:", agnoTap, claudeTap, chatTap, files("legion", "s/*/messages.jsonl"),
		fmt.Sprintf("  - {name: letta, type: sse, format: letta, url: %q}", "http://"+h.replay(letta)+"/v1/runs/r1/stream"),
		fmt.Sprintf("  - {name: manus, type: websocket, format: llm-message, url: %q}", "ws://"+h.serveRecording(socket)),
		fmt.Sprintf("  - {name: push, type: http, format: grace, listen: %q}", push))
	h.write("s/one/messages.jsonl", "")
	p := h.startRunning()
	done := make(chan struct{}, 4)
	ask := func(url, kind, recording string) {
		h.post(url, kind, firstRequest(t, recording))
		done <- struct{}{}
	}
	go ask(agnoURL+"/teams/harbour/runs", "multipart/form-data; boundary=----lantern7d1", agno)
	go ask(claudeURL+"/v1/messages", "application/json", claude)
	go ask(chatURL+"/v1/chat/completions", "application/json", chat)
	go func() {
		defer func() { done <- struct{}{} }()
		r, err := http.Post("http://"+h.replay(grace)+"/", "application/json", nil)
		if err != nil {
			return
		}
		defer r.Body.Close()
		if r, err = http.Post("http://"+push+"/", "text/event-stream", r.Body); err == nil {
			r.Body.Close()
		}
	}()
	for i, line := range slices.Collect(strings.Lines(string(lines))) {
		if i%4 == 3 {
			time.Sleep(2700 * time.Millisecond)
		}
		h.add("s/one/messages.jsonl", line)
	}
	for range 4 {
		<-done
	}
	for format, file := range map[string]string{"letta": letta, "llm-message": socket, "grace": grace, "agno": agno} {
		want := h.decode(format, file)
		h.until(format, func() bool {
			return len(h.tryQuery("SELECT message_id FROM messages FINAL WHERE complete AND format = '"+format+"'")) >= len(want)
		})
	}
	// The agents behind the taps do not come back with the results of their calls.
	h.until("nothing is open", func() bool {
		return slices.Equal(h.tryQuery("SELECT count() FROM v_open_spans"), []string{"0"})
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	once := h.tables()
	delete(once, "dead_letters")
	for _, format := range []string{"agno", "letta"} {
		h.wantSpans(format, map[string]string{"agno": agno, "letta": letta}[format])
	}
	for range 2 {
		h.run("backfill")
		h.wantTables(once)
	}
	if got := h.query("SELECT count(), uniqExact(SpanId) FROM otel_traces"); len(got) != 1 {
		t.Error(got)
	} else if n, unique, _ := strings.Cut(got[0], "\t"); n != unique {
		t.Errorf("%s rows of %s spans", n, unique)
	}
}

// paced is a recording with pauses, so that it can be played at its own pace.
func (h *home) paced(file string) string {
	h.Helper()
	data, err := os.ReadFile(file)
	h.must(err)
	var out strings.Builder
	all := slices.DeleteFunc(strings.Split(string(data), "\n"), func(l string) bool { return !strings.HasPrefix(l, "{") })
	at := time.Date(2026, 4, 2, 9, 0, 0, 0, time.UTC)
	for i, line := range all {
		var f map[string]json.RawMessage
		h.must(json.Unmarshal([]byte(line), &f))
		at = at.Add(5 * time.Millisecond)
		if i == len(all)/3 || i == len(all)*2/3 {
			at = at.Add(2700 * time.Millisecond)
		}
		f["at"], err = json.Marshal(at)
		h.must(err)
		b, err := json.Marshal(f)
		h.must(err)
		out.Write(append(b, '\n'))
	}
	name := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(file)))) + fmt.Sprint(len(data)) + ".paced.frames.jsonl"
	h.write(name, out.String())
	return h.path(name)
}

// wantSpans compares the spans of a format with those that decode prints.
func (h *home) wantSpans(format, file string) {
	h.Helper()
	var want []string
	s := bufio.NewScanner(strings.NewReader(string(h.command("decode", "--spans", "--format", format, file))))
	for s.Buffer(nil, 1<<20); s.Scan(); {
		var span struct {
			Span  string    `json:"span_id"`
			Start time.Time `json:"start"`
			End   time.Time `json:"end"`
		}
		h.must(json.Unmarshal(s.Bytes(), &span))
		want = append(want, fmt.Sprintf("%s\t%d\t%d", span.Span, span.Start.UnixNano(), span.End.Sub(span.Start)))
	}
	slices.Sort(want)
	got := h.query("SELECT SpanId, toUnixTimestamp64Nano(Timestamp), Duration FROM otel_traces FINAL WHERE Format = '" + format + "' ORDER BY ALL")
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("spans of %s (-decode +table):\n%s", format, diff)
	}
}
