package interchange_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/otel"
	"github.com/earshot-dev/earshot/plugins"
	otelgenai "github.com/earshot-dev/earshot/plugins/otel-genai"
)

// batch is an assembler's emitter that fills an export batch.
type batch struct{ export.Batch }

func (b *batch) Span(s msg.Span)                        { b.Spans = append(b.Spans, new(s)) }
func (b *batch) ReplayChildren(uint64, assemble.RunRef) {}
func (b *batch) Verdict(msg.Verdict)                    {}
func (b *batch) Replayable(uint64) bool                 { return false }
func (b *batch) Flush(uint64)                           {}
func (b *batch) Message(msg.Message)                    {}
func (b *batch) Finding(string, string)                 {}
func (b *batch) Group(string) ([]byte, error)           { return nil, nil }

// assembled returns the batch of a stream of frames.
func assembled(t *testing.T, f decoder.Factory, s decoder.Stream, frames []frame.Frame) *export.Batch {
	t.Helper()
	b := &batch{export.Batch{ID: f.Info().Name}}
	a := assemble.New(assemble.Settings{}, b, b)
	out := decodertest.Decode(t, f, s, frames)
	for i := range out.Messages {
		m := &out.Messages[i]
		if m.Time == 0 {
			m.Time, m.Precision = 1_780_000_000e9+int64(i), msg.Inferred
		}
		m.Host = msg.Host{Tenant: "default", Source: "harbour", Format: f.Info().Name, Seq: uint64(i), Ver: uint64(i)}
		if _, err := a.Apply(m, 1, 1, time.Time{}, m.Time); err != nil {
			t.Fatal(err)
		}
		b.Messages = append(b.Messages, m)
	}
	if err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := a.Commit(func(string, bool, []byte) {}); err != nil {
		t.Fatal(err)
	}
	return &b.Batch
}

