package assemble

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// script has the messages of one session, part by part.
type script struct {
	format, session string
	parts           [][]msg.Message
}

// how a script is played.
type how struct {
	restarts bool // the sidecar restarts after each part
	gone     bool // no stream can be decoded again
	back     bool // with gone: in the end they can be
	late     bool // streams are decoded again after everything else
}

// behind is the part of a stream that is to be decoded again: of some runs, up to a position.
type behind struct {
	runs  map[string]bool
	until int
}

// play applies the parts in the order of names ("0.1" is part 1 of script 0), decodes again as
// requested, and returns the rows.
func play(t *testing.T, scripts []script, order []string, h how) map[string]msg.Span {
	t.Helper()
	w := newHarness(t)
	w.gone = h.gone
	read, due := make([]int, len(scripts)), make([]int, len(scripts))
	waits := make(map[int]*behind)
	say := func(at int, list []msg.Message, only map[string]bool) {
		s := scripts[at]
		for i, m := range list {
			if only != nil && !only[m.Run] {
				continue
			}
			m.Session, m.Host = s.session, msg.Host{Tenant: "default", Format: s.format, Source: "src", Ver: uint64(i)}
			m.Key = fmt.Sprintf("%s/%s/%d/%s", m.Kind, m.Run, m.Time, m.Tool.CallID)
			m.Time, m.Complete = t0+m.Time*sec, msg.Complete
			if m.Precision == msg.Inferred && m.Kind == msg.Delegation {
				m.Precision = msg.Millis
			}
			if _, err := w.a.Apply(&m, uint64(at+1), 1, time.Unix(0, t0), t0); err != nil {
				t.Fatal(err)
			}
		}
	}
	catchUp := func(at int) {
		b := waits[at]
		delete(waits, at)
		for _, p := range scripts[at].parts[:b.until] {
			say(at, p, b.runs)
		}
		for ; read[at] < due[at]; read[at]++ {
			say(at, scripts[at].parts[read[at]], nil)
		}
	}
	again := func() {
		for n := 0; len(w.replay) > 0 && !w.gone; n++ {
			if n > 50 {
				t.Fatalf("order %v: streams are decoded again and again", order)
			}
			for i, r := range w.replay {
				if err := w.a.ResetRun(r); err != nil {
					t.Fatal(err)
				}
				at := int(w.streams[i]) - 1
				if waits[at] == nil {
					waits[at] = &behind{runs: make(map[string]bool)}
				}
				waits[at].runs[r.Run] = true
				waits[at].until = max(waits[at].until, read[at])
			}
			w.replay, w.streams = w.replay[:0], w.streams[:0]
			if h.late {
				return
			}
			for at := range waits {
				catchUp(at)
			}
		}
	}
	for _, name := range order {
		var at, part int
		if _, err := fmt.Sscanf(name, "%d.%d", &at, &part); err != nil {
			t.Fatal(err)
		}
		if due[at]++; waits[at] == nil { // else it is behind the part that is decoded again
			read[at]++
			say(at, scripts[at].parts[part], nil)
		}
		again()
		if h.restarts {
			w.restart()
		}
	}
	if h.back {
		w.gone = false
		awaited := w.replay
		w.replay, w.streams = nil, nil
		for _, r := range awaited {
			if err := w.a.Rejoin(r, time.Unix(0, t0)); err != nil {
				t.Fatal(err)
			}
		}
		again()
	}
	for h.late = false; len(waits) > 0; {
		for at := range waits {
			catchUp(at)
			again()
		}
	}
	return w.rowsOf()
}

// interleavings are all orders of the scripts' parts in which each script's own stay in
// order.
func interleavings(scripts []script) (out [][]string) {
	var next func(done []string, at []int)
	next = func(done []string, at []int) {
		whole := true
		for i, s := range scripts {
			if at[i] < len(s.parts) {
				whole = false
				moved := slices.Clone(at)
				moved[i]++
				next(append(slices.Clone(done), fmt.Sprintf("%d.%d", i, at[i])), moved)
			}
		}
		if whole {
			out = append(out, done)
		}
	}
	next(nil, make([]int, len(scripts)))
	return out
}

