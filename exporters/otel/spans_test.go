package otel

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// turn is one turn of a conversation: a team asks its model, calls a tool, and
// hands work to another agent, which fails.
func turn() *export.Batch {
	start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano()
	at := func(s float64) int64 { return start + int64(s*1e9) }
	trace := msg.NewTraceID("default", "legion", "s1", "r1")
	id := func(k msg.SpanKind, native string) msg.SpanID {
		return msg.NewSpanID("default", "legion", "s1", k, native)
	}
	base := msg.Span{
		Tenant: "default", Source: "legion", Format: "legion", TraceID: trace, State: msg.SpanClosed, Session: "s1", Run: "r1",
		Agent: msg.Agent{Name: "harbour-master", Kind: msg.KindTeam}, Outcome: msg.OutcomeOK,
	}
	run, chat, tool, task, child := base, base, base, base, base
	run.Kind, run.ID, run.Start, run.End = msg.SpanRun, id(msg.SpanRun, "r1"), at(0), at(9)
	run.Links = []msg.SpanLink{{TraceID: msg.TraceID{1}, SpanID: msg.SpanID{2}, State: "k=v", Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}}}}
	run.Events = []msg.SpanEvent{{Time: at(3), Name: "compaction"}}
	chat.Kind, chat.ID, chat.Parent, chat.Start, chat.End = msg.SpanChat, id(msg.SpanChat, "resp-1"), run.ID, at(0), at(2)
	chat.Model, chat.Provider, chat.ResponseID, chat.FirstToken = "tern-2", "anthropic", "resp-1", at(0.5)
	chat.FinishReasons = []string{"tool_use"}
	chat.Usage = msg.Tokens{Input: 10, Output: 20, CacheRead: 300, CacheWrite: 40, Reasoning: 5, Provenance: msg.Provider}
	tool.Kind, tool.ID, tool.Parent, tool.Start, tool.End = msg.SpanTool, id(msg.SpanTool, "c1"), run.ID, at(2), at(2.25)
	tool.Tool, tool.ArgumentBytes, tool.ResultBytes = msg.Tool{CallID: "c1", Name: "read_tide_table", Server: "almanac"}, 20, 11
	task.Kind, task.ID, task.Parent, task.Start, task.End = msg.SpanDelegation, id(msg.SpanTool, "c2"), run.ID, at(3), at(8)
	task.Tool = msg.Tool{CallID: "c2", Name: "Task"}
	task.Delegate = msg.Delegate{To: "pilot", ChildRun: "r2", Link: msg.ByNativeID}
	task.Outcome, task.ErrorType, task.StatusMessage = msg.OutcomeError, "timeout", "the pilot did not answer"
	child.Kind, child.ID, child.Parent, child.Start, child.End = msg.SpanRun, id(msg.SpanRun, "r2"), task.ID, at(3), at(8)
	child.Run, child.ParentRun, child.Agent, child.State = "r2", "r1", msg.Agent{Name: "pilot", Kind: msg.KindAgent}, msg.SpanIdle
	child.Outcome, child.ErrorType = msg.OutcomeCancelled, "no_result"
	child.Source = "legion-children"

	b := &export.Batch{ID: "turn", Spans: exporttest.Records(run, chat, tool, task, child)}
	say := func(span msg.SpanID, kind msg.Kind, text string, tool msg.Tool) {
		m := msg.Message{Session: "s1", Run: "r1", Kind: kind, Content: msg.Plain(text), Tool: tool, Time: at(1)}
		m.Host = msg.Host{Tenant: "default", Format: "legion", ID: msg.ID{byte(len(b.Messages) + 1)}, SpanID: span}
		switch kind {
		case msg.User:
			m.Time = at(0)
		case msg.System:
			m.Role = msg.RoleSystem
		case msg.Status:
			m.SetAttr("type", msg.TypeTools)
		case msg.Reasoning, msg.Assistant, msg.ToolCall, msg.Delegation:
			m.Host.Chat = chat.ID
		}
		b.Messages = append(b.Messages, new(m))
	}
	say(run.ID, msg.System, "You keep the harbour.", msg.Tool{})
	say(run.ID, msg.Status, `[{"type":"function","name":"read_tide_table","parameters":{"type":"object","maxProperties":1}}]`, msg.Tool{})
	say(run.ID, msg.User, "When may the ferry leave?", msg.Tool{})
	say(chat.ID, msg.Reasoning, "they will need the tides", msg.Tool{})
	say(chat.ID, msg.Assistant, "Let me look.", msg.Tool{})
	say(tool.ID, msg.ToolCall, "", msg.Tool{CallID: "c1", Name: "read_tide_table", Arguments: msg.Plain(`{"port":"Nordhavn"}`)})
	say(tool.ID, msg.ToolResult, "low at noon", msg.Tool{CallID: "c1"})
	say(task.ID, msg.Delegation, "", msg.Tool{CallID: "c2", Name: "Task", Arguments: msg.Plain(`{"to":"pilot"}`)})
	say(task.ID, msg.DelegationResult, "no answer", msg.Tool{CallID: "c2"})
	return b
}