// received returns the requests that a receiver of traces gets, as frames.
func received(t *testing.T, b *export.Batch) (frames []frame.Frame) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var in coltracepb.ExportTraceServiceRequest
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, err := io.ReadAll(z)
		if err == nil && strings.HasSuffix(q.URL.Path, "/traces") {
			err = proto.Unmarshal(body, &in)
		}
		line, err2 := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(&in)
		if err != nil || err2 != nil {
			http.Error(w, "broken", http.StatusBadRequest)
			return
		}
		if len(in.ResourceSpans) > 0 {
			frames = append(frames, frame.Frame{Kind: frame.Line, Data: line})
		}
	}))
	defer server.Close()
	x, err := otel.New(t.Context(), otel.Settings{Endpoint: server.URL, Content: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(t.Context())
	if err := x.Export(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return frames
}

// spanFacts are the facts of a tree of spans: by kind, agent, tool and call, its parent's, its times and tokens.
func spanFacts(b *export.Batch) map[string]int {
	last := make(map[msg.SpanID]*msg.Span)
	for _, s := range b.Spans {
		if old := last[s.ID]; !s.Tombstone && !s.Amends && s.State != msg.SpanOpen && (old == nil || s.Ver >= old.Ver) {
			last[s.ID] = s
		}
	}
	name := func(s *msg.Span) string {
		if s == nil {
			return "none"
		}
		return strings.Join([]string{s.Kind.String(), s.Session, s.Run, s.Tool.ID(), time.Unix(0, s.Start).UTC().Format(time.StampNano)}, " ")
	}
	out := make(map[string]int)
	for _, s := range last {
		out[strings.Join([]string{name(s), "to", time.Unix(0, s.End).UTC().Format(time.StampNano), "below", name(last[s.Parent]), s.Tool.Name, s.Model, fmt.Sprint(s.Outcome == msg.OutcomeError), s.Delegate.ChildRun, tokens(s.Usage)}, "|")]++
	}
	return out
}

func tokens(u msg.Tokens) string {
	return fmt.Sprint(u.Input, " ", u.Output, " ", u.CacheRead, " ", u.CacheWrite, " ", u.Reasoning, " ", u.CacheWrite1h, " ", u.Tier, " ", u.Stated)
}

// texts are the texts, arguments and results of each run, in order.
func texts(b *export.Batch) map[string][]string {
	out := make(map[string][]string)
	calls := make(map[string]bool)
	var list []msg.Message
	for _, m := range b.Messages {
		list = append(list, *m)
	}
	for _, m := range msg.Fold(list) {
		key, text := m.Session+" "+m.Run, ""
		switch m.Kind {
		case msg.User, msg.Assistant, msg.Reasoning:
			text = m.Content.String()
		case msg.ToolCall, msg.Delegation:
			if id := key + m.Tool.ID(); !calls[id] {
				calls[id], text = true, m.Tool.ID()+" "+m.Tool.Name+" "+arguments(m.Tool.Arguments.String())
			}
		case msg.ToolResult, msg.DelegationResult:
			if !m.Content.IsZero() {
				text = m.Tool.ID() + " " + m.Content.String()
			}
		}
		if text != "" {
			out[key] = append(out[key], m.Kind.String()+" "+text)
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// lost are the cases that differ after a way over OTLP, and why: docs/opentelemetry.md has the reasons.
func lost() map[string]string {
	const (
		outside  = "a message of no run is on no span"
		unread   = "a result or a run below a call that was not read is the run's"
		child    = "a call below which an agent runs is a delegation"
		apart    = "a result is in another run than its call, or under another id"
		repeated = "ids of calls repeat in a run"
	)
	return map[string]string{
		"acp/load":                      outside,
		"acp/loaded_late":               outside,
		"acp/replayed":                  outside,
		"ag-ui/connected":               outside,
		"ag-ui/failed_tools":            apart,
		"ag-ui/interrupted":             apart,
		"ag-ui/odd":                     outside,
		"anthropic-sse/in_background":   apart,
		"atif/agents":                   outside,
		"claude-code/forked_skill":      child,
		"claude-code/helper_copies":     outside,
		"claude-code/resumed_elsewhere": outside,
		"claude-code/results":           unread,
		"claude-code/team_inbox":        outside,
		"cline/lead":                    repeated,
		"cline/restored":                outside,
		"crush/sessions":                repeated,
		"droid/session":                 repeated,
		"gemini-cli/delegations":        outside,
		"gemini-cli/endings":            outside,
		"gemini-cli/lines":              outside,
		"grace/open":                    outside,
		"grace/unanswered":              outside,
		"kimi-code/agent":               repeated,
		"kimi/agent":                    repeated,
		"kimi/tasks":                    repeated,
		"langgraph/inner":               child,
		"langgraph/interrupt":           apart,
		"langgraph/protocol":            child,
		"legion/comms_log":              outside,
		"legion/lifecycle_flat":         unread,
		"legion/websocket_events":       outside,
		"llm-message/wrapped":           apart,
		"opencode/export":               repeated,
		"opencode/forked":               outside,
		"opencode/forked_rows":          outside,
		"opencode/kept":                 outside,
		"opencode/next":                 outside,
	}
}

// TestOTLPKeepsTheTree holds each case of each bundled decoder to the same runs, parents, calls, times, tokens,
// texts, arguments and results after a way over OTLP with contents, but those that are lost.
func TestOTLPKeepsTheTree(t *testing.T) {
	formats, lost := plugins.Bundled(), lost()
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		cases, err := conformance.Load(os.DirFS(filepath.Join("..", "..", "plugins", format, "testdata")))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			name := format + "/" + c.Name
			before := assembled(t, formats[format](), c.Stream, c.Frames)
			after := assembled(t, otelgenai.New(), decoder.Stream{Origin: "otlp"}, received(t, before))
			d := cmp.Diff(spanFacts(before), spanFacts(after)) + cmp.Diff(texts(before), texts(after))
			switch why := lost[name]; {
			case d != "" && why == "":
				t.Errorf("%s (-before +after):\n%s", name, d)
			case d == "" && why != "":
				t.Errorf("%s is the same, and not one where %s", name, why)
			}
			delete(lost, name)
		}
	}
	for name := range lost {
		t.Errorf("%s is no case", name)
	}
}
