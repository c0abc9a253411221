package e2e

import (
	"crypto/md5"
	"fmt"
	"strings"
	"testing"
)

// claude is a line of a transcript of Claude Code, in second n of its session.
func claude(session, kind string, n int, rest string) string {
	return fmt.Sprintf(`{"parentUuid":null,"userType":"external","cwd":"/srv/harbour","sessionId":%q,"version":"2.1.230","type":%q,"uuid":"%x","timestamp":"2026-11-02T10:00:%02d.000Z",%s}`+"\n",
		session, kind, md5.Sum([]byte(fmt.Sprint(session, n, rest))), n, rest)
}

func claudePrompt(session string, n int, text string) string {
	return claude(session, "user", n, fmt.Sprintf(`"isSidechain":false,"message":{"role":"user","content":%q}`, text))
}

// reply is a line of a response: a part of its content and its tokens so far.
func reply(session string, n int, id, content, stop string, in, write, read, out int) string {
	if stop != "null" {
		stop = `"` + stop + `"`
	}
	return claude(session, "assistant", n, fmt.Sprintf(`"isSidechain":false,"requestId":"req_%s","message":{"id":%q,"type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[%s],"stop_reason":%s,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}}`,
		id, id, content, stop, in, write, read, out))
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

func task(id, to string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Agent","input":{"description":"look","prompt":"Look at the %s.","subagent_type":%q}}`, id, to, to)
}

// sidechain makes the lines a sub-agent's.
func sidechain(agent, lines string) string {
	return strings.ReplaceAll(lines, `"isSidechain":false`, fmt.Sprintf(`"isSidechain":true,"agentId":%q`, agent))
}

// codex is a line of a rollout, in second n.
func codex(n int, kind, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-02T11:00:%02d.000Z","type":%q,"payload":{%s}}`+"\n", n, kind, payload)
}

func codexMeta(n int, id, more string) string {
	return codex(n, "session_meta", fmt.Sprintf(`"id":%q,"session_id":%q,"timestamp":"2026-11-02T11:00:00.000Z","cwd":"/srv/harbour","originator":"codex_cli_rs","cli_version":"0.146.0","source":"cli","model_provider":"openai"%s`, id, id, more))
}

// codexTurn is a turn with one answer, and the token totals before and with it.
func codexTurn(n int, turn, answer string, before, in, cached, out int) string {
	count := fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":0,"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":0,"total_tokens":%d},"model_context_window":258400}`,
		before+in, cached, out, before+in+out, in, cached, out, in+out)
	return codex(n, "event_msg", fmt.Sprintf(`"type":"task_started","turn_id":%q`, turn)) +
		codex(n, "turn_context", fmt.Sprintf(`"turn_id":%q,"cwd":"/srv/harbour","approval_policy":"never","sandbox_policy":{"type":"read-only"},"model":"gpt-5","effort":"low","summary":"auto"`, turn)) +
		codex(n, "response_item", fmt.Sprintf(`"type":"message","id":"u_%s","role":"user","content":[{"type":"input_text","text":"When is %s?"}],"internal_chat_message_metadata_passthrough":{"turn_id":%q}`, turn, turn, turn)) +
		codex(n+1, "response_item", fmt.Sprintf(`"type":"message","id":"a_%s","role":"assistant","content":[{"type":"output_text","text":%q}],"internal_chat_message_metadata_passthrough":{"turn_id":%q}`, turn, answer, turn)) +
		codex(n+1, "event_msg", count) +
		codex(n+1, "event_msg", count) + // of the rate limits; the totals are the same
		codex(n+1, "event_msg", fmt.Sprintf(`"type":"task_complete","turn_id":%q,"last_agent_message":%q`, turn, answer))
}

