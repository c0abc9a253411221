package schema

import "slices"

// Rollups are the tables of counts by slots of time, which the exporter of ClickHouse computes from
// messages and spans.
var Rollups = []Table{
	{
		Name: "messages_rollup",
		Columns: slices.Concat(ofSlot, []Column{
			{Name: "agent_name", Type: setZ, Comment: "The agent that runs"},
			{Name: "kind", Type: setZ, Comment: "Kind of the messages"},
			{Name: "model", Type: setZ, Comment: "As the protocol names it"},
			{Name: "messages", Type: count, Comment: "How many"},
			{Name: "failed", Type: count, Comment: "How many report a failure"},
			{Name: "hidden", Type: count, Comment: "How many a user interface would not show"},
			{Name: "content_bytes", Type: count, Comment: "Length of their contents"},
			{Name: "input_tokens", Type: count, Comment: "Tokens neither read from nor written to a cache"},
			{Name: "output_tokens", Type: count, Comment: "Tokens answered, without reasoning"},
			{Name: "cache_read_tokens", Type: count, Comment: "Tokens read from a cache"},
			{Name: "cache_write_tokens", Type: count, Comment: "Tokens written to a cache"},
			{Name: "reasoning_tokens", Type: count, Comment: "Tokens of reasoning"},
		}, ofComputed),
	},
	{
		Name: "usage_rollup",
		Columns: slices.Concat(ofSlot, []Column{
			{Name: "agent_name", Type: setZ, Comment: "The agent that runs"},
			{Name: "model", Type: setZ, Comment: "As the protocol names it"},
			{Name: "session_id", Type: text, Comment: ofSession},
			{Name: "trace_id", Type: text, Comment: ofTrace + ", in hex: the turn; empty for usage that is of no run"},
			{Name: "tier", Type: setZ, Comment: tierComment},
			{Name: "prompt_over", Type: step, Comment: promptOver},
			{Name: "stated", Type: flag, Comment: "The protocol states the cost"},
			{Name: "responses", Type: count, Comment: "How many messages have counts"},
			{Name: "input_tokens", Type: count, Comment: "Tokens neither read from nor written to a cache"},
			{Name: "output_tokens", Type: count, Comment: "Tokens answered, without reasoning"},
			{Name: "cache_read_tokens", Type: count, Comment: "Tokens read from a cache"},
			{Name: "cache_write_tokens", Type: count, Comment: "Tokens written to a cache"},
			{Name: "reasoning_tokens", Type: count, Comment: "Tokens of reasoning"},
			{Name: "cache_write_1h_tokens", Type: count, Default: "DEFAULT 0", Comment: "How many of cache_write_tokens are kept for an hour, which costs more"},
			{Name: "stated_picodollars", Type: count, Default: "DEFAULT 0", Comment: "US dollars that the protocol states as the cost, times 10^12"},
		}, ofComputed),
	},
	{
		Name: "tool_calls_rollup",
		Columns: slices.Concat(ofSlot, []Column{
			{Name: "tool_name", Type: setZ, Comment: "The tool"},
			{Name: "mcp_server", Type: setZ, Comment: "MCP server that has the tool"},
			{Name: "agent_name", Type: setZ, Comment: "The agent that called"},
			{Name: "model", Type: setZ, Comment: "The model that requested the calls, where it is known"},
			{Name: "is_delegation", Type: flag, Comment: "They hand work to another agent"},
			{Name: "internal", Type: flag, Comment: "The tool is the framework's own"},
			{Name: "calls", Type: count, Comment: "Calls that have ended, by when they began"},
			{Name: "errors", Type: count, Comment: "How many failed"},
			{Name: "cancelled", Type: count, Comment: "How many were denied, interrupted or cancelled"},
			{Name: "retries", Type: count, Comment: "How many came right after a failed call of the tool"},
			{Name: "over_1s", Type: count, Comment: "Calls of a second or more"},
			{Name: "over_10s", Type: count, Comment: "Calls of ten seconds or more"},
			{Name: "over_1m", Type: count, Comment: "Calls of a minute or more"},
			{Name: "duration_ns", Type: count, Comment: "Nanoseconds, added up"},
			{Name: "waited_ns", Type: count, Comment: "Nanoseconds of duration_ns that people took"},
			{Name: "args_bytes", Type: count, Comment: "Size of the arguments"},
			{Name: "result_bytes", Type: count, Comment: "Size of the results"},
			{Name: "longest_ns", Type: count, Comment: "Nanoseconds of the longest"},
			{Name: "largest_result", Type: count, Default: "DEFAULT 0", Comment: "Size of the largest result"},
			{Name: "only_waited", Type: count, Default: "DEFAULT 0", Comment: "Calls whose whole time is that of a person"},
			{Name: "active_ns", Type: "Array(UInt64) CODEC(Delta(8), ZSTD(1))", Default: "DEFAULT []", Comment: "Nanoseconds of each of the other calls, without those that a person took; of slots of 300 seconds"},
		}, ofComputed),
	},
	{
		Name: "pauses_rollup",
		Columns: slices.Concat(ofSlot, []Column{
			{Name: "agent_name", Type: setZ, Comment: "The agent that runs"},
			{Name: "model", Type: setZ, Comment: "As the protocol names it"},
			{Name: "messages", Type: count, Comment: "Messages of models"},
			{Name: "longest_us", Type: count, Comment: "Microseconds of the longest pause before one of them: the time since the message before in the same run, if that was less than a day ago"},
			{Name: "pauses", Type: "Array(UInt64) CODEC(ZSTD(1))", Comment: "How many of them have a pause of up to 100 ms, 300 ms, 1 s, 3 s, 10 s, 30 s, 1 min, 3 min, 10 min, 30 min, and longer"},
			{Name: "longest", Type: "Array(Tuple(us UInt64, ts DateTime64(9, 'UTC'), seq UInt64, session_id String)) CODEC(ZSTD(1))", Default: "DEFAULT []", Comment: "The fifty longest pauses, the longest first: microseconds, and ts, seq and session_id of the message after each; of slots of 3600 seconds"},
		}, ofComputed),
	},
}

var ofSlot = []Column{
	{Name: "tenant", Type: set, Comment: ofTenant},
	{Name: "step", Type: "UInt16", Comment: "Seconds of the slot: 300 or 3600"},
	{Name: "ts", Type: seconds, Comment: "Begin of the slot"},
	{Name: "source", Type: setZ, Comment: ofSource + "; empty for hours before the upgrade whose rows are gone"},
	{Name: "format", Type: setZ, Comment: ofFormat},
}

var ofComputed = []Column{
	{Name: "sessions", Type: "AggregateFunction(uniq, String) CODEC(ZSTD(1))", Comment: "Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)"},
	{Name: "seen", Type: seconds, Comment: "When a row was last stored; retention counts from here"},
	{Name: "ver", Type: ordered, Comment: "When the slot was computed, in microseconds: the highest is valid"},
	{Name: "is_deleted", Type: deleted, Comment: "1: there are no such rows any more"},
}

const seconds = "DateTime('UTC') CODEC(Delta(4), ZSTD(1))"
