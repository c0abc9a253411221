package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedSpool flips one bit of a spool while the sidecar is down: the next run delivers
// all other batches, logs the loss, leaves a dead letter, and exits with status 1. dlq resolve
// resolves the dead letter, which has no source to read again.
func TestDamagedSpool(t *testing.T) {
	h := newHome(t)
	l, err := net.Listen("tcp", freeAddress(t))
	h.must(err)
	addr := l.Addr().String()
	h.must(l.Close()) // no collector listens
	h.configure("sources:", `  - {name: files, type: file, format: legion, paths: ["DIR/logs/*.jsonl"]}`,
		fmt.Sprintf("exporters: {otlp: {endpoint: %q}}", "http://"+addr), "delivery: {flush_interval: 100ms}")
	h.write("logs/a.jsonl", legionTurn("s", 0))
	p := h.startRunning()
	for n := range 4 { // a batch each
		h.until("the rows", func() bool {
			got := h.tryQuery("SELECT uniqExact(content) FROM messages WHERE kind = 'user'")
			return len(got) == 1 && got[0] == fmt.Sprint(n+1)
		})
		if n < 3 {
			h.add("logs/a.jsonl", legionTurn("s", n+1))
		}
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)

	spools, err := filepath.Glob(h.path("data/spool/otlp/*.spool"))
	h.must(err)
	if len(spools) == 0 {
		t.Fatal("nothing is spooled")
	}
	b, err := os.ReadFile(spools[0])
	h.must(err)
	b[40] ^= 1 // in the first record
	h.must(os.WriteFile(spools[0], b, 0o600))

	l, err = net.Listen("tcp", addr)
	h.must(err)
	taken := 0
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/traces") {
			taken++
		}
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	p = h.start("run", "--until-idle", "500ms")
	<-p.done
	if err := p.err; err == nil || !strings.Contains(p.out.String(), "damaged") {
		t.Errorf("ended with %v:\n%s", err, p.out.String())
	}
	if taken == 0 {
		t.Error("the other batches were not delivered")
	}
	if got := h.query("SELECT count(), any(reason), any(stage) FROM dead_letters"); got[0] != "1\tspool_damaged\texport" {
		t.Errorf("dead letters: %q", got)
	}

	// It cannot be tried again, and doctor reports it until it is resolved.
	if out := h.run("dlq", "retry"); out != "1 tried, 0 resolved\n" {
		t.Errorf("retry: %q", out)
	}
	if found, _ := h.doctor(); !has(found, "fail losses spool of otlp") {
		t.Errorf("doctor: %q", found)
	}
	if out := h.run("dlq", "resolve", h.query("SELECT dl_id FROM dead_letters")[0][:12]); out != "1 resolved\n" {
		t.Errorf("resolve: %q", out)
	}
	if found, _ := h.doctor(); !has(found, "ok losses") {
		t.Errorf("doctor: %q", found)
	}
	if out := h.run("dlq", "list"); out != "no dead letters\n" {
		t.Errorf("list: %q", out)
	}
}

// legionTurn is a question and its answer.
func legionTurn(session string, n int) string {
	at := 1761073198 + 10*n
	return fmt.Sprintf(`{"type":"user","content":"question %d","timestamp":%d.0,"session_id":%q}`+"\n"+
		`{"type":"assistant","content":"answer %d","timestamp":%d.5,"session_id":%q}`+"\n", n, at, session, n, at+1, session)
}