// TestTokensThatOthersMiscount has, in one run, a conversation for each way in which tools are
// known to count tokens wrong, and queries v_usage.
func TestTokensThatOthersMiscount(t *testing.T) {
	const (
		origin = "019d0000-0000-7000-8000-00000000000a"
		fork   = "019d0000-0000-7000-8000-00000000000b"
		helper = "019d0000-0000-7000-8000-00000000000c"
	)
	over := func(session string, n int) string {
		return claude(session, "system", n, `"isSidechain":false,"subtype":"turn_duration","durationMs":1000`)
	}
	first := codexTurn(1, "ebb", "At noon.", 0, 1000, 0, 20)
	cases := []struct {
		wrong   string // the mistake of other tools
		session string
		files   map[string]string
		want    string // input, output, cache read, cache write, dollars, agents without a name
	}{
		{"the first of the growing counts of a response stands", "grows", map[string]string{
			"c/grows.jsonl": claudePrompt("grows", 1, "Tide?") + reply("grows", 2, "m_g", text("At"), "null", 10, 0, 0, 1) + reply("grows", 3, "m_g", text("At noon."), "null", 10, 0, 0, 40) +
				reply("grows", 4, "m_g", text("At noon, then."), "end_turn", 10, 0, 0, 200) + over("grows", 5),
		}, "10 200 0 0 0.003030 0"},
		{"the placeholder of a response that was never finished counts as final", "cutoff", map[string]string{
			"c/cutoff.jsonl": claudePrompt("cutoff", 1, "Tide?") + reply("cutoff", 2, "m_c", text("At"), "null", 10, 0, 500, 3),
		}, "10 3 500 0 0.000225 0"},
		{"every content block counts the whole response", "blocks", map[string]string{
			"c/blocks.jsonl": claudePrompt("blocks", 1, "Tide?") + reply("blocks", 2, "m_b", `{"type":"thinking","thinking":"hm","signature":"x"}`, "tool_use", 10, 0, 0, 100) +
				reply("blocks", 2, "m_b", text("I look."), "tool_use", 10, 0, 0, 100) + reply("blocks", 3, "m_b", `{"type":"tool_use","id":"toolu_b","name":"Bash","input":{"command":"tide"}}`, "tool_use", 10, 0, 0, 100) + over("blocks", 4),
		}, "10 100 0 0 0.001530 0"},
		{"cached tokens count inside the input and beside it", "cached", map[string]string{
			"c/cached.jsonl": claudePrompt("cached", 1, "Tide?") + reply("cached", 2, "m_k", text("Noon."), "end_turn", 10, 2000, 30000, 5) + over("cached", 3),
		}, "10 5 30000 2000 0.016605 0"},
		{"a sub-agent's totals count in its file and in its parent's result; equal children count as one; they name no agent", "family", map[string]string{
			"c/family.jsonl": claudePrompt("family", 1, "Look around.") + reply("family", 2, "m_f1", task("toolu_f1", "buoy"), "tool_use", 10, 0, 0, 50) + reply("family", 2, "m_f1", task("toolu_f2", "mole"), "tool_use", 10, 0, 0, 50) +
				claude("family", "user", 9, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_f1","content":"Fine."}]},"toolUseResult":{"status":"completed","agentId":"af1","totalTokens":107,"usage":{"input_tokens":100,"output_tokens":7}}`) +
				claude("family", "user", 9, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_f2","content":"Fine."}]},"toolUseResult":{"status":"completed","agentId":"af2","totalTokens":107,"usage":{"input_tokens":100,"output_tokens":7}}`) +
				reply("family", 10, "m_f2", text("All fine."), "end_turn", 20, 0, 0, 3) + over("family", 11),
			"c/family/subagents/agent-af1.jsonl": sidechain("af1", claudePrompt("family", 3, "Look at the buoy.")+reply("family", 4, "m_x1", text("Fine."), "end_turn", 100, 0, 0, 7)),
			"c/family/subagents/agent-af2.jsonl": sidechain("af2", claudePrompt("family", 3, "Look at the mole.")+reply("family", 4, "m_x2", text("Fine."), "end_turn", 100, 0, 0, 7)),
		}, "230 67 0 0 0.001695 0"},
		{"the origin of a fork counts again in its copy", origin, map[string]string{
			"x/rollout-2026-11-02T11-00-00-" + origin + ".jsonl": codexMeta(0, origin, "") + first,
		}, "1000 20 0 0 0.001450 0"},
		{"a fork's first cumulative total counts as spent", fork, map[string]string{
			"x/rollout-2026-11-02T11-00-20-" + fork + ".jsonl": codexMeta(20, fork, fmt.Sprintf(`,"forked_from_id":%q`, origin)) + codexMeta(20, origin, "") +
				strings.NewReplacer("11:00:01", "11:00:20", "11:00:02", "11:00:20").Replace(first) + codexTurn(30, "flood", "At six.", 1000, 1500, 1000, 4),
		}, "500 4 1000 0 0.000790 0"},
		{"repeated totals count again, and input contains the cached tokens", helper, map[string]string{
			"x/rollout-2026-11-02T11-00-40-" + helper + ".jsonl": codexMeta(40, helper, "") + codexTurn(41, "slack", "At three.", 0, 900, 600, 10),
		}, "300 10 600 0 0.000550 0"},
	}
	h := newHome(t).configure("sources:",
		`  - {name: claude, type: file, format: claude-code, poll_interval: 1s, paths: ["DIR/c/**/*.jsonl"]}`,
		`  - {name: codex, type: file, format: codex, poll_interval: 1s, paths: ["DIR/x/*.jsonl"]}`)
	for _, c := range cases {
		for name, data := range c.files {
			h.write(name, data)
		}
	}
	h.drain()
	for _, c := range cases {
		got := h.query("SELECT concat(toString(sum(input_tokens)), ' ', toString(sum(output_tokens)), ' ', toString(sum(cache_read_tokens)), ' ', toString(sum(cache_write_tokens)), ' ', toDecimalString(sum(cost_usd), 6), ' ', toString(countIf(agent_name = ''))) FROM v_usage WHERE session_id = '" + c.session + "'")
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, want %q", c.wrong, got, c.want)
		}
	}
	if got := h.query("SELECT attributes['usage_provenance'] FROM messages WHERE session_id = 'cutoff' AND kind = 'usage'"); len(got) != 1 || got[0] != "transcript_partial" {
		t.Errorf("the count that stopped early is %q", got)
	}
	if got := h.query("SELECT count() FROM (SELECT agent_name FROM v_usage WHERE session_id = 'family' GROUP BY agent_name HAVING agent_name IN ('buoy', 'mole'))"); got[0] != "2" {
		t.Errorf("%s of the two children have tokens of their own", got[0])
	}
}