// asJSON is a request as OTLP/JSON: ids in hex, keys sorted.
func asJSON(t *testing.T, request proto.Message) string {
	t.Helper()
	b, err := protojson.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	hexIDs(t, v)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func hexIDs(t *testing.T, v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			hexIDs(t, x)
		}
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && strings.HasSuffix(k, "Id") {
				b, err := base64.StdEncoding.DecodeString(s)
				if err != nil {
					t.Fatal(err)
				}
				v[k] = hex.EncodeToString(b)
			}
			hexIDs(t, x)
		}
	}
}

func TestGolden(t *testing.T) {
	dev, err := semconv.New(semconv.GenAILatest)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(*Settings){
		"turn":         nil,
		"turn-dev":     func(s *Settings) { s.Profile = dev },
		"turn-content": func(s *Settings) { s.Content = true },
		"turn-in-cluster": func(s *Settings) {
			s.Resource = map[string]string{"service.name": "harbour", "k8s.pod.name": "harbour-7"}
		},
	} {
		eachProtocol(t, func(t *testing.T, protocol string) {
			r := &receiver{logs: &logReceiver{}}
			x := exporter(t, r, protocol, set)
			if err := x.Export(t.Context(), turn()); err != nil {
				t.Fatal(err)
			}
			if n := len(r.seen()); n != 1 {
				t.Fatalf("%d requests", n)
			}
			golden(t, name, r.seen()[0].spans)
			if len(r.logs.requests) != 0 != x.settings.Content {
				t.Fatalf("%d requests of logs", len(r.logs.requests))
			}
			for _, q := range r.logs.requests {
				golden(t, name+"-logs", q)
			}
			x.settings.Profile = dev
			if got := x.record(&tracepb.Span{}, true).SeverityNumber; got != 5 {
				t.Errorf("the newest severity is %v", got)
			}
		})
	}
}

// golden holds a request to a file.
func golden(t *testing.T, name string, request proto.Message) {
	t.Helper()
	got, file := asJSON(t, request), "testdata/"+name+".json"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Error("rewritten: read the difference")
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func TestSpanOnTheWire(t *testing.T) {
	span := func(id byte, state msg.SpanState, deleted bool) msg.Span {
		return msg.Span{TraceID: msg.TraceID{1}, ID: msg.SpanID{id}, State: state, Tombstone: deleted, Start: 10, End: 20}
	}
	r := &receiver{}
	x := exporter(t, r, ProtocolHTTP, nil)
	err := x.Export(t.Context(), &export.Batch{ID: "b", Spans: exporttest.Records(
		span(1, msg.SpanOpen, false), span(2, msg.SpanIdle, false), span(3, msg.SpanClosed, false), span(4, msg.SpanClosed, true),
	)})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"0200000000000000", "0300000000000000"}, r.seen()[0].ids()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := x.Stats(); got != (Stats{Sent: 2}) {
		t.Errorf("stats %+v", got)
	}
}

// TestBrokenTextIsMended has bytes that are not UTF-8 wherever a span has text:
// a protobuf would refuse the whole request.
func TestBrokenTextIsMended(t *testing.T) {
	const bad = "a\xffb"
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{}
		x := exporter(t, r, protocol, func(s *Settings) { s.Content = true })
		s := turn().Spans[3]
		s.Session, s.Source, s.Tool.Name, s.StatusMessage, s.FinishReasons = bad, bad, bad, bad, []string{bad}
		s.Events = []msg.SpanEvent{{Time: 1, Name: bad, Attrs: []msg.Attr{{Key: bad, Value: bad}}}}
		s.Links = []msg.SpanLink{{Attrs: []msg.Attr{{Key: bad, Value: bad}}}}
		m := msg.Message{Kind: msg.ToolResult, Content: msg.Plain(bad)}
		m.Host.SpanID = s.ID
		if err := x.Export(t.Context(), &export.Batch{ID: "b", Spans: exporttest.Records(*s), Messages: exporttest.Records(m)}); err != nil {
			t.Fatal(err)
		}
		if got := onlySpan(t, r); got.Name != "execute_tool a\uFFFDb" || got.Status.Message != "a\uFFFDb" {
			t.Errorf("%v", got)
		}
	})
}

