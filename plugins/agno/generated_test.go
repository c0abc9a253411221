package agno

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestRandomTrees: the stream and the reload of any team produce the same messages.
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(40) {
		g := newGenerator(seed)
		live := play(t, g.frames...)
		for name, body := range map[string]any{"all runs": g.stored, "top runs": g.top(), "top runs with events": g.topEvents()} {
			same(t, fmt.Sprintf("seed %d, %s", seed, name), live, play(t, document(t, body)))
		}
		if t.Failed() {
			return
		}
	}
}

// TestRandomTreesWithoutEvents: a reload without events has the same messages, except for
// facts that only events have, and members that worked in parallel, which follow each other.
func TestRandomTreesWithoutEvents(t *testing.T) {
	for seed := range uint64(40) {
		g := newGenerator(seed)
		if g.paused { // has no trace in messages
			continue
		}
		live := play(t, g.frames...)
		for _, run := range g.stored {
			run["events"] = nil
		}
		reloaded := play(t, document(t, g.stored))
		byKey := func(a, b msg.Message) int { return strings.Compare(a.Key, b.Key) }
		for _, list := range []*[]msg.Message{&live, &reloaded} {
			*list = slices.DeleteFunc(*list, func(m msg.Message) bool { return m.Kind == msg.Status })
			for i := range *list {
				m := &(*list)[i]
				m.Time, m.Tool.ErrorType, m.Delegation.To = 0, "", ""
				if g.crowded { // which child answers which call
					m.ParentCall, m.Delegation = "", msg.Delegate{}
				}
			}
			slices.SortFunc(*list, byKey)
		}
		same(t, fmt.Sprintf("seed %d", seed), live, reloaded)
		if t.Failed() {
			return
		}
	}
}

// play decodes frames and folds the messages.
func play(t *testing.T, frames ...frame.Frame) []msg.Message {
	t.Helper()
	return decodertest.Messages(t, New(), decoder.Stream{Origin: "http://h/sessions/grove/runs"}, frames)
}

func document(t *testing.T, v any) frame.Frame {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return frame.Frame{Kind: frame.Body, Data: b}
}

// same compares the messages of two forms of a conversation. A stream has no prompts and no
// system prompts.
func same(t *testing.T, name string, live, reloaded []msg.Message) {
	t.Helper()
	lines := func(in []msg.Message) []string {
		var out []string
		for _, m := range in {
			if m.Kind == msg.System || m.Kind == msg.User {
				continue
			}
			d := m.Delegation
			out = append(out, fmt.Sprintf("%s %s %q %q t=%d run=%s<%s<%s args=%s err=%v/%s to=%s child=%s %v/%d tokens=%v",
				m.Key, m.Kind, m.Content, m.Tool.Name, m.Time/1e9, m.Run, m.ParentRun, m.ParentCall, m.Tool.Arguments, m.IsError, m.Tool.ErrorType,
				d.To, d.ChildRun, d.Link, d.Confidence, m.Usage))
		}
		return out
	}
	a, b := lines(live), lines(reloaded)
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			at := func(l []string) string {
				if i < len(l) {
					return l[i]
				}
				return "nothing"
			}
			t.Errorf("%s: message %d of %d and %d differs:\nlive   %s\nreload %s", name, i, len(a), len(b), at(a), at(b))
			return
		}
	}
	if len(a) == 0 {
		t.Errorf("%s: no messages", name)
	}
}

// generator makes random conversations with a team, in both forms.
type generator struct {
	rand    *rand.Rand
	seed    uint64
	now     int64
	ids     int
	new     bool // AGNO 2.9
	crowded bool // a call delegated to several members at once
	paused  bool // a run waited
	frames  []frame.Frame
	stored  []map[string]any // runs, in the order in which they ended
}

// generatedRun is an open run.
type generatedRun struct {
	up       *generatedRun
	who      string
	team     bool
	run      map[string]any
	events   []any
	messages []any
	members  []any
	tools    []any
	text     string
	thought  string
	in, out  int
}

func newGenerator(seed uint64) *generator {
	g := &generator{seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), now: 1790000000}
	g.new = g.rand.IntN(2) == 0
	for range 1 + g.rand.IntN(2) {
		for range g.run(nil, 1+g.rand.IntN(3), fmt.Sprint("turn ", g.id("q"))) {
		}
		g.now += 10
	}
	return g
}

// top returns the runs that the API lists when members' runs are not stored apart.
func (g *generator) top() []map[string]any {
	return slices.DeleteFunc(slices.Clone(g.stored), func(r map[string]any) bool { return r["parent_run_id"] != "" })
}

