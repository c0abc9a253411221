package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

// turn builds the spans of a turn. Times are seconds after its beginning.
type turn struct {
	session string
	began   int64
	spans   []msg.Span
}

func newTurn(session string, began time.Time) *turn {
	return &turn{session: session, began: began.UnixNano()}
}

func (t *turn) span(kind msg.SpanKind, id, parent string, start, end float64) *msg.Span {
	s := msg.Span{
		Tenant: "default", Source: "harbour", Format: "legion", Session: t.session, Kind: kind, State: msg.SpanClosed, Outcome: msg.OutcomeOK,
		TraceID: msg.NewTraceID("default", "legion", t.session, "turn"), ID: t.id(id),
		Start: t.at(start), End: t.at(end), LastSeen: t.at(end), Ver: 1,
	}
	if parent != "" {
		s.Parent = t.id(parent)
	}
	t.spans = append(t.spans, s)
	return &t.spans[len(t.spans)-1]
}

func (t *turn) id(name string) msg.SpanID {
	return msg.NewSpanID("default", "legion", t.session, msg.SpanTool, name)
}

func (t *turn) at(s float64) int64 { return t.began + int64(s*1e9) }

func (t *turn) run(id, parent, agent string, start, end float64) {
	t.span(msg.SpanRun, id, parent, start, end).Agent.Name = agent
}

func (t *turn) chat(id, parent string, start, first, end float64) *msg.Span {
	s := t.span(msg.SpanChat, id, parent, start, end)
	s.Model, s.FirstToken = "tern-2", t.at(first)
	return s
}

func (t *turn) tool(id, parent, name string, start, end float64) *msg.Span {
	s := t.span(msg.SpanTool, id, parent, start, end)
	s.Tool = msg.Tool{CallID: id, Name: name}
	return s
}

func (t *turn) delegation(id, parent, from, to string, start, end float64) *msg.Span {
	s := t.span(msg.SpanDelegation, id, parent, start, end)
	s.Agent.Name, s.Tool, s.Delegate.To = from, msg.Tool{CallID: id, Name: "Task"}, to
	return s
}

func (t *turn) events(s *msg.Span, at ...any) {
	for i := 0; i < len(at); i += 2 {
		s.Events = append(s.Events, msg.SpanEvent{Time: t.at(at[i].(float64)), Name: at[i+1].(string)})
	}
}

// messages is the user's prompt.
func (t *turn) messages() []msg.Message {
	m := msg.Message{
		Key: "ask", Session: t.session, Run: "turn", Kind: msg.User, Role: msg.RoleUser, Content: msg.Plain("Find the leak."), Time: t.began, Complete: msg.Complete,
		Host: msg.Host{Tenant: "default", Source: "harbour", Format: "legion", ID: msg.NewID("default", "legion", t.session, "ask"), Ver: 1},
	}
	return []msg.Message{m}
}

// incident is a turn of a pilot that delegates three times: to a scout, to the
// slow one, and to a clerk. The middle one lasts from 10 to 70; slow fills it in.
func incident(session string, began time.Time, slow func(t *turn)) *turn {
	t := newTurn(session, began)
	t.run("turn", "", "pilot", 0, 80)
	t.chat("plan", "turn", 0, 1, 3)
	for _, d := range []struct {
		to         string
		start, end float64
	}{{"scout", 3, 9}, {"clerk", 71, 78}} {
		t.delegation(d.to, "turn", "pilot", d.to, d.start, d.end)
		t.run(d.to+"-run", d.to, d.to, d.start, d.end)
		t.chat(d.to+"-chat", d.to+"-run", d.start, d.start+1, d.end-1)
		t.tool(d.to+"-tool", d.to+"-run", "look", d.end-1, d.end)
	}
	t.chat("answer", "turn", 78, 79, 80)
	t.delegation("slow", "turn", "pilot", "diver", 10, 70)
	t.run("slow-run", "slow", "diver", 10, 70)
	t.chat("slow-chat", "slow-run", 10, 10.5, 12)
	slow(t)
	return t
}