func TestTimesNeverRunBackwards(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, nil)
	for span, want := range map[[2]int64][2]uint64{{100, 50}: {100, 100}, {50, 100}: {50, 100}, {-5, 7}: {0, 7}, {-5, -7}: {0, 0}} {
		got := x.span(&msg.Span{TraceID: msg.TraceID{1}, ID: msg.SpanID{1}, State: msg.SpanClosed, Start: span[0], End: span[1], Events: []msg.SpanEvent{{Time: span[0]}}})
		if got.StartTimeUnixNano != want[0] || got.EndTimeUnixNano != want[1] || got.Events[0].TimeUnixNano != want[0] {
			t.Errorf("from %d to %d, want %d", got.StartTimeUnixNano, got.EndTimeUnixNano, want)
		}
	}
}

func TestContentIsBounded(t *testing.T) {
	long := strings.Repeat("é", maxContent)
	for n := range 4 {
		s := strings.Repeat("x", n) + long
		if got, cut := strings.CutSuffix(truncate(s), "…"); !cut || len(got) != maxContent-3-(n+1)%2 || !strings.HasPrefix(s, got) {
			t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-6:])
		}
	}
	if got := truncate(strings.Repeat("\x80", maxContent+1)); len(got) != maxContent-4 {
		t.Errorf("%d bytes of no characters", len(got))
	}
	if got := truncate(long[:maxContent]); got != long[:maxContent] {
		t.Errorf("%d bytes are cut to %d", maxContent, len(got))
	}
}

// TestArguments: those of a call are JSON as they are, but for blanks, or a string of what they are.
func TestArguments(t *testing.T) {
	most := `"` + strings.Repeat("x", maxContent-2) + `"`
	for text, want := range map[string]string{
		"": "", `{"a": 1}`: `{"a":1}`, "port 7": `"port 7"`, "[1,": `"[1,"`, "\"\xff\"": `"\"\ufffd\""`, most: most, most[:1] + "x" + most[1:]: `"\"` + strings.Repeat("x", maxContent-4) + `…"`,
	} {
		got, quoted := arguments(msg.Plain(text))
		if string(got) != want || quoted != (want != "" && want != text && want != `{"a":1}`) {
			t.Errorf("%.20q: %.20q of %d, want %d, quoted: %t", text, got, len(got), len(want), quoted)
		}
	}
	for text, want := range map[string]string{`"a\nb"`: "a\nb", `{"a":1}`: `{"a":1}`} {
		if got := unquoted([]byte(text)); string(got) != want {
			t.Errorf("%s is %q", text, got)
		}
	}
}

// TestDefinitions: those of tools over the bound are their types and names, and none where these are too many as well.
func TestDefinitions(t *testing.T) {
	small := `[{"type":"function","name":"tides"}]`
	most := strings.Repeat(" ", maxContent-len(small)) + small
	large := strings.Replace(small, `"}`, `","description":"`+strings.Repeat("x", maxContent)+`"}`, 1)
	for text, want := range map[string]string{
		"": "", "tides": "", small: small, most: most, " " + most: small, large: small, `"` + strings.Repeat("x", maxContent) + `"`: "", "[" + strings.Repeat(small[1:len(small)-1]+",", maxContent/20) + small[1:]: "",
	} {
		if got := definitions(msg.Plain(text)); string(got) != want {
			t.Errorf("%.50s of %d bytes: %.50s of %d", text, len(text), got, len(got))
		}
	}
}

// TestFilesOfPrompts: a prompt without a text is its first file.
func TestFilesOfPrompts(t *testing.T) {
	for want, m := range map[string]msg.Message{
		`{"type":"text","content":"look"}`: {Content: msg.Plain("look"), Attachments: []msg.Attachment{{URL: "https://x/a.png"}}},
		`{"type":"text","content":""}`:     {},
		`{"type":"uri","modality":"image","mime_type":"image/png","uri":"https://x/a.png"}`: {Attachments: []msg.Attachment{{MediaType: "image/png", URL: "https://x/a.png"}, {}}},
		`{"type":"uri","modality":"document","uri":"https://x/a"}`:                          {Attachments: []msg.Attachment{{URL: "https://x/a"}}},
		`{"type":"attachment","modality":"audio","mime_type":"audio/wav"}`:                  {Attachments: []msg.Attachment{{MediaType: "audio/wav"}}},
	} {
		m.Kind = msg.User
		e, ok := entryOf(&m)
		got, err := json.Marshal(e.part)
		if !ok || err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