// topEvents returns all runs as they are stored when only the team keeps events.
func (g *generator) topEvents() []map[string]any {
	var out []map[string]any
	for _, r := range g.stored {
		if r["parent_run_id"] != "" {
			r = maps.Clone(r)
			r["events"] = nil
		}
		out = append(out, r)
	}
	return out
}

func (g *generator) id(prefix string) string {
	g.ids++
	return fmt.Sprintf("%s-%04d-4000-%08d", prefix, g.seed, g.ids)
}

func (g *generator) words(n int) string {
	return strings.Repeat(fmt.Sprintf("w%d ", g.rand.IntN(100)), n)
}

// run makes one run; it yields after each of its events, so that runs can interleave.
func (g *generator) run(up *generatedRun, depth int, task string) iter.Seq[*generatedRun] {
	return func(yield func(*generatedRun) bool) {
		r := &generatedRun{up: up, who: fmt.Sprintf("member-%d", g.rand.IntN(3)), team: depth > 0}
		r.run = map[string]any{"run_id": g.id("run"), "parent_run_id": "", "run_input": task, "created_at": g.now, "run_response_format": "text"}
		if up != nil {
			r.run["parent_run_id"] = up.run["run_id"]
		}
		r.messages = append(r.messages, map[string]any{"role": "user", "content": task, "created_at": g.now})
		emit := func(name string, fields map[string]any) { g.emit(r, name, fields) }
		emit("RunStarted", map[string]any{"model": "oak", "model_provider": "OpenAI"})
		if !yield(r) {
			return
		}
		for last := g.rand.IntN(4); last >= 0; last-- {
			g.now += g.rand.Int64N(3)
			if g.new {
				emit("ModelRequestStarted", map[string]any{"model": "oak", "model_provider": "OpenAI"})
			}
			m := map[string]any{"role": "assistant"}
			if g.rand.IntN(4) == 0 {
				m["reasoning_content"] = g.words(2)
				r.thought += m["reasoning_content"].(string)
				emit("RunContent", map[string]any{"reasoning_content": m["reasoning_content"], "content_type": "str"})
			}
			if last == 0 || g.rand.IntN(2) == 0 {
				text := ""
				for range 1 + g.rand.IntN(3) {
					text += g.words(1)
					emit("RunContent", map[string]any{"content": text[len(text)-len(g.lastWord(text)):], "content_type": "str", "reasoning_content": ""})
					if !yield(r) {
						return
					}
				}
				m["content"] = text
				r.text += text
			}
			i, o := 1+g.rand.IntN(50), 1+g.rand.IntN(50)
			r.in, r.out = r.in+i, r.out+o
			if g.new {
				emit("ModelRequestCompleted", map[string]any{"model": "oak", "model_provider": "OpenAI", "input_tokens": i, "output_tokens": o, "total_tokens": i + o})
			}
			m["metrics"], m["created_at"] = map[string]any{"input_tokens": i, "output_tokens": o, "total_tokens": i + o}, g.now
			r.messages = append(r.messages, m)
			if last > 0 && !g.calls(r, m, depth, yield) {
				return
			}
		}
		emit("RunContentCompleted", nil)
		metrics := map[string]any{"input_tokens": r.in, "output_tokens": r.out, "total_tokens": r.in + r.out, "duration": 1.5}
		if g.new {
			metrics["details"] = map[string]any{"model": []any{}}
		}
		done := map[string]any{"content": r.text, "content_type": "str", "metrics": metrics}
		if r.thought != "" {
			done["reasoning_content"] = r.thought
		}
		r.run["status"], r.run["content"], r.run["metrics"], r.run["messages"] = "COMPLETED", r.text, metrics, r.messages
		if len(r.members) > 0 {
			done["member_responses"] = r.members
		}
		emit("RunCompleted", done)
		r.run["events"] = r.events
		r.run[r.kind()+"_id"] = r.who
		if up != nil {
			embedded := maps.Clone(r.run)
			embedded["agent_name"], embedded["session_id"] = r.name(), "grove"
			up.members = append(up.members, embedded)
		}
		g.stored = append(g.stored, r.run)
	}
}

func (g *generator) lastWord(text string) string {
	return text[strings.LastIndexByte(strings.TrimRight(text, " "), ' ')+1:]
}

func (r *generatedRun) kind() string {
	if r.team {
		return "team"
	}
	return "agent"
}

func (r *generatedRun) name() string { return "The " + r.who }

