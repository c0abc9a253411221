package blame

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn is a critical path in a line.
func drawn(n *Node) string {
	var out []string
	for _, p := range n.Path() {
		out = append(out, fmt.Sprintf("%s %s %d-%d", p.Node.ID, p.Bucket, p.From, p.To))
	}
	return strings.Join(out, ", ")
}

func splitOf(n *Node) map[string]int64 {
	out := make(map[string]int64)
	for b, ns := range n.Split() {
		if ns != 0 {
			out[Bucket(b).String()] = ns
		}
	}
	return out
}

// turn is a run of 100 with a model turn, two tools side by side, a delegation to
// scout, which waits for a permission, and an answer.
func turn() []Span {
	return []Span{
		{ID: "run", Kind: Run, Name: "lead", Start: 100, End: 200},
		{ID: "think", Parent: "run", Kind: Chat, Name: "m", Start: 100, FirstToken: 104, End: 110},
		{ID: "read", Parent: "run", Kind: Tool, Name: "read", Start: 108, End: 112},
		{ID: "grep", Parent: "run", Kind: Tool, Name: "grep", Start: 110, End: 120},
		{ID: "task", Parent: "run", Kind: Delegation, Name: "Task", To: "scout", Start: 120, End: 180},
		{ID: "scout", Parent: "task", Kind: Run, Name: "scout", Start: 122, End: 180},
		{ID: "bash", Parent: "scout", Kind: Tool, Name: "bash", Start: 125, End: 175, Waits: []Interval{{From: 130, To: 160}}},
		{ID: "answer", Parent: "run", Kind: Chat, Name: "m", Start: 180, End: 195, Retries: []int64{183, 187}},
	}
}

