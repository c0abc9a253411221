package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

// decoded stores the spans that a decoder and the assembler make of recordings.
func (h *home) decoded(format string, files ...string) {
	h.Helper()
	inputs := make([]app.Input, 0, len(files))
	for _, path := range files {
		in, done, err := (&decodeOptions{}).open(path, nil)
		if err != nil {
			h.Fatal(err)
		}
		h.Cleanup(done)
		inputs = append(inputs, in)
	}
	b := export.Batch{}
	err := app.DecodeStreams(h.Context(), decoders(), &config.Config{}, format, "", inputs, app.Decoded{
		Message: func(m *msg.Message) error {
			own := *m
			own.Content, own.Tool.Arguments, own.Delegation.Task = m.Content.Own(), m.Tool.Arguments.Own(), m.Delegation.Task.Own()
			own.Attrs = slices.Clone(m.Attrs)
			b.Messages = append(b.Messages, new(own))
			return nil
		},
		Problem: func(string, int64, msg.Problem, []byte) {},
		Span:    func(s *msg.Span) { b.Spans = append(b.Spans, new(*s)) },
	})
	if err != nil {
		h.Fatal(err)
	}
	h.export(b)
}

// TestBackgroundIsOnNoPath generates conversations of which many turns have agents in
// the background: none that outlives its turn has any of the turn's time, and the saving
// in an explanation agrees with its share.
func TestBackgroundIsOnNoPath(t *testing.T) {
	h := newHome(t)
	dir := t.TempDir()
	if _, err := gen.Legion(gen.Options{Bytes: 20e6, Sessions: 40, Every: 14 * time.Minute, Seed: 7, MaxContent: 4000}).Write(dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "sessions", "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	h.decoded("legion", files...)
	outlived := 0
	for _, trace := range h.traces(`SELECT DISTINCT d.trace_id FROM delegations AS d FINAL JOIN otel_traces AS r FINAL ON r.TraceId = d.trace_id
		WHERE d.async AND r.ParentSpanId = '' AND d.ts + toIntervalNanosecond(d.duration_ns) > r.Timestamp + toIntervalNanosecond(r.Duration)`) {
		for _, root := range trace.Tree.Roots() {
			beyond := make(map[*blame.Node]bool)
			for id := range trace.Works {
				if n := trace.Tree.Node(id); n.Kind == blame.Delegation && n.Async && n.End > root.End {
					beyond[n] = true
				}
			}
			if len(beyond) == 0 {
				continue
			}
			outlived++
			for _, p := range root.Path() {
				for n := p.Node; n != nil; n = n.Parent() {
					if beyond[n] {
						t.Errorf("trace %s: %s of the path are work in the background that ended after the turn", trace.ID, inspect.Span(time.Duration(p.To-p.From)))
					}
				}
			}
			for _, c := range root.Bottlenecks(3) {
				if c.Saves > c.Time {
					t.Errorf("trace %s: %v had %d ns and saves %d", trace.ID, c.Group, c.Time, c.Saves)
				}
			}
			if text := strings.Join(trace.Explain().Text, " "); !strings.Contains(text, "Nobody waited for") {
				t.Errorf("trace %s: %s", trace.ID, text)
			}
		}
	}
	if outlived < 10 {
		t.Errorf("%d turns have work that outlives them: too few to tell", outlived)
	}
}

// traces loads those that the query names, as the commands do.
func (h *home) traces(query string) (out []*inspect.Trace) {
	h.Helper()
	cfg, err := (&configFile{path: h.config}).load(false)
	if err != nil {
		h.Fatal(err)
	}
	r, err := openReader(h.Context(), cfg)
	if err != nil {
		h.Fatal(err)
	}
	defer r.close()
	var ids []string
	err = r.Each(h.Context(), query, nil, func(v []any) error {
		ids = append(ids, v[0].(string))
		return nil
	})
	if err != nil {
		h.Fatal(err)
	}
	for _, id := range ids {
		t, err := inspect.LoadTrace(h.Context(), r, id, r.prices, time.Now())
		if err != nil {
			h.Fatal(err)
		}
		out = append(out, t)
	}
	return out
}

// TestReportedTogether: a team delegates to two members at once, and AGNO reports both
// results when the second arrives. Whichever the ids, the turn waited for the member that
// worked longer, each took as long as it worked, and every turn has the same critical path.
func TestReportedTogether(t *testing.T) {
	h := newHome(t)
	dir := t.TempDir()
	var files []string
	for n := range 8 {
		id := func(what string) string { return msg.HashKey(what, fmt.Sprint(n))[:12] }
		at, text := int64(1780000000), new(strings.Builder)
		team := fmt.Sprintf(`"team_id":"harbour","team_name":"Harbour","session_id":"together-%d","run_id":%q`, n, id("team"))
		event := func(name string, second int64, fields string) {
			fmt.Fprintf(text, "event: %s\ndata: {\"event\":%q,\"created_at\":%d,%s}\n\n", name, name, at+second, fields)
		}
		tool := func(call, member, result string) string {
			return fmt.Sprintf(`%s,"tool":{"tool_call_id":%q,"tool_name":"delegate_task_to_member","tool_args":{"member_id":%q,"task":"Look %s"},"result":%s}`, team, id(call), member, member, result)
		}
		member := func(who, more string) string {
			return fmt.Sprintf(`"agent_id":%q,"agent_name":%q,"session_id":"together-%d","run_id":%q,"parent_run_id":%q%s`, who, strings.ToUpper(who), n, id(who), id("team"), more)
		}
		event("TeamRunStarted", 0, team)
		event("TeamToolCallStarted", 2, tool("one", "north", "null"))
		event("TeamToolCallStarted", 2, tool("two", "south", "null"))
		event("RunStarted", 2, member("north", ""))
		event("RunStarted", 2, member("south", ""))
		event("RunContent", 7, member("north", `,"content":"Nothing north."`))
		event("RunCompleted", 8, member("north", `,"content":"Nothing north."`))
		event("RunContent", 21, member("south", `,"content":"A leak south."`))
		event("RunCompleted", 22, member("south", `,"content":"A leak south."`))
		event("TeamToolCallCompleted", 23, tool("one", "north", `"Nothing north."`))
		event("TeamToolCallCompleted", 23, tool("two", "south", `"A leak south."`))
		event("TeamRunContent", 25, team+`,"content":"There is a leak."`)
		event("TeamRunCompleted", 25, team+`,"content":"There is a leak."`)
		file := filepath.Join(dir, fmt.Sprintf("%d.sse", n))
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	h.decoded("agno", files...)

	var story []string
	for _, trace := range h.traces("SELECT DISTINCT trace_id FROM delegations FINAL") {
		story = append(story, strings.Join(trace.Explain().Text, " "))
		critical := make(map[string]float64)
		for _, s := range trace.Waterfall().Spans {
			critical[s.Kind+" "+s.AgentName] += s.CriticalMS
		}
		if critical["run NORTH"] != 0 || critical["run SOUTH"] < 19_000 {
			t.Errorf("trace %s waited for %v", trace.ID, critical)
		}
	}
	if len(story) != 8 {
		t.Fatalf("%d turns", len(story))
	}
	for _, s := range story {
		if s != story[0] {
			t.Errorf("equal turns have two stories:\n%s\n%s", s, story[0])
		}
	}
	if !strings.Contains(story[0], "The slowest of its 2 delegations, Harbour to SOUTH, took 20s") {
		t.Errorf("explained:\n%s", story[0])
	}
	want := "north\t6000\nsouth\t20000\n"
	if got, _ := h.run("query", "SELECT lower(delegate_to), any(duration_ms) FROM v_delegations GROUP BY 1 ORDER BY 1", "--format", "TSV"); got != want {
		t.Errorf("v_delegations says\n%s", got)
	}
	var list []inspect.SlowDelegation
	h.json(&list, "slow", "--since", fmt.Sprint(time.Since(time.Unix(1780000000, 0)).Truncate(time.Hour)+time.Hour), "-n", "2")
	if len(list) != 2 || list[0].DurationMS != 20_000 || list[1].DurationMS != 20_000 {
		t.Errorf("slow says %+v", list)
	}
}

// TestWrittenTogether: Claude Code runs a tool that must not run beside a sub-agent after
// it, and dates the call with its response. The sub-agent's time is not that tool's.
func TestWrittenTogether(t *testing.T) {
	h := newHome(t)
	var text strings.Builder
	parent := "null"
	line := func(second float64, id, kind, message, more string) {
		at := time.Date(2026, 4, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(second * 1e9)).Format("2006-01-02T15:04:05.000Z")
		fmt.Fprintf(&text, `{"parentUuid":%s,"isSidechain":%t,"sessionId":"5e0a","version":"1.0.70","cwd":"/srv","uuid":%q,"timestamp":%q,"type":%q,"message":%s%s}`+"\n",
			parent, strings.HasPrefix(id, "s"), id, at, kind, message, more)
		parent = strconv.Quote(id)
	}
	says := func(response, block string) string {
		return fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","model":"claude-opus-4-1","content":[%s],"usage":{"input_tokens":5,"output_tokens":5}}`, response, block)
	}
	result := func(call, text string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, call, text)
	}
	line(0, "u1", "user", `{"role":"user","content":"Survey the pier."}`, "")
	line(2, "a1", "assistant", says("m1", `{"type":"tool_use","id":"t1","name":"Task","input":{"description":"survey","subagent_type":"surveyor","prompt":"Count the piles."}}`), "")
	line(3.5, "a2", "assistant", says("m1", `{"type":"tool_use","id":"t2","name":"TodoWrite","input":{"todos":[]}}`), "")
	parent = "null"
	line(2.1, "s1", "user", `{"role":"user","content":"Count the piles."}`, "")
	line(8, "s2", "assistant", says("n1", `{"type":"tool_use","id":"t3","name":"Bash","input":{"command":"count"}}`), "")
	line(23, "s3", "user", result("t3", "40"), "")
	line(24.9, "s4", "assistant", says("n2", `{"type":"text","text":"There are forty."}`), "")
	parent = `"a2"`
	line(25, "u2", "user", result("t1", "There are forty."), "")
	line(25.018, "u3", "user", result("t2", "noted"), "")
	line(27, "a3", "assistant", says("m2", `{"type":"text","text":"Forty piles."}`), "")
	file := filepath.Join(t.TempDir(), "5e0a.jsonl")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h.decoded("claude-code", file)
	traces := h.traces("SELECT DISTINCT trace_id FROM delegations FINAL")
	if len(traces) != 1 {
		t.Fatalf("%d traces", len(traces))
	}
	for _, s := range traces[0].Waterfall().Spans {
		if s.Name == "TodoWrite" && s.CriticalMS > 200 || s.Name == "Bash" && s.CriticalMS != 15_000 {
			t.Errorf("%s has %v ms of the critical path", s.Name, s.CriticalMS)
		}
	}
	if text := strings.Join(traces[0].Explain().Text, " "); !strings.Contains(text, "The largest part of the critical path was tool Bash") {
		t.Errorf("explained: %s", text)
	}
}

// TestAPersonIsNoTool: a question to the user takes the user's time.
func TestAPersonIsNoTool(t *testing.T) {
	h := newHome(t)
	line := func(at, id, kind, message string) string {
		return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"sessionId":"a5c2","version":"2.1.0","cwd":"/srv","uuid":%q,"timestamp":"2026-04-03T%sZ","type":%q,"message":%s}`+"\n", id, at, kind, message)
	}
	text := line("08:00:00.000", "u1", "user", `{"role":"user","content":"Move the buoy."}`) +
		line("08:00:05.000", "a1", "assistant", `{"id":"m1","type":"message","role":"assistant","model":"claude-opus-4-5","content":[{"type":"tool_use","id":"q1","name":"AskUserQuestion","input":{"questions":[]}}],"usage":{"input_tokens":5,"output_tokens":5}}`) +
		line("08:20:05.000", "u2", "user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"q1","content":"East."}]}`) +
		line("08:20:09.000", "a2", "assistant", `{"id":"m2","type":"message","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"Moved east."}],"usage":{"input_tokens":5,"output_tokens":5}}`)
	file := filepath.Join(t.TempDir(), "a5c2.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.decoded("claude-code", file)
	for _, trace := range h.traces("SELECT DISTINCT trace_id FROM tool_calls FINAL") {
		split := trace.Tree.Roots()[0].Split()
		if split[blame.Wait] != int64(20*time.Minute) || split[blame.ToolTime] != 0 {
			t.Errorf("the turn's time is %v", split)
		}
		if text := strings.Join(trace.Explain().Text, " "); !strings.Contains(text, "waiting for a person 20m00s") {
			t.Errorf("explained: %s", text)
		}
	}
	if got, _ := h.run("query", "SELECT waits_for, duration_ms - waited_ms FROM v_tool_calls", "--format", "TSV"); got != "person\t0\n" {
		t.Errorf("v_tool_calls says %q", got)
	}
}
