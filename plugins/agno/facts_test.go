package agno

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// object is a JSON object that a test makes: an event, or a stored run.
type object = map[string]any

const baseTime = 1780000000 // 20:26:40

// of returns an event of a run.
func of(run, parent, who string, team bool, name string, at int, more object) object {
	kind := "agent"
	if team {
		kind, name = "team", "Team"+name
	}
	e := object{
		"event": name, "created_at": baseTime + at, "run_id": run, "session_id": "mill", kind + "_id": who,
		kind + "_name": strings.ToUpper(who[:1]) + strings.ReplaceAll(who[1:], "-", " "),
	}
	if parent != "" {
		e["parent_run_id"] = parent
	}
	for k, v := range more {
		e[k] = v
	}
	return e
}

func delegate(id, to, task string, more object) object {
	t := object{"tool_call_id": id, "tool_name": "delegate_task_to_member", "tool_args": object{"member_id": to, "task": task}}
	if id == "" {
		delete(t, "tool_call_id")
	}
	for k, v := range more {
		t[k] = v
	}
	return object{"tool": t}
}

func eventsOf(t *testing.T, list ...object) []frame.Frame {
	t.Helper()
	var out []frame.Frame
	for _, e := range list {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, frame.Frame{Kind: frame.Event, Name: e["event"].(string), Data: b})
	}
	return out
}

// visible are the lines of a chat.
func visible(messages []msg.Message) []string {
	var out []string
	for i := range messages {
		m := &messages[i]
		if m.Hidden {
			continue
		}
		at := ""
		if ts := m.Row().TS; ts != "" {
			at = ts[14:19]
		}
		line := fmt.Sprintf("%s %s %s", at, m.Kind, m.Agent.Name)
		if m.Delegation.To != "" {
			line += " → " + m.Delegation.To + " [" + m.Delegation.ToID + "]"
		}
		if t := m.Delegation.Task.String(); t != "" {
			line += ": " + t
		}
		if c := m.Content.String(); c != "" {
			line += ": " + c
		}
		out = append(out, line)
	}
	return out
}

