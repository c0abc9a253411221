package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// A text of an agent, in any field, does not drive the terminal that shows it.
func TestNothingDrivesTheTerminal(t *testing.T) {
	h := newHome(t)
	began := time.Now().Add(-time.Hour)
	in := newTurn("evil"+hostileText, began)
	in.run("turn", "", "pilot"+hostileText, 0, 80)
	in.chat("plan", "turn", 0, 1, 3).Model = "model" + hostileText
	in.tool("read", "turn", "Read"+hostileText, 4, 9)
	in.delegation("task", "turn", "pilot", "scout"+hostileText, 10, 70)
	in.run("child", "task", "scout"+hostileText, 11, 69)
	messages := in.messages()
	messages[0].Content = msg.Plain("ask" + hostileText)
	h.export(export.Batch{Spans: exporttest.Records(in.spans...), Messages: exporttest.Records(messages...), DeadLetters: []msg.DeadLetter{{
		ID: msg.NewDeadLetterID("default", "s", "read", "o", "r"), Tenant: "default", Source: "s" + hostileText, Format: "legion", Stage: "decode",
		Reason: "invalid_json", Detail: "detail" + hostileText, Origin: "/x/" + hostileText, Seen: began.UnixNano(), Ver: 1,
		Payload: []byte("payload\u202e\u009b2J"),
	}}})
	trace := in.spans[0].TraceID.String()
	var letters []struct {
		ID string `json:"id"`
	}
	h.json(&letters, "dlq", "list")
	if len(letters) != 1 {
		t.Fatalf("%d dead letters", len(letters))
	}
	const sql = "SELECT name, content FROM (SELECT SpanName AS name, SpanName AS content FROM otel_traces)"
	for _, args := range [][]string{
		{"sessions"}, {"show", "evil"}, {"show", "evil", "--full"}, {"show", "--trace", trace}, {"slow", "--since", "2h"}, {"explain", trace}, {"top"},
		{"tail", "--once"}, {"dlq", "list"}, {"dlq", "show", letters[0].ID}, {"doctor"},
		{"query", sql, "--format", "PrettyCompact"}, {"query", sql, "--format", "Vertical"}, {"query", sql + " FORMAT Pretty"},
	} {
		out, errs, err := h.try(args...)
		if err != nil && isUsage(err) || len(out) == 0 {
			t.Errorf("%q: %v %q", args, err, errs)
		}
		if drivesTerminal(out) {
			t.Errorf("%q:\n%q", args, out)
		}
	}
	for _, args := range [][]string{{"sessions"}, {"show", "evil"}, {"slow", "--since", "2h"}, {"dlq", "list"}, {"dlq", "show", letters[0].ID}} {
		out, _ := h.run(append(args, "-o", "json")...)
		if drivesTerminal(out) || !json.Valid([]byte(out)) {
			t.Errorf("%q:\n%q", args, out)
		}
	}
	// Programs get the bytes as they are.
	if out, _ := h.run("query", "SELECT 'a\x1bb'", "--format", "TSVRaw"); out != "a\x1bb\n" {
		t.Errorf("%q", out)
	}
}

// A name that is a formula is none in a spreadsheet.
func TestCSVHasNoFormulas(t *testing.T) {
	h := newHome(t)
	const sql = `SELECT '=HYPERLINK("http://x","y")' AS a, -5 AS b, '@SUM(1)' AS c`
	got, _ := h.run("query", sql, "--format", "CSV")
	if want := `"'=HYPERLINK(""http://x"",""y"")",-5,"'@SUM(1)"` + "\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	kept, _ := h.run("query", sql+" FORMAT CSV", "--keep-formulas")
	if want := strings.ReplaceAll(got, "'", ""); kept != want {
		t.Errorf("%s, want %s", kept, want)
	}
}