func stop(run string, at int64) msg.Message {
	return msg.Message{Kind: msg.Stop, Run: run, Time: at, Signal: msg.RunEnd}
}

// hires is a call at from that ends at to, with the correlation of the run that it causes.
func hires(run, call, id, prompt string, from, to int64) (begin, end msg.Message) {
	begin, end = delegated(run, call, "codex", from), answered(run, call, to)
	begin.Delegation.CorrelationPrompt, end.Delegation.CorrelationID = prompt, id
	return begin, end
}

// hired is the beginning of a run that a call may have caused.
func hired(run, id, prompt string, at int64) []msg.Message {
	start := msg.Message{Kind: msg.Status, Run: run, Time: at, Signal: msg.RunStart, Precision: msg.Millis, Delegation: msg.Delegate{CorrelationID: id}}
	asked := user(run, at)
	asked.Precision, asked.Delegation.CorrelationPrompt = msg.Millis, prompt
	return []msg.Message{start, asked}
}

// TestSpawnAcrossSessions: an agent's call runs an agent of another format. In any order of
// reading, and however often the sidecar restarts, it is one tree with the same rows.
func TestSpawnAcrossSessions(t *testing.T) {
	for name, c := range map[string]struct {
		id, prompt string
		link       msg.LinkMethod
		confidence uint8
	}{
		"the output names the thread": {"codex 1", "", msg.ByNativeID, 0},
		"only the prompt is known":    {"", "codex p", msg.ByPrompt, 80},
		"both":                        {"codex 1", "codex p", msg.ByNativeID, 0},
	} {
		begin, end := hires("a", "d", c.id, c.prompt, 1, 9)
		scripts := []script{
			{"claude-code", "s", [][]msg.Message{{user("a", 0)}, {said("a", "r1", 1), begin}, {end}, {said("a", "r2", 10), stop("a", 11)}}},
			{"codex", "th", [][]msg.Message{hired("x", c.id, c.prompt, 2), {called("x", "t", "shell", 3), result("x", "t", 5)}, {said("x", "q", 7), stop("x", 8)}}},
		}
		var want map[string]msg.Span
		for _, order := range interleavings(scripts) {
			for _, h := range []how{{}, {restarts: true}, {late: true}, {restarts: true, late: true}} {
				got := play(t, scripts, order, h)
				if want == nil {
					want = got
					oneTree(t, name, got, c.link, c.confidence)
				}
				if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
					t.Fatalf("%s, order %v, %+v: -first +this:\n%s", name, order, h, d)
				}
			}
		}
		if len(want) != 7 {
			t.Errorf("%s: %d rows", name, len(want))
		}
	}
}

func oneTree(t *testing.T, name string, rows map[string]msg.Span, link msg.LinkMethod, confidence uint8) {
	t.Helper()
	traces := make(map[msg.TraceID]bool)
	var call, run msg.Span
	for _, s := range rows {
		traces[s.TraceID] = true
		switch {
		case s.Kind == msg.SpanDelegation:
			call = s
		case s.Kind == msg.SpanRun && s.Run == "x":
			run = s
		}
	}
	if len(traces) != 1 {
		t.Errorf("%s: %d traces", name, len(traces))
	}
	if d := call.Delegate; d.ChildRun != "x" || d.Link != link || d.Confidence != confidence {
		t.Errorf("%s: the call is linked to %q by %s, %d %%", name, d.ChildRun, d.Link, d.Confidence)
	}
	if run.Parent != call.ID || run.ParentRun != "a" || run.Delegate.Link != link || run.Agent.Name != "codex" {
		t.Errorf("%s: the run of %q stands below %s of run %q by %s", name, run.Agent.Name, run.Parent, run.ParentRun, run.Delegate.Link)
	}
}