func TestTurn(t *testing.T) {
	tree := New(turn())
	run := tree.Node("run")
	if d := cmp.Diff(map[string]int64{"model_ttft": 4, "model_stream": 6 + 8, "tool": 10, "sub_agent": 60, "retry": 7, "idle": 5}, splitOf(run)); d != "" {
		t.Errorf("run (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int64{"idle": 2 + 3 + 5, "tool": 20, "wait": 30}, splitOf(tree.Node("task"))); d != "" {
		t.Errorf("delegation (-want +got):\n%s", d)
	}
	want := "think model_ttft 100-104, think model_stream 104-110, grep tool 110-120, task idle 120-122, scout idle 122-125, " +
		"bash tool 125-130, bash wait 130-160, bash tool 160-175, scout idle 175-180, " +
		"answer retry 180-187, answer model_stream 187-195, run idle 195-200"
	if d := cmp.Diff(want, drawn(run)); d != "" {
		t.Errorf("path (-want +got):\n%s", d)
	}
	c := run.Bottlenecks(1)
	if len(c) != 1 || c[0].Worst.ID != "bash" || c[0].Bucket != Wait || c[0].Time != 30 || c[0].Saves != 30 || c[0].Steps != 1 {
		t.Errorf("culprit %+v", c)
	}
	// Without grep the delegation would have begun when read ended.
	if got := run.WhatIf(func(p Segment) bool { return p.Node.ID == "grep" }); got != 100-8 {
		t.Errorf("without grep it takes %d", got)
	}
	if got := run.WhatIf(func(p Segment) bool { return p.Node.ID == "read" }); got != 100 {
		t.Errorf("without read it takes %d", got)
	}
}

func TestClocks(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end int64 // of the child; its call lasts from 100 to 200
		async      bool
		want       []Shift
	}{
		{"inside", 100, 200, false, nil},
		{"behind", 40, 90, false, []Shift{{"child", 60, "it began before its call"}}},
		{"ahead", 160, 210, false, []Shift{{"child", -10, "it answered after its call's result"}}},
		{"far ahead", 500, 550, false, []Shift{{"child", -350, "it answered after its call's result"}}},
		{"longer than its call", 130, 260, false, []Shift{{"child", -30, "it answered after its call's result"}}},
		{"nobody waited", 160, 900, true, nil},
		{"nobody waited, behind", 90, 900, true, []Shift{{"child", 10, "it began before its call"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := New([]Span{
				{ID: "call", Kind: Delegation, Start: 100, End: 200, Async: c.async},
				{ID: "child", Parent: "call", Kind: Run, Start: c.start, End: c.end},
				{ID: "chat", Parent: "child", Kind: Chat, Start: c.start, FirstToken: c.start + 5, End: c.end},
			})
			if d := cmp.Diff(c.want, tree.Shifts()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			child, chat := tree.Node("child"), tree.Node("chat")
			if child.Start != chat.Start || chat.FirstToken != chat.Start+5 || child.Wall() != c.end-c.start {
				t.Errorf("child %+v, chat %+v", child.Span, chat.Span)
			}
		})
	}
}

func TestNoResult(t *testing.T) {
	tree := New([]Span{
		{ID: "run", Kind: Run, Start: 100, End: 110, Open: true},
		{ID: "call", Parent: "run", Kind: Delegation, Start: 105, End: 110, Open: true},
		{ID: "child", Parent: "call", Kind: Run, Start: 106, End: 300},
	})
	if n := tree.Node("call"); n.End != 300 || tree.Node("run").End != 300 {
		t.Errorf("the call ends at %d", n.End)
	}
	alone := New([]Span{{ID: "call", Kind: Delegation, Start: 5, End: 9}}).Node("call")
	if d := cmp.Diff(map[string]int64{"sub_agent": 4}, splitOf(alone)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLarge has traces that a quadratic step would hang on.
func TestLarge(t *testing.T) {
	const n = 30_000
	var wide, deep []Span
	wide = append(wide, Span{ID: "s0", Kind: Run, Start: 1, End: 10 * n})
	deep = append(deep, Span{ID: "s0", Kind: Run, Start: n + 1, End: n + 2})
	for i := int64(1); i < n; i++ {
		wide = append(wide, Span{ID: fmt.Sprint("s", i), Parent: "s0", Kind: Tool, Start: 10 * i, End: 10*i + 9 + i%30})
		deep = append(deep, Span{ID: fmt.Sprint("s", i), Parent: fmt.Sprint("s", i-1), Kind: []Kind{Run, Delegation}[i%2], Start: n - i, End: n + i, Open: i%5 == 0})
	}
	for name, spans := range map[string][]Span{"wide": wide, "deep": deep} {
		root := New(spans).Node("s0")
		if s := root.Split(); s.Total() != root.Wall() {
			t.Errorf("%s: split %v, wall %d", name, s, root.Wall())
		}
		if c := root.Bottlenecks(3); len(c) == 0 {
			t.Errorf("%s: nothing to blame", name)
		}
	}
}

func BenchmarkWide(b *testing.B) {
	spans := []Span{{ID: "s0", Kind: Run, Start: 1, End: 1_000_000}}
	for i := int64(1); i < 100_000; i++ {
		spans = append(spans, Span{ID: fmt.Sprint("s", i), Parent: "s0", Kind: Tool, Name: fmt.Sprint(i % 7), Start: 10 * i, End: 10*i + 9 + i%30})
	}
	b.ReportAllocs()
	for b.Loop() {
		New(spans).Node("s0").Bottlenecks(3)
	}
}

// story is a critical path by names: the node and bucket of each segment.
func story(n *Node) string {
	var out []string
	for _, p := range n.Path() {
		out = append(out, fmt.Sprintf("%s %s %d-%d", p.Node.Label(), p.Bucket, p.From, p.To))
	}
	return strings.Join(out, ", ")
}

// Two agents work side by side and their results are reported together: the one that
// was done early was done early, and the turn waited for the other.
func TestReportedTogether(t *testing.T) {
	run := Span{ID: "run", Kind: Run, Name: "lead", Start: 0, End: 2400}
	ask := Span{ID: "ask", Parent: "run", Kind: Chat, Name: "m", Start: 0, End: 200}
	answer := Span{ID: "answer", Parent: "run", Kind: Chat, Name: "m", Start: 2300, End: 2400}
	pair := func(early, late string) []Span {
		return []Span{
			run, ask, answer,
			{ID: early, Parent: "run", Kind: Delegation, Name: "delegate", To: "north", Start: 200, End: 2300},
			{ID: early + "r", Parent: early, Kind: Run, Name: "north", Start: 200, End: 800},
			{ID: late, Parent: "run", Kind: Delegation, Name: "delegate", To: "south", Start: 200, End: 2300},
			{ID: late + "r", Parent: late, Kind: Run, Name: "south", Start: 250, End: 2250},
		}
	}
	const want = "m model_stream 0-200, south idle 200-250, south idle 250-2250, lead idle 2250-2300, m model_stream 2300-2400"
	for n := range 8 {
		ids := []string{fmt.Sprint("a", n), fmt.Sprint("b", n)}
		early, late := ids[n%2], ids[1-n%2]
		tree := New(pair(early, late))
		if got := story(tree.Node("run")); got != want {
			t.Errorf("%s early: %s\nwant %s", early, got, want)
		}
		if a, b := tree.Node(early), tree.Node(late); a.Wall() != 600 || b.Wall() != 2050 {
			t.Errorf("north took %d, south %d", a.Wall(), b.Wall())
		}
	}

	// A call without children, written 18 after the result of an agent, has the rest.
	note := Span{ID: "0", Parent: "run", Kind: Tool, Name: "note", Start: 210, End: 2318}
	late := pair("a", "b")[3:]
	late[2].End = 2300
	answer.Start = 2318
	turn := append([]Span{run, ask, answer, note}, late...)
	if got, want := story(New(turn).Node("run")), "m model_stream 0-200, south idle 200-250, south idle 250-2250, note tool 2250-2318, m model_stream 2318-2400"; got != want {
		t.Errorf("beside an agent: %s\nwant %s", got, want)
	}

	// Of two calls without children it is unknown which took the time.
	both := []Span{
		{ID: "run", Kind: Run, Name: "lead", Start: 0, End: 2300},
		{ID: "x", Parent: "run", Kind: Tool, Name: "tides", Start: 0, End: 2300},
		{ID: "y", Parent: "run", Kind: Tool, Name: "depths", Start: 0, End: 2300},
	}
	c := New(both).Node("run").Bottlenecks(1)[0]
	if c.Name != "depths or tides" || c.Time != 2300 || c.Saves != 2300 || len(c.Worst.ReportedWith()) != 1 {
		t.Errorf("two that show nothing: %+v", c)
	}
}

// Work in the background has its caller's time only if the caller waited for it.
func TestBackground(t *testing.T) {
	turn := func(end int64, more ...Span) *Node {
		return New(append([]Span{
			{ID: "run", Kind: Run, Name: "lead", Start: 0, End: 100},
			{ID: "ask", Parent: "run", Kind: Chat, Name: "m", Start: 0, End: 20},
			{ID: "task", Parent: "run", Kind: Delegation, Name: "Task", To: "scout", Start: 20, End: 22, Async: true},
			{ID: "scout", Parent: "task", Kind: Run, Name: "scout", Start: 21, End: end},
			{ID: "work", Parent: "scout", Kind: Tool, Name: "bash", Start: 21, End: end},
		}, more...)).Node("run")
	}
	chat := func(id string, start, end int64) Span {
		return Span{ID: id, Parent: "run", Kind: Chat, Name: "m", Start: start, End: end}
	}
	wait := func(end int64) Span {
		return Span{ID: "wait", Parent: "run", Kind: Tool, Name: "wait", Start: 40, End: end}
	}
	for name, c := range map[string]struct {
		run  *Node
		want string
	}{
		"it outlives the turn":      {turn(400, chat("c", 20, 90)), "m model_stream 0-20, m model_stream 20-90, lead idle 90-100"},
		"it ends with the turn":     {turn(100, chat("c", 20, 90)), "m model_stream 0-20, m model_stream 20-90, lead idle 90-100"},
		"nothing comes behind it":   {turn(95, chat("c", 20, 90)), "m model_stream 0-20, m model_stream 20-90, lead idle 90-100"},
		"it ends beside a step":     {turn(60, chat("c", 20, 90)), "m model_stream 0-20, m model_stream 20-90, lead idle 90-100"},
		"the caller waited":         {turn(60, chat("c", 20, 30), chat("d", 61, 99)), "m model_stream 0-20, m model_stream 20-30, bash tool 30-60, lead idle 60-61, m model_stream 61-99, lead idle 99-100"},
		"a call brought its result": {turn(60, chat("c", 20, 40), wait(60), chat("d", 60, 100)), "m model_stream 0-20, m model_stream 20-40, bash tool 40-60, m model_stream 60-100"},
		"a call ended after it":     {turn(60, chat("c", 20, 40), wait(62), chat("d", 62, 100)), "m model_stream 0-20, m model_stream 20-40, wait tool 40-62, m model_stream 62-100"},
	} {
		if got := story(c.run); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// A response goes on while its first call runs: without the response the call begins earlier, by as much of the
// response as it waited for.
func TestCallWithinItsResponse(t *testing.T) {
	chat := func(id string, start, end int64) Span {
		return Span{ID: id, Parent: "run", Kind: Chat, Name: "m", Start: start, End: end}
	}
	run := New([]Span{
		{ID: "run", Kind: Run, Name: "pilot", Start: 0, End: 110},
		chat("ask", 0, 12),
		{ID: "x", Parent: "run", Kind: Tool, Name: "sound", Start: 10, End: 100},
		chat("answer", 100, 110),
	}).Node("run")
	got := make(map[string]int64)
	for _, c := range run.Bottlenecks(2) {
		got[c.Name] = c.Saves
	}
	if got["m"] != 20 || got["sound"] != 88 { // the call without time leaves the response, which ended at 12
		t.Errorf("without the model %d earlier, want 20; without the call %d, want 88", got["m"], got["sound"])
	}
}
