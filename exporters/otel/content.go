package otel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// maxContent bounds one text on a span, and the input messages of one chat span
// together, in bytes.
const maxContent = 64 << 10

// unknownReason is the finish_reason of a response without one: the message schema of
// 1.41 requires the field.
const unknownReason = "unknown"

// message is an entry of gen_ai.input.messages and gen_ai.output.messages.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

// part is a part of a message, one of the message schema's: text, reasoning, tool_call, tool_call_response
// or uri.
type part struct {
	Type      string          `json:"type"`
	Content   *string         `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  *string         `json:"response,omitempty"`
	Modality  string          `json:"modality,omitempty"`
	MimeType  string          `json:"mime_type,omitempty"`
	URI       string          `json:"uri,omitempty"`
	IsError   bool            `json:"is_error,omitempty"` // ours: of the result of a call that failed
}

// size is how much of a span the part takes.
func (p *part) size() int {
	n := len(p.Arguments) + len(p.Name) + len(p.URI)
	for _, s := range [...]*string{p.Content, p.Response} {
		if s != nil {
			n += len(*s)
		}
	}
	return n
}

// content returns the content attributes of a span; none unless Settings.Content is set.
func (x *Exporter) content(s *msg.Span) []*commonpb.KeyValue {
	if !x.settings.Content {
		return nil
	}
	var out []*commonpb.KeyValue
	add := func(key string, v []byte) {
		if len(v) > 0 {
			out = append(out, pair(key, text(string(v))))
		}
	}
	t := x.cache.history(s)
	if t == nil {
		return nil
	}
	switch s.Kind {
	case msg.SpanTool, msg.SpanDelegation:
		call, result := t.call(s.ID)
		add(semconv.KeyToolArguments, call)
		key := semconv.KeyToolResult
		if s.Outcome != msg.OutcomeOK {
			key = semconv.KeyFailedResult
		}
		add(key, result)
	case msg.SpanRun, msg.SpanWorkflow:
		in, answer := t.rest(s.ID)
		add(semconv.KeyInputMessages, marshal(in))
		x.reason(s, answer)
		add(semconv.KeyOutputMessages, marshal(answer))
	case msg.SpanChat:
		in, answer, dropped := t.chat(s.ID, s.Start)
		add(semconv.KeyInstructions, t.system)
		add(semconv.KeyInputMessages, marshal(in))
		if dropped > 0 {
			out = append(out, pair(semconv.KeyDropped, value(semconv.Value{Kind: semconv.IntValue, Int: int64(dropped)})))
		}
		x.reason(s, answer)
		add(semconv.KeyOutputMessages, marshal(answer))
		add(semconv.KeyToolDefinitions, t.tools)
	}
	return out
}

// reason sets why the model stopped, on the first of the output messages of a span.
func (x *Exporter) reason(s *msg.Span, answer []message) {
	if answer == nil || x.settings.Profile.Latest() { // deprecated there
		return
	}
	answer[0].FinishReason = unknownReason
	if len(s.FinishReasons) > 0 {
		answer[0].FinishReason = cmp.Or(s.FinishReasons[0], unknownReason)
	}
}

// marshal is the JSON of messages; nil when there are none.
func marshal(m []message) []byte {
	if len(m) == 0 {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(m) != nil { // every part is a string, or valid JSON
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// arguments returns a call's arguments as JSON. Arguments that are not JSON, or that
// had to be truncated, become a JSON string: quoted.
func arguments(t msg.Text) (value json.RawMessage, quoted bool) {
	s := t.String()
	if s == "" {
		return nil, false
	}
	if len(s) <= maxContent && utf8.ValidString(s) {
		var b bytes.Buffer
		if json.Compact(&b, []byte(s)) == nil {
			return b.Bytes(), false
		}
	}
	b, err := json.Marshal(truncate(s))
	if err != nil { // strings always marshal
		return nil, false
	}
	return b, true
}

// truncate shortens a text at a rune, to maxContent with the mark of that.
func truncate(s string) string {
	const mark = "…"
	if len(s) <= maxContent {
		return s
	}
	n := maxContent - len(mark)
	for least := n - utf8.UTFMax; n > least && !utf8.RuneStart(s[n]); {
		n--
	}
	return s[:n] + mark
}