func equal(t *testing.T, name string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func find(t *testing.T, messages []msg.Message, key string) *msg.Message {
	t.Helper()
	for i := range messages {
		if messages[i].Key == key {
			return &messages[i]
		}
	}
	t.Fatalf("no message %q", key)
	return nil
}

// TestRequestOfAnotherPath: a server before AgentOS may end the path in run.
func TestRequestOfAnotherPath(t *testing.T) {
	ask := frame.Frame{Kind: frame.Request, Name: "POST /teams/mill/run", FromClient: true, Data: []byte("message=Is+there+flour%3F&stream=true")}
	events := eventsOf(t, of("a", "", "mill", true, "RunStarted", 0, nil), of("a", "", "mill", true, "RunCompleted", 2, object{"content": "Yes."}))
	equal(t, "tap", visible(play(t, append([]frame.Frame{ask}, events...)...)), []string{"26:40 user : Is there flour?", "26:42 assistant Mill: Yes."})
}

// TestCallIDsOfEachResponse: a provider may count the calls of each response anew. A call whose id has a result is
// another one, in each form; a report that repeats the result is not.
func TestCallIDsOfEachResponse(t *testing.T) {
	tool := func(q int, more object) object {
		u := object{"tool_call_id": "functions.look:0", "tool_name": "look", "tool_args": object{"q": q}}
		for k, v := range more {
			u[k] = v
		}
		return object{"tool": u}
	}
	events := []object{
		of("a", "", "miller", false, "RunStarted", 0, nil),
		of("a", "", "miller", false, "ToolCallStarted", 1, tool(1, nil)),
		of("a", "", "miller", false, "ToolCallStarted", 1, tool(1, nil)),
		of("a", "", "miller", false, "ToolCallCompleted", 2, tool(1, object{"result": "dark", "tool_call_error": true})),
		of("a", "", "miller", false, "ToolCallError", 2, tool(1, object{"error": "dark"})),
		of("a", "", "miller", false, "ToolCallStarted", 3, tool(2, nil)),
		of("a", "", "miller", false, "ToolCallCompleted", 4, tool(2, object{"result": "light"})),
		of("a", "", "miller", false, "RunCompleted", 5, object{"content": "Light."}),
	}
	asks := func(q, at int) object {
		return object{"role": "assistant", "created_at": baseTime + at, "tool_calls": []object{
			{"id": "functions.look:0", "function": object{"name": "look", "arguments": fmt.Sprintf(`{"q":%d}`, q)}}}}
	}
	says := func(result string, failed bool, at int) object {
		return object{"role": "tool", "tool_call_id": "functions.look:0", "tool_name": "look", "content": result, "tool_call_error": failed, "created_at": baseTime + at}
	}
	stored := object{"run_id": "a", "session_id": "mill", "agent_id": "miller", "status": "COMPLETED", "created_at": baseTime, "content": "Light.", "messages": []object{
		asks(1, 1), says("dark", true, 2), asks(2, 3), says("light", false, 4),
		{"role": "assistant", "content": "Light.", "created_at": baseTime + 5}}}
	all := object{"events": events}
	for k, v := range stored {
		all[k] = v
	}
	want := []string{"call:a/functions.look:0", "result:a/functions.look:0 dark", "call:a/functions.look:0/1", "result:a/functions.look:0/1 light"}
	for form, messages := range map[string][]msg.Message{
		"stream": play(t, eventsOf(t, events...)...), "reload": play(t, document(t, []object{all})), "reload without events": play(t, document(t, []object{stored})),
	} {
		var got []string
		for _, m := range messages {
			if m.Tool.Name == "look" && m.Kind != msg.Status {
				got = append(got, strings.TrimSpace(m.Key+" "+m.Content.String()))
				if m.Tool.ProtocolID != "functions.look:0" {
					t.Errorf("%s: %s has the id %q in the protocol", form, m.Key, m.Tool.ProtocolID)
				}
			}
		}
		equal(t, form, got, want)
	}
}

// fiveEvents is a stream of nothing but calls, results, content, and the team's end.
func fiveEvents() []object {
	return []object{
		of("a", "", "mill", true, "ToolCallStarted", 5, delegate("", "stone-team", "Grind", nil)),
		of("b", "a", "stone-team", true, "ToolCallStarted", 7, delegate("", "miller", "Turn the stone", nil)),
		of("c", "b", "miller", false, "RunContent", 9, object{"content": "It "}),
		of("c", "b", "miller", false, "RunContent", 15, object{"content": "turns."}),
		of("b", "a", "stone-team", true, "ToolCallCompleted", 16, delegate("", "miller", "Turn the stone", object{"result": "It turns."})),
		of("b", "a", "stone-team", true, "RunContent", 18, object{"content": "Ground."}),
		of("a", "", "mill", true, "ToolCallCompleted", 20, delegate("", "stone-team", "Grind", object{"result": "It turns.Ground."})),
		of("a", "", "mill", true, "RunContent", 22, object{"content": "Done."}),
		of("a", "", "mill", true, "RunCompleted", 92, object{"content": "Done."}),
	}
}

// TestFiveEvents: the text of a member without start and end events has the time of its last
// delta, and precedes the result of its delegation and the team's answer.
func TestFiveEvents(t *testing.T) {
	got := play(t, eventsOf(t, fiveEvents()...)...)
	equal(t, "stream", visible(got), []string{
		"26:45 delegation Mill → Stone team [stone-team]: Grind",
		"26:47 delegation Stone team → Miller [miller]: Turn the stone",
		"26:55 assistant Miller: It turns.",
		"26:56 delegation_result Stone team → Miller [miller]: It turns.",
		"26:58 assistant Stone team: Ground.",
		"27:00 delegation_result Mill → Stone team [stone-team]: It turns.Ground.",
		"28:12 assistant Mill: Done.",
	})
	begin, end := find(t, got, "c/start"), find(t, got, "c/end")
	if d := (end.Time - begin.Time) / 1e9; d != 6 || begin.Signal != msg.RunStart || end.Signal != msg.RunEnd {
		t.Errorf("the member's run lasts %d s", d)
	}
	if call := find(t, got, "call:b/call/0"); begin.ParentCall != call.Tool.CallID || call.Delegation.ChildRun != "c" {
		t.Errorf("the member is below %q, %q caused %q", begin.ParentCall, call.Tool.CallID, call.Delegation.ChildRun)
	}
}

// TestPrintedReload: a stored run whose events name no run, whose question is in run_input,
// and whose answer is in content.
func TestPrintedReload(t *testing.T) {
	tool := func(to, task, result string) object {
		x := object{"tool_name": "delegate_task_to_member", "tool_args": object{"member_id": to, "task_description": task}}
		if result != "" {
			x["result"] = result
		}
		return x
	}
	body := []object{{
		"run_id": "a", "parent_run_id": "", "team_id": "mill", "content": "Rye will do.", "run_input": "Which grain?", "created_at": "2026-05-28T20:26:40Z",
		"events": []object{
			{"event": "TeamToolCallStarted", "created_at": baseTime + 6, "tool": tool("grain-team", "Judge the grain", "")},
			{"event": "TeamToolCallCompleted", "created_at": baseTime + 30, "tool": tool("taster", "Taste it", "The rye is dry.")},
			{"event": "TeamRunCompleted", "created_at": baseTime + 80},
		},
	}}
	got := play(t, document(t, body))
	equal(t, "reload", visible(got), []string{
		"26:40 user : Which grain?",
		"26:46 delegation mill → grain-team []: Judge the grain",
		"27:10 delegation_result mill → taster []: The rye is dry.",
		"28:00 assistant mill: Rye will do.",
	})
	for _, m := range got {
		if m.Kind == msg.Unknown || m.Run != "a" {
			t.Errorf("%s is a %s of run %q", m.Key, m.Kind, m.Run)
		}
	}
	if begin := find(t, got, "a/start"); begin.Time != baseTime*1e9 || begin.Signal != msg.RunStart {
		t.Errorf("the run begins at %d", begin.Time)
	}
}

// parallelMembers is a turn of a team with two members that work in parallel.
func parallelMembers() []object {
	started := func(id, to string) object { return delegate(id, to, "Ask "+to, nil) }
	done := func(id, to, result string) object { return delegate(id, to, "Ask "+to, object{"result": result}) }
	return []object{
		of("a", "", "mill", true, "RunStarted", 0, nil),
		of("a", "", "mill", true, "ToolCallStarted", 1, started("call-0000-first", "east-wing")),
		of("a", "", "mill", true, "ToolCallStarted", 1, started("call-0000-second", "west-wing")),
		of("b", "a", "east-wing", false, "RunStarted", 2, nil),
		of("c", "a", "west-wing", false, "RunStarted", 2, nil),
		of("b", "a", "east-wing", false, "RunCompleted", 16, object{"content": "East."}),
		of("c", "a", "west-wing", false, "RunCompleted", 22, object{"content": "West."}),
		of("a", "", "mill", true, "ToolCallCompleted", 22, done("call-0000-first", "east-wing", "East.")),
		of("a", "", "mill", true, "ToolCallCompleted", 22, done("call-0000-second", "west-wing", "West.")),
		of("a", "", "mill", true, "RunCompleted", 24, object{"content": "Both."}),
	}
}

// storedRuns are the runs of that turn, as a list has them: children first.
func storedRuns(events func(run string) any) []object {
	run := func(id, parent, kind, who, input, content string, at int) object {
		return object{
			"run_id": id, "parent_run_id": parent, kind + "_id": who, "run_input": input, "content": content, "status": "COMPLETED",
			"session_id": "mill", "created_at": fmt.Sprintf("2026-05-28T20:26:%02dZ", 40+at), "events": events(id),
		}
	}
	return []object{
		run("c", "a", "agent", "west-wing", "Ask west-wing", "West.", 2), run("b", "a", "agent", "east-wing", "Ask east-wing", "East.", 2),
		run("a", "", "team", "mill", "Both wings?", "Both.", 0),
	}
}

// ownEvents are the events that a run keeps where members' are not streamed.
func ownEvents(list []object) func(run string) any {
	return func(run string) any {
		return slices.DeleteFunc(slices.Clone(list), func(e object) bool { return e["run_id"] != run })
	}
}

// TestOwnEventsAlone: runs that were stored with their own events alone have the links,
// names, order and times of the stream.
func TestOwnEventsAlone(t *testing.T) {
	live := play(t, eventsOf(t, parallelMembers()...)...)
	reloaded := play(t, document(t, storedRuns(ownEvents(parallelMembers()))))
	same(t, "own events", live, reloaded)
	if d := find(t, reloaded, "call:call-0000-second").Delegation; d.ChildRun != "c" || d.To != "West wing" || d.ToID != "west-wing" || d.Link != msg.ByParent || d.Confidence != byMember {
		t.Errorf("the second delegation: %+v", d)
	}
}

// TestRandomTreesWithOwnEvents: the same holds for any team, except for members of the same
// second that differ in nothing but their tasks.
func TestRandomTreesWithOwnEvents(t *testing.T) {
	for seed := range uint64(40) {
		g := newGenerator(seed)
		live := play(t, g.frames...)
		for _, run := range g.stored {
			run["events"] = slices.DeleteFunc(slices.Clone(run["events"].([]any)), func(e any) bool {
				var head struct {
					Run string `json:"run_id"`
				}
				return json.Unmarshal(e.(json.RawMessage), &head) != nil || head.Run != run["run_id"]
			})
		}
		reloaded := play(t, document(t, g.stored))
		for _, list := range []*[]msg.Message{&live, &reloaded} {
			for i := range *list {
				if m := &(*list)[i]; g.crowded {
					m.ParentCall, m.Delegation = "", msg.Delegate{}
				}
			}
			slices.SortStableFunc(*list, func(a, b msg.Message) int { return strings.Compare(a.Key, b.Key) })
		}
		same(t, fmt.Sprintf("seed %d", seed), live, reloaded)
		if t.Failed() {
			return
		}
	}
}

// TestBareReloadAfterStream: a list of runs without events and messages duplicates no message
// of the stream, whichever is decoded first.
func TestBareReloadAfterStream(t *testing.T) {
	nothing := func(string) any { return nil }
	for name, stream := range map[string][]object{"five events": fiveEvents(), "members": parallelMembers()} {
		runs := storedRuns(nothing)
		if name == "five events" {
			runs = []object{
				{"run_id": "c", "parent_run_id": "b", "agent_id": "miller", "run_input": "Turn the stone", "content": "It turns.", "session_id": "mill", "created_at": baseTime + 9},
				{"run_id": "b", "parent_run_id": "a", "team_id": "stone-team", "run_input": "Grind", "content": "Ground.", "session_id": "mill", "created_at": baseTime + 7},
				{"run_id": "a", "team_id": "mill", "run_input": "Flour?", "content": "Done.", "session_id": "mill", "created_at": baseTime + 5},
			}
		}
		live, bare := play(t, eventsOf(t, stream...)...), play(t, document(t, runs))
		for order, both := range map[string][]msg.Message{"after": slices.Concat(live, bare), "before": slices.Concat(bare, live)} {
			texts := make(map[string]int)
			for _, m := range msg.Fold(both) {
				if m.Kind == msg.Assistant && !m.Hidden {
					texts[m.Run+": "+m.Content.String()]++
				}
			}
			if len(texts) != 3 {
				t.Errorf("%s, %s: %v", name, order, texts)
			}
			for text, n := range texts {
				if n != 1 {
					t.Errorf("%s, %s: %d times %q", name, order, n, text)
				}
			}
		}
	}
}

// TestInferredDelegation: a stored team without calls delegated work to the runs below it. A
// team with stored calls gets no second delegation.
func TestInferredDelegation(t *testing.T) {
	for name, events := range map[string]func(string) any{
		"no events":          func(string) any { return nil },
		"the members' alone": func(run string) any { return map[bool]any{false: ownEvents(parallelMembers())(run)}[run == "a"] },
	} {
		got := play(t, document(t, storedRuns(events)))
		for run, to := range map[string]string{"b": "east-wing", "c": "west-wing"} {
			call, result := find(t, got, "call:"+msg.InferredCall(run)), find(t, got, "result:"+msg.InferredCall(run))
			d := call.Delegation
			if call.Kind != msg.Delegation || call.Run != "a" || d.ChildRun != run || d.Link != msg.ByParent || slug(d.To) != to || call.Attr("inferred") != "true" || d.Task.String() != "Ask "+to {
				t.Errorf("%s: %+v", name, call)
			}
			if result.Kind != msg.DelegationResult || result.Delegation.ChildRun != run || result.Content.IsZero() {
				t.Errorf("%s: %+v", name, result)
			}
			if start := find(t, got, run+"/start"); start.ParentCall != call.Tool.CallID {
				t.Errorf("%s: run %s is below %q", name, run, start.ParentCall)
			}
		}
	}
	for _, m := range play(t, document(t, storedRuns(ownEvents(parallelMembers())))) {
		if m.Attr("inferred") != "" {
			t.Errorf("%s is inferred beside a stored call", m.Key)
		}
	}
}

// TestMemberOfAResultAlone: the run of a member that is not streamed is that of its call, also where the stream has the
// call's result alone.
func TestMemberOfAResultAlone(t *testing.T) {
	member := object{
		"run_id": "b", "parent_run_id": "a", "agent_id": "miller", "input": object{"input_content": "Turn the stone"}, "content": "It turns.",
		"status": "COMPLETED", "created_at": baseTime + 2, "messages": []object{{"role": "assistant", "content": "It turns.", "created_at": baseTime + 3}},
	}
	got := play(t, eventsOf(t,
		of("a", "", "mill", true, "RunStarted", 0, nil),
		of("a", "", "mill", true, "ToolCallCompleted", 4, delegate("call-0000-first", "miller", "Turn the stone", object{"result": "It turns."})),
		of("a", "", "mill", true, "RunCompleted", 5, object{"content": "Done.", "member_responses": []object{member}}))...)
	if start := find(t, got, "b/start"); start.ParentCall != "call-0000-first" {
		t.Errorf("the member is below %q", start.ParentCall)
	}
	for _, m := range got {
		if m.Attr("inferred") != "" {
			t.Errorf("%s is inferred beside the call", m.Key)
		}
	}
}

// TestDelegateHasItsName: a member has its display name, with its id beside it, before and
// after its first event, and its id alone where no event names it.
func TestDelegateHasItsName(t *testing.T) {
	for name, got := range map[string][]msg.Message{
		"stream": play(t, eventsOf(t, parallelMembers()...)...), "reload": play(t, document(t, storedRuns(ownEvents(parallelMembers())))),
	} {
		for _, key := range []string{"call:call-0000-first", "result:call-0000-first"} {
			if d := find(t, got, key).Delegation; d.To != "East wing" || d.ToID != "east-wing" {
				t.Errorf("%s: %s to %q, %q", name, key, d.To, d.ToID)
			}
		}
	}
	bare := play(t, document(t, storedRuns(func(string) any { return nil })))
	if a := find(t, bare, "b/start").Agent; a.Name != "east-wing" || a.ID != "east-wing" {
		t.Errorf("without a name: %+v", a)
	}
}

// TestMeasuredDuration: a tool's duration is the one that AGNO measured, to the microsecond,
// not the whole seconds between events.
func TestMeasuredDuration(t *testing.T) {
	for metrics, want := range map[string]int64{
		`{"duration":0.004}`:  4e6,
		`{"duration":1.7321}`: 1732100e3,
		`{"start_time":1780000001.25,"end_time":1780000006.15,"duration":4.9}`: 4900e6,
		`{"start_time":1780000001.25,"end_time":1780000001.5}`:                 250e6,
		`{"duration":0}`:    0,
		`{"duration":1e99}`: 0,
		`null`:              0,
	} {
		tool := func(more object) object {
			t := object{"tool_call_id": "call-0000-sift", "tool_name": "sift", "tool_args": object{}}
			for k, v := range more {
				t[k] = v
			}
			return object{"tool": t}
		}
		events := []object{
			of("a", "", "sieve", false, "RunStarted", 0, nil), of("a", "", "sieve", false, "ToolCallStarted", 1, tool(nil)),
			of("a", "", "sieve", false, "ToolCallCompleted", 6, tool(object{"result": "fine", "metrics": json.RawMessage(metrics)})),
			of("a", "", "sieve", false, "RunCompleted", 7, object{"content": "Sifted."}),
		}
		stored := []object{{"run_id": "a", "agent_id": "sieve", "run_input": "Sift", "content": "Sifted.", "created_at": baseTime, "session_id": "mill", "events": events}}
		for name, got := range map[string][]msg.Message{"stream": play(t, eventsOf(t, events...)...), "reload": play(t, document(t, stored))} {
			m := find(t, got, "result:call-0000-sift")
			if m.Tool.Duration != want || m.Time != (baseTime+6)*1e9 {
				t.Errorf("%s: %s: took %d ns, want %d; reported at %d", name, metrics, m.Tool.Duration, want, m.Time)
			}
		}
	}
}

// TestParallelCallsWithoutIDs: of calls without ids, a result belongs to the one with its
// arguments, or to its member.
func TestParallelCallsWithoutIDs(t *testing.T) {
	for name, task := range map[string]string{"same arguments": "Ask b", "reworded arguments": "Please ask b"} {
		events := []object{
			of("r", "", "mill", true, "RunStarted", 0, nil),
			of("r", "", "mill", true, "ToolCallStarted", 1, delegate("", "a", "Ask a", nil)),
			of("r", "", "mill", true, "ToolCallStarted", 1, delegate("", "b", "Ask b", nil)),
			of("r", "", "mill", true, "ToolCallCompleted", 5, delegate("", "b", task, object{"result": "from b"})),
			of("r", "", "mill", true, "ToolCallCompleted", 9, delegate("", "a", "Ask a", object{"result": "from a"})),
		}
		got := play(t, eventsOf(t, events...)...)
		for key, want := range map[string]string{"result:r/call/0": "from a", "result:r/call/1": "from b"} {
			if m := find(t, got, key); m.Content.String() != want {
				t.Errorf("%s: %s is %q, want %q", name, key, m.Content, want)
			}
		}
	}
}

// TestAnswerOfRunJoinedMidway: of a run that is joined midway, the last event has the answer,
// even when every delta is missing.
func TestAnswerOfRunJoinedMidway(t *testing.T) {
	call := func(more object) object {
		t := object{"tool_call_id": "call-0000-weigh", "tool_name": "weigh"}
		for k, v := range more {
			t[k] = v
		}
		return object{"tool": t}
	}
	events := []object{
		of("a", "", "mill", true, "ToolCallCompleted", 3, call(object{"result": "9 kg"})),
		of("a", "", "mill", true, "RunCompleted", 5, object{"content": "Let me weigh it.Nine kilos."}),
	}
	got := visible(play(t, eventsOf(t, events...)...))
	equal(t, "result in the stream", got, []string{"26:43 tool_result Mill: 9 kg", "26:45 assistant Mill: Let me weigh it.Nine kilos."})
	got = visible(play(t, eventsOf(t, events[1])...))
	equal(t, "end in the stream", got, []string{"26:45 assistant Mill: Let me weigh it.Nine kilos."})
}

// TestCancelledTurn: a turn that a person stops is no failure, and its delegations keep the
// runs that they caused.
func TestCancelledTurn(t *testing.T) {
	events := append(parallelMembers()[:5:5],
		of("b", "a", "east-wing", false, "RunCancelled", 8, object{"reason": "stopped"}),
		of("c", "a", "west-wing", false, "RunCancelled", 8, object{"reason": "stopped"}),
		of("a", "", "mill", true, "RunCancelled", 8, object{"reason": "stopped"}))
	got := play(t, eventsOf(t, events...)...)
	for _, m := range got {
		if m.IsError {
			t.Errorf("%s is an error", m.Key)
		}
	}
	for key, run := range map[string]string{"call:call-0000-first": "b", "call:call-0000-second": "c"} {
		if d := find(t, got, key).Delegation; d.ChildRun != run {
			t.Errorf("%s caused %q, want %q", key, d.ChildRun, run)
		}
	}
	if end := find(t, got, "a/end"); end.FinishReason != "cancelled" || end.Signal != msg.RunEnd {
		t.Errorf("the end: %+v", end)
	}
}

// TestParallelDelegationsLast: of delegations whose results are reported together, each
// lasted until its member was done.
func TestParallelDelegationsLast(t *testing.T) {
	for name, got := range map[string][]msg.Message{
		"stream": play(t, eventsOf(t, parallelMembers()...)...), "reload": play(t, document(t, storedRuns(ownEvents(parallelMembers())))),
	} {
		for key, want := range map[string]int64{"result:call-0000-first": 15e9, "result:call-0000-second": 0} { // 0: until it is reported
			if m := find(t, got, key); m.Tool.Duration != want || m.Time != (baseTime+22)*1e9 {
				t.Errorf("%s: %s took %d ns, want %d; reported at %d", name, key, m.Tool.Duration, want, m.Time)
			}
		}
	}
	measured := []object{
		of("a", "", "mill", true, "RunStarted", 0, nil),
		of("a", "", "mill", true, "ToolCallStarted", 1, delegate("call-0000-first", "east-wing", "Ask", nil)),
		of("a", "", "mill", true, "ToolCallStarted", 1, delegate("call-0000-second", "west-wing", "Ask", nil)),
		of("a", "", "mill", true, "ToolCallCompleted", 22, delegate("call-0000-first", "east-wing", "Ask", object{"result": "East.", "metrics": object{"duration": 14.25}})),
		of("a", "", "mill", true, "ToolCallCompleted", 22, delegate("call-0000-second", "west-wing", "Ask", object{"result": "West.", "metrics": object{"duration": 0.002}})),
	}
	got := play(t, eventsOf(t, measured...)...)
	for key, want := range map[string]int64{"result:call-0000-first": 14250e6, "result:call-0000-second": 0} { // the latter is streamed: the moment it took to begin
		if m := find(t, got, key); m.Tool.Duration != want {
			t.Errorf("members without events: %s took %d ns, want %d", key, m.Tool.Duration, want)
		}
	}
}

// TestStepsAreRuns: the steps of a workflow, by functions, in parallel and in loops, are runs
// below its own, and agents are below their step.
func TestStepsAreRuns(t *testing.T) {
	w := func(name string, at int, more object) object {
		e := object{"event": name, "created_at": baseTime + at, "run_id": "w", "session_id": "mill", "workflow_id": "bake", "workflow_name": "Bake"}
		for k, v := range more {
			e[k] = v
		}
		return e
	}
	step := func(id, name string, index any) object {
		return object{"step_id": id, "step_name": name, "step_index": index}
	}
	turn := func(n int) object {
		return object{"step_id": "l", "step_name": "Knead", "step_index": 2, "iteration": n}
	}
	agent := func(name string, at int, more object) object {
		e := of("x", "", "baker", false, name, at, object{"workflow_id": "bake", "workflow_run_id": "w", "step_id": "o", "step_name": "Oven", "step_index": []int{1, 0}})
		for k, v := range more {
			e[k] = v
		}
		return e
	}
	events := []object{
		w("WorkflowStarted", 0, nil),
		w("StepStarted", 0, step("s", "Slow", 0)), w("StepCompleted", 20, step("s", "Slow", 0)),
		w("ParallelExecutionStarted", 20, step("p", "Heat", 1)),
		w("StepStarted", 20, step("o", "Oven", []int{1, 0})), w("StepStarted", 20, step("k", "Kettle", []int{1, 1})),
		agent("RunStarted", 21, nil), agent("RunCompleted", 24, object{"content": "Hot."}),
		w("StepCompleted", 25, step("o", "Oven", []int{1, 0})), w("StepError", 26, step("k", "Kettle", []int{1, 1})),
		w("ParallelExecutionCompleted", 26, step("p", "Heat", 1)),
		w("LoopExecutionStarted", 26, step("l", "Knead", 2)),
		w("LoopIterationStarted", 26, turn(1)), w("StepStarted", 26, step("d", "Dough", []int{2, 0})), w("StepCompleted", 27, step("d", "Dough", []int{2, 0})), w("LoopIterationCompleted", 27, turn(1)),
		w("LoopIterationStarted", 27, turn(2)), w("StepStarted", 27, step("d", "Dough", []int{2, 0})),
		w("WorkflowCancelled", 30, nil),
	}
	runs := func(messages []msg.Message) []string {
		type span struct {
			name, parent, finish string
			from, to             int64
		}
		all := make(map[string]*span)
		var order []string
		for _, m := range messages {
			if m.Signal != msg.RunStart && m.Signal != msg.RunEnd {
				continue
			}
			r := all[m.Run]
			if r == nil {
				r = &span{name: m.Agent.Name, parent: m.ParentRun, from: m.Time/1e9 - baseTime}
				all[m.Run] = r
				order = append(order, m.Run)
			}
			if m.Signal == msg.RunEnd {
				r.to, r.finish = m.Time/1e9-baseTime, m.FinishReason
			}
		}
		var out []string
		for _, id := range order {
			r := all[id]
			out = append(out, fmt.Sprintf("%s < %s: %s %d-%d %s", id, r.parent, r.name, r.from, r.to, r.finish))
		}
		return out
	}
	want := []string{
		"w < : Bake 0-30 cancelled",
		"w/s < w: Slow 0-20 completed",
		"w/p < w: Heat 20-26 completed",
		"w/p/o < w/p: Oven 20-25 completed",
		"w/p/k < w/p: Kettle 20-26 error",
		"x < w/p/o: Baker 21-24 completed",
		"w/l < w: Knead 26-30 cancelled",
		"w/l/1 < w/l: Knead 1 26-27 completed",
		"w/l/1/d < w/l/1: Dough 26-27 completed",
		"w/l/2 < w/l: Knead 2 27-30 cancelled",
		"w/l/2/d < w/l/2: Dough 27-30 cancelled",
	}
	equal(t, "stream", runs(play(t, eventsOf(t, events...)...)), want)
	stored := []object{{"run_id": "w", "workflow_id": "bake", "run_input": "Bake", "created_at": baseTime, "status": "CANCELLED", "events": events}}
	equal(t, "reload", runs(play(t, document(t, stored))), want)
}

// TestWorkflowWithoutEvents: a stored workflow without events has the runs of its agents.
func TestWorkflowWithoutEvents(t *testing.T) {
	stored := []object{{
		"run_id": "w", "workflow_id": "bake", "run_input": "Bake", "content": "Bread.", "created_at": baseTime, "status": "COMPLETED", "session_id": "mill", "events": nil,
		"step_executor_runs": []object{{
			"run_id": "x", "agent_id": "baker", "agent_name": "Baker", "workflow_run_id": "w", "session_id": "mill", "content": "Hot.", "status": "COMPLETED", "created_at": baseTime + 3,
			"metrics": object{"input_tokens": 30, "output_tokens": 4, "total_tokens": 34},
			"messages": []object{
				{"role": "user", "content": "Heat it", "created_at": baseTime + 3},
				{"role": "assistant", "created_at": baseTime + 4, "tool_calls": []object{{"id": "call-0000-light", "function": object{"name": "light", "arguments": "{}"}}}},
				{"role": "tool", "tool_call_id": "call-0000-light", "tool_name": "light", "content": "lit", "created_at": baseTime + 6, "metrics": object{"duration": 1.5}},
				{"role": "assistant", "content": "Hot.", "created_at": baseTime + 7},
			},
		}},
	}}
	got := play(t, document(t, stored))
	equal(t, "reload", visible(got), []string{
		"26:40 user : Bake", "26:44 tool_call Baker", "26:46 tool_result Baker: lit", "26:47 assistant Baker: Hot.", "26:47 assistant bake: Bread.",
	})
	if u := find(t, got, "usage:x"); u.Usage.Input != 30 || u.Usage.Output != 4 {
		t.Errorf("usage %+v", u.Usage)
	}
	if m := find(t, got, "result:call-0000-light"); m.Tool.Duration != 1500e6 || m.ParentRun != "w" {
		t.Errorf("result %+v", m)
	}
}

// TestChatHistory: a session that is stored without its runs has its messages.
func TestChatHistory(t *testing.T) {
	session := object{"session_id": "mill", "team_id": "mill", "session_name": "Flour", "chat_history": []object{
		{"role": "system", "content": "Be brief.", "created_at": baseTime}, {"role": "user", "content": "Is there flour?", "created_at": baseTime},
		{"role": "tool", "content": "40 sacks", "created_at": baseTime + 2}, {"role": "assistant", "content": "Plenty.", "created_at": baseTime + 3},
	}}
	equal(t, "session", visible(play(t, document(t, session))), []string{"26:40 user : Is there flour?", "26:43 assistant mill: Plenty."})
}

// TestSnapshotOfEarlierRevision: a stream continues from a snapshot of the revision before.
func TestSnapshotOfEarlierRevision(t *testing.T) {
	const state = `{"Version":3,"Session":"mill","Runs":{"Open":[{"ID":"a","Started":true,"Linked":true,"Session":"mill","Agent":{"ID":"mill","Name":"Mill","Kind":2},
		"Calls":{"List":[{"ID":"call-0000-first","Name":"delegate_task_to_member","Delegates":true,"To":"east-wing","Task":"Ask east-wing","Asked":7}]},
		"Last":{"Nanos":1780000001000000000,"Precision":1}}]}}`
	d, err := New().New(decoder.Stream{Origin: "http://h/teams/mill/runs"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.(decoder.Snapshotter).Restore([]byte(state)); err != nil {
		t.Fatal(err)
	}
	var out decoder.Output
	for _, f := range eventsOf(t,
		of("b", "a", "east-wing", false, "RunStarted", 2, nil), of("b", "a", "east-wing", false, "RunCompleted", 4, object{"content": "East."}),
		of("a", "", "mill", true, "ToolCallCompleted", 5, delegate("call-0000-first", "east-wing", "Ask east-wing", object{"result": "East."})),
		of("a", "", "mill", true, "RunCompleted", 6, object{"content": "Done."})) {
		out.Begin(0)
		if err := d.Decode(&f, &out); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "next messages", visible(out.Messages), []string{
		"26:44 assistant East wing: East.", "26:45 delegation_result Mill → East wing [east-wing]: East.", "26:46 assistant Mill: Done.",
	})
	if m := find(t, out.Messages, "result:call-0000-first"); m.Delegation.ChildRun != "b" || m.Tool.Duration != 0 {
		t.Errorf("result %+v", m)
	}
}

// TestDifferingCopiesAreKept: a value that repeats another is left out only where both are
// equal.
func TestDifferingCopiesAreKept(t *testing.T) {
	call := func(id string, more object) object {
		c := object{"tool_call_id": id, "tool_name": "grind", "tool_args": object{"grain": "a sack of old spelt"}}
		for k, v := range more {
			c[k] = v
		}
		return object{"tool": c}
	}
	start := of("a", "", "mill", false, "RunStarted", 0, nil)
	for name, c := range map[string]struct {
		events []object
		want   string // empty for nothing
	}{
		"the same arguments":  {[]object{of("a", "", "mill", false, "ToolCallStarted", 1, call("call-0000-first", nil)), of("a", "", "mill", false, "ToolCallCompleted", 2, call("call-0000-first", object{"result": "flour"}))}, ""},
		"other arguments":     {[]object{of("a", "", "mill", false, "ToolCallStarted", 1, call("call-0000-first", nil)), of("a", "", "mill", false, "ToolCallCompleted", 2, call("call-0000-first", object{"result": "flour", "tool_args": object{"grain": "two sacks of rye"}}))}, `{"/tool/tool_args":{"grain":"two sacks of rye"}}`},
		"no call":             {[]object{of("a", "", "mill", false, "ToolCallCompleted", 2, call("call-0000-first", object{"result": "flour"}))}, `{"/tool/tool_args":{"grain":"a sack of old spelt"}}`},
		"another session":     {[]object{of("a", "", "mill", false, "RunContent", 1, object{"content": "x", "session_id": "the neighbour's mill"})}, `{"/session_id":"the neighbour's mill"}`},
		"another name":        {[]object{of("a", "", "mill", false, "RunContent", 1, object{"content": "x", "agent_name": "The mill on the hill"})}, `{"/agent_name":"The mill on the hill"}`},
		"the same text":       {[]object{of("a", "", "mill", false, "RunContent", 1, object{"content": "The stone turns slowly."}), of("a", "", "mill", false, "RunCompleted", 2, object{"content": "The stone turns slowly."})}, ""},
		"a text before":       {[]object{of("a", "", "mill", false, "RunContent", 1, object{"content": "First "}), of("a", "", "mill", false, "ToolCallStarted", 1, call("call-0000-first", nil)), of("a", "", "mill", false, "RunContent", 2, object{"content": "second"}), of("a", "", "mill", false, "RunCompleted", 3, object{"content": "Something else altogether"})}, `{"/content":"Something else altogether"}`},
		"a pause":             {[]object{of("a", "", "mill", false, "RunContent", 1, object{"content": "I have to ask first."}), of("a", "", "mill", false, "RunPaused", 2, object{"content": "I have to ask first."})}, ""},
		"another at a pause":  {[]object{of("a", "", "mill", false, "RunContent", 1, object{"content": "I have to ask first."}), of("a", "", "mill", false, "RunPaused", 2, object{"content": "I ask somebody else."})}, `{"/content":"I ask somebody else."}`},
		"a list for a result": {[]object{of("a", "", "mill", false, "ToolCallStarted", 1, call("call-0000-first", object{"result": []string{"there is none yet"}}))}, `{"/tool/result":["there is none yet"]}`},
	} {
		var got string
		for _, m := range play(t, eventsOf(t, append([]object{start}, c.events...)...)...) {
			if m.Kind == msg.Unknown {
				got += m.Content.String()
			}
			got += m.Attr(msg.AttrUnknownFields)
		}
		if got != c.want {
			t.Errorf("%s: kept %s, want %s", name, got, c.want)
		}
	}
}

// TestFieldsOfAForm: a field of a request that is not known is kept.
func TestFieldsOfAForm(t *testing.T) {
	for _, body := range []string{
		"message=Grind&session_id=mill&stream=true&dependencies=the+stone+and+the+wheel",
		"--cut\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nGrind\r\n--cut\r\nContent-Disposition: form-data; name=\"dependencies\"\r\n\r\nthe stone and the wheel\r\n--cut--\r\n",
		`{"message":"Grind","session_id":"mill","dependencies":"the stone and the wheel"}`,
	} {
		ask := frame.Frame{Kind: frame.Request, Name: "POST /agents/mill/runs", FromClient: true, Data: []byte(body)}
		got := play(t, ask)
		if len(got) != 1 || got[0].Kind != msg.Unknown || got[0].Attr("type") != msg.AttrUnknownFields || !strings.Contains(got[0].Content.String(), `dependencies":"the stone and the wheel"`) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}
