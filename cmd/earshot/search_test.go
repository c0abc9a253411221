package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

// bodyMessage is a message of an answer, or of a call with arguments.
func bodyMessage(session, key string, at time.Time, content, arguments string) msg.Message {
	m := msg.Message{
		Key: key, Session: session, Run: "r", Kind: msg.Assistant, Role: msg.RoleAssistant, Agent: msg.Agent{Name: "pilot"}, Content: msg.Plain(content), Time: at.UnixNano(), Complete: msg.Complete,
		Host: msg.Host{Tenant: "default", Source: "harbour", Format: "legion", ID: msg.NewID("default", "legion", session, key), Ver: 1},
	}
	if arguments != "" {
		m.Kind, m.Tool = msg.ToolCall, msg.Tool{CallID: "call-" + key, Name: "Read", Arguments: msg.Plain(arguments)}
	}
	return m
}

// TestSearch: words are found whole by the index, else as parts; the range widens until there is enough, and
// the result names the range and the kind of match. Bodies are read by their index.
func TestSearch(t *testing.T) {
	h := newHome(t)
	now := time.Now()
	var list []msg.Message
	for i := range 60 {
		list = append(list, bodyMessage("old", fmt.Sprint("o", i), now.AddDate(0, 0, -20).Add(time.Duration(i)*time.Second), "The lanterns of Nordhavn were lit. Nothing else.", ""))
	}
	list = append(list,
		bodyMessage("new", "n", now.Add(-time.Hour), strings.Repeat("ballast ", 60)+"one Lantern, \x1b[31mred\x1b[0m and <b>bold</b>, hangs at the quay\u202e", ""),
		bodyMessage("ancient", "a", now.AddDate(-3, 0, 0), "An astrolabe, and the Ø of Ærø.", ""),
		bodyMessage("files", "f", now.Add(-time.Minute), "", `{"file_path":"/srv/quay/crane_test.go","limit":3}`))
	x := newTurn("spanned", now.Add(-time.Hour))
	x.run("root", "", "harbour-pilot", 0, 9)
	x.delegation("d", "root", "harbour-pilot", "deep-diver", 1, 8)
	h.export(export.Batch{Messages: exporttest.Records(list...), Spans: exporttest.Records(x.spans...)})
	r := h.reader()
	for _, c := range []struct {
		text     string
		from     time.Duration
		messages int
		in       string
		back     time.Duration // how far it was searched, about
		all      bool
		part     bool
		more     bool
	}{
		{text: "lantern", messages: 1, in: "new", all: true},
		{text: "lanterns nordhavn", messages: 50, in: "old", back: 20 * 24 * time.Hour, more: true},
		{text: "LANTERNS of", from: 25 * 24 * time.Hour, messages: 50, in: "old", back: 20 * 24 * time.Hour, more: true},
		{text: "lanterns", from: 24 * time.Hour, back: 24 * time.Hour, part: true},
		{text: "antern", from: 24 * time.Hour, messages: 1, in: "new", back: 24 * time.Hour, part: true},
		{text: "astrolabe", messages: 1, in: "ancient", all: true},
		{text: "ærø", messages: 1, in: "ancient", all: true},
		{text: "crane_test.go", messages: 1, in: "files", all: true},
		{text: "%_'\\n;--", all: true, part: true},
		{text: "🦀", all: true, part: true},
	} {
		q := inspect.SearchQuery{Text: c.text, To: now, Budget: time.Minute}
		if c.from > 0 {
			q.From = now.Add(-c.from)
		}
		got, err := inspect.Search(t.Context(), r, q)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		back := now.Sub(got.From)
		if len(got.Messages) != c.messages || got.All != c.all || got.PartOfText != c.part || got.More != c.more || got.Stopped || len(got.Partial) > 0 || !c.all && (back < c.back-time.Hour || back > c.back+time.Hour) {
			t.Errorf("%q: %d messages, %+v", c.text, len(got.Messages), got)
		}
		for _, m := range got.Messages {
			marked := false
			for _, f := range m.Excerpt {
				marked = marked || f.Match
				if strings.ContainsAny(f.Text, "\x1b\u202e") {
					t.Errorf("%q: %q drives the terminal", c.text, f.Text)
				}
			}
			if m.Session != c.in || !marked {
				t.Errorf("%q: found in %s: %+v", c.text, m.Session, m)
			}
		}
	}
	plans := &explaining{reader: r}
	if _, err := inspect.Search(t.Context(), plans, inspect.SearchQuery{Text: "lantern quay", To: now}); err != nil {
		t.Fatal(err)
	}
	if len(plans.plans) == 0 || !strings.Contains(plans.plans[0], "idx_fts") {
		t.Errorf("the plans have no index: %q", plans.plans)
	}
	names, err := inspect.Search(t.Context(), r, inspect.SearchQuery{Text: "diver", To: now, Budget: time.Minute})
	if err != nil || len(names.Agents) != 1 || names.Agents[0].Name != "deep-diver" {
		t.Errorf("agents: %+v %v", names, err)
	}
	trace := x.spans[0].TraceID.String()
	for text, want := range map[string]string{trace[:9]: trace, x.spans[1].ID.String(): trace} {
		got, err := inspect.Search(t.Context(), r, inspect.SearchQuery{Text: text, To: now, Budget: time.Minute})
		if err != nil || len(got.Traces) != 1 || got.Traces[0].Name != want || (text == trace[:9]) != (got.Traces[0].Span == "") {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	if got, err := inspect.Search(t.Context(), r, inspect.SearchQuery{Text: "ancie", To: now}); err != nil || len(got.Sessions) != 1 {
		t.Errorf("sessions: %+v %v", got, err)
	}
	if got, err := inspect.Search(t.Context(), r, inspect.SearchQuery{Text: "quay/crane", To: now}); err != nil || len(got.Files) != 1 || got.Files[0].Session != "files" {
		t.Errorf("files: %+v %v", got, err)
	}
}

// explaining asks for the plan of each query about bodies.
type explaining struct {
	*reader
	plans []string
}

func (e *explaining) Each(ctx context.Context, sql string, params map[string]string, row func([]any) error) error {
	if strings.Contains(sql, "hasAllTokens") {
		plan := ""
		err := e.reader.Each(ctx, "EXPLAIN indexes = 1 "+sql, params, func(v []any) error {
			plan += fmt.Sprintln(v...)
			return nil
		})
		if err != nil {
			return err
		}
		e.plans = append(e.plans, plan)
	}
	return e.reader.Each(ctx, sql, params, row)
}

// reader reads the home as the commands do.
func (h *home) reader() *reader {
	h.Helper()
	cfg, err := (&configFile{path: h.config}).load(false)
	if err != nil {
		h.Fatal(err)
	}
	r, err := openReader(h.Context(), cfg)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(r.close)
	return r
}