// causes are the possible causes of a slow delegation.
var causes = []struct {
	name       string
	bucket     string // that has most of it
	bottleneck string // bucket, name and agent
	says       string // in the table
	slow       func(t *turn)
}{
	{"first token", "model_ttft", "model_ttft tern-2 diver", "first token of tern-2 in diver",
		func(t *turn) { t.chat("slow-late", "slow-run", 12, 60, 70) }},
	{"long answer", "model_stream", "model_stream tern-2 diver", "model tern-2 in diver",
		func(t *turn) { t.chat("slow-long", "slow-run", 12, 14, 70) }},
	{"tool", "tool", "tool sonar diver", "tool sonar in diver",
		func(t *turn) {
			t.tool("slow-quick", "slow-run", "chart", 12, 14)
			t.tool("slow-tool", "slow-run", "sonar", 12, 66)
			t.chat("slow-end", "slow-run", 66, 67, 70)
		}},
	{"sub-agent", "sub_agent", "tool pump mate", "tool pump in mate",
		func(t *turn) {
			t.delegation("inner", "slow-run", "diver", "mate", 12, 68)
			t.run("inner-run", "inner", "mate", 13, 68)
			t.tool("inner-tool", "inner-run", "pump", 14, 67)
		}},
	{"permission", "wait", "wait sonar diver", "waiting for a person at sonar in diver",
		func(t *turn) {
			s := t.tool("slow-tool", "slow-run", "sonar", 12, 68)
			t.events(s, 13.0, "wait_start", 65.0, "wait_end")
		}},
	{"human", "wait", "wait diver diver", "waiting for a person",
		func(t *turn) {
			for i := range t.spans {
				if s := &t.spans[i]; s.ID == t.id("slow-run") {
					t.events(s, 12.0, "run_pause", 68.0, "run_resume")
				}
			}
		}},
	{"retries", "retry", "retry tern-2 diver", "retries of tern-2 in diver",
		func(t *turn) {
			s := t.chat("slow-chat-2", "slow-run", 12, 66, 70)
			t.events(s, 30.0, "retry", 64.0, "retry")
		}},
	{"no record", "idle", "idle diver diver", "unrecorded time of diver",
		func(t *turn) { t.chat("slow-end", "slow-run", 66, 67, 70) }},
	{"unseen", "sub_agent", "sub_agent mate diver", "agent mate (not recorded) in diver",
		func(t *turn) { t.delegation("inner", "slow-run", "diver", "mate", 12, 68) }},
	{"many small", "tool", "tool poll diver", "tool poll in diver ×9",
		func(t *turn) {
			for i := range 9 {
				at := 12 + 6*float64(i)
				t.tool("poll"+string(rune('0'+i)), "slow-run", "poll", at, at+5)
				t.chat("think"+string(rune('0'+i)), "slow-run", at+5, at+5.2, at+6)
			}
		}},
}

