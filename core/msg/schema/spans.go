package schema

// spans is the table of spans: open ones, those that have ended, and tombstones. The views
// otel_traces, tool_calls, delegations and open_spans show parts of it.
var spans = Table{
	Name: "spans", Rows: "spanRows", Record: "s *msg.Span", Profile: true,
	Doc: `spanRows builds rows of the table spans.

The sort key is the hour of the start, the session and the span id, and the id contains the
session. The trace is not part of it: a span that moves to another trace has a higher version,
which replaces the row, and the tombstone of the earlier trace has a lower one. The
tombstone of an earlier start removes a row if the start was in another hour.

An attribute of the conventions is a column, or follows from columns, or is in the map
attributes; the view otel_traces has all of them in one map.`,
	Columns: []Column{
		{Name: "tenant", Type: setZ, From: "s.Tenant", Comment: ofTenant},
		{Name: "ts", Type: nanos, From: "s.Start", Comment: "When it began"},
		{Name: "source", Type: setZ, From: "s.Source", Comment: ofSource},
		{Name: "format", Type: setZ, From: "s.Format", Comment: ofFormat},
		{Name: "session_id", Type: text, From: "s.Session", Comment: ofSession},
		{Name: "unnamed", Type: flag, From: "s.Unnamed", Comment: "session_id is no id of the protocol: a file's name, a hash, the run's id"},
		{Name: "run_id", Type: text, From: "s.Run", Comment: "One invocation of one agent"},
		{Name: "parent_run_id", Type: text, From: "s.ParentRun", Comment: "The run that caused this one"},
		{Name: "trace_id", Type: "FixedString(16) CODEC(ZSTD(1))", Binary: true, From: "s.TraceID[:]", Comment: "lower(hex(trace_id)) is TraceId of otel_traces"},
		{Name: "span_id", Type: "FixedString(8) CODEC(ZSTD(1))", Binary: true, From: "s.ID[:]", Comment: "lower(hex(span_id)) is SpanId of otel_traces"},
		{Name: "parent_span_id", Type: "FixedString(8) CODEC(ZSTD(1))", Binary: true, From: "s.Parent[:]", Comment: "span_id of the parent; zeros for the root"},
		{Name: "kind", Type: setZ, From: "s.Kind.String()", Comment: "run, chat, tool, delegation or workflow"},
		{Name: "state", Type: setZ, From: "s.State.String()", Comment: "open, idle (ended by silence) or closed"},
		{Name: "outcome", Type: setZ, From: "outcome(s)", Comment: "ok, error or cancelled; empty for an open span, and where the protocol has none"},
		{Name: "error_type", Type: setZ, From: "s.ErrorType", Comment: "Why it failed or was cancelled: timeout, denied, no_result, ..."},
		{Name: "status_message", Type: text, From: "s.StatusMessage", Comment: "Of a failure"},
		{Name: "duration_ns", Type: count, From: "duration(s)", Comment: "Nanoseconds; 0 while open"},
		{Name: "worked_ns", Type: count, From: "worked(s)", Comment: "Nanoseconds that the work of a delegation took, to the end of the child run, where that is known and not duration_ns; else 0"},
		{Name: "last_seen", Type: nanos, From: "whileOpen(s, s.LastSeen)", Comment: "Time of the last event of an open span; 1970 for one that has ended"},
		{Name: "alive_at", Type: nanos, From: "whileOpen(s, cmp.Or(s.Alive, s.LastSeen))", Comment: "Time of the last sign of life of an open span, by Earshot's clock where the stream was read live"},
		{Name: "name", Type: setZ, From: "r.profile.Name(s)", Comment: "invoke_agent, chat, execute_tool or invoke_workflow, and its target; empty for a call whose span had expired when the table was made"},
		{Name: "agent_id", Type: text, From: "s.Agent.ID", Comment: "The agent's id in the protocol"},
		{Name: "agent_name", Type: setZ, From: "s.Agent.Name", Comment: "The agent that runs, or calls"},
		{Name: "agent_kind", Type: setZ, From: "s.Agent.Kind.String()", Comment: "agent, team, workflow or human"},
		{Name: "model", Type: setZ, From: "s.Model", Comment: "Of a chat or a run as the protocol names it; of a call the one that requested it"},
		{Name: "request_model", Type: setZ, From: "(appendAttributes)", Comment: "gen_ai.request.model of a chat or a run"},
		{Name: "response_model", Type: setZ, From: "(appendAttributes)", Comment: "gen_ai.response.model of a chat or a run"},
		{Name: "provider", Type: setZ, From: "(appendAttributes)", Comment: "gen_ai.provider.name of a chat or a run"},
		{Name: "response_id", Type: text, From: "s.ResponseID", Comment: "The model's response that a chat is"},
		{Name: "finish_reasons", Type: setZ, From: "(appendAttributes)", Comment: "Why the model stopped: a list in JSON"},
		{Name: "ended", Type: setZ, From: "s.Ended", Comment: "How a run ended, in the protocol's words"},
		{Name: "first_token_ns", Type: count, From: "firstToken(s)", Comment: "Nanoseconds from the request to the first token; 0 when unknown"},
		{Name: "input_tokens", Type: count, From: "s.Usage.Input", Comment: "Tokens of the request, neither read from nor written to a cache; of a run those of its chats once more"},
		{Name: "output_tokens", Type: count, From: "s.Usage.Output", Comment: "Tokens of the answer, without reasoning"},
		{Name: "cache_read_tokens", Type: count, From: "s.Usage.CacheRead", Comment: "Tokens read from a cache"},
		{Name: "cache_write_tokens", Type: count, From: "s.Usage.CacheWrite", Comment: "Tokens written to a cache"},
		{Name: "reasoning_tokens", Type: count, From: "s.Usage.Reasoning", Comment: "Tokens of reasoning"},
		{Name: "cache_write_1h_tokens", Type: count, From: "s.Usage.CacheWrite1h", Default: "DEFAULT 0", Comment: "How many of cache_write_tokens are kept for an hour, which costs more"},
		{Name: "tier", Type: setZ, From: "s.Usage.Tier", Default: "DEFAULT ''", Comment: tierComment},
		{Name: "stated_picodollars", Type: count, From: "s.Usage.Stated", Default: "DEFAULT 0", Comment: "US dollars that the protocol states as the cost, times 10^12; 0 where it states none"},
		{Name: "usage_provenance", Type: setZ, From: "s.Usage.Provenance.String()", Comment: "Where the counts come from: provider, transcript_final, transcript_partial, estimated"},
		{Name: "tool_name", Type: setZ, From: "s.Tool.Name", Comment: "The tool that is called"},
		{Name: "mcp_server", Type: setZ, From: "s.Tool.Server", Comment: "MCP server that has the tool"},
		{Name: "tool_call_id", Type: text, From: "s.Tool.ID()", Comment: "The protocol's id of the call"},
		{Name: "internal", Type: flag, From: "s.Tool.Internal", Comment: "The tool is the framework's own"},
		{Name: "args_bytes", Type: size, From: "s.ArgumentBytes", Comment: "Size of the arguments"},
		{Name: "args_shape", Type: setZ, From: "s.ArgumentShape", Comment: "Signature of the arguments: command:string timeout:number; empty when they are no JSON object"},
		{Name: "result_bytes", Type: size, From: "s.ResultBytes", Comment: "Size of the result"},
		{Name: "attempt", Type: "UInt16 CODEC(T64, ZSTD(1))", From: "s.Attempt", Comment: "1, or the number of the retry: calls of the tool failed one after the other right before"},
		{Name: "result_tokens", Type: size, From: "s.ResultTokens", Comment: "Tokens that the result added to every later request of its run; 0 while unknown"},
		{Name: "result_tokens_from", Type: setZ, From: "s.ResultTokensFrom.String()", Comment: "Provenance of the counts behind result_tokens; empty when unknown"},
		{Name: "waits_for", Type: setZ, From: "s.WaitsFor()", Comment: "person: it waited for a person, or waits while it is open; empty otherwise"},
		{Name: "waited_ns", Type: count, From: "uint64(s.Waited())", Comment: "Nanoseconds of duration_ns that a person took; 0 while open"},
		{Name: "delegate_to", Type: setZ, From: "s.Delegate.To", Comment: "The delegate: its display name where any is known, else as the caller wrote it"},
		{Name: "delegate_id", Type: text, From: "s.Delegate.ToID", Comment: "Id of the delegate, where delegate_to is its display name"},
		{Name: "child_run_id", Type: text, From: "s.Delegate.ChildRun", Comment: "The run that it caused; empty when none was found"},
		{Name: "link_method", Type: setZ, From: "s.Delegate.Link.String()", Comment: "How the child run was found: native_id, meta_file, fork_id, traceparent, parent_run, order, prompt"},
		{Name: "link_confidence", Type: deleted, From: "s.Delegate.Confidence", Comment: "Percent; 0 when the method alone grades the link"},
		{Name: "async", Type: flag, From: "s.Delegate.Async", Comment: "The caller goes on meanwhile"},
		{Name: "convention", Type: setZ, From: "r.profile.String()", Comment: "Version of the GenAI conventions that its attributes are of: 1.41 or genai-latest"},
		{Name: "attributes", Type: pairs, From: "(appendAttributes)", Comment: "Attributes of the conventions without a column"},
		{Name: "events.time", Type: "Array(DateTime64(9, 'UTC')) CODEC(ZSTD(1))", From: "(appendEvents)", Comment: ofEvents},
		{Name: "events.name", Type: "Array(LowCardinality(String)) CODEC(ZSTD(1))", From: "(appendEvents)", Comment: ofEvents},
		{Name: "events.attributes", Type: pairList, From: "(appendEvents)", Comment: ofEvents},
		{Name: "links.trace_id", Type: textList, From: "(appendLinks)", Comment: ofLinks},
		{Name: "links.span_id", Type: textList, From: "(appendLinks)", Comment: ofLinks},
		{Name: "links.state", Type: textList, From: "(appendLinks)", Comment: ofLinks},
		{Name: "links.attributes", Type: pairList, From: "(appendLinks)", Comment: ofLinks},
		{Name: "project", Type: setZ, Default: "DEFAULT ''", From: "s.Client.Project", Comment: ofProject},
		{Name: "branch", Type: setZ, Default: "DEFAULT ''", From: "s.Client.Branch", Comment: ofBranch},
		{Name: "agent_version", Type: setZ, Default: "DEFAULT ''", From: "s.Client.Version", Comment: ofAgentVersion},
		{Name: "host", Type: setZ, Default: "DEFAULT ''", From: "s.Client.Host", Comment: ofHost},
		{Name: "user", Type: setZ, Default: "DEFAULT ''", From: "s.Client.User", Comment: ofUser},
		{Name: "seen_by", Type: "Array(String)", Default: "ALIAS if(mapContains(attributes, 'earshot.seen_by'), JSONExtract(attributes['earshot.seen_by'], 'Array(String)'), [toString(format)])", Comment: ofSeenBy},
		{Name: "ingest_ts", Type: millis, Default: now, Comment: ofIngest},
		{Name: "ver", Type: ordered, From: "spanVersion(s)", Comment: ofVer},
		{Name: "is_deleted", Type: deleted, From: "flag(s.Tombstone)", Comment: ofGone},
	},
}

const (
	ofEvents       = "Retries, pauses, waits for permission, errors"
	ofProject      = "Directory of the project that the run works in; empty where the protocol has none"
	ofBranch       = "Branch of its version control"
	ofAgentVersion = "Version of the program that the agent runs in"
	ofSeenBy       = "Formats that show the span, the one that its row is of first. The attributes earshot.tokens.from and earshot.times.from name the one that its numbers are of, earshot.conflict has counts that differ"
	ofHost         = "The machine of the agent where the protocol names it, else that of the sidecar"
	ofUser         = "The account, where the protocol has one"

	ofLinks = "The previous turn of the session, a forked session"
)
