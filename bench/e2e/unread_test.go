package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// metrics is the page of metrics of the sidecar, which is empty until it is served.
func (h *home) metrics() string {
	addr, err := os.ReadFile(h.path("data/metrics.addr"))
	if err != nil {
		return ""
	}
	resp, err := http.Get("http://" + strings.TrimSpace(string(addr)) + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	h.must(err)
	return string(b)
}

// peek is the answer to a query that no row is flushed for, as the sidecar's own.
func (h *home) peek(sql string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.path("data/store/http.sock"))
	}}}
	r, err := http.NewRequestWithContext(h.Context(), http.MethodGet, "http://store/?query="+url.QueryEscape(sql), nil)
	h.must(err)
	r.Header.Set("X-Earshot-Writer", "1")
	resp, err := client.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	h.must(err)
	return strings.TrimSpace(string(b))
}

// TestRowsWaitUntilRead: rows of the embedded store wait for a reader, and survive kill -9
// meanwhile; those of a file that is gone, and those of a sidecar that is asked to end, do not wait.
func TestRowsWaitUntilRead(t *testing.T) {
	h := newHome(t).configure("sources:", files("legion", "in/*.jsonl"), "store: {flush_unread: 1h}", "log: {level: debug}", `telemetry: {listen: "127.0.0.1:0"}`)
	const count = "SELECT count() FROM earshot.messages"
	n := 0
	line := func(file string) {
		n++
		h.add(file, fmt.Sprintf(`{"type":"user","content":"line %d","timestamp":17638600%02d.5}`+"\n", n, n))
	}
	h.must(os.MkdirAll(h.path("in"), 0o755))
	start := func() *process {
		p := h.startRunning()
		h.until("rows to wait", func() bool { return strings.Contains(p.out.String(), "no reader of the store") })
		return p
	}
	taken := func(lines int) {
		t.Helper()
		h.until("the line", func() bool {
			return strings.Contains(h.metrics(), fmt.Sprintf(`earshot_source_frames_total{source="legion"} %d`, lines))
		})
	}

	p := start()
	line("in/a.jsonl")
	taken(1)
	if got := h.peek(count); got != "0" {
		t.Errorf("%s rows are stored before a read", got)
	}
	h.until("the row", func() bool { return h.query(count)[0] == "1" }) // a slow machine takes longer than a statement waits
	h.must(p.Process.Signal(os.Interrupt))                              // the checkpoint has the line, too
	h.waitExit(p)

	p = start()
	line("in/a.jsonl")
	taken(1)
	if got := h.peek(count); got != "1" {
		t.Errorf("%s rows are stored before a read", got)
	}
	p.kill()

	p = start()
	taken(1) // again
	line("in/gone.jsonl")
	taken(2)
	h.must(os.Remove(h.path("in/gone.jsonl")))
	h.until("the row of a file that is gone", func() bool { return h.peek(count) == "3" })
	line("in/a.jsonl")
	taken(3)
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	for _, table := range []string{"messages", "messages FINAL"} {
		if got := h.query("SELECT count() FROM " + table); got[0] != fmt.Sprint(n) {
			t.Errorf("%s: %s rows of %d", table, got[0], n)
		}
	}
}