// TestSamePromptTwice: two calls ask the same at once. Their runs are paired by order, and a
// thread that is named corrects that, in any order of reading.
func TestSamePromptTwice(t *testing.T) {
	b1, e1 := hires("a", "d1", "codex 2", "codex p", 1, 9)
	b2, e2 := hires("a", "d2", "", "codex p", 2, 9)
	scripts := []script{
		{"claude-code", "s", [][]msg.Message{{user("a", 0), b1}, {b2}, {e1, e2, stop("a", 10)}}},
		{"codex", "t1", [][]msg.Message{append(hired("x", "codex 1", "codex p", 3), stop("x", 7))}},
		{"codex", "t2", [][]msg.Message{append(hired("y", "codex 2", "codex p", 4), stop("y", 8))}},
	}
	var want map[string]msg.Span
	for i, order := range interleavings(scripts) {
		got := play(t, scripts, order, how{restarts: true, late: i%2 == 1})
		if want == nil {
			want = got
			for _, s := range got {
				if s.Kind == msg.SpanRun && s.Run == "y" && (s.Delegate.Link != msg.ByNativeID || s.Parent != msg.NewSpanID("default", "claude-code", "s", msg.SpanTool, "d1")) {
					t.Errorf("y stands below %s by %s", s.Parent, s.Delegate.Link)
				}
			}
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
			t.Fatalf("order %v: -first +this:\n%s", order, d)
		}
	}
}

// TestMovesTwice: two agents ask the same at once; a thread seems to be the first one's until
// the second names it. The spans under either trace get tombstones.
func TestMovesTwice(t *testing.T) {
	b1, e1 := hires("a", "d1", "", "codex p", 1, 9)
	b2, e2 := hires("b", "d2", "codex 1", "codex p", 2, 9)
	scripts := []script{
		{"claude-code", "s1", [][]msg.Message{{user("a", 0), b1}, {e1, stop("a", 10)}}},
		{"claude-code", "s2", [][]msg.Message{{user("b", 0), b2}, {e2, stop("b", 10)}}},
		{"codex", "t", [][]msg.Message{append(hired("x", "codex 1", "codex p", 3), called("x", "c", "shell", 4), result("x", "c", 5)), {said("x", "q", 6), stop("x", 7)}}},
	}
	var want map[string]msg.Span
	for _, order := range interleavings(scripts) {
		for _, h := range []how{{}, {late: true}} {
			got := play(t, scripts, order, h)
			if want == nil {
				want = got
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
				t.Fatalf("order %v, %+v: -first +this:\n%s", order, h, d)
			}
		}
	}
	for _, s := range want {
		if s.Run == "x" && s.TraceID != msg.NewTraceID("default", "claude-code", "s2", "b") {
			t.Errorf("%s is in trace %s", s.Kind, s.TraceID)
		}
	}
}

// TestSpawnByAScript: no part of a call shows that it runs an agent, but its output names a
// thread. If a run of that name began meanwhile, the tool was a delegation.
func TestSpawnByAScript(t *testing.T) {
	end := result("a", "c", 9)
	end.Delegation = msg.Delegate{To: "codex", CorrelationID: "codex 1"}
	parent := script{"claude-code", "s", [][]msg.Message{{user("a", 0), called("a", "c", "Bash", 1)}, {end, stop("a", 10)}}}
	child := script{"codex", "th", [][]msg.Message{hired("x", "codex 1", "", 2), {stop("x", 8)}}}
	for kind, scripts := range map[msg.SpanKind][]script{msg.SpanTool: {parent}, msg.SpanDelegation: {parent, child}} {
		for _, order := range interleavings(scripts) {
			for _, s := range play(t, scripts, order, how{restarts: true}) {
				if s.Tool.CallID == "c" && (s.Kind != kind || kind == msg.SpanDelegation && s.Delegate.ChildRun != "x") {
					t.Errorf("order %v: the call is a %s of %q", order, s.Kind, s.Delegate.ChildRun)
				}
			}
		}
	}
}

