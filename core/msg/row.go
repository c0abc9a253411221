package msg

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Row is a message as a row of the table messages: the columns under their
// names. `earshot decode` prints it, and the golden files of decoders hold it.
// Empty fields are left out.
type Row struct {
	Tenant           string            `json:"tenant,omitempty"`
	Source           string            `json:"source,omitempty"`
	Format           string            `json:"format,omitempty"`
	TS               string            `json:"ts,omitempty"` // RFC 3339, nanoseconds, UTC
	SessionID        string            `json:"session_id,omitempty"`
	RunID            string            `json:"run_id,omitempty"`
	ParentRunID      string            `json:"parent_run_id,omitempty"`
	MessageID        string            `json:"message_id,omitempty"`
	PartIndex        uint16            `json:"part_index,omitempty"`
	Seq              uint64            `json:"seq,omitempty"`
	ParentMessageID  string            `json:"parent_message_id,omitempty"`
	TraceID          string            `json:"trace_id,omitempty"`
	SpanID           string            `json:"span_id,omitempty"`
	AgentID          string            `json:"agent_id,omitempty"`
	AgentName        string            `json:"agent_name,omitempty"`
	AgentKind        string            `json:"agent_kind,omitempty"`
	Role             string            `json:"role,omitempty"`
	Kind             string            `json:"kind,omitempty"`
	Provider         string            `json:"provider,omitempty"`
	Model            string            `json:"model,omitempty"`
	ToolName         string            `json:"tool_name,omitempty"`
	ToolCallID       string            `json:"tool_call_id,omitempty"`
	ToolArguments    string            `json:"tool_arguments,omitempty"`
	ToolResult       string            `json:"tool_result,omitempty"`
	DelegateTo       string            `json:"delegate_to,omitempty"`
	DelegateTask     string            `json:"delegate_task,omitempty"`
	ChildRunID       string            `json:"child_run_id,omitempty"`
	LinkMethod       string            `json:"link_method,omitempty"`
	FinishReason     string            `json:"finish_reason,omitempty"`
	IsError          bool              `json:"is_error,omitempty"`
	Complete         bool              `json:"complete,omitempty"`
	Hidden           bool              `json:"hidden,omitempty"`
	Content          string            `json:"content,omitempty"`
	ContentBytes     uint32            `json:"content_bytes,omitempty"`
	ContentRef       string            `json:"content_ref,omitempty"`
	InputTokens      uint64            `json:"input_tokens,omitempty"`
	OutputTokens     uint64            `json:"output_tokens,omitempty"`
	CacheReadTokens  uint64            `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens uint64            `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  uint64            `json:"reasoning_tokens,omitempty"`
	Attributes       map[string]string `json:"attributes,omitempty"`
	Ver              uint64            `json:"ver,omitempty"`
}

// TimeFormat is how a row writes times.
const TimeFormat = "2006-01-02T15:04:05.000000000Z"

