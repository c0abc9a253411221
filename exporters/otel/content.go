package otel

import (
	"encoding/json"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// maxContent bounds one text on a span, in bytes.
const maxContent = 64 << 10

// content finds the messages of a span in the span's own batch. A nil content
// has none.
type content struct{ bySpan map[msg.SpanID][]*msg.Message }

func newContent(messages []msg.Message) *content {
	c := &content{bySpan: make(map[msg.SpanID][]*msg.Message)}
	for i := range messages {
		if m := &messages[i]; !m.Host.Deleted && !m.Host.SpanID.IsZero() {
			c.bySpan[m.Host.SpanID] = append(c.bySpan[m.Host.SpanID], m)
		}
	}
	return c
}

// outputMessage is an entry of gen_ai.output.messages.
type outputMessage struct {
	Role         string       `json:"role"`
	Parts        []outputPart `json:"parts"`
	FinishReason string       `json:"finish_reason,omitempty"`
}

type outputPart struct {
	Type    string `json:"type"` // text or reasoning
	Content string `json:"content"`
}

// attributes returns what was said in the span.
func (c *content) attributes(s *msg.Span) []*commonpb.KeyValue {
	if c == nil {
		return nil
	}
	var out []*commonpb.KeyValue
	add := func(key string, v msg.Text) {
		if !v.IsZero() {
			out = append(out, pair(key, text(cut(v.String()))))
		}
	}
	answer := outputMessage{Role: "assistant"}
	if len(s.FinishReasons) > 0 {
		answer.FinishReason = s.FinishReasons[0]
	}
	for _, m := range c.bySpan[s.ID] {
		switch m.Kind {
		case msg.ToolCall, msg.Delegation:
			add(semconv.KeyToolArguments, m.Tool.Arguments)
		case msg.ToolResult, msg.DelegationResult:
			add(semconv.KeyToolResult, m.Content)
		case msg.Assistant:
			answer.Parts = append(answer.Parts, outputPart{"text", cut(m.Content.String())})
		case msg.Reasoning:
			answer.Parts = append(answer.Parts, outputPart{"reasoning", cut(m.Content.String())})
		}
	}
	if s.Kind == msg.SpanChat && len(answer.Parts) > 0 {
		if b, err := json.Marshal([]outputMessage{answer}); err == nil { // strings always marshal
			out = append(out, pair(semconv.KeyOutputMessages, text(string(b))))
		}
	}
	return out
}

// cut shortens a text at a rune.
func cut(s string) string {
	if len(s) <= maxContent {
		return s
	}
	n := maxContent
	for n > maxContent-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