// TestSlowNamesTheReason has an incident per cause.
func TestSlowNamesTheReason(t *testing.T) {
	h := newHome(t)
	began := time.Now().Add(-20 * time.Minute)
	for _, c := range causes {
		in := incident(c.name, began, c.slow)
		h.export(export.Batch{Spans: exporttest.Records(in.spans...), Messages: exporttest.Records(in.messages()...)})
	}
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			h := &home{T: t, config: h.config}
			var list []inspect.SlowDelegation
			h.json(&list, "slow", "--session", c.name)
			want := 3
			if c.bucket == "sub_agent" {
				want = 4
			}
			if len(list) != want {
				t.Fatalf("%d delegations, want %d", len(list), want)
			}
			d := list[0]
			if d.DelegateTo != "diver" || d.AgentName != "pilot" || d.DurationMS != 60_000 || d.SessionID != c.name {
				t.Errorf("the slowest is %+v", d)
			}
			sum, most := int64(0), ""
			for b, n := range d.BlameMS {
				sum += n
				if most == "" || n > d.BlameMS[most] {
					most = b
				}
			}
			if most != c.bucket || sum != d.DurationMS || len(d.BlameMS) != 7 {
				t.Errorf("blame %v, most %s, want %s; sum %d of %d", d.BlameMS, most, c.bucket, sum, d.DurationMS)
			}
			if g := d.Bottleneck; g == nil || g.Bucket+" "+g.Name+" "+g.AgentName != c.bottleneck || g.SavesMS < 40_000 {
				t.Errorf("bottleneck %+v, want %s", g, c.bottleneck)
			}
			length := 0.0
			for _, p := range d.Path {
				length += p.DurationMS
			}
			if length != 60_000 {
				t.Errorf("the critical path is %v ms long", length)
			}
			text, _ := h.run("slow", "--session", c.name)
			line := strings.Split(text, "\n")[1]
			for _, part := range []string{"pilot → diver", c.bucket, c.says, d.TraceID} {
				if !strings.Contains(line, part) {
					t.Errorf("the table does not say %q: %s", part, line)
				}
			}
			explained, _ := h.run("explain", d.TraceID[:12])
			if words := strings.Join(strings.Fields(explained), " "); !strings.Contains(words, "The slowest of its") || !strings.Contains(words, c.says) {
				t.Errorf("the explanation does not say %q:\n%s", c.says, explained)
			}
		})
	}
}

func TestSlowRunningAndAsync(t *testing.T) {
	h := newHome(t)
	began := time.Now().Add(-10 * time.Minute)
	stuck := newTurn("stuck", began)
	stuck.run("turn", "", "pilot", 0, 0)
	stuck.delegation("d", "turn", "pilot", "diver", 1, 1)
	stuck.run("child", "d", "diver", 2, 2)
	stuck.tool("hang", "child", "sonar", 3, 3)
	for i := range stuck.spans {
		s := &stuck.spans[i]
		s.State, s.End, s.Outcome = msg.SpanOpen, 0, msg.OutcomeUnset
	}
	later := newTurn("async", began.Add(-3*time.Hour))
	later.run("turn", "", "pilot", 0, 3)
	background := later.delegation("d", "turn", "pilot", "mate", 1, 1.2)
	background.Delegate.Async, background.Worked = true, began.UnixNano() // to when its run ends
	later.run("child", "d", "mate", 2, 3*3600)
	gone := newTurn("gone", began)
	gone.run("turn", "", "pilot", 0, 3)
	gone.delegation("d", "turn", "pilot", "gull", 1, 2).State = msg.SpanIdle
	unrecorded := newTurn("unrecorded", began)
	unrecorded.run("turn", "", "pilot", 0, 3)
	silent := unrecorded.delegation("d", "turn", "pilot", "tern", 1, 1.5)
	silent.State, silent.Outcome = msg.SpanIdle, msg.OutcomeUnset // its record never has results
	h.export(export.Batch{Spans: exporttest.Records(slices.Concat(stuck.spans, later.spans, gone.spans, unrecorded.spans)...)})

	var list []inspect.SlowDelegation
	h.json(&list, "slow")
	if len(list) != 4 || list[0].DelegateTo != "mate" || list[0].DurationMS != (3*3600-1)*1000 {
		t.Fatalf("%+v", list)
	}
	// The view has the same duration as slow.
	if out, _ := h.run("query", "SELECT duration_ms FROM v_delegations WHERE delegate_to = 'mate'", "--format", "TSV"); strings.TrimSpace(out) != "10799000" {
		t.Errorf("v_delegations says %s ms", out)
	}
	d := list[1]
	if d.Status != "running" || d.DurationMS < 590_000 || d.Bottleneck == nil || d.Bottleneck.Name != "sonar" {
		t.Errorf("%+v, bottleneck %+v", d, d.Bottleneck)
	}
	if d := list[2]; d.Status != "lost" || !slices.Contains(d.Notes, "its result never arrived") {
		t.Errorf("%+v", d)
	}
	if d := list[3]; d.DelegateTo != "tern" || d.Status == "lost" || len(d.Notes) > 0 {
		t.Errorf("%+v", d)
	}
	text, _ := h.run("explain", d.TraceID)
	words := regexp.MustCompile(`Still running: 4 steps\. The last to begin was the tool sonar, silent for (\d+)m`).FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if words == nil {
		t.Fatalf("explanation:\n%s", text)
	}
	since := time.Since(time.Unix(0, stuck.at(3)))
	if minutes, err := strconv.Atoi(words[1]); err != nil || minutes < 9 || time.Duration(minutes)*time.Minute > since {
		t.Errorf("silent for %d minutes, the tool began %s ago", minutes, since)
	}
}

