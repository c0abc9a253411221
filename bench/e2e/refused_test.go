package e2e

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRefusedSchemaEndsTheRun: a run with --until-idle does not wait for a store that refuses
// to create its tables, and reports the refusal.
func TestRefusedSchemaEndsTheRun(t *testing.T) {
	h := newHome(t).configure("sources:", files("legion", "none/*.jsonl"))
	store := h.start("store")
	address := ""
	h.until("the store's address", func() bool {
		if m := regexp.MustCompile(`unix:(\S+)`).FindStringSubmatch(store.out.String()); m != nil {
			address = m[1]
		}
		return address != ""
	})
	w := newHome(t).configure("sources:", files("legion", "in/*.jsonl"), "exporters: {clickhouse: {dsn: \"http+unix://reader@"+url.PathEscape(address)+"/elsewhere\"}}")
	w.write("in/messages.jsonl", `{"type":"user","content":"Is the sluice shut?","timestamp":"2026-11-21T10:00:00Z"}`+"\n")
	p := w.start("run", "--until-idle", "500ms")
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Fatalf("it waits:\n%s", &p.out)
	}
	if code := p.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"CREATE DATABASE IF NOT EXISTS `elsewhere`", "ACCESS_DENIED", "this user may only read"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &p.out)
		}
	}
}
