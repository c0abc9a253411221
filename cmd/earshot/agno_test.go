package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// decoded are the lines that earshot decode prints of files, as their writer sees them.
func decoded[T any](t *testing.T, args ...string) []T {
	t.Helper()
	var out, errs bytes.Buffer
	c := newRoot()
	c.SetArgs(append([]string{"decode", "--format", "agno"}, args...))
	c.SetOut(&out)
	c.SetErr(&errs)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if errs.Len() > 0 {
		t.Errorf("problems: %s", errs.String())
	}
	var list []T
	for d := json.NewDecoder(&out); d.More(); {
		var v T
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// spans draws the spans of files: name, whose, from and to in seconds, below one another.
func spansOf(t *testing.T, from time.Time, files ...string) []string {
	t.Helper()
	all := decoded[span](t, append([]string{"--spans"}, files...)...)
	at := func(s string) string {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%g", v.Sub(from).Seconds())
	}
	var out []string
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		for _, s := range all {
			if s.Parent != parent {
				continue
			}
			line := indent + s.Name
			if to := s.Attributes["earshot.delegate.to"]; to != "" {
				line += " → " + to
			}
			out = append(out, line+" "+at(s.Start)+"-"+at(s.End))
			draw(s.SpanID, indent+"  ")
		}
	}
	draw("", "")
	if len(out) != len(all) {
		t.Errorf("%d of %d spans hang in the air", len(all)-len(out), len(all))
	}
	return out
}

// written writes events as a stream, one second apart unless they have times, or any
// other value as a document.
func written(t *testing.T, name string, v any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	var text bytes.Buffer
	if events, ok := v.([]map[string]any); ok && strings.HasSuffix(name, ".sse") {
		for _, e := range events {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", e["event"], b)
		}
	} else if err := json.NewEncoder(&text).Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func sameLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var spring = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func agnoEvent(name, run, parent, id, label string, at int, more map[string]any) map[string]any {
	kind := "agent"
	if strings.HasPrefix(name, "Team") {
		kind = "team"
	}
	e := map[string]any{"event": name, "created_at": spring.Unix() + int64(at), "run_id": run, "session_id": "depot", kind + "_id": id, kind + "_name": label}
	if parent != "" {
		e["parent_run_id"] = parent
	}
	for k, v := range more {
		e[k] = v
	}
	return e
}

func agnoTool(id, name string, args, more map[string]any) map[string]any {
	tool := map[string]any{"tool_name": name, "tool_args": args}
	if id != "" {
		tool["tool_call_id"] = id
	}
	for k, v := range more {
		tool[k] = v
	}
	return map[string]any{"tool": tool}
}

// TestAgnoTurnAsSpans: a turn whose stream has calls, results and content alone is one tree
// in which members last, and a list of the same runs without events adds no span to it and
// no line.
func TestAgnoTurnAsSpans(t *testing.T) {
	to := func(member, task string) map[string]any {
		return map[string]any{"member_id": member, "task_description": task}
	}
	depot := func(name string, at int, more map[string]any) map[string]any {
		return agnoEvent(name, "a", "", "depot", "Depot", at, more)
	}
	stream := written(t, "turn.sse", []map[string]any{
		depot("TeamToolCallStarted", 2, agnoTool("", "delegate_task_to_member", to("track-team", "Check the track"), nil)),
		agnoEvent("RunContent", "b", "a", "track-team", "Track Team", 4, map[string]any{"content": "It is "}),
		agnoEvent("RunContent", "b", "a", "track-team", "Track Team", 9, map[string]any{"content": "clear."}),
		depot("TeamToolCallCompleted", 10, agnoTool("", "delegate_task_to_member", to("track-team", "Check the track"), map[string]any{"result": "It is clear."})),
		depot("TeamRunContent", 12, map[string]any{"content": "Go."}),
		depot("TeamRunCompleted", 14, map[string]any{"content": "Go."}),
	})
	want := []string{
		"invoke_agent Depot 2-14",
		"  execute_tool delegate_task_to_member → Track Team 2-10",
		"    invoke_agent Track Team 4-9",
		"      chat 4-9",
		"  chat 10-14",
	}
	sameLines(t, spansOf(t, spring, stream), want)
	bare := written(t, "runs.json", []map[string]any{
		{"run_id": "b", "parent_run_id": "a", "agent_id": "track-team", "run_input": "Check the track", "content": "It is clear.", "created_at": spring.Unix() + 4, "session_id": "depot"},
		{"run_id": "a", "team_id": "depot", "run_input": "May we go?", "content": "Go.", "created_at": spring.Unix() + 2, "session_id": "depot"},
	})
	sameLines(t, spansOf(t, spring, stream, bare), want)
	said := make(map[string]int)
	for _, m := range decoded[map[string]any](t, stream, bare) {
		if m["hidden"] == nil {
			said[fmt.Sprint(m["kind"], " ", m["agent_name"], " ", m["delegate_to"], " ", m["content"])]++
		}
	}
	for _, line := range []string{"delegation Depot Track Team <nil>", "delegation_result Depot Track Team It is clear.", "assistant Track Team <nil> It is clear.", "assistant Depot <nil> Go."} {
		if said[line] != 1 {
			t.Errorf("%d times %q in %v", said[line], line, said)
		}
	}
	sameLines(t, spansOf(t, spring, bare)[:2], []string{"invoke_agent depot 2-4", "  execute_tool delegate_task_to_member → track-team 4-4"})
}

// TestAgnoToolsLastAsMeasured: the span of a tool lasts as long as AGNO measured, and of
// delegations that ran beside each other each as long as its member worked.
func TestAgnoToolsLastAsMeasured(t *testing.T) {
	events := []map[string]any{
		agnoEvent("RunStarted", "a", "", "signal", "Signal", 0, nil),
	}
	for i, took := range []float64{0.004, 1.7321, 4.9} {
		id := fmt.Sprintf("call-000000-%d", i)
		events = append(events,
			agnoEvent("ToolCallStarted", "a", "", "signal", "Signal", 10*i, agnoTool(id, "flash", nil, nil)),
			agnoEvent("ToolCallCompleted", "a", "", "signal", "Signal", 10*i+int(took)+1, agnoTool(id, "flash", nil, map[string]any{"result": "on", "metrics": map[string]any{"duration": took}})))
	}
	var took []string
	for _, s := range decoded[span](t, "--spans", written(t, "tools.sse", events)) {
		if strings.HasPrefix(s.Name, "execute_tool") {
			from, err1 := time.Parse(time.RFC3339Nano, s.Start)
			to, err2 := time.Parse(time.RFC3339Nano, s.End)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			took = append(took, to.Sub(from).String())
		}
	}
	sameLines(t, took, []string{"4ms", "1.7321s", "4.9s"})

	to := func(member string) map[string]any { return map[string]any{"member_id": member, "task": "Look"} }
	lead := func(name string, at int, more map[string]any) map[string]any {
		return agnoEvent(name, "r", "", "depot", "Depot", at, more)
	}
	sameLines(t, spansOf(t, spring, written(t, "beside.sse", []map[string]any{
		lead("TeamRunStarted", 0, nil),
		lead("TeamToolCallStarted", 0, agnoTool("call-000000-x", "delegate_task_to_member", to("east"), nil)),
		lead("TeamToolCallStarted", 0, agnoTool("call-000000-y", "delegate_task_to_member", to("west"), nil)),
		agnoEvent("RunStarted", "x", "r", "east", "East", 0, nil), agnoEvent("RunStarted", "y", "r", "west", "West", 0, nil),
		agnoEvent("RunCompleted", "x", "r", "east", "East", 15, nil), agnoEvent("RunCompleted", "y", "r", "west", "West", 21, nil),
		lead("TeamToolCallCompleted", 21, agnoTool("call-000000-x", "delegate_task_to_member", to("east"), map[string]any{"result": "e"})),
		lead("TeamToolCallCompleted", 21, agnoTool("call-000000-y", "delegate_task_to_member", to("west"), map[string]any{"result": "w"})),
		lead("TeamRunCompleted", 22, nil),
	})), []string{
		"invoke_agent Depot 0-22",
		"  execute_tool delegate_task_to_member → East 0-15",
		"    invoke_agent East 0-15",
		"  execute_tool delegate_task_to_member → West 0-21",
		"    invoke_agent West 0-21",
	})
}

// TestAgnoStepsAsSpans: each step of a workflow is a span, also one that a function does,
// with the agents that work in it below.
func TestAgnoStepsAsSpans(t *testing.T) {
	w := dispatches
	step := func(id, name string, index int) map[string]any {
		return map[string]any{"step_id": id, "step_name": name, "step_index": index}
	}
	inStep := func(name string, at int) map[string]any {
		return agnoEvent(name, "x", "", "clerk", "Clerk", at, map[string]any{"workflow_run_id": "w", "workflow_id": "dispatch", "step_id": "s2", "step_name": "Stamp", "step_index": 1})
	}
	sameLines(t, spansOf(t, spring, written(t, "steps.sse", []map[string]any{
		w("WorkflowStarted", 0, nil),
		w("StepStarted", 0, step("s1", "Slow", 0)), w("StepCompleted", 20, step("s1", "Slow", 0)),
		w("StepStarted", 20, step("s2", "Stamp", 1)), inStep("RunStarted", 20), inStep("RunCompleted", 22), w("StepCompleted", 23, step("s2", "Stamp", 1)),
		w("WorkflowCompleted", 24, nil),
	})), []string{
		"invoke_workflow Dispatch 0-24",
		"  invoke_workflow Slow 0-20",
		"  invoke_workflow Stamp 20-23",
		"    invoke_agent Clerk 20-22",
	})
}

// TestAgnoResumedRun: a background run whose stream broke and was resumed is one run with
// one text and one response. The tap records the resumed part after the first part.
func TestAgnoResumedRun(t *testing.T) {
	index := -1
	e := func(name string, at int, more map[string]any) map[string]any {
		index++
		v := agnoEvent(name, "a", "", "signal", "Signal", at, more)
		v["event_index"] = index
		return v
	}
	text := func(s string) map[string]any { return map[string]any{"content": s, "content_type": "str"} }
	model := map[string]any{"model": "rail-1", "model_provider": "OpenAI", "input_tokens": 5, "output_tokens": 4}
	all := []map[string]any{
		e("RunStarted", 0, model), e("ModelRequestStarted", 0, model), e("RunContent", 1, text("one ")), e("RunContent", 2, text("two ")),
		e("RunContent", 5, text("three ")), e("RunContent", 6, text("four")), e("ModelRequestCompleted", 6, model), e("RunCompleted", 7, text("one two three four")),
	}
	again := map[string]any{"event": "catch_up", "run_id": "a", "status": "running", "missed_events": 2}
	broken := written(t, "broken.sse", all[:4])
	resumed := written(t, "resumed.sse", slices.Concat(all[:4], []map[string]any{again, all[3]}, all[4:]))
	whole := spansOf(t, spring, written(t, "whole.sse", all))
	sameLines(t, whole, []string{"invoke_agent Signal 0-7", "  chat rail-1 0-7"})
	sameLines(t, spansOf(t, spring, broken, resumed), whole)
	var said []string
	for _, m := range decoded[map[string]any](t, broken, resumed) {
		if m["kind"] == "assistant" {
			said = append(said, fmt.Sprint(m["content"], " ", m["complete"]))
		}
	}
	sameLines(t, said, []string{"one two three four true"})
}

// dispatches is an event of a workflow.
func dispatches(name string, at int, more map[string]any) map[string]any {
	e := agnoEvent(name, "w", "", "", "", at, more)
	delete(e, "agent_id")
	delete(e, "agent_name")
	e["workflow_id"], e["workflow_name"] = "dispatch", "Dispatch"
	return e
}

// TestAgnoStepTakesItsTime: the time of a step whose work a function does is the step's.
func TestAgnoStepTakesItsTime(t *testing.T) {
	h := newHome(t)
	w := dispatches
	step := map[string]any{"step_id": "s1", "step_name": "Slow", "step_index": 0}
	h.decoded("agno", written(t, "step.sse", []map[string]any{
		w("WorkflowStarted", 0, nil), w("StepStarted", 1, step), w("StepCompleted", 21, step), w("WorkflowCompleted", 22, nil),
	}))
	traces := h.traces("SELECT DISTINCT TraceId FROM otel_traces FINAL")
	if len(traces) != 1 {
		t.Fatalf("%d traces", len(traces))
	}
	if got := strings.Join(traces[0].Explain().Text, " "); !strings.Contains(got, "a tool 20s") && !strings.Contains(got, "tools 20s") || !strings.Contains(got, "step Slow 20s") {
		t.Errorf("explained: %s", got)
	}
}