// TestSlowPicksByTheWait has calls whose wait is not as long as the work of the delegate: the rows are those of the
// longest waits, however few are asked for.
func TestSlowPicksByTheWait(t *testing.T) {
	h := newHome(t)
	in := newTurn("waits", time.Now().Add(-20*time.Minute))
	in.run("turn", "", "pilot", 0, 400)
	call := func(to string, start, result, done float64) {
		in.delegation(to, "turn", "pilot", to, start, result).Worked = in.at(done)
		in.run(to+"-run", to, to, start, done)
		in.chat(to+"-chat", to+"-run", start, start+1, done)
	}
	call("diver", 0, 100, 5) // its result was late
	call("mate", 110, 170, 170)
	// Reported together: each caller waited as long as its delegate worked.
	call("cook", 180, 380, 200)
	call("clerk", 180, 380, 210)
	call("scout", 180, 380, 260)
	h.export(export.Batch{Spans: exporttest.Records(in.spans...)})
	want := []string{"diver 100000", "scout 80000", "mate 60000", "clerk 30000", "cook 20000"}
	for n := 1; n <= len(want); n++ {
		var list []inspect.SlowDelegation
		h.json(&list, "slow", "-n", fmt.Sprint(n))
		var got []string
		for _, d := range list {
			got = append(got, fmt.Sprint(d.DelegateTo, " ", d.DurationMS))
		}
		if diff := cmp.Diff(want[:n], got); diff != "" {
			t.Errorf("the longest %d: %s", n, diff)
		}
	}
}

// TestSlowAsksFewQuestions: the traces of the first page are read together, since a question costs the store more than the
// spans of a turn; those that are long are read by themselves, and whole.
func TestSlowAsksFewQuestions(t *testing.T) {
	h := newHome(t)
	began := time.Now().Add(-20 * time.Minute)
	for _, c := range causes {
		h.export(export.Batch{Spans: exporttest.Records(incident(c.name, began, c.slow).spans...)})
	}
	long := largeTurn("long", began.Add(-2*time.Hour), 6_000)
	h.export(export.Batch{Spans: exporttest.Records(long.spans...)})
	store := &asked{reader: h.reader()}
	list, err := inspect.Slow(t.Context(), store, inspect.SlowFilter{Limit: 12, Now: time.Now(), Where: inspect.Condition{SQL: "session_id != 'long'"}})
	if err != nil || len(list) != 12 || list[0].Bottleneck == nil {
		t.Errorf("%d delegations, %v", len(list), err)
	}
	if n := store.questions.Swap(0); n > 3 {
		t.Errorf("%d questions for the delegations of %d traces", n, len(causes))
	}
	list, err = inspect.Slow(t.Context(), store, inspect.SlowFilter{Where: inspect.Condition{SQL: "session_id = 'long'"}, Limit: 5, Now: time.Now()})
	if err != nil || len(list) != 5 || list[0].DurationMS != 50_000 || list[0].Spent.Tokens.Input != 49_000 {
		t.Errorf("of a long trace: %v, %+v", err, list)
	}
}

// asked counts the questions to a store.
type asked struct {
	*reader
	questions atomic.Int64
}

func (a *asked) Each(ctx context.Context, sql string, params map[string]string, row func([]any) error) error {
	a.questions.Add(1)
	return a.reader.Each(ctx, sql, params, row)
}