func (g *generator) emit(r *generatedRun, name string, fields map[string]any) {
	if r.team {
		name = "Team" + name
	}
	e := map[string]any{"event": name, "created_at": g.now, "run_id": r.run["run_id"], "session_id": "grove", r.kind() + "_id": r.who, r.kind() + "_name": r.name()}
	if r.up != nil {
		e["parent_run_id"] = r.up.run["run_id"]
	}
	maps.Copy(e, fields)
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	g.frames = append(g.frames, frame.Frame{Kind: frame.Event, Name: name, Data: b})
	if strings.HasSuffix(name, "RunContent") {
		return
	}
	for at := r; at != nil; at = at.up {
		at.events = append(at.events, json.RawMessage(b))
	}
}

// calls makes the calls of one response: tools one after the other, or members, alone or in
// parallel.
func (g *generator) calls(r *generatedRun, m map[string]any, depth int, yield func(*generatedRun) bool) bool {
	type made struct {
		id, name string
		args     map[string]any
		result   string
		child    iter.Seq[*generatedRun]
	}
	var all []made
	for range 1 + g.rand.IntN(2) {
		c := made{id: g.id("call"), name: "look_up", args: map[string]any{"what": g.words(1)}, result: g.words(2)}
		if depth > 0 && g.rand.IntN(3) > 0 {
			task := "task " + g.id("t")
			c.name, c.args = "delegate_task_to_member", map[string]any{"member_id": fmt.Sprintf("member_%d", g.rand.IntN(3)), "task": task}
			if g.rand.IntN(5) == 0 {
				c.args["member_id"] = "nobody"
			} else {
				c.child = g.run(r, depth-1, task)
			}
		}
		all = append(all, c)
	}
	var calls []any
	wait := r.up == nil && len(all) == 1 && all[0].child == nil && g.rand.IntN(4) == 0
	if wait && !g.wait(r, tool(all[0].id, all[0].name, all[0].args), yield) {
		return false
	}
	for _, c := range all {
		args, err := json.Marshal(c.args)
		if err != nil {
			panic(err)
		}
		calls = append(calls, map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": string(args)}})
		g.emit(r, "ToolCallStarted", map[string]any{"tool": tool(c.id, c.name, c.args)})
		if !yield(r) {
			return false
		}
	}
	m["tool_calls"] = calls
	var next []func() (*generatedRun, bool)
	members := 0
	for _, c := range all {
		if c.args["member_id"] != nil {
			members++
		}
		if c.child != nil {
			n, stop := iter.Pull(c.child)
			defer stop()
			next = append(next, n)
		}
	}
	g.crowded = g.crowded || members > 1
	for len(next) > 0 {
		i := g.rand.IntN(len(next))
		if _, ok := next[i](); !ok {
			next = slices.Delete(next, i, i+1)
			continue
		}
		g.now += g.rand.Int64N(2)
		if !yield(r) {
			return false
		}
	}
	for _, c := range all {
		if c.child != nil {
			c.result = g.answer(r, c.args["task"].(string))
		}
		failed := c.name == "look_up" && g.rand.IntN(4) == 0
		done := tool(c.id, c.name, c.args)
		done["result"], done["tool_call_error"] = c.result, failed
		g.emit(r, "ToolCallCompleted", map[string]any{"tool": done})
		if failed && g.new {
			g.emit(r, "ToolCallError", map[string]any{"tool": done, "error": c.result})
		}
		r.messages = append(r.messages, map[string]any{"role": "tool", "tool_call_id": c.id, "tool_name": c.name, "tool_args": c.args, "content": c.result, "tool_call_error": failed, "created_at": g.now})
	}
	return true
}

func tool(id, name string, args map[string]any) map[string]any {
	return map[string]any{"tool_call_id": id, "tool_name": name, "tool_args": args, "tool_call_error": nil, "result": nil}
}

// wait makes a call wait until a person allows it.
func (g *generator) wait(r *generatedRun, tool map[string]any, yield func(*generatedRun) bool) bool {
	g.paused = true
	tool["requires_confirmation"] = true
	g.emit(r, "RunPaused", map[string]any{"tools": []any{tool}})
	if !yield(r) {
		return false
	}
	g.now += 5
	g.emit(r, "RunContinued", nil)
	decided := maps.Clone(tool)
	decided["confirmed"] = true
	r.tools = append(r.tools, decided)
	r.run["tools"] = r.tools
	return true
}

// answer is the text of the run with that task.
func (g *generator) answer(r *generatedRun, task string) string {
	for _, s := range g.stored {
		if s["run_input"] == task && s["parent_run_id"] == r.run["run_id"] {
			return s["content"].(string)
		}
	}
	return "nothing"
}
