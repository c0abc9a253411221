package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// minion writes the records of one session.
type minion struct{ session string }

// at is a time of the day on which the minions worked, as the writer has it.
func at(s float64) string { return fmt.Sprintf("%.3f", 1772442000+s) }

func (m minion) prompt(s float64, text string) string {
	return fmt.Sprintf(`{"type":"user","content":%q,"timestamp":%s,"session_id":%q}`+"\n", text, at(s), m.session)
}

func (m minion) text(s float64, text string) string {
	return fmt.Sprintf(`{"type":"assistant","content":%q,"timestamp":%s,"metadata":{"tool_uses":[],"tool_results":[],"model":"claude-sonnet-4-5"},"session_id":%q}`+"\n", text, at(s), m.session)
}

func (m minion) toolCall(s, ended float64, id, tool, input, result string) string {
	return fmt.Sprintf(`{"type":"assistant","content":"Assistant response","timestamp":%s,"metadata":{"tool_uses":[{"id":%q,"name":%q,"input":%s,"timestamp":%[1]s}],"model":"claude-sonnet-4-5"},"session_id":%[5]q}`+"\n",
		at(s), id, tool, input, m.session) +
		fmt.Sprintf(`{"type":"user","content":"Tool results: 1 results","timestamp":%s,"metadata":{"tool_results":[{"tool_use_id":%q,"content":%q,"is_error":null,"timestamp":%[1]s}],"has_tool_results":true},"session_id":%[4]q}`+"\n",
			at(ended), id, result, m.session)
}

func (m minion) sendComm(s float64, id, to, summary, content string) string {
	return m.toolCall(s, s+0.06, id, "mcp__legion__send_comm", fmt.Sprintf(`{"to_minion_name":%q,"summary":%q,"content":%q,"comm_type":"task"}`, to, summary, content), "Message sent to "+to)
}

func (m minion) result(s float64) string {
	return fmt.Sprintf(`{"type":"result","content":"Conversation success","timestamp":%s,"metadata":{"subtype":"success","is_error":false,"usage":{"input_tokens":10,"output_tokens":5}},"session_id":%q}`+"\n", at(s), m.session)
}

// survey is a conversation of two minions: a person asks heron, which sends wren out, which
// counts for 41 seconds and reports back.
func survey() (heron, wren string) {
	a, b := minion{"a-heron"}, minion{"b-wren"}
	heron = a.prompt(0, "How many boats are out?") + a.sendComm(2, "toolu_out", "wren", "Count the boats", "Count the boats\n\nbehind the mole.") +
		a.sendComm(3, "toolu_lost", "gull", "Any wind?", "Any wind out there?") + a.sendComm(3.5, "toolu_user", "user", "Wait", "I have asked wren.") + a.result(5) +
		a.prompt(43.2, "**📊 Report from Minion #wren:** Boats\n\nNine boats.") + a.text(45, "Nine boats are out.") + a.result(46)
	wren = b.prompt(2.05, "**📋 Task from Minion #heron:** Count the boats\n\nCount the boats\n\nbehind the mole.") +
		b.toolCall(5, 40, "toolu_count", "Bash", `{"command":"telescope --count"}`, "9") + b.sendComm(43, "toolu_back", "heron", "Boats", "Nine boats.") + b.result(43.5)
	return heron, wren
}