// TestExplainOfAConversation: a person has its id, and is shown its latest turn.
func TestExplainOfAConversation(t *testing.T) {
	h := newHome(t)
	in := incident("quay-7", time.Now().Add(-20*time.Minute), causes[2].slow)
	h.export(export.Batch{Spans: exporttest.Records(in.spans...), Messages: exporttest.Records(in.messages()...)})
	byTrace, _ := h.run("explain", in.spans[0].TraceID.String())
	if bySession, _ := h.run("explain", "quay-7"); bySession != byTrace || !strings.Contains(byTrace, "The turn of pilot") {
		t.Errorf("of the conversation\n%s\nof its turn\n%s", bySession, byTrace)
	}
	if text, _ := h.run("show", "quay-7"); !strings.Contains(text, "trace "+in.spans[0].TraceID.String()[:8]) {
		t.Errorf("show has no trace to explain:\n%s", text)
	}
	if _, _, err := h.try("explain", "quay-8"); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("%v", err)
	}
}

func TestExplainTellsFindings(t *testing.T) {
	h := newHome(t)
	in := incident("loop", time.Now().Add(-20*time.Minute), causes[9].slow)
	for i := range in.spans {
		if s := &in.spans[i]; s.ID == in.id("slow-run") {
			for _, f := range [][3]string{{"repeat", "poll", "5"}, {"repeat", "poll", "10"}, {"silence", "", "402"}} {
				s.Events = append(s.Events, msg.SpanEvent{Time: s.Start, Name: msg.EventFinding, Attrs: []msg.Attr{
					{Key: msg.FindingKind, Value: f[0]}, {Key: msg.FindingTool, Value: f[1]}, {Key: msg.FindingCount, Value: f[2]},
				}})
			}
		}
	}
	h.export(export.Batch{Spans: exporttest.Records(in.spans...)})
	text, _ := h.run("explain", in.spans[0].TraceID.String())
	for _, want := range []string{
		"diver called poll at least 10 times running with the same arguments and the same result.", // reported again at 20
		"diver was silent for 6m42s and no recorded work explains it.",
	} {
		if words := strings.Join(strings.Fields(text), " "); strings.Count(words, want) != 1 || strings.Contains(words, "at least 5 times") {
			t.Errorf("no %q in the explanation:\n%s", want, text)
		}
	}
}

// TestLostInTheBackground: the turn took 20 s, and a delegation whose result never came as long as its run, wherever it is shown.
func TestLostInTheBackground(t *testing.T) {
	h := newHome(t)
	in := newTurn("dredging", time.Now().Add(-20*time.Minute))
	in.run("turn", "", "pilot", 0, 20)
	d := in.delegation("aside", "turn", "pilot", "dredger", 5, 20)
	d.Delegate.Async, d.State, d.Outcome, d.ErrorType = true, msg.SpanIdle, msg.OutcomeCancelled, "no_result"
	in.run("aside-run", "aside", "dredger", 5, 605)
	h.export(export.Batch{Spans: exporttest.Records(in.spans...), Messages: exporttest.Records(in.messages()...)})
	if out, _ := h.run("show", "dredging"); !strings.Contains(out, "delegation → dredger (Task)  10m00s · lost\n") {
		t.Errorf("show:\n%s", out)
	}
	trace := in.spans[0].TraceID.String()
	if out, _ := h.run("slow"); !strings.Contains(out, "10m00s lost") {
		t.Errorf("slow:\n%s", out)
	}
	s := h.site()
	s.has("/trace/"+trace, " · 20s, and work that went on until 10m05s · ", "lost")
	s.has("/session/dredging", "lost", "10m00s")
}

