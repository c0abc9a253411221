package e2e

import (
	"bytes"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/freeport"
)

// TestEveryFormatLive sends every format over its own transport, over real sockets through the
// journal and a decoder process, and compares the table with the output of decode for the same
// recording.
func TestEveryFormatLive(t *testing.T) {
	h := newHome(t)
	agno := fixture(t, "agno/testdata/team_nested/frames.jsonl")
	reload := fixture(t, "agno/testdata/team_parallel/reload.json")
	letta := h.serverSide(fixture(t, "letta/testdata/turn/frames.jsonl"))
	grace := h.serverSide(fixture(t, "grace/testdata/agent/frames.jsonl"))
	socket := fixture(t, "llm-message/testdata/turn/in.ws.jsonl")

	upstream, tap, push := h.serveRecording(agno), freeAddress(t), freeAddress(t)
	h.configure("sources:",
		fmt.Sprintf("  - {name: agno, type: tap, format: agno, listen: %q, upstream: %q}", tap, "http://"+upstream),
		fmt.Sprintf("  - {name: stored, type: poll, format: agno, url: %q, tenant: reload}", "http://"+h.serveRecording(reload)+"/sessions/s1/runs"),
		fmt.Sprintf("  - {name: letta, type: sse, format: letta, url: %q}", "http://"+h.serveRecording(letta)+"/v1/runs/r1/stream"),
		fmt.Sprintf("  - {name: manus, type: websocket, format: llm-message, url: %q}", "ws://"+h.serveRecording(socket)),
		fmt.Sprintf("  - {name: push, type: http, format: grace, listen: %q}", push))
	p := h.startRunning()

	// The tap's client receives the agent server's response, byte for byte.
	request := firstRequest(t, agno)
	straight := h.post("http://"+upstream+"/teams/harbour/runs", "multipart/form-data; boundary=----lantern7d1", request)
	if tapped := h.post("http://"+tap+"/teams/harbour/runs", "multipart/form-data; boundary=----lantern7d1", request); !bytes.Equal(tapped, straight) {
		t.Errorf("the tap passes %d bytes on, the server sends %d", len(tapped), len(straight))
	}
	// The pushed body is an event stream like a client's.
	h.post("http://"+push+"/", "text/event-stream", h.post("http://"+h.serveRecording(grace)+"/", "application/json", nil))

	for _, c := range []struct{ format, tenant, file string }{
		{"agno", "default", agno}, {"agno", "reload", reload}, {"letta", "default", letta}, {"grace", "default", grace}, {"llm-message", "default", socket},
	} {
		want := h.decode(c.format, c.file)
		sql := fmt.Sprintf("SELECT kind, role, agent_name, tool_name, delegate_to, hex(MD5(content)) FROM messages WHERE format = '%s' AND tenant = '%s' AND complete ORDER BY ALL", c.format, c.tenant)
		var got []string
		h.until(c.format+" in the table", func() bool { got = h.tryQuery(sql); return len(got) >= len(want) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of %s (-decode +table):\n%s", c.format, c.tenant, tail(diff))
		}
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	if got := h.query("SELECT count() FROM otel_traces WHERE ParentSpanId != '' AND SpanName LIKE 'invoke_agent%'"); len(got) != 1 || got[0] == "0" {
		t.Errorf("no agent was invoked by another: %q", got)
	}
}

// fixture is a decoder's recording.
func fixture(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../plugins", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var fromClient = regexp.MustCompile(`"from_client":\s*true`)

// serverSide is a recording without the client's messages.
func (h *home) serverSide(file string) string {
	h.Helper()
	data, err := os.ReadFile(file)
	h.must(err)
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		if !fromClient.MatchString(line) {
			out.WriteString(line)
		}
	}
	name := strings.ReplaceAll(file, "/", "_")
	h.write(name+".frames.jsonl", out.String())
	return h.path(name + ".frames.jsonl")
}

// firstRequest is the body of a recording's first request.
func firstRequest(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var f struct{ Kind, Data string }
		if json.Unmarshal([]byte(line), &f) == nil && f.Kind == "request" {
			return []byte(f.Data)
		}
	}
	t.Fatal("no request in ", file)
	return nil
}

// serveRecording serves a recording without pauses, and returns its address.
func (h *home) serveRecording(file string) string { return h.replay(file, "--speed", "0") }

// replay serves a recording at its own pace.
func (h *home) replay(file string, flags ...string) string {
	h.Helper()
	p := &process{Cmd: exec.Command(filepath.Join(bin, "earshot"), append([]string{"replay", file, "--serve", "127.0.0.1:0"}, flags...)...), done: make(chan struct{})}
	p.Stdout, p.Stderr = &p.out, &p.out
	h.must(p.Start())
	go func() { p.err = p.Wait(); close(p.done) }()
	h.Cleanup(func() { _ = p.Process.Kill(); <-p.done })
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	var at string
	h.until("the server of "+file, func() bool { at = address.FindString(p.out.String()); return at != "" })
	return at
}

func (h *home) post(url, kind string, body []byte) []byte {
	h.Helper()
	r, err := http.Post(url, kind, bytes.NewReader(body))
	h.must(err)
	defer r.Body.Close()
	out, err := io.ReadAll(r.Body)
	h.must(err)
	if r.StatusCode/100 != 2 {
		h.Fatalf("POST %s: %s: %s", url, r.Status, out)
	}
	return out
}

// decode returns the messages of a recording, sorted and without their ids, which depend on the
// tenant and, in a format without sessions, on the origin.
func (h *home) decode(format, file string) []string {
	h.Helper()
	out, err := exec.CommandContext(h.Context(), filepath.Join(bin, "earshot"), "decode", "--format", format, file).Output()
	h.must(err)
	var rows []string
	for line := range strings.Lines(string(out)) {
		var m struct {
			Kind     string `json:"kind"`
			Role     string `json:"role"`
			Agent    string `json:"agent_name"`
			Tool     string `json:"tool_name"`
			To       string `json:"delegate_to"`
			Content  string `json:"content"`
			Complete bool   `json:"complete"`
		}
		h.must(json.Unmarshal([]byte(line), &m))
		if m.Complete {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%X", m.Kind, m.Role, m.Agent, m.Tool, m.To, md5.Sum([]byte(m.Content))))
		}
	}
	slices.Sort(rows)
	return rows
}

func freeAddress(t *testing.T) string {
	t.Helper()
	addr, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestTapPassesBeforeTheStoreAnswers: an agent's requests pass while the store hangs that the sidecar
// connects to as it starts. An agent would be refused otherwise, for as long as the store takes.
func TestTapPassesBeforeTheStoreAnswers(t *testing.T) {
	h := newHome(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "high water at noon") }))
	defer server.Close()
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	h.must(err)
	defer hung.Close()
	dialed := make(chan net.Conn, 64)
	go func() {
		for {
			c, err := hung.Accept()
			if err != nil {
				return
			}
			dialed <- c // and is not answered
		}
	}()
	tap := freeAddress(t)
	h.configure("sources:", fmt.Sprintf("  - {name: agent, type: tap, format: agno, listen: %q, upstream: %q}", tap, server.URL),
		fmt.Sprintf("exporters: {clickhouse: {dsn: \"http://default@%s/earshot\"}}", hung.Addr()))
	p := h.start("run")
	<-dialed
	var got string
	h.until("the tap", func() bool {
		resp, err := http.Get("http://" + tap + "/teams")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		got = string(b)
		return err == nil
	})
	if got != "high water at noon" {
		t.Errorf("%q", got)
	}
	if strings.Contains(p.out.String(), "not ready yet") {
		t.Errorf("the tap listened only when the sidecar had given up the store:\n%s", &p.out)
	}
}
