// Code generated from core/msg/schema; DO NOT EDIT.

package msg

// Row is a message as a row of the table messages: the columns under their names.
// `earshot decode` prints it, and the golden files of decoders hold it. Empty fields are
// left out.
type Row struct {
	Tenant           string            `json:"tenant,omitempty"`
	Source           string            `json:"source,omitempty"`
	Format           string            `json:"format,omitempty"`
	TS               string            `json:"ts,omitempty"`
	SessionID        string            `json:"session_id,omitempty"`
	RunID            string            `json:"run_id,omitempty"`
	ParentRunID      string            `json:"parent_run_id,omitempty"`
	MessageID        string            `json:"message_id,omitempty"`
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
	InputTokens      uint64            `json:"input_tokens,omitempty"`
	OutputTokens     uint64            `json:"output_tokens,omitempty"`
	CacheReadTokens  uint64            `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens uint64            `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  uint64            `json:"reasoning_tokens,omitempty"`
	Attributes       map[string]string `json:"attributes,omitempty"`
	Ver              uint64            `json:"ver,omitempty"`
}

// Row returns m as a row.
func (m *Message) Row() (r Row) {
	r.Tenant = m.Host.Tenant
	r.Source = m.Host.Source
	r.Format = m.Host.Format
	r.TS = timeText(m.Time)
	r.SessionID = m.Session
	r.RunID = m.Run
	r.ParentRunID = m.ParentRun
	r.MessageID = hexText(m.Host.ID[:])
	r.Seq = m.Host.Seq
	r.ParentMessageID = hexText(m.Host.Parent[:])
	r.TraceID = hexText(m.Host.TraceID[:])
	r.SpanID = hexText(m.Host.SpanID[:])
	r.AgentID = m.Agent.ID
	r.AgentName = m.Agent.Name
	r.AgentKind = m.Agent.Kind.String()
	r.Role = m.Role.String()
	r.Kind = m.Kind.String()
	r.Provider = m.Provider
	r.Model = m.Model
	r.ToolName = m.Tool.Name
	r.ToolCallID = m.Tool.ID()
	r.ToolArguments = m.Tool.Arguments.String()
	r.ToolResult = m.result()
	r.DelegateTo = m.Delegation.To
	r.DelegateTask = m.Delegation.Task.String()
	r.ChildRunID = m.Delegation.ChildRun
	r.LinkMethod = m.Delegation.Link.String()
	r.FinishReason = m.FinishReason
	r.IsError = m.IsError
	r.Complete = m.Complete > Partial
	r.Hidden = m.Hidden
	r.Content = m.Content.String()
	r.ContentBytes = uint32(len(r.Content))
	r.InputTokens = m.Usage.Input
	r.OutputTokens = m.Usage.Output
	r.CacheReadTokens = m.Usage.CacheRead
	r.CacheWriteTokens = m.Usage.CacheWrite
	r.ReasoningTokens = m.Usage.Reasoning
	r.Attributes = m.attributes()
	r.Ver = m.Host.Ver
	return r
}

// EachAttribute calls f for each fact of m that has no column of its own: the fields of the
// message, then the attributes of the protocol whose keys are not theirs. The order is fixed
// and no key is repeated.
func (m *Message) EachAttribute(f func(key, value string)) {
	if v := m.ResponseID; v != "" {
		f("response_id", v)
	}
	if v := m.ParentCall; v != "" {
		f("parent_call_id", v)
	}
	if v := m.Delegation.ToID; v != "" {
		f("delegate_id", v)
	}
	if v := m.Delegation.CorrelationID; v != "" {
		f("meet_id", v)
	}
	if v := m.Delegation.CorrelationPrompt; v != "" {
		f("meet_prompt", v)
	}
	if v := m.Tool.ErrorType; v != "" {
		f("error_type", v)
	}
	if v := m.Tool.Server; v != "" {
		f("mcp_server", v)
	}
	if v := m.Signal.String(); v != "" {
		f("signal", v)
	}
	if v := m.Usage.Provenance.String(); v != "" {
		f("usage_provenance", v)
	}
	if v := count(m.Usage.CacheWrite1h); v != "" {
		f("cache_write_1h_tokens", v)
	}
	if v := m.Usage.Tier; v != "" {
		f("tier", v)
	}
	if v := count(m.Usage.Stated); v != "" {
		f("stated_picodollars", v)
	}
	if v := m.timePrecision(); v != "" {
		f("time_precision", v)
	}
	if v := m.summary(); v != "" {
		f("completeness", v)
	}
	if v := yes(m.Tool.Internal); v != "" {
		f("tool_internal", v)
	}
	if v := yes(m.Delegation.Async); v != "" {
		f("async", v)
	}
	if v := percent(m.Delegation.Confidence); v != "" {
		f("link_confidence", v)
	}
	if v := attachments(m.Attachments); v != "" {
		f("attachments", v)
	}
	if v := m.Client.Project; v != "" {
		f("project", v)
	}
	if v := m.Client.Branch; v != "" {
		f("branch", v)
	}
	if v := m.Client.Version; v != "" {
		f("agent_version", v)
	}
	if v := m.Client.Host; v != "" {
		f("host", v)
	}
	if v := m.Client.User; v != "" {
		f("user", v)
	}
	if v := m.Title; v != "" {
		f("session_title", v)
	}
	m.eachAttr(f)
}

// isField reports whether a field of the message has the key.
func isField(key string) bool {
	switch key {
	case "response_id", "parent_call_id", "delegate_id", "meet_id", "meet_prompt", "error_type", "mcp_server", "signal", "usage_provenance", "cache_write_1h_tokens", "tier", "stated_picodollars", "time_precision", "completeness", "tool_internal", "async", "link_confidence", "attachments", "project", "branch", "agent_version", "host", "user", "session_title":
		return true
	}
	return false
}