// TestShowCorrectsClocks: the steps of a delegate whose clock is an hour off are where they were in the turn, and the correction is named.
func TestShowCorrectsClocks(t *testing.T) {
	h := newHome(t)
	in := newTurn("clocks", time.Now().Add(-20*time.Minute))
	in.run("turn", "", "pilot", 0, 50)
	in.delegation("set", "turn", "pilot", "clockmaker", 5, 46)
	in.run("set-run", "set", "clockmaker", 3605, 3645)
	in.tool("wind", "set-run", "Bash", 3610, 3640)
	h.export(export.Batch{Spans: exporttest.Records(in.spans...), Messages: exporttest.Records(in.messages()...)})
	out, _ := h.run("show", "clocks")
	if words := strings.Join(strings.Fields(out), " "); strings.Contains(out, "+1h00m") || !strings.Contains(words, "+11s tool Bash") || !strings.Contains(words, "By the clocks, the times of clockmaker were moved 59m59s earlier") {
		t.Errorf("show:\n%s", out)
	}
	h.site().has("/session/clocks", "By the clocks, the times of clockmaker were moved 59m59s earlier")
}

func TestSlowSaysWhenThereIsNothing(t *testing.T) {
	h := newHome(t)
	for range 2 {
		out, errs := h.run("slow", "-o", "json")
		if strings.TrimSpace(out) != "[]" || !strings.Contains(errs, "no delegations") {
			t.Errorf("%q, %q", out, errs)
		}
		h.export(export.Batch{Spans: exporttest.Records(incident("old", time.Now().Add(-50*time.Hour+30*time.Minute), func(*turn) {}).spans...)})
	}
	_, errs := h.run("slow")
	if !strings.Contains(errs, "try --since 50h") {
		t.Errorf("%q", errs)
	}
	if _, errs := h.run("sessions", "--format", "leigon"); !strings.Contains(errs, `did you mean "legion"?`) {
		t.Errorf("%q", errs)
	}
	var list []inspect.SlowDelegation
	if h.json(&list, "slow", "--since", "50h"); len(list) != 3 {
		t.Errorf("%d delegations", len(list))
	}
	for _, args := range [][]string{{"slow", "-n", "0"}, {"slow", "--since", "-1h"}, {"slow", "-o", "xml"}, {"show"}, {"show", "x", "--trace", "y"}, {"explain"}, {"who", "--by", "teem"}, {"who", "--where", "agnt=pilot"}} {
		if _, _, err := h.try(args...); err == nil || !isUsage(err) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, args := range [][]string{{"explain", "feed"}, {"show", "--trace", "feed"}, {"slow", "--session", "nobody"}} {
		if _, _, err := h.try(args...); err == nil || isUsage(err) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestShowTrace(t *testing.T) {
	h := newHome(t)
	in := incident("tool", time.Now().Add(-20*time.Minute), causes[2].slow)
	h.export(export.Batch{Spans: exporttest.Records(in.spans...)})
	trace := in.spans[0].TraceID.String()
	text, _ := h.run("show", "--trace", trace[:8])
	for _, want := range []string{
		"session tool", "1m20s · 17 spans",
		"*agent pilot", "*  → diver (Task)", "*      tool sonar", "       tool chart", "54s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var w inspect.Waterfall
	h.json(&w, "show", "--trace", trace)
	critical := 0.0
	for _, s := range w.Spans {
		if s.Depth == 0 {
			critical += s.CriticalMS
		}
		if s.Name == "chart" && s.CriticalMS != 0 || s.Name == "sonar" && s.CriticalMS != 54_000 {
			t.Errorf("%+v", s)
		}
	}
	if critical != w.WallMS || w.WallMS != 80_000 {
		t.Errorf("critical %v of %v ms", critical, w.WallMS)
	}
}

// TestChildOfAnotherTrace: a run that stayed in a trace of its own is below the call to
// that its link names, and so are its tokens.
func TestChildOfAnotherTrace(t *testing.T) {
	h := newHome(t)
	began := time.Now().Add(-20 * time.Minute)
	caller, child := newTurn("caller", began), newTurn("thread", began)
	caller.run("turn", "", "claude-code", 0, 40)
	call := caller.delegation("call", "turn", "claude-code", "codex", 2, 38)
	call.Delegate.ChildRun, call.Delegate.Link = "thread-run", msg.ByNativeID
	child.run("thread-run", "", "codex", 3, 37)
	child.spans[0].Links = []msg.SpanLink{{TraceID: call.TraceID, SpanID: call.ID, Attrs: []msg.Attr{{Key: "earshot.link", Value: "delegation"}}}}
	child.tool("probe", "thread-run", "probe", 4, 36)
	child.chat("answer", "thread-run", 36, 36.5, 37).Usage = msg.Tokens{Input: 70}
	trace := call.TraceID.String()
	h.export(export.Batch{Spans: exporttest.Records(append(caller.spans, child.spans...)...), Messages: exporttest.Records(caller.messages()...)})
	var list []inspect.SlowDelegation
	h.json(&list, "slow", "--session", "caller")
	if len(list) != 1 || list[0].Bottleneck == nil || list[0].Bottleneck.Name != "probe" || list[0].Spent.Tokens.Input != 70 {
		t.Errorf("slow says %+v", list)
	}
	if text, _ := h.run("show", "--trace", trace); !strings.Contains(text, "tool probe") || !strings.Contains(text, "5 spans") {
		t.Errorf("show --trace says\n%s", text)
	}
	if text, _ := h.run("explain", trace); !strings.Contains(text, "tool probe in codex") {
		t.Errorf("explain says\n%s", text)
	}
}

// TestCostIsOfTheTree: every token counts once, at the price of its model and
// class; tokens without a price are reported.
func TestCostIsOfTheTree(t *testing.T) {
	h := newHome(t)
	prices := filepath.Join(t.TempDir(), "prices.csv")
	for name, text := range map[string]string{
		prices:   "model,from,input,output,cache_read,cache_write,cache_write_1h\ntern-2,2020-01-01,10,100,1,20,22\n",
		h.config: "prices: " + prices + "\n",
	} {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	in := newTurn("cost", time.Now().Add(-5*time.Minute))
	in.run("turn", "", "pilot", 0, 50)
	in.chat("plan", "turn", 0, 1, 5).Usage = msg.Tokens{Input: 1000, Output: 100}
	in.delegation("d", "turn", "pilot", "diver", 10, 40)
	in.run("child", "d", "diver", 10, 40)
	in.chat("c1", "child", 10, 11, 20).Usage = msg.Tokens{Input: 2000, Output: 10, CacheRead: 30_000, CacheWrite: 500, Reasoning: 90, CacheWrite1h: 300}
	other := in.chat("c2", "child", 20, 21, 30)
	other.Model, other.Usage = "gull", msg.Tokens{Input: 7}
	// The protocol reports the child's total, which is more than the sum of its turns.
	for i := range in.spans {
		if s := &in.spans[i]; s.ID == in.id("child") {
			s.Model, s.Usage = "tern-2", msg.Tokens{Input: 2007, Output: 20, CacheRead: 30_000, CacheWrite: 500, Reasoning: 90, CacheWrite1h: 300}
		}
	}
	h.export(export.Batch{Spans: exporttest.Records(in.spans...)})
	var list []inspect.SlowDelegation
	h.json(&list, "slow")
	want := inspect.Cost{
		Tokens: inspect.Tokens{Input: 2007, Output: 20, CacheRead: 30_000, CacheWrite: 500, Reasoning: 90, CacheWrite1h: 300}, Unpriced: 7,
		CostUSD: (2000*10 + (20+90)*100 + 30_000*1 + 200*20 + 300*22) / 1e6,
	}
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if d := cmp.Diff(want, list[0].Spent, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	text, _ := h.run("explain", list[0].TraceID)
	if words := strings.Join(strings.Fields(text), " "); !strings.Contains(words, "It took 33k tokens for $0.09+ (7 tokens have no price).") && !strings.Contains(words, "It took 34k tokens for $0.09+ (7 tokens have no price).") {
		t.Errorf("explanation:\n%s", text)
	}
	h.site().has("/compare?a="+list[0].TraceID+"&b="+list[0].TraceID, "<td>$0.09&#43;</td><td>$0.09&#43;</td>")
	if err := os.WriteFile(prices, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.try("slow"); err == nil || !isUsage(err) || !strings.Contains(err.Error(), prices) {
		t.Errorf("with a broken table: %v", err)
	}
}