// Row returns m as a row.
func (m *Message) Row() Row {
	r := Row{
		Tenant: m.Host.Tenant, Source: m.Host.Source, Format: m.Host.Format,
		SessionID: m.Session, RunID: m.Run, ParentRunID: m.ParentRun, Seq: m.Host.Seq, Ver: m.Host.Ver,
		AgentID: m.Agent.ID, AgentName: m.Agent.Name, AgentKind: m.Agent.Kind.String(),
		Role: m.Role.String(), Kind: m.Kind.String(), Provider: m.Provider, Model: m.Model,
		ToolName: m.Tool.Name, ToolCallID: m.Tool.ID(), ToolArguments: m.Tool.Arguments.String(),
		DelegateTo: m.Delegation.To, DelegateTask: m.Delegation.Task.String(), ChildRunID: m.Delegation.ChildRun,
		LinkMethod: m.Delegation.Link.String(), FinishReason: m.FinishReason,
		IsError: m.IsError, Complete: m.Complete > Partial, Hidden: m.Hidden, Content: m.Content.String(),
		InputTokens: m.Usage.Input, OutputTokens: m.Usage.Output, CacheReadTokens: m.Usage.CacheRead,
		CacheWriteTokens: m.Usage.CacheWrite, ReasoningTokens: m.Usage.Reasoning,
	}
	if m.Time != 0 {
		r.TS = time.Unix(0, m.Time).UTC().Format(TimeFormat)
	}
	if m.Kind == ToolResult || m.Kind == DelegationResult {
		r.ToolResult = r.Content
	}
	r.ContentBytes = uint32(len(r.Content))
	for _, id := range []struct {
		to   *string
		zero bool
		hex  func() string
	}{
		{&r.MessageID, m.Host.ID.IsZero(), m.Host.ID.String},
		{&r.ParentMessageID, m.Host.Parent.IsZero(), m.Host.Parent.String},
		{&r.TraceID, m.Host.TraceID.IsZero(), m.Host.TraceID.String},
		{&r.SpanID, m.Host.SpanID.IsZero(), m.Host.SpanID.String},
	} {
		if !id.zero {
			*id.to = id.hex()
		}
	}
	m.EachAttribute(func(k, v string) {
		if r.Attributes == nil {
			r.Attributes = make(map[string]string)
		}
		r.Attributes[k] = v
	})
	return r
}

// EachAttribute calls f for everything of m that has no column of its own: the
// facts that the model names, then those of the protocol, which do not replace
// them. The order is fixed and no key comes twice.
func (m *Message) EachAttribute(f func(key, value string)) {
	set := func(k, v string) {
		if v != "" {
			f(k, v)
		}
	}
	set("response_id", m.ResponseID)
	set("parent_call_id", m.ParentCall)
	set("delegate_id", m.Delegation.ToID)
	set("meet_id", m.Delegation.CorrelationID)
	set("meet_prompt", m.Delegation.CorrelationPrompt)
	set("error_type", m.Tool.ErrorType)
	set("mcp_server", m.Tool.Server)
	set("signal", m.Signal.String())
	set("usage_provenance", m.Usage.Provenance.String())
	if m.Time != 0 {
		set("time_precision", m.Precision.String())
	}
	if m.Complete == Summary {
		f("completeness", Summary.String())
	}
	if m.Tool.Internal {
		f("tool_internal", "true")
	}
	if m.Delegation.Async {
		f("async", "true")
	}
	if c := m.Delegation.Confidence; c > 0 {
		f("link_confidence", strconv.Itoa(int(c)))
	}
	if len(m.Attachments) > 0 {
		f("attachments", attachments(m.Attachments))
	}
	for i, a := range m.Attrs {
		if !named(a.Key) && !before(m.Attrs[:i], a.Key) {
			f(a.Key, a.Value)
		}
	}
}

// named reports whether the model itself uses the key.
func named(key string) bool {
	switch key {
	case "response_id", "parent_call_id", "error_type", "mcp_server", "signal", "usage_provenance", "time_precision",
		"delegate_id", "meet_id", "meet_prompt", "completeness", "tool_internal", "async", "link_confidence", "attachments":
		return true
	}
	return false
}

func before(attrs []Attr, key string) bool {
	for _, a := range attrs {
		if a.Key == key {
			return true
		}
	}
	return false
}

func attachments(list []Attachment) string {
	type attachment struct {
		Name      string `json:"name,omitempty"`
		MediaType string `json:"media_type,omitempty"`
		Size      int64  `json:"size,omitempty"`
		SHA256    string `json:"sha256,omitempty"`
		URL       string `json:"url,omitempty"`
	}
	out := make([]attachment, len(list))
	for i, a := range list {
		out[i] = attachment(a)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b)
}

// AppendJSON appends the row as one line of JSON, without the newline.
func (r Row) AppendJSON(dst []byte) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}
