package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// agent serves h, in place of an agent server, until the end of the test.
func (h *home) agent(handler http.HandlerFunc) (url string) {
	s := httptest.NewServer(handler)
	h.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// tap is a source in front of that agent server, and its address.
func (h *home) tap(format, upstream string) (line, url string) {
	at := freeAddress(h.T)
	return fmt.Sprintf("  - {name: %s, type: tap, format: %s, listen: %q, upstream: %q}", format, format, at, upstream), "http://" + at
}

// startRunning starts the sidecar and waits until it runs.
func (h *home) startRunning() *process {
	h.Helper()
	p := h.start("run")
	h.waitRunning(p, 20*time.Millisecond)
	return p
}

// waitRunning waits until the sidecar logs that it runs.
func (h *home) waitRunning(p *process, every time.Duration) {
	h.Helper()
	for end := time.After(3 * time.Minute); !strings.Contains(p.out.String(), "msg=running"); {
		select {
		case <-time.After(every):
		case <-p.done:
			h.Fatalf("it ended: %v\n%s", p.err, tail(p.out.String()))
		case <-end:
			_ = p.Process.Signal(syscall.SIGQUIT)
			<-p.done
			h.Fatalf("it does not run:\n%s", &p.out)
		}
	}
}

// TestWhoAskedAndHowItCame follows the transport facts of a response: they are a row, and
// attributes on the span of the run that its request began, which has a link to the client's
// span. A backfill of the journal restores the row.
func TestWhoAskedAndHowItCame(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	h := newHome(t)
	agno := fixture(t, "agno/testdata/team_nested/frames.jsonl")
	line, tap := h.tap("agno", "http://"+h.serveRecording(agno))
	h.configure("sources:", line, "journal: {keep: 1h}")
	p := h.startRunning()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tap+"/teams/harbour/runs", bytes.NewReader(firstRequest(t, agno)))
	h.must(err)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=----lantern7d1")
	r.Header.Set("Traceparent", "00-"+trace+"-"+span+"-01")
	r.Header.Set("Tracestate", "k=v")
	res, err := http.DefaultClient.Do(r)
	h.must(err)
	_, err = io.Copy(io.Discard, res.Body)
	h.must(err)
	h.must(res.Body.Close())
	var got []string
	h.until("the row", func() bool {
		got = h.tryQuery("SELECT s.remote_trace_id, s.remote_span_id, s.method, s.status, s.events > 10, s.duration_ms >= s.first_event_ms, t.agents FROM v_streams AS s " +
			"JOIN (SELECT session_id, run_id, uniqExact(agent_name) > 0 AS agents FROM v_messages GROUP BY ALL) AS t USING (session_id, run_id)")
		return len(got) > 0
	})
	if want := []string{trace + "\t" + span + "\tPOST\t200\t1\ttrue\t1"}; strings.ReplaceAll(fmt.Sprint(got), "true", "1") != strings.ReplaceAll(fmt.Sprint(want), "true", "1") {
		t.Errorf("row %q, want %q", got, want)
	}
	spans := "SELECT ParentSpanId = '', has(Links.TraceId, '" + trace + "'), has(Links.SpanId, '" + span + "'), has(Links.TraceState, 'k=v'), SpanAttributes['earshot.response.events'] != '' " +
		"FROM otel_traces FINAL WHERE has(Links.TraceId, '" + trace + "') OR SpanAttributes['earshot.response.events'] != ''"
	h.until("the span", func() bool { got = h.tryQuery(spans); return len(got) > 0 && strings.HasSuffix(got[0], "1") })
	if want := []string{"1\t1\t1\t1\t1"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("spans %q, want %q", got, want)
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	// The journal restores the row.
	rows := "SELECT * FROM v_streams ORDER BY ALL"
	before := h.query(rows)
	h.admin("TRUNCATE TABLE earshot.streams")
	h.run("backfill")
	if diff := cmp.Diff(before, h.query(rows)); diff != "" || len(before) == 0 {
		t.Errorf("%d rows, after backfill (-before +after):\n%s", len(before), diff)
	}
}

// TestLostExchange kills an agent server and then the sidecar before a response: the request is
// in the table.
func TestLostExchange(t *testing.T) {
	h := newHome(t)
	began := make(chan struct{}, 2)
	line, tap := h.tap("letta", h.agent(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hello\n\n")
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		if bytes.Contains(body, []byte("first")) {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}))
	h.configure("sources:", line, "journal: {fsync_interval: 1ms}")
	p := h.startRunning()
	asked := func(text string) {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"text","text":%q}]}]}`, text)
		res, err := http.Post(tap+"/v1/agents/agent-1/messages/stream", "application/json", strings.NewReader(body))
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	rows := func() []string {
		return h.tryQuery("SELECT kind, content, count() FROM v_messages WHERE kind = 'user' GROUP BY ALL ORDER BY ALL")
	}
	asked("the first prompt")
	<-began
	var got []string
	h.until("the first prompt", func() bool { got = rows(); return len(got) > 0 })
	var wg sync.WaitGroup
	wg.Go(func() { asked("the second prompt") })
	<-began
	h.until("the second prompt in the journal", func() bool { return bytes.Contains(h.journal(), []byte("the second prompt")) })
	p.kill()
	wg.Wait()
	h.drain()
	if diff := cmp.Diff([]string{"user\tthe first prompt\t1", "user\tthe second prompt\t1"}, rows()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// journal is the content of the journal.
func (h *home) journal() []byte {
	names, err := filepath.Glob(h.path("data/journal/*.seg"))
	h.must(err)
	var all []byte
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err == nil { // it may be gone already
			all = append(all, data...)
		}
	}
	return all
}

// TestRecordLive records the traffic of a tap; the recording decodes to the same messages.
func TestRecordLive(t *testing.T) {
	h := newHome(t)
	agno := fixture(t, "agno/testdata/team_nested/frames.jsonl")
	line, tap := h.tap("agno", "http://"+h.serveRecording(agno))
	h.configure("sources:", line)
	p := h.start("record", "--source", "agno", "--until-idle", "300ms", "-o", h.path("recorded.frames.jsonl"))
	request := firstRequest(t, agno)
	h.until("the tap", func() bool {
		res, err := http.Post(tap+"/teams/harbour/runs", "multipart/form-data; boundary=----lantern7d1", bytes.NewReader(request))
		if err != nil {
			return false
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err == nil
	})
	h.waitExit(p)
	if diff := cmp.Diff(h.decode("agno", agno), h.decode("agno", h.path("recorded.frames.jsonl"))); diff != "" {
		t.Errorf("(-traffic +recording):\n%s", tail(diff))
	}
}

// TestKilledWhileStreaming kills the sidecar over and over while agents stream through a tap:
// each request that the journal had accepted is in the table once, no other is, and the ledger
// balances.
func TestKilledWhileStreaming(t *testing.T) {
	h := newHome(t)
	h.notesRevision(1)
	var sent sync.Map // note by its text
	line, tap := h.tap("notes", h.agent(func(w http.ResponseWriter, r *http.Request) {
		stream := r.URL.Query().Get("stream")
		w.Header().Set("Content-Type", "text/event-stream")
		for n := 0; r.Context().Err() == nil; n++ {
			text := fmt.Sprintf("note %s/%d end", stream, n)
			sent.Store(text, true)
			if _, err := fmt.Fprintf(w, "data: {\"n\":%d,\"s\":\"s%s\",\"text\":%q}\n\n", n, stream, text); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			time.Sleep(time.Millisecond) // the pace of a model
		}
	}))
	h.configure(h.notesDecoder(), "sources:", line, "journal: {segment_size: 1MiB}")
	accepted := make(map[string]bool)
	note := regexp.MustCompile(`note \d+/\d+ end`)
	see := func() {
		for _, text := range note.FindAll(h.journal(), -1) {
			accepted[string(text)] = true
		}
	}
	rng := rand.New(rand.NewPCG(11, 0))
	for round := range 4 {
		p := h.startRunning()
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for i := range 16 {
			clients.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/x?stream=%d%02d", tap, round, i), nil)
				if err != nil {
					panic(err)
				}
				if res, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			})
		}
		before := len(accepted)
		h.until("something in the journal", func() bool { see(); return len(accepted) > before+100 })
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond) // some is decoded, stored, committed
		p.kill()
		cancel()
		clients.Wait()
		see()
	}
	h.drain()
	var got []string
	for _, row := range h.query("SELECT content, count() FROM messages GROUP BY content ORDER BY content") {
		text, count, _ := strings.Cut(row, "\t")
		if _, ok := sent.Load(text); !ok || count != "1" {
			t.Errorf("%q is there %s times", text, count)
		}
		got = append(got, text)
	}
	lost := 0
	for text := range accepted {
		if _, found := slices.BinarySearch(got, text); !found {
			if lost++; lost <= 3 {
				t.Errorf("%q was accepted by the journal and is not in the table", text)
			}
		}
	}
	t.Logf("%d accepted, %d lost, %d in the table", len(accepted), lost, len(got))
	if extra := len(got) - len(accepted) + lost; extra > 0 {
		t.Errorf("%d are in the table that the journal never had", extra)
	}
	if found, well := h.doctor(); !well || !has(found, "ok books notes") {
		t.Errorf("%q", found)
	}
}
