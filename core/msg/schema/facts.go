package schema

import "slices"

// Facts are the tables that have the few rows of messages or spans which questions over long ranges
// of time are about, with the columns that they need. The exporter of ClickHouse computes them.
var Facts = []Table{
	{
		Name: "usage_facts",
		Columns: slices.Concat(messages.pick("tenant", "ts", "source", "format", "session_id", "run_id", "message_id", "part_index", "trace_id", "agent_name", "provider", "model",
			"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"), ofFact, []Column{
			{Name: "cache_write_1h_tokens", Type: count, Default: "DEFAULT 0", Comment: "How many of cache_write_tokens are kept for an hour, which costs more"},
			{Name: "tier", Type: setZ, Default: "DEFAULT ''", Comment: tierComment},
			{Name: "prompt_over", Type: step, Default: "DEFAULT 0", Comment: promptOver},
			{Name: "stated_picodollars", Type: count, Default: "DEFAULT 0", Comment: "US dollars that the protocol states as the cost, times 10^12; 0 where it states none"},
		}),
	},
	{
		Name:    "span_facts_by_day",
		Columns: factsOfSpans,
	},
	{
		Name: "unknown_facts",
		Columns: slices.Concat(messages.pick("tenant", "ts", "source", "format", "session_id", "message_id", "part_index"), []Column{
			{Name: "type", Type: setZ, Comment: "Type of the record, which the decoder does not know; unknown_fields for a record of which it does not know some fields"},
		}, ofFact),
	},
}

var factsOfSpans = slices.Concat(spans.pick("tenant", "ts", "source", "format", "session_id", "run_id", "trace_id", "span_id", "parent_span_id", "kind", "state", "outcome", "error_type", "status_message",
	"duration_ns", "worked_ns", "name", "agent_name", "model", "request_model", "response_model", "first_token_ns", "output_tokens", "reasoning_tokens", "tool_name", "tool_call_id",
	"args_bytes", "result_bytes", "waits_for", "delegate_to", "delegate_id", "child_run_id", "link_method", "link_confidence", "async", "project", "branch", "agent_version", "host", "user"), ofFact)

const (
	tierComment = "Tier of the service that the tokens are billed by: batch, flex, priority, fast; us is where they are processed. Several are joined by +; empty is the standard tier"
	promptOver  = "The prompt of the response has more tokens than that size, above which a model may be dearer: 128000, 200000, 256000 or 272000; 0: it has not, or the tokens are of several requests"
	step        = "UInt32 CODEC(T64, ZSTD(1))"
)

var ofFact = []Column{
	{Name: "ingest_ts", Type: millis, Comment: "When the row was stored; retention counts from here"},
	{Name: "row_ver", Type: ordered, Comment: "Its version"},
	{Name: "ver", Type: ordered, Comment: "When it was copied, in microseconds: the highest is valid"},
	{Name: "is_deleted", Type: deleted, Comment: "1: there is no such row any more"},
}

// pick returns columns of a table, which a table that is computed from it has too.
func (t Table) pick(names ...string) []Column {
	var out []Column
	for _, c := range t.Columns {
		if slices.Contains(names, c.Name) {
			out = append(out, Column{Name: c.Name, Type: c.Type, Binary: c.Binary, Comment: c.Comment})
		}
	}
	return out
}
