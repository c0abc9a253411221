package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/earshot-dev/earshot/core/interchange"
	"github.com/earshot-dev/earshot/core/msg"
)

// Messages returns the messages of a session whole, in order.
func Messages(ctx context.Context, q Querier, id Ref) (out []msg.Row, err error) {
	if id, err = id.resolve(ctx, q); err != nil {
		return nil, err
	}
	err = q.Each(ctx, `
		SELECT toString(tenant), toString(source), toString(format), ts, session_id, toString(run_id), toString(parent_run_id), toString(message_id), toString(parent_message_id),
			toString(trace_id), toString(span_id), toString(agent_id), toString(agent_name), toString(agent_kind), toString(role), toString(kind), toString(provider), toString(model),
			toString(tool_name), toString(tool_call_id), tool_arguments, tool_result, toString(delegate_to), delegate_task, toString(child_run_id), toString(link_method),
			toString(finish_reason), toString(is_error), toString(complete), toString(hidden), content,
			toUInt64(seq), toUInt64(ver), toUInt64(content_bytes), toUInt64(input_tokens), toUInt64(output_tokens), toUInt64(cache_read_tokens), toUInt64(cache_write_tokens), toUInt64(reasoning_tokens),
			[CAST(attributes, 'Map(String, String)')]
		FROM messages FINAL
		WHERE session_id = `+text("id")+` AND tenant = `+text("tenant")+` AND is_deleted = 0
		ORDER BY ts, seq, message_id`, id.escaped(), func(v []any) error {
		r := reader{values: v}
		m := msg.Row{Tenant: r.str(), Source: r.str(), Format: r.str(), TS: r.time().Format(msg.TimeFormat)}
		for _, to := range []*string{
			&m.SessionID, &m.RunID, &m.ParentRunID, &m.MessageID, &m.ParentMessageID, &m.TraceID, &m.SpanID, &m.AgentID, &m.AgentName, &m.AgentKind, &m.Role, &m.Kind, &m.Provider, &m.Model,
			&m.ToolName, &m.ToolCallID, &m.ToolArguments, &m.ToolResult, &m.DelegateTo, &m.DelegateTask, &m.ChildRunID, &m.LinkMethod, &m.FinishReason,
		} {
			*to = r.str()
		}
		for _, to := range []*bool{&m.IsError, &m.Complete, &m.Hidden} {
			*to = r.str() == "true"
		}
		m.Content, m.Seq, m.Ver, m.ContentBytes = r.str(), r.num(), r.num(), uint32(r.num())
		for _, to := range []*uint64{&m.InputTokens, &m.OutputTokens, &m.CacheReadTokens, &m.CacheWriteTokens, &m.ReasoningTokens} {
			*to = r.num()
		}
		if list := r.maps(); len(list) > 0 && len(list[0]) > 0 {
			m.Attributes = maps.Clone(list[0])
		}
		out = append(out, m)
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("session %s: messages: %w", id.ID, err)
	}
	return out, seen(ctx, q, id, out)
}

// seen adds to the messages that several formats have which they are, as the attribute seen_by: a list in JSON, the one whose
// words the message has first.
func seen(ctx context.Context, q Querier, id Ref, rows []msg.Row) error {
	by := make(map[string][]string)
	err := q.Each(ctx, `
		SELECT attributes['earshot.seen_by.messages'] FROM spans FINAL
		WHERE session_id = `+text("id")+` AND tenant = `+text("tenant")+` AND mapContains(attributes, 'earshot.seen_by.messages')`, id.escaped(), func(v []any) error {
		r := reader{values: v}
		maps.Copy(by, seenMessages(r.str()))
		return r.err
	})
	if err != nil {
		return fmt.Errorf("session %s: views of messages: %w", id.ID, err)
	}
	for i := range rows {
		formats := by[rows[i].MessageID]
		if len(formats) == 0 {
			continue
		}
		list, err := json.Marshal(formats)
		if err != nil {
			return fmt.Errorf("session %s: views of messages: %w", id.ID, err)
		}
		if rows[i].Attributes == nil {
			rows[i].Attributes = make(map[string]string)
		}
		rows[i].Attributes["seen_by"] = string(list)
	}
	return nil
}

// Spans returns the spans of a session that have ended, in the order of their starts. id is whole, with its tenant.
func Spans(ctx context.Context, q Querier, id Ref) (out []interchange.Span, err error) {
	err = q.Each(ctx, `
		SELECT TraceId, toString(SpanId), toString(ParentSpanId), toString(SpanName), toString(SpanKind), Timestamp, toInt64(Duration), toString(StatusCode), StatusMessage,
			[CAST(SpanAttributes, 'Map(String, String)')], Events.Timestamp, CAST(Events.Name, 'Array(String)'), CAST(Events.Attributes, 'Array(Map(String, String))'),
			CAST(Links.TraceId, 'Array(String)'), CAST(Links.SpanId, 'Array(String)'), CAST(Links.Attributes, 'Array(Map(String, String))')
		FROM otel_traces FINAL
		WHERE SessionId = `+text("id")+` AND TraceId IN (SELECT lower(hex(trace_id)) FROM spans WHERE session_id = `+text("id")+` AND tenant = `+text("tenant")+`)
		ORDER BY Timestamp, SpanId`, id.escaped(), func(v []any) error {
		r := reader{values: v}
		s := interchange.Span{TraceID: r.str(), ID: r.str(), Parent: r.str(), Name: r.str(), Client: r.str() == "Client", Start: r.time().UnixNano()}
		s.End, s.Error, s.Status = s.Start+r.signed(), r.str() == "Error", r.str()
		if list := r.maps(); len(list) > 0 {
			s.Attributes = maps.Clone(list[0])
		}
		times, names, facts := r.times(), r.list(), r.maps()
		traces, spans, linked := r.list(), r.list(), r.maps()
		if r.err != nil {
			return r.err
		}
		for i := range min(len(times), len(names), len(facts)) {
			s.Events = append(s.Events, interchange.SpanEvent{Time: times[i].UnixNano(), Name: names[i], Attributes: maps.Clone(facts[i])})
		}
		for i := range min(len(traces), len(spans), len(linked)) {
			s.Links = append(s.Links, interchange.SpanLink{TraceID: traces[i], SpanID: spans[i], Attributes: maps.Clone(linked[i])})
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("session %s: spans: %w", id.ID, err)
	}
	return slices.Clip(out), nil
}