// TestSpawnOfATeammate: the acknowledgement of a call names the run of another session, and the
// call has no result.
func TestSpawnOfATeammate(t *testing.T) {
	ack := msg.Message{Kind: msg.Status, Run: "a", Time: 2, Signal: msg.Link, Precision: msg.Millis}
	ack.Tool.CallID = "d"
	ack.Delegation = msg.Delegate{ChildRun: "pruner@team", Link: msg.ByNativeID, Async: true, CorrelationID: "pruner@team"}
	parent := script{"claude-code", "s", [][]msg.Message{{user("a", 0), delegated("a", "d", "pruner", 1)}, {ack}, {stop("a", 10)}}}
	child := script{"claude-code", "th", [][]msg.Message{hired("x", "pruner@team", "", 3), {stop("x", 8)}}}
	for _, order := range interleavings([]script{parent, child}) {
		var call, run msg.Span
		for _, s := range play(t, []script{parent, child}, order, how{restarts: true}) {
			switch {
			case s.Tool.CallID == "d":
				call = s
			case s.Run == "x":
				run = s
			}
		}
		if call.ID.IsZero() || run.Parent != call.ID {
			t.Errorf("order %v: the teammate's run is below %s, not below the call %s", order, run.Parent, call.ID)
		}
	}
}

// TestAgentsOfOneSession: a call makes two agents of its own session run, which messages about it name one by one; both are below it, and the run of the
// call keeps its name.
func TestAgentsOfOneSession(t *testing.T) {
	names := func(agent string) msg.Message {
		m := msg.Message{Kind: msg.Status, Run: "a", Time: 2, Signal: msg.Link, Precision: msg.Millis}
		m.Tool.CallID = "d"
		m.Delegation = msg.Delegate{To: "pruner", CorrelationID: "s/" + agent}
		return m
	}
	parent := script{"kimi-code", "s", [][]msg.Message{{user("a", 0), delegated("a", "d", "pruner", 1)}, {names("one"), names("two")}, {stop("a", 20)}}}
	agent := func(name string) script {
		m := msg.Message{Kind: msg.Status, Run: name, Time: 3, Signal: msg.RunStart, ParentRun: msg.UnknownRun, Precision: msg.Millis}
		m.Agent = msg.Agent{ID: name, Kind: msg.KindAgent}
		m.Delegation.CorrelationID = "s/" + name
		return script{"kimi-code", "s", [][]msg.Message{{m}, {stop(name, 8)}}}
	}
	scripts := []script{parent, agent("one"), agent("two")}
	for _, order := range [][]string{{"0.0", "0.1", "1.0", "2.0", "1.1", "2.1", "0.2"}, {"1.0", "1.1", "0.0", "0.1", "2.0", "2.1", "0.2"}, {"2.0", "1.0", "2.1", "1.1", "0.0", "0.1", "0.2"}} {
		var call msg.SpanID
		parents, name := map[string]msg.SpanID{}, ""
		for _, s := range play(t, scripts, order, how{}) {
			switch {
			case s.Tool.CallID == "d":
				call = s.ID
			case s.Run == "a":
				name = s.Agent.Name
			default:
				parents[s.Run] = s.Parent
			}
		}
		if call.IsZero() || parents["one"] != call || parents["two"] != call || name == "pruner" {
			t.Errorf("order %v: the agents are below %v, not below the call %s; the run of the call is %q", order, parents, call, name)
		}
	}
}

// TestSpawnWithoutTimes: a stream whose protocol has no times is read long after its
// call; the thread's name is enough, and of several turns each has its call.
func TestSpawnWithoutTimes(t *testing.T) {
	b1, e1 := hires("a", "d1", "codex 1", "", 1, 2)
	b2, e2 := hires("a", "d2", "codex 1", "", 3, 4)
	turn := func(run string, at int64) []msg.Message {
		list := hired(run, "codex 1", "", at)
		for i := range list {
			list[i].Precision = msg.Inferred
		}
		return append(list, stop(run, at))
	}
	scripts := []script{
		{"claude-code", "s", [][]msg.Message{{user("a", 0), b1, e1, b2, e2}}},
		{"codex-exec", "th", [][]msg.Message{turn("x", 7000), turn("y", 7001)}},
	}
	for _, order := range interleavings(scripts) {
		got := make(map[string]string)
		for _, s := range play(t, scripts, order, how{restarts: true}) {
			if s.Kind == msg.SpanDelegation {
				got[s.Tool.CallID] = s.Delegate.ChildRun
			}
		}
		if d := cmp.Diff(map[string]string{"d1": "x", "d2": "y"}, got); d != "" {
			t.Errorf("order %v: -want +got:\n%s", order, d)
		}
	}
}