// TestMinionsSendEachOtherWork: a message from one minion to another and the turn that it
// causes there are one tree, as long as the work, and both have names; whichever file is read
// first, with a restart in between, with the files that name the minions and without.
func TestMinionsSendEachOtherWork(t *testing.T) {
	heron, wren := survey()
	var want map[string][]string
	var from string
	for name, order := range map[string][]string{"heron": {"a-heron", "b-wren"}, "wren": {"b-wren", "a-heron"}, "at once": {"both"}, "named": {"state", "b-wren", "a-heron"}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t).configure("sources:", files("legion", "sessions/*/messages.jsonl"))
			for _, step := range order {
				if step == "a-heron" || step == "both" {
					h.write("sessions/a-heron/messages.jsonl", heron)
				}
				if step == "b-wren" || step == "both" {
					h.write("sessions/b-wren/messages.jsonl", wren)
				}
				if step == "state" {
					h.write("sessions/a-heron/state.json", `{"name": "heron", "session_id": "a-heron", "created_at": "2026-03-02T08:59:59+00:00"}`)
				} else {
					h.drain()
				}
			}
			h.wantRows("SELECT uniqExact(TraceId), countIf(ParentSpanId = ''), count() FROM otel_traces FINAL", "1\t1\t14")
			h.wantRows("SELECT run_id != '', session_id, agent_name FROM messages FINAL WHERE kind NOT IN ('user', 'status') GROUP BY ALL ORDER BY ALL",
				"true\ta-heron\theron", "true\tb-wren\twren")
			h.wantRows("SELECT AgentName, SessionId FROM otel_traces FINAL GROUP BY ALL ORDER BY ALL", "heron\ta-heron", "wren\tb-wren")
			h.wantRows("SELECT tool_call_id, agent_name, delegate_to, link_method, link_confidence, async, round(duration_ns / 1e6), child_run_id != '' FROM delegations FINAL ORDER BY ts",
				"toolu_out\theron\twren\tprompt\t80\ttrue\t41500\ttrue", "toolu_lost\theron\tgull\t\t0\ttrue\t60\tfalse", "toolu_back\twren\theron\tprompt\t80\ttrue\t3000\ttrue")
			h.wantRows("SELECT countIf(status = 'running'), count() FROM delegations FINAL", "0\t3")
			// The queries of the dashboards: who delegated to whom and for how long, and whose
			// tokens.
			h.wantRows("SELECT agent_name, delegate_to, duration_ms FROM v_delegations ORDER BY duration_ms DESC", "heron\twren\t41500", "wren\theron\t3000", "heron\tgull\t60")
			h.wantRows("SELECT if(agent_name = '', concat('(', format, ')'), agent_name) AS agent, sum(tokens) FROM v_usage GROUP BY agent ORDER BY agent", "heron\t30", "wren\t15")
			h.wantRows("SELECT count() FROM dead_letters", "0")
			if text := string(h.command("show", "a-heron")); !strings.Contains(text, "run wren 41s · session b-wren · linked by prompt") {
				t.Errorf("show\n%s", text)
			}
			var slow []struct {
				AgentName  string           `json:"agent_name"`
				DelegateTo string           `json:"delegate_to"`
				DurationMS int64            `json:"duration_ms"`
				BlameMS    map[string]int64 `json:"blame_ms"`
				Bottleneck struct {
					Name      string `json:"name"`
					AgentName string `json:"agent_name"`
				} `json:"bottleneck"`
			}
			h.must(json.Unmarshal(h.command("slow", "--since", "87600h", "-o", "json"), &slow))
			if len(slow) != 3 || slow[0].AgentName != "heron" || slow[0].DelegateTo != "wren" || slow[0].DurationMS != 41500 || slow[0].BlameMS["tool"] != 35000 ||
				slow[0].BlameMS["sub_agent"] != 0 || slow[0].Bottleneck.Name != "Bash" || slow[0].Bottleneck.AgentName != "wren" {
				t.Errorf("slow -o json: %+v", slow)
			}
			if text := string(h.command("slow", "--since", "87600h")); !strings.Contains(text, "heron → wren") || !strings.Contains(text, "tool Bash in wren") {
				t.Errorf("slow:\n%s", text)
			}
			got := h.tables()
			delete(got, "dead_letters")
			got = replaceDir(got, h.dir, "DIR")
			if name == "named" {
				return // there is a row more
			}
			if want == nil {
				want, from = got, name
			}
			for table := range want {
				if d := cmp.Diff(want[table], got[table]); d != "" {
					t.Errorf("%s (-%s first +%s):\n%s", table, from, name, tail(d))
				}
			}
		})
	}
}

func (h *home) wantRows(sql string, want ...string) {
	h.Helper()
	got := h.query(sql)
	for i := range got { // the engine prints either
		got[i] = strings.NewReplacer("\ttrue", "\t1", "\tfalse", "\t0", "true\t", "1\t").Replace(got[i])
	}
	for i := range want {
		want[i] = strings.NewReplacer("\ttrue", "\t1", "\tfalse", "\t0", "true\t", "1\t").Replace(want[i])
	}
	if d := cmp.Diff(want, got); d != "" {
		h.Errorf("%s (-want +got):\n%s", sql, d)
	}
}
