package e2e

import (
	"crypto/md5"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// legionLine is a line of Legion with a text.
func legionLine(n int, text string) string {
	return fmt.Sprintf(`{"type":"assistant","timestamp":"2026-11-02T10:%02d:%02d.000Z","session_id":"s1","content":%q,"has_tool_calls":false,"has_tool_results":false,"metadata":{"uuid":"a%d"}}`, n/60%60, n%60, text, n)
}

// TestBadInput mixes lines that no decoder can read with good ones: the good ones are messages,
// the bad ones dead letters with their bytes and positions.
func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", 100<<20)
	h := newHome(t).configure("sources:", "  - {name: legion, type: file, format: legion, paths: [\"DIR/s/*.jsonl\", \"DIR/named\"]}")
	bad := []struct{ line, reason string }{
		{`{"type":"assistant","content":"torn`, "invalid_json"},
		{"{\"type\":\x00}", "invalid_json"},
		{"{\"type\":\"assistant\",\"content\":\"\xff\xfe\"}", "invalid_utf8"},
		{`["not","an","object"]`, "wrong_type"},
		{`{"type":"assistant","content":"` + long + `"}`, "too_long"},
	}
	var file strings.Builder
	var want []string
	for i, b := range bad {
		file.WriteString(legionLine(i, fmt.Sprint("good ", i)) + "\n")
		want = append(want, fmt.Sprintf("%s\t%d\t%d", b.reason, file.Len(), len(b.line)))
		file.WriteString(b.line + "\n")
	}
	file.WriteString(legionLine(59, "the last") + "\n")
	h.write("s/messages.jsonl", file.String())
	h.must(os.Mkdir(h.path("named"), 0o755))
	h.drain()

	if diff := cmp.Diff([]string{"good 0", "good 1", "good 2", "good 3", "good 4", "the last"},
		h.query("SELECT content FROM messages WHERE kind = 'assistant' ORDER BY ts")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, h.query("SELECT reason, origin_offset, payload_bytes FROM dead_letters WHERE origin LIKE '%.jsonl' ORDER BY origin_offset")); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	if got := h.query("SELECT hex(payload) FROM dead_letters WHERE payload_bytes = 10"); len(got) != 1 || got[0] != fmt.Sprintf("%X", bad[1].line) {
		t.Errorf("the payload with a NUL is %q", got)
	}
	if got := h.query("SELECT reason FROM dead_letters WHERE origin LIKE '%/named'"); len(got) != 1 || got[0] != "is_directory" {
		t.Errorf("a directory that was named as a file: %q", got)
	}
	if got := h.query("SELECT sum(read_bytes) - sum(decoded_bytes + quarantined_bytes + dropped_bytes), sum(read_bytes), sum(unaccounted_bytes) FROM source_ledger WHERE origin LIKE '%.jsonl'"); got[0] != fmt.Sprintf("0\t%d\t0", file.Len()) {
		t.Errorf("ledger %q", got)
	}
}

