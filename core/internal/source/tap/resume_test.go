package tap

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// resumes describes how runs of the format are resumed.
func resumes(description string) func(*Settings) {
	return func(s *Settings) {
		s.Formats = map[string]source.Format{s.Format: {Resume: []byte(description)}}
	}
}

// TestResumedRunIsRecordedWhole: a run in the background is taken up again by a second
// request, by a third from its beginning, and while the first response goes on. Each
// recording has the run from its first request on.
func TestResumedRunIsRecordedWhole(t *testing.T) {
	event := func(run string, seq int) string {
		return fmt.Sprintf("data: {\"run_id\":%q,\"seq_id\":%d}\n\n", run, seq)
	}
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		switch r.URL.Path + "?" + r.URL.RawQuery {
		case "/v1/agents/a/messages/stream?":
			_, _ = io.WriteString(w, event("run-1", 1)+event("run-1", 2))
		case "/v1/runs/run-1/stream?starting_after=2":
			_, _ = io.WriteString(w, event("run-1", 3)+"data: {\"done\":true}\n\n")
		case "/v1/runs/run-1/stream?":
			_, _ = io.WriteString(w, event("run-1", 1))
		default:
			_, _ = io.WriteString(w, event("run-2", 9))
		}
	}), resumes(`{"run":"run_id","number":"seq_id","path":"/v1/runs/{{run}}/stream"}`))
	f.do(f.request("POST", "/v1/agents/a/messages/stream", strings.NewReader(`{"background":true}`)))
	f.closed(1)
	f.do(f.request("GET", "/v1/runs/run-1/stream?starting_after=2", nil))
	f.closed(2)
	f.do(f.request("GET", "/v1/runs/run-1/stream", nil))
	f.closed(3)
	f.do(f.request("GET", "/v1/runs/run-2/stream?starting_after=8", nil)) // a run that is not recorded before
	const (
		began  = "request< POST /v1/agents/a/messages/stream {\"background\":true}\n"
		first  = "event {\"run_id\":\"run-1\",\"seq_id\":1}\n"
		second = "event {\"run_id\":\"run-1\",\"seq_id\":2}\n"
		third  = "event {\"run_id\":\"run-1\",\"seq_id\":3}\nevent {\"done\":true}\n"
	)
	for i, want := range []string{
		began + first + second,
		began + first + second + third,
		began + first + second + third + first,
		"event {\"run_id\":\"run-2\",\"seq_id\":9}\n",
	} {
		recordtest.Equal(t, fmt.Sprintf("recording %d", i), show(f.closed(4)[i].Frames), want+"close \n")
	}
}

// TestResumedAgentRunIsRecordedWhole: so is a run of AgentOS, which numbers the events of
// the runs below it too and begins a resumed response with an event without a number.
func TestResumedAgentRunIsRecordedWhole(t *testing.T) {
	event := func(run string, index int) string {
		return fmt.Sprintf("event: RunContent\ndata: {\"run_id\":%q,\"event_index\":%d}\n\n", run, index)
	}
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Path == "/teams/mill/runs" {
			_, _ = io.WriteString(w, event("top", 0)+event("member", 1))
			return
		}
		_, _ = io.WriteString(w, "event: catch_up\ndata: {\"event\":\"catch_up\",\"run_id\":\"top\"}\n\n"+event("member", 2)+event("top", 3))
	}), resumes(`{"run":"run_id","number":"event_index","path":"/runs/{{run}}/resume"}`))
	f.do(f.request("POST", "/teams/mill/runs", strings.NewReader("message=hi&background=true")))
	f.closed(1)
	f.do(f.request("POST", "/teams/mill/runs/top/resume", strings.NewReader("last_event_index=1")))
	const began = "request< POST /teams/mill/runs message=hi&background=true\n" +
		"event RunContent {\"run_id\":\"top\",\"event_index\":0}\nevent RunContent {\"run_id\":\"member\",\"event_index\":1}\n"
	recordtest.Equal(t, "the resumed run", show(f.closed(2)[1].Frames), began+"request< POST /teams/mill/runs/top/resume last_event_index=1\n"+
		"event catch_up {\"event\":\"catch_up\",\"run_id\":\"top\"}\nevent RunContent {\"run_id\":\"member\",\"event_index\":2}\nevent RunContent {\"run_id\":\"top\",\"event_index\":3}\nclose \n")
}

// TestHistoriesAreBounded: the histories of runs stay within their limits, and a run that was
// evicted is not added again from its middle on.
func TestHistoriesAreBounded(t *testing.T) {
	var l histories
	long := &history{run: "long"}
	big := eventOf(strings.Repeat("x", maxHistory/4))
	for range 8 {
		l.add(long, &big)
	}
	if got := l.framesOf("long"); got != nil {
		t.Errorf("%d frames of a run that is too long", len(got))
	}
	for i := range 4 * maxRuns {
		h := &history{run: fmt.Sprint("run-", i)}
		for range 3 {
			l.add(h, &big)
		}
	}
	size := 0
	for _, h := range l.runs {
		size += h.size
	}
	if len(l.runs) > maxRuns || size > maxHistories || size != l.size {
		t.Errorf("%d runs of %d bytes, counted as %d", len(l.runs), size, l.size)
	}
	if got := l.framesOf(fmt.Sprint("run-", 4*maxRuns-1)); len(got) != 3 {
		t.Errorf("%d frames of the last run", len(got))
	}
}

func eventOf(data string) frame.Frame { return frame.Frame{Kind: frame.Event, Data: []byte(data)} }
