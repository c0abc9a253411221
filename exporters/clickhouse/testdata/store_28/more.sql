-- An open run, and an open call below it whose row was written twice.
INSERT INTO open_spans (tenant, ts, last_seen, alive_at, source, format, kind, name, session_id, run_id, trace_id, span_id, parent_span_id, agent_name, ver) VALUES
    ('default', '2026-11-21 09:00:00.5', '2026-11-21 09:00:10', '2026-11-21 09:00:11', 'harbour', 'agno', 'run', 'invoke_agent pilot', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b001', '', 'pilot', 3527409620000000000);
INSERT INTO open_spans (tenant, ts, last_seen, alive_at, source, format, kind, name, session_id, run_id, trace_id, span_id, parent_span_id, agent_name, tool_name, tool_call_id, waits_for, ver) VALUES
    ('default', '2026-11-21 09:00:05', '2026-11-21 09:00:06', '2026-11-21 09:00:06', 'harbour', 'agno', 'tool', 'execute_tool tides', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b002', '000000000000b001', 'pilot', 'tides', 'c-1', 'person', 3527409612000000000);
INSERT INTO tool_calls (tenant, ts, source, format, tool_name, tool_type, mcp_server, agent_name, model, session_id, run_id, trace_id, span_id, tool_call_id, status, args_bytes, args_shape, waits_for, ver) VALUES
    ('default', '2026-11-21 09:00:05', 'harbour', 'agno', 'tides', 'extension', 'dock', '', '', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b002', 'c-1', 'running', 7, 'at:string', '', 72057594037927936 + 1763);
INSERT INTO tool_calls (tenant, ts, source, format, tool_name, tool_type, mcp_server, agent_name, model, session_id, run_id, trace_id, span_id, tool_call_id, status, args_bytes, args_shape, waits_for, ver) VALUES
    ('default', '2026-11-21 09:00:05', 'harbour', 'agno', 'tides', 'extension', 'dock', 'pilot', 'tern-2', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b002', 'c-1', 'running', 7, 'at:string', 'person', 72057594037927936 + 1764);
-- A delegation that is under way.
INSERT INTO open_spans (tenant, ts, last_seen, alive_at, source, format, kind, name, session_id, run_id, trace_id, span_id, parent_span_id, agent_name, tool_name, tool_call_id, delegate_to, ver) VALUES
    ('default', '2026-11-21 09:00:07', '2026-11-21 09:00:08', '2026-11-21 09:00:08', 'harbour', 'agno', 'delegation', 'execute_tool ask', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b003', '000000000000b001', 'pilot', 'ask', 'c-2', 'scout', 3527409616000000000);
INSERT INTO tool_calls (tenant, ts, source, format, tool_name, tool_type, agent_name, session_id, run_id, trace_id, span_id, tool_call_id, status, is_delegation, ver) VALUES
    ('default', '2026-11-21 09:00:07', 'harbour', 'agno', 'ask', 'function', 'pilot', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b003', 'c-2', 'running', 1, 72057594037927936 + 1770);
INSERT INTO delegations (tenant, ts, source, format, session_id, run_id, trace_id, span_id, tool_call_id, tool_name, agent_name, delegate_to, delegate_id, child_run_id, link_method, link_confidence, async, status, args_bytes, ver) VALUES
    ('default', '2026-11-21 09:00:07', 'harbour', 'agno', 's-open', 'r-open', '0000000000000000000000000000a001', '000000000000b003', 'c-2', 'ask', 'pilot', 'scout', 'scout-1', 'r-child', 'prompt', 80, 1, 'running', 0, 72057594037927936 + 1770);
-- A run that continues after silence ended it: it is in both tables.
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName, SpanAttributes, Duration, StatusCode, Ver) VALUES
    ('2026-11-21 10:00:00', '0000000000000000000000000000a002', '000000000000b004', 'invoke_agent pilot', 'Internal', 'harbour', {'service.name': 'harbour'}, 'github.com/earshot-dev/earshot',
    {'gen_ai.operation.name': 'invoke_agent', 'earshot.tenant': 'default', 'earshot.session.id': 's-again', 'earshot.span.state': 'idle'}, 1000, 'Unset', 90071992547409920 + 5);
INSERT INTO open_spans (tenant, ts, last_seen, alive_at, source, format, kind, name, session_id, run_id, trace_id, span_id, parent_span_id, agent_name, ver) VALUES
    ('default', '2026-11-21 10:00:00', '2026-11-21 10:20:00', '2026-11-21 10:20:00', 'harbour', 'agno', 'run', 'invoke_agent pilot', 's-again', 'r-again', '0000000000000000000000000000a002', '000000000000b004', '', 'pilot', 3527419200000000000);
-- One that is closed: its row in open_spans is a tombstone.
INSERT INTO open_spans (tenant, ts, last_seen, source, format, kind, name, span_id, ver, is_deleted) VALUES ('default', '2026-11-21 10:00:00', '2026-11-21 10:00:00', 'harbour', 'agno', 'run', 'invoke_agent', '000000000000b005', 9223372036854775809, 1);
-- A call whose span has expired, and one that a person denied.
INSERT INTO tool_calls (tenant, ts, source, format, tool_name, tool_type, session_id, run_id, trace_id, span_id, tool_call_id, duration_ns, status, error_type, result_bytes, attempt, result_tokens, result_tokens_from, waited_ns, ver) VALUES
    ('default', '2026-08-01 09:00:05', 'harbour', 'agno', 'tides', 'function', 's-old', 'r-old', '0000000000000000000000000000a003', '000000000000b006', 'c-3', 5000, 'ok', '', 9, 2, 70, 'provider', 40, 108086391056891904 + 3),
    ('default', '2026-08-01 09:00:06', 'harbour', 'agno', 'tides', 'function', 's-old', 'r-old', '0000000000000000000000000000a003', '000000000000b007', 'c-4', 6000, 'cancelled', 'denied', 0, 1, 0, '', 0, 90071992547409920 + 3);
-- A span that was removed from one trace, and an older version of it.
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ScopeName, SpanName, SpanAttributes, Ver, IsDeleted) VALUES
    ('2026-11-21 11:00:00', '0000000000000000000000000000a004', '000000000000b008', 'github.com/earshot-dev/earshot', 'chat tern', {'gen_ai.operation.name': 'chat'}, 108086391056891904 + 1, 0);
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ScopeName, SpanName, SpanAttributes, Ver, IsDeleted) VALUES
    ('2026-11-21 11:00:00', '0000000000000000000000000000a004', '000000000000b008', 'github.com/earshot-dev/earshot', 'chat tern', {'gen_ai.operation.name': 'chat'}, 108086391056891904 + 2, 1);
-- A response in the names of the new conventions, that failed without a reason.
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, ScopeName, SpanName, SpanKind, ServiceName, ResourceAttributes, SpanAttributes, Duration, StatusCode, StatusMessage, Ver, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`) VALUES
    ('2026-11-21 11:00:00', '0000000000000000000000000000a005', '000000000000b009', '000000000000b00a', 'github.com/earshot-dev/earshot', 'chat tern', 'Client', 'harbour', {'service.name': 'harbour'},
    {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's-new', 'gen_ai.agent.name': 'pilot', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'tern', 'gen_ai.response.model': 'tern-2', 'gen_ai.request.top_p': '0.5',
     'server.address': 'models.internal', 'server.port': '443', 'gen_ai.response.id': 'resp-1', 'gen_ai.response.finish_reasons': '["stop","length"]', 'gen_ai.response.time_to_first_chunk': '0.123456789',
     'gen_ai.usage.input_tokens': '100', 'gen_ai.usage.output_tokens': '20', 'gen_ai.usage.cache_read.input_tokens': '60', 'gen_ai.usage.cache_write.input_tokens': '30', 'gen_ai.usage.reasoning.output_tokens': '5',
     'earshot.usage.provenance': 'provider', 'error.type': '_OTHER', 'earshot.outcome': 'error', 'earshot.waits_for': 'person', 'earshot.tenant': 'default', 'earshot.source': 'harbour', 'earshot.format': 'openai-chat', 'earshot.session.id': 's-new',
     'earshot.run.id': 'r-new', 'earshot.parent_run.id': 'r-0', 'earshot.agent.id': 'a-1', 'earshot.agent.kind': 'team', 'earshot.span.state': 'closed'}, 700, 'Error', 'no quota', 108086391056891904 + 4,
    ['2026-11-21 11:00:01'], ['earshot.retry'], [{'n': '1'}], ['0000000000000000000000000000a006'], ['000000000000b00b'], ['k=v'], [{'earshot.link': 'previous_turn'}]);
-- A span that an agent sent itself.
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, ScopeName, SpanName, SpanKind, ServiceName, ResourceAttributes, SpanAttributes, Duration, StatusCode) VALUES
    ('2026-11-21 12:00:00', 'aa', 'bb', 'cc', 'com.example.agent', 'agent.tool', 'Server', 'agent', {'host.name': 'quay'}, {'tool_use_id': 'c-1', 'session.id': 's-own'}, 900, 'Ok');
