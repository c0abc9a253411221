package main

import (
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTenantsOfOneID: two tenants have a conversation of the same id. Each is a row of the list, and no command and no page shows
// one within the other.
func TestTenantsOfOneID(t *testing.T) {
	h := newHome(t)
	for _, tenant := range [...]string{"canal", "quay"} {
		at := time.Now().Add(-time.Hour)
		x := newTurn("thread-1", at)
		x.run("root", "", tenant+"-pilot", 0, 9)
		x.delegation("d", "root", tenant+"-pilot", tenant+"-diver", 1, 8)
		x.tool("t", "root", tenant+"Sonar", 1, 2)
		m := bodyMessage("thread-1", "m", at, "The tide of the "+tenant+" turns.", "")
		m.Host.Tenant, m.Host.ID = tenant, msg.NewID(tenant, "legion", "thread-1", "m")
		m.Host.TraceID = msg.NewTraceID(tenant, "legion", "thread-1", "turn")
		for i := range x.spans {
			s := &x.spans[i]
			name := s.ID
			s.Tenant, s.TraceID, s.ID = tenant, m.Host.TraceID, msg.NewSpanID(tenant, "legion", "thread-1", msg.SpanTool, string(name[:]))
			if !s.Parent.IsZero() {
				parent := s.Parent
				s.Parent = msg.NewSpanID(tenant, "legion", "thread-1", msg.SpanTool, string(parent[:]))
			}
		}
		h.export(export.Batch{Messages: exporttest.Records(m), Spans: exporttest.Records(x.spans...)})
	}
	own := func(what, text string, others bool) {
		t.Helper()
		if !strings.Contains(text, "canal") || strings.Contains(text, "quay") != others {
			t.Errorf("%s:\n%s", what, text)
		}
	}
	list, _ := h.run("sessions")
	own("the list", list, true)
	if !strings.Contains(list, "TENANT") {
		t.Errorf("the list does not name tenants:\n%s", list)
	}
	if one, _ := h.run("sessions", "--tenant", "canal"); strings.Count(one, "thread-1") != 1 || strings.Contains(one, "TENANT") {
		t.Errorf("the list of a tenant:\n%s", one)
	}
	for _, args := range [][]string{{"show", "thread-1"}, {"show", "thr"}, {"export", "thread-1", "--format", "jsonl"}, {"slow", "--session", "thread-1"}, {"diff", "thread-1", "thr"}, {"explain", "thread-1"}} {
		if out, _, err := h.try(args...); err == nil || !strings.Contains(err.Error(), "several tenants have it: canal quay") {
			t.Errorf("earshot %v: %v\n%s", args, err, out)
		}
	}
	for _, args := range [][]string{
		{"show", "thread-1"}, {"show", "thr", "-o", "json"}, {"export", "thread-1", "--format", "jsonl"}, {"export", "thread-1", "--format", "otlp"},
		{"slow", "--session", "thread-1"}, {"slow", "--since", "1d"}, {"explain", "thread-1"}, {"diff", "thr", "thread-1"},
	} {
		out, _ := h.run(append(args, "--tenant", "canal")...)
		own(strings.Join(args, " "), out, false)
		if args[0] == "show" && strings.Contains(out, "0 tokens") {
			t.Errorf("no token is known, and it says\n%s", out)
		}
	}
	s := h.site()
	own("the choice", s.has("/session/thread-1", "Several tenants", `href="/session/thread-1?tenant=canal"`, `href="/session/thread-1?tenant=quay"`), true)
	own("the choice of two", s.has("/compare?a=thread-1&b=thread-1", "Several tenants", `tenant=canal&amp;to=now">canal</a>`), true)
	own("the comparison", s.has("/compare?a=thread-1&b=thread-1&tenant=canal", "The steps are the same.", "canalSonar", `name="tenant" value="canal"`, `href="/session/thread-1?tenant=canal"`), false)
	own("the page", s.has("/session/thread-1?tenant=canal", "canal-pilot", "canalSonar", "The tide of the canal"), false)

	client := h.asker(t, &sdk.CommandTransport{Command: h.program(t.Context(), "mcp")})
	for _, q := range []ask{
		{"show", map[string]any{"id": "thread-1"}}, {"diff", map[string]any{"a": "thread-1", "b": "thr"}}, {"why_slow", map[string]any{"session": "thread-1"}},
	} {
		if text, failed := client.ask(q); !failed || !strings.Contains(text, "several tenants have it: canal quay; its tenant picks one") {
			t.Errorf("%s of several: %s", q.tool, text)
		}
		q.args["tenant"] = "canal"
		text, _ := client.ask(q)
		own(q.tool, text, false)
	}
}
