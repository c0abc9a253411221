package assemble

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// chains are the settings of a format whose messages may name a response.
func chains() Settings {
	return Settings{Chains: func(f string) bool { return f == "f" }, LocalIDs: func(string) bool { return true }}
}

// place passes a message on as the pipeline does, and returns where it is then.
func place(t *testing.T, a *Assembler, source string, stream uint64, m msg.Message) string {
	t.Helper()
	request := m
	request.Kind, request.Complete, request.Key, request.ResponseID, request.Signal = msg.Status, msg.Complete, "request:"+m.ResponseID, "", msg.ModelStart
	m.Kind, m.Key = msg.Assistant, m.ResponseID+"/text"
	sent := []*msg.Message{&request, &m}
	if m.Complete == msg.Summary { // a copy has no request
		sent = sent[1:]
	}
	now := time.Unix(1, 0)
	for _, n := range sent {
		n.Time, n.Host = 1, msg.Host{Tenant: "default", Format: "f", Source: source}
		if err := (Chains{a}).Resolve(n, "default", "f", source); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Apply(n, stream, 1, now, 1); err != nil {
			t.Fatal(err)
		}
		if err := (Chains{a}).Remember(n, "default", "f", source, now); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join([]string{m.Session, m.Run, m.ResponseID}, " ")
}

// TestChain: what names a response in place of its session is in the session of that response, also after a restart; without a
// prompt it is of its run, and a copy of a response has its id. Of another source, and of a response that no stream has had, the name stays.
func TestChain(t *testing.T) {
	w := newHarness(t)
	w.a = New(chains(), w, w)
	steps := []struct {
		source       string
		session, run string
		response     string
		copied       bool
		want         string
	}{
		{"one", "conversation:1", "run:1", "r1", false, "conversation:1 run:1 r1"},
		{"one", "r1", "r1", "r2", false, "conversation:1 run:1 r2"},
		{"one", "r2", "run:2", "r3", false, "conversation:1 run:2 r3"},
		{"one", "r3", "r3", "r3", true, "conversation:1 run:2 r3"},
		{"one", "named", "run:3", "r4", false, "named run:3 r4"},
		{"one", "named", "r4", "r5", false, "named run:3 r5"},
		{"one", "other", "r4", "r6", false, "other r4 r6"},
		{"two", "r1", "r1", "r7", false, "r1 r1 r7"},
		{"one", "r0", "r0", "r8", false, "r0 r0 r8"},
		{"one", "r8", "run:9", "r9", false, "r0 run:9 r9"},
	}
	for i, s := range steps {
		m := msg.Message{Session: s.session, Run: s.run, ResponseID: s.response, Complete: msg.Complete}
		if s.copied {
			m.Complete = msg.Summary
		}
		if got := place(t, w.a, s.source, uint64(i+1), m); got != s.want {
			t.Errorf("step %d: %s, want %s", i, got, s.want)
		}
		w.commit()
		w.a = New(chains(), w, w)
	}
}

// TestChainIsBounded: of a source the last responses are remembered.
func TestChainIsBounded(t *testing.T) {
	var c link.Chain
	const many = 1000
	for i := range many {
		if r := fmt.Sprint("r", i); !c.Add(r, link.Seat{Session: "s", Run: r}) || c.Add(r, link.Seat{Session: "s", Run: r}) {
			t.Fatalf("%s", r)
		}
	}
	_, old := c.At("r0")
	last, ok := c.At(fmt.Sprint("r", many-1))
	if n := len(c.Responses.Of); old || !ok || last.Run != fmt.Sprint("r", many-1) || n > 64 || n != len(c.Responses.Order) {
		t.Errorf("%d responses, the oldest %t, the last %v", n, old, last)
	}
}