// TestNotSpawned: runs that only look like it stay by themselves: one that began after
// the call, one that is asked by a person, and two that call each other.
func TestNotSpawned(t *testing.T) {
	begin, end := hires("a", "d", "codex 1", "codex p", 1, 9)
	late := append(hired("x", "codex 1", "codex p", 60), stop("x", 61))
	back, backEnd := hires("x", "e", "claude 1", "", 3, 5)
	for name, c := range map[string]struct {
		scripts []script
		traces  int
	}{
		"after the call": {[]script{{"claude-code", "s", [][]msg.Message{{user("a", 0), begin, end}}}, {"codex", "t", [][]msg.Message{late}}}, 2},
		"its own call":   {[]script{{"codex", "t", [][]msg.Message{append(hired("x", "codex 1", "", 0), begin, end)}}}, 2},
		"in a circle": {[]script{
			{"claude-code", "s", [][]msg.Message{append(hired("a", "claude 1", "", 0), begin, end)}},
			{"codex", "t", [][]msg.Message{append(hired("x", "codex 1", "", 2), back, backEnd)}},
		}, 1},
	} {
		for _, order := range interleavings(c.scripts) {
			traces := make(map[msg.TraceID]bool)
			for _, s := range play(t, c.scripts, order, how{restarts: true}) {
				traces[s.TraceID] = true
			}
			if len(traces) != c.traces {
				t.Errorf("%s, order %v: %d traces", name, order, len(traces))
			}
		}
	}
}

// TestSpawnWhoseStreamIsGone: a run that cannot be decoded again stays in its own trace, and
// points to its call; the call names it all the same.
func TestSpawnWhoseStreamIsGone(t *testing.T) {
	begin, end := hires("a", "d", "codex 1", "", 1, 9)
	scripts := []script{
		{"claude-code", "s", [][]msg.Message{{user("a", 0), begin, end, stop("a", 10)}}},
		{"codex", "th", [][]msg.Message{append(hired("x", "codex 1", "", 2), said("x", "q", 7), stop("x", 8))}},
	}
	rows := play(t, scripts, []string{"1.0", "0.0"}, how{restarts: true, gone: true})
	parent := msg.NewTraceID("default", "claude-code", "s", "a")
	for _, s := range rows {
		switch {
		case s.Kind == msg.SpanDelegation:
			if s.Delegate.ChildRun != "x" || s.Delegate.Link != msg.ByNativeID {
				t.Errorf("the call is linked to %q by %s", s.Delegate.ChildRun, s.Delegate.Link)
			}
		case s.Kind == msg.SpanRun && s.Run == "x":
			if !s.Parent.IsZero() || s.TraceID == parent || len(s.Links) != 1 || s.Links[0].TraceID != parent {
				t.Errorf("the run is in trace %s below %s with links %v", s.TraceID, s.Parent, s.Links)
			}
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	// It was not gone: after a start its source found it later than the caller's stream.
	rows = play(t, scripts, []string{"1.0", "0.0"}, how{restarts: true, gone: true, back: true})
	for _, s := range rows {
		if s.TraceID != parent || len(s.Links) > 0 || s.Kind == msg.SpanRun && s.Run == "x" && s.Parent.IsZero() {
			t.Errorf("back: %s of run %s is in trace %s below %s with links %v", s.Kind, s.Run, s.TraceID, s.Parent, s.Links)
		}
	}
	if len(rows) != 4 {
		t.Errorf("back: %d rows", len(rows))
	}
}
