package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTwoSidecars starts a second sidecar on a data directory: it reports that and exits with
// status 1, and the first one is not affected.
func TestTwoSidecars(t *testing.T) {
	h := newHome(t).notes(1)
	h.write("in/a.jsonl", note(1, ""))
	first := h.start("run")
	h.waitRunning(first, 20*time.Millisecond)
	second := h.start("run")
	<-second.done
	var exit *exec.ExitError
	if !errors.As(second.err, &exit) || exit.ExitCode() != 1 || !strings.Contains(second.out.String(), "in use by another earshot process") {
		t.Errorf("%v: %s", second.err, second.out.String())
	}
	h.until("the message", func() bool { return len(h.tryQuery("SELECT 1 FROM messages")) == 1 })
	h.must(first.Process.Signal(syscall.SIGTERM))
	h.waitExit(first)
}

// TestReload changes the configuration of a running sidecar: sources start and stop, one that
// has not changed is not opened again, and nothing is read twice.
func TestReload(t *testing.T) {
	named := func(name, glob string) string {
		return "  - {name: " + name + ", type: file, format: notes, poll_interval: 1s, paths: [\"DIR/" + glob + "\"]}"
	}
	h := newHome(t).notes(1, named("b", "b/*.jsonl"))
	h.write("in/1.jsonl", note(1, ""))
	h.write("b/1.jsonl", note(2, ""))
	h.write("c/1.jsonl", note(3, ""))
	has := func(n string) func() bool {
		return func() bool {
			got := h.tryQuery("SELECT count(), uniqExact(message_id) FROM messages")
			return len(got) == 1 && got[0] == n+"\t"+n
		}
	}
	p := h.start("run")
	h.until("two messages", has("2"))
	// b is removed, c is added; the file is recognized as another one.
	h.notes(1, named("c", "c/*.jsonl"))
	h.until("the message of c", has("3"))
	h.write("b/2.jsonl", note(4, ""))
	h.add("in/1.jsonl", note(5, ""))
	h.until("the message of the one that stayed", has("4"))
	// A configuration that is not valid changes nothing; with b again b continues.
	good, err := os.ReadFile(h.path("earshot.yaml"))
	h.must(err)
	h.write("earshot.yaml", string(good)+"nonsense: 1\n")
	h.must(p.Process.Signal(syscall.SIGHUP))
	h.until("the complaint", func() bool { return strings.Contains(p.out.String(), "not reloaded") })
	h.notes(1, named("c", "c/*.jsonl"), named("b", "b/*.jsonl"), "log: {level: debug}")
	h.must(p.Process.Signal(syscall.SIGHUP))
	h.until("the message of b", has("5"))
	if out := p.out.String(); strings.Count(out, "source ended") != 1 || !strings.Contains(out, "section=log") {
		t.Errorf("%s", out)
	}
	h.must(p.Process.Signal(syscall.SIGTERM))
	h.waitExit(p)
	h.drain()
	if diff := cmp.Diff([]string{"5\t5"}, h.query("SELECT count(), uniqExact(message_id) FROM messages")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"0"}, h.query("SELECT sum(unaccounted_bytes) FROM source_ledger")); diff != "" {
		t.Error(diff)
	}
}

// TestRunningListens connects to everything as soon as the sidecar logs that it runs.
func TestRunningListens(t *testing.T) {
	h := newHome(t)
	lines := []string{"sources:"}
	var addrs []string
	for i := range 20 {
		addrs = append(addrs, freeAddress(t))
		lines = append(lines, fmt.Sprintf("  - {name: tap%d, type: tap, format: letta, listen: %q, upstream: \"http://127.0.0.1:9\"}", i, addrs[i]))
	}
	h.configure(lines...)
	p := h.start("run")
	h.waitRunning(p, time.Millisecond)
	for _, addr := range addrs {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			continue
		}
		_ = c.Close()
	}
}
