package interchange

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Span is a span as it is stored: the attributes are those of OpenTelemetry's conventions for
// GenAI, as texts.
type Span struct {
	TraceID, ID, Parent string // hex; Parent is empty for a root
	Name                string
	Client              bool // the kind; else internal
	Start, End          int64
	Error               bool
	Status              string
	Attributes          map[string]string
	Events              []SpanEvent
	Links               []SpanLink
}

// SpanEvent is an event of a span.
type SpanEvent struct {
	Time       int64
	Name       string
	Attributes map[string]string
}

// SpanLink is a link of a span.
type SpanLink struct {
	TraceID, SpanID string
	Attributes      map[string]string
}

// scope is the name of the instrumentation.
const scope = "github.com/earshot-dev/earshot"

type (
	otlpDocument struct {
		ResourceSpans []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource   otlpAttributes `json:"resource"`
		ScopeSpans []otlpScope    `json:"scopeSpans"`
	}
	otlpAttributes struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScope struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Events     []otlpEvent     `json:"events,omitempty"`
		Links      []otlpLink      `json:"links,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpLink struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// OTLP returns the spans as an ExportTraceServiceRequest in OTLP/JSON.
func OTLP(service string, spans []Span) any {
	out := otlpScope{Spans: make([]otlpSpan, 0, len(spans))}
	out.Scope.Name = scope
	for i := range spans {
		s := &spans[i]
		o := otlpSpan{
			TraceID: s.TraceID, SpanID: s.ID, Parent: s.Parent, Name: s.Name, Kind: 1,
			Start: strconv.FormatInt(s.Start, 10), End: strconv.FormatInt(s.End, 10), Attributes: attributes(s.Attributes),
		}
		if s.Client {
			o.Kind = 3
		}
		if s.Error {
			o.Status = otlpStatus{2, s.Status}
		}
		for _, e := range s.Events {
			o.Events = append(o.Events, otlpEvent{strconv.FormatInt(e.Time, 10), e.Name, attributes(e.Attributes)})
		}
		for _, l := range s.Links {
			o.Links = append(o.Links, otlpLink{l.TraceID, l.SpanID, attributes(l.Attributes)})
		}
		out.Spans = append(out.Spans, o)
	}
	return otlpDocument{[]otlpResource{{
		Resource:   otlpAttributes{attributes(map[string]string{"service.name": cmp.Or(service, "unknown_service")})},
		ScopeSpans: []otlpScope{out},
	}}}
}

// attributes returns attributes in the order of their names. Counts are integers, times
// numbers, and lists of texts arrays; every other one is a text.
func attributes(m map[string]string) (out []otlpAttribute) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		text := m[key]
		value := map[string]any{"stringValue": text}
		var list []string
		switch {
		case strings.Contains(key, ".usage.") || strings.HasPrefix(key, "llm.token_count."):
			if _, err := strconv.ParseInt(text, 10, 64); err == nil {
				value = map[string]any{"intValue": text}
			}
		case key == "gen_ai.response.time_to_first_chunk":
			if f, err := strconv.ParseFloat(text, 64); err == nil {
				value = map[string]any{"doubleValue": f}
			}
		case key == "gen_ai.response.finish_reasons" && json.Unmarshal([]byte(text), &list) == nil:
			values := make([]map[string]any, 0, len(list))
			for _, t := range list {
				values = append(values, map[string]any{"stringValue": t})
			}
			value = map[string]any{"arrayValue": map[string]any{"values": values}}
		}
		out = append(out, otlpAttribute{key, value})
	}
	return out
}

// OpenInference returns the spans with the attributes of OpenInference and the texts of their
// messages: an AGENT for a run, an LLM for a response, a TOOL for a call, a CHAIN for a
// workflow. Ids are those of the spans, so that a second export is the same spans.
func OpenInference(rows []msg.Row, spans []Span) []Span {
	of := make(map[string][]*msg.Row)
	for i := range rows {
		of[rows[i].SpanID] = append(of[rows[i].SpanID], &rows[i])
	}
	out := make([]Span, 0, len(spans))
	for i := range spans {
		s := spans[i]
		a := map[string]string{"session.id": s.Attributes["earshot.session.id"]}
		set(a, "session.id", s.Attributes["gen_ai.conversation.id"])
		set(a, "agent.name", s.Attributes["gen_ai.agent.name"])
		switch s.Attributes["gen_ai.operation.name"] {
		case "invoke_agent":
			a["openinference.span.kind"] = "AGENT"
			set(a, "graph.node.id", s.Attributes["earshot.run.id"])
			set(a, "graph.node.parent_id", s.Attributes["earshot.parent_run.id"])
		case "invoke_workflow":
			a["openinference.span.kind"] = "CHAIN"
		case "execute_tool":
			a["openinference.span.kind"] = "TOOL"
			set(a, "tool.name", s.Attributes["gen_ai.tool.name"])
			set(a, "tool.id", s.Attributes["gen_ai.tool.call.id"])
		default:
			a["openinference.span.kind"] = "LLM"
			chat(a, &s)
		}
		for _, r := range of[s.ID] {
			texts(a, r)
		}
		s.Attributes = a
		out = append(out, s)
	}
	return out
}

// set sets an attribute that has a value.
func set(a map[string]string, key, value string) {
	if value != "" {
		a[key] = value
	}
}

// chat adds the model and the tokens of a response: prompt includes the cached ones.
func chat(a map[string]string, s *Span) {
	set(a, "llm.model_name", cmp.Or(s.Attributes["gen_ai.response.model"], s.Attributes["gen_ai.request.model"]))
	set(a, "llm.provider", s.Attributes["gen_ai.provider.name"])
	in, out := s.Attributes["gen_ai.usage.input_tokens"], s.Attributes["gen_ai.usage.output_tokens"]
	set(a, "llm.token_count.prompt", in)
	set(a, "llm.token_count.completion", out)
	n, err := strconv.ParseInt(in, 10, 64)
	if m, err2 := strconv.ParseInt(out, 10, 64); err == nil && err2 == nil {
		a["llm.token_count.total"] = strconv.FormatInt(n+m, 10)
	}
	set(a, "llm.token_count.prompt_details.cache_read", s.Attributes["gen_ai.usage.cache_read.input_tokens"])
	set(a, "llm.token_count.prompt_details.cache_write", s.Attributes["gen_ai.usage.cache_creation.input_tokens"])
	set(a, "llm.token_count.completion_details.reasoning", s.Attributes["gen_ai.usage.reasoning.output_tokens"])
}

// texts adds the texts of a message of the span.
func texts(a map[string]string, r *msg.Row) {
	switch r.Kind {
	case "user":
		join(a, "input.value", r.Content)
	case "assistant":
		if join(a, "output.value", r.Content); a["openinference.span.kind"] == "LLM" {
			join(a, "llm.output_messages.0.message.content", r.Content)
			a["llm.output_messages.0.message.role"] = "assistant"
		}
	case "tool_call", "delegation":
		set(a, "input.value", r.ToolArguments)
		set(a, "input.mime_type", "application/json")
		set(a, "tool.parameters", r.ToolArguments)
	case "tool_result", "delegation_result":
		join(a, "output.value", r.Content)
	}
}

func join(a map[string]string, key, text string) {
	if had := a[key]; had != "" && text != "" {
		text = had + "\n" + text
	}
	set(a, key, text)
}
