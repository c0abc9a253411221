package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// TestDecodePrintsEventsAndLinks has a span with both, in each version of the names.
func TestDecodePrintsEventsAndLinks(t *testing.T) {
	s := msg.Span{
		TraceID: msg.TraceID{1}, ID: msg.SpanID{2}, Kind: msg.SpanDelegation, State: msg.SpanClosed, Start: 1e9, End: 2e9,
		Delegate: msg.Delegate{To: "pilot"},
		Events:   []msg.SpanEvent{{Time: 15e8, Name: "retry"}, {Time: 16e8, Name: "error", Attrs: []msg.Attr{{Key: "error.type", Value: "timeout"}}}},
		Links:    []msg.SpanLink{{TraceID: msg.TraceID{3}, SpanID: msg.SpanID{4}, State: "k=v", Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}}}},
	}
	var out bytes.Buffer
	if err := writeSpans(&out, "", []msg.Span{s}); err != nil {
		t.Fatal(err)
	}
	var got span
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	events := []spanEvent{
		{"1970-01-01T00:00:01.500000000Z", "earshot.retry", nil},
		{"1970-01-01T00:00:01.600000000Z", "earshot.error", map[string]string{"error.type": "timeout"}},
	}
	links := []spanLink{{s.Links[0].TraceID.String(), s.Links[0].SpanID.String(), "k=v", map[string]string{"earshot.link": "previous_turn"}}}
	if d := cmp.Diff(events, got.Events) + cmp.Diff(links, got.Links); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	out.Reset()
	if err := writeSpans(&out, config.SemconvLatest, []msg.Span{s}); err != nil || !bytes.Contains(out.Bytes(), []byte(`"gen_ai.transfer.target.name":"pilot"`)) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestSemconvVersionsHaveOneName holds the configuration's names of the versions to those
// of the package that has them.
func TestSemconvVersionsHaveOneName(t *testing.T) {
	if config.SemconvRelease != semconv.GenAI141 || config.SemconvLatest != semconv.GenAILatest {
		t.Errorf("%q %q", config.SemconvRelease, config.SemconvLatest)
	}
}

// TestDecodeTellsADocument: an indented document under the name of lines is read as the file source reads it,
// and the report on its source reads it so, too.
func TestDecodeTellsADocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session-2026-03-04.jsonl")
	document := "{\n  \"sessionId\": \"5ea70001\",\n  \"projectHash\": \"a1\",\n  \"startTime\": \"2026-03-04T09:00:00Z\",\n  \"messages\": [\n" +
		"    {\"id\": \"m1\", \"timestamp\": \"2026-03-04T09:00:01Z\", \"type\": \"user\", \"content\": \"Is the lock open?\"}\n  ]\n}\n"
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	decode := func(args ...string) (string, string) {
		var out, errs bytes.Buffer
		c := newRoot()
		c.SetArgs(append([]string{"decode", "--format", "gemini-cli", path}, args...))
		c.SetOut(&out)
		c.SetErr(&errs)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String(), errs.String()
	}
	out, problems := decode()
	if !strings.Contains(out, "Is the lock open?") || problems != "" {
		t.Errorf("messages %s, problems %s", out, problems)
	}
	if named, _ := decode("--transport", "json"); named != out {
		t.Errorf("with --transport json it has\n%s\nand without\n%s", named, out)
	}
	if _, problems := decode("--transport", "jsonl"); problems == "" {
		t.Error("its lines are decoded")
	}
	cfg, err := config.Types{Sources: app.SourceTypes()}.Parse("e.yaml", []byte("data_dir: "+filepath.Dir(path)+"/data\nsources:\n"+
		"  - {name: well, type: file, format: gemini-cli, paths: ['"+path+"']}\n"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	reports, err := app.ReportFiles(t.Context(), decoders(), cfg, true, nil)
	if err != nil || len(reports) != 1 || reports[0].Match.Messages == 0 || reports[0].Match.Unknown > 0 {
		t.Errorf("the report is %+v, %v", reports, err)
	}
}