// TestReplacedWhileRead replaces a file by another, by rename and by truncation,
// while a sidecar reads it.
func TestReplacedWhileRead(t *testing.T) {
	h := newHome(t).configure("sources:", files("legion", "s/*.jsonl"))
	var lines []string
	for i := range 3000 {
		lines = append(lines, legionLine(i, fmt.Sprintf("line %d %s", i, strings.Repeat("y", i%700))))
	}
	h.write("s/m.jsonl", strings.Join(lines[:1000], "\n")+"\n")
	p := h.start("run", "--until-idle", "3s")
	h.write("s/next", strings.Join(lines[1000:2000], "\n")+"\n")
	h.must(os.Rename(h.path("s/m.jsonl"), h.path("s/m.jsonl.1")))
	h.must(os.Rename(h.path("s/next"), h.path("s/m.jsonl")))
	h.waitRunning(p, 20*time.Millisecond)
	h.add("s/m.jsonl", strings.Join(lines[2000:], "\n")+"\n")
	h.waitExit(p)
	// The first file was renamed out of the glob. Whether it was open by then is a race; an
	// open file is read to its end.
	got := h.query("SELECT countIf(n >= 1000), countIf(n < 1000) IN (0, 1000), count() - uniqExact(n) FROM (SELECT toUInt32(extract(content, '^line (\\\\d+)')) AS n FROM messages WHERE kind = 'assistant')")
	if diff := cmp.Diff([]string{"2000\t1\t0"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestStoreThatIsNotThere starts a sidecar whose ClickHouse starts later, stops in the middle
// and starts again: every row arrives.
func TestStoreThatIsNotThere(t *testing.T) {
	addr := freeAddress(t)
	// A second home has the server: its store, at an address known beforehand.
	server := newHome(t).configure("store: {listen: \""+addr+"\", writer_token: w}", "sources:", files("legion", "none/*.jsonl"))
	h := newHome(t).configure("exporters: {clickhouse: {dsn: \"http://default:w@"+addr+"/earshot\", compression: none}}",
		"delivery: {retry_min: 50ms, retry_max: 200ms}", "sources:", files("legion", "s/*.jsonl"))
	h.write("s/m.jsonl", legionLine(1, "before")+"\n")

	stored := func(sql string) bool { rows, _ := h.queryCommand(sql); return len(rows) == 1 }
	p := h.start("run")
	h.until("the log of the missing store", func() bool { return strings.Contains(p.out.String(), "exporter is not ready yet") })
	first := server.start("store")
	h.until("the first line", func() bool {
		return stored("SELECT content FROM earshot.messages WHERE content = 'before'")
	})
	first.kill()
	h.add("s/m.jsonl", legionLine(2, "while it is down")+"\n")
	h.until("the sidecar to notice", func() bool { return strings.Contains(p.out.String(), "not delivered") })
	defer server.store()()
	h.until("the second line", func() bool {
		return stored("SELECT content FROM earshot.messages WHERE content = 'while it is down'")
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	got, err := h.queryCommand("SELECT content FROM messages WHERE kind = 'assistant' ORDER BY ts")
	h.must(err)
	if diff := cmp.Diff([]string{"before", "while it is down"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLargeFrames has lines of 20 and of 60 MiB pass through a decoder process, whose
// library would refuse more than 4 MiB, into the store: every byte of them is there.
func TestLargeFrames(t *testing.T) {
	h := newHome(t).configure("sources:", files("legion", "s/*.jsonl"))
	large, larger := strings.Repeat("fog ", 5<<20), strings.Repeat("surf", 15<<20)
	h.write("s/m.jsonl", legionLine(1, large)+"\n"+legionLine(2, larger)+"\n"+legionLine(3, "small")+"\n")
	h.drain()
	want := []string{
		fmt.Sprintf("%d\t%x", len(large), md5.Sum([]byte(large))), fmt.Sprintf("%d\t%x", len(larger), md5.Sum([]byte(larger))),
		fmt.Sprintf("5\t%x", md5.Sum([]byte("small"))),
	}
	if diff := cmp.Diff(want, h.query("SELECT length(content), lower(hex(MD5(content))) FROM messages WHERE kind = 'assistant' ORDER BY ts")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := h.query("SELECT count() FROM dead_letters"); got[0] != "0" {
		t.Errorf("%s dead letters", got)
	}
}

// TestStoreOfAReader has a sidecar find a store that a reader has started, and the
// reader end: the sidecar goes on with a store of its own.
func TestStoreOfAReader(t *testing.T) {
	h := newHome(t).configure("delivery: {retry_min: 50ms, retry_max: 200ms}", "sources:", files("legion", "s/*.jsonl"))
	h.write("s/m.jsonl", legionLine(1, "with the reader's")+"\n")
	stop := h.store()
	p := h.start("run")
	h.until("the first line", func() bool {
		return len(h.tryQuery("SELECT content FROM messages WHERE content = 'with the reader''s'")) == 1
	})
	stop()
	h.add("s/m.jsonl", legionLine(2, "with its own")+"\n")
	h.until("a store of its own", func() bool { return len(p.children("earshot-store")) == 1 })
	h.until("the second line", func() bool {
		return len(h.tryQuery("SELECT content FROM messages WHERE content = 'with its own'")) == 1
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
}
