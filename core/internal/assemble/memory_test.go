package assemble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// lately keeps the last row of each span, open or not.
func (w *harness) lately() map[msg.SpanID]msg.Span {
	rows := make(map[msg.SpanID]msg.Span)
	w.emitted = func(s msg.Span) { rows[s.ID] = s }
	return rows
}

// TestOpenCallsAreNamed: an open delegation whose agent was an id has the agent's name, and an open call the protocol's id, as soon as a message has it.
func TestOpenCallsAreNamed(t *testing.T) {
	w := newHarness(t)
	rows := w.lately()
	id := w.a.mustGroup(t).ids.of(msg.SpanTool, "d")
	call := called("a", "c", "Read", 2)
	call.Tool.ProtocolID = msg.UnknownID
	w.apply(user("a", 0), delegated("a", "d", "agent-7", 1), call)
	w.commit()
	if got := rows[id].Delegate; got.To != "agent-7" || got.ToID != "" {
		t.Errorf("before, it is %+v", got)
	}
	named := said("x", "r", 3)
	named.Agent, named.ParentRun = msg.Agent{ID: "agent-7", Name: "Scout"}, "a"
	w.apply(named)
	w.commit()
	if got := rows[id].Delegate; got.To != "Scout" || got.ToID != "agent-7" {
		t.Errorf("it is %+v", got)
	}
	call.Key, call.Tool.ProtocolID = "again", "p9"
	late := delegated("a", "e", "", 4)
	w.apply(call, late)
	late.Key, late.Delegation = "late", msg.Delegate{To: "owl", ToID: "agent-8"}
	w.apply(late)
	w.commit()
	if got := rows[w.a.mustGroup(t).ids.of(msg.SpanTool, "e")].Delegate; got.To != "owl" || got.ToID != "agent-8" {
		t.Errorf("whose message repeats it is %+v", got)
	}
	if got := rows[w.a.mustGroup(t).ids.of(msg.SpanTool, "c")].Tool.ProtocolID; got != "p9" {
		t.Errorf("the call is %q", got)
	}
}

// TestACallNamesItsRunLate: a run that its parent alone placed has the name that its call has for it; if no message names it, its stream is decoded again.
func TestACallNamesItsRunLate(t *testing.T) {
	for _, own := range []string{"", "ranger"} {
		w := newHarness(t)
		first, answer := user("x", 2), said("x", "r", 4)
		first.ParentRun, first.ParentCall, answer.Agent.Name = "a", "d", own
		w.apply(user("a", 0), first, answer)
		if len(w.replayed) != 0 {
			t.Errorf("%q: decoded again: %q", own, w.replayed)
		}
		w.apply(delegated("a", "d", "scout", 1))
		if want := own == ""; slices.Contains(w.replayed, "x") != want {
			t.Errorf("%q: decoded again: %q", own, w.replayed)
		}
	}
}

// TestTheTimeOfAnIncompleteMessage: the version of a message that was emitted under another time is returned, until the message is complete.
func TestTheTimeOfAnIncompleteMessage(t *testing.T) {
	w := newHarness(t)
	for i, c := range []struct {
		at       int64
		complete msg.Completeness
		was      int64
	}{{1, msg.Partial, 0}, {1, msg.Partial, 0}, {2, msg.Partial, 1}, {2, msg.Partial, 0}, {5, msg.Complete, 2}, {6, msg.Complete, 0}} {
		w.restart()
		m := msg.Message{Key: "m", Session: "s", Run: "a", Kind: msg.Assistant, ResponseID: "r", Time: c.at, Complete: c.complete, Host: msg.Host{Tenant: "default", Format: "f"}}
		if was, err := w.a.Apply(&m, 1, 1, time.Unix(0, t0), t0); err != nil || was != c.was {
			t.Errorf("%d: it was at %d, %v, want %d", i, was, err, c.was)
		}
	}
}

// TestAPartOfAResultIsNoResult: a part of a result that is read before its call leaves the call open.
func TestAPartOfAResultIsNoResult(t *testing.T) {
	for complete, want := range map[msg.Completeness]string{
		msg.Partial: `
		run a 0-9
		  tool Read 4-9 idle cancelled:no_result
		`,
		msg.Complete: `
		run a 0-9
		  tool Read 4-5
		`,
	} {
		w := newHarness(t)
		w.apply(user("a", 0))
		part := result("a", "c", t0+5*sec)
		part.Key, part.Session, part.Complete, part.Host = "part", "s", complete, msg.Host{Tenant: "default", Format: "f", Source: "src"}
		if _, err := w.a.Apply(&part, 1, 1, time.Unix(0, t0), t0); err != nil {
			t.Fatal(err)
		}
		w.apply(called("a", "c", "Read", 4), stop("a", 9))
		w.want(want)
	}
}

// TestEndedRunsAreForgotten: of a long session the last turns are known.
func TestEndedRunsAreForgotten(t *testing.T) {
	w := newHarness(t)
	for i := range int64(3 * maxEndedRuns) {
		run := fmt.Sprint(i)
		w.apply(user(run, 10*i), said(run, run, 10*i+1), stop(run, 10*i+2))
	}
	w.commit()
	if g := w.a.mustGroup(t); len(g.Runs) > maxEndedRuns+1 || g.Stubs != 0 || g.Runs[fmt.Sprint(3*maxEndedRuns-1)] == nil {
		t.Errorf("%d runs are known, %d by their place", len(g.Runs), g.Stubs)
	}
	if rows := len(w.rows); rows != 6*maxEndedRuns {
		t.Errorf("%d rows", rows)
	}
}

// TestPlacesAreForgotten: of the runs that another session may refer to yet the places of the last are known.
func TestPlacesAreForgotten(t *testing.T) {
	w := newHarness(t)
	const n = 2 * maxStubs
	for i := range int64(n) {
		run := fmt.Sprint(i)
		w.apply(user(run, 10*i))
		w.apply(sends(run, "d"+run, "wren", "text "+run, 10*i+1)...)
	}
	w.commit()
	g := w.a.mustGroup(t)
	oldest := n
	for id := range g.Runs {
		if i, err := strconv.Atoi(id); err == nil {
			oldest = min(oldest, i)
		}
	}
	if g.Stubs != maxStubs+1 || len(g.Runs) != g.Stubs+maxEndedRuns || oldest != n-len(g.Runs) {
		t.Errorf("%d places and %d runs, the oldest is %d of %d", g.Stubs, len(g.Runs), oldest, n)
	}
}

// TestErasedSessions: a session that is erased begins anew, with its calls of other sessions; others go on.
func TestErasedSessions(t *testing.T) {
	for _, idle := range []bool{false, true} {
		w := newHarness(t)
		apply := func(session string, list ...msg.Message) {
			t.Helper()
			for i, m := range list {
				m.Session, m.Key, m.Complete, m.Time = session, fmt.Sprint(m.Kind, m.Run, m.Time), msg.Complete, t0+m.Time*sec
				m.Host = msg.Host{Tenant: "default", Format: "f", Source: "src", Ver: uint64(i)}
				if _, err := w.a.Apply(&m, 1, 1, time.Unix(0, t0), t0); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, session := range []string{"stays", "goes"} {
			begin, _ := hires("a", "d", "thread "+session, "", 1, 9)
			begin.Delegation.CorrelationID = "thread " + session
			apply(session, user("a", 0), begin, said("a", "r", 2))
		}
		w.commit()
		if idle {
			w.idle(time.Unix(0, t0).Add(holdOpen), 0)
			if len(w.a.evicted) == 0 {
				t.Error("no session is evicted")
			}
		}
		held := len(w.a.groups)
		keys, err := w.a.Erase(func(tenant, session string) bool { return tenant == "default" && session == "goes" }, func(state []byte) bool { return sessionOf(state) == "goes" })
		if err != nil || len(w.a.groups) != held-len(keys) || !idle && !slices.Contains(keys, link.Key{Tenant: "default", Format: "f", Session: "goes"}.String()) {
			t.Errorf("%q of %d are erased: %v", keys, held, err)
		}
		for key := range w.a.evicted {
			if key.Session == "goes" {
				t.Error("it is evicted still")
			}
		}
		for key := range w.state { // as the store does
			if k, err := link.ParseKey(key); err == nil && k.Session == "goes" {
				delete(w.state, key)
			}
		}
		apply("goes", user("b", 20))
		apply("stays", user("b", 20))
		for session, want := range map[string]string{"goes": "", "stays": "a"} {
			g, err := w.a.group(link.Key{Tenant: "default", Format: "f", Session: session})
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Runs["b"].Previous; got != want {
				t.Errorf("%s: the turn before is %q, want %q", session, got, want)
			}
		}
	}
}

// TestErasedFacts: the facts of a session that several views show have its id in their keys alone, and go with it.
func TestErasedFacts(t *testing.T) {
	w := newHarness(t)
	is := func(tenant, session string) bool { return tenant == "default" && session == "goes" }
	var want []string
	for _, session := range []string{"goes", "stays", "0"} {
		for _, id := range []msg.SpanID{{}, {1, 2}} {
			key := factKey("default", "codex", session, id)
			if r, err := ParseKey(key); err != nil || r != (RunRef{Tenant: "default", Session: session}) {
				t.Errorf("%q is of %+v, %v", key, r, err)
			}
			w.a.out.views.load(key)
			if session == "goes" {
				want = append(want, key)
			}
		}
	}
	keys, err := w.a.Erase(is, func([]byte) bool { return false })
	slices.Sort(keys)
	slices.Sort(want)
	if err != nil || !slices.Equal(keys, want) || len(w.a.out.views.facts) != 4 {
		t.Errorf("%q are erased and not %q, %d are left, %v", keys, want, len(w.a.out.views.facts), err)
	}
	for _, other := range []string{link.Key{Tenant: "default", Session: "fact\x00x"}.String(), link.Key{Tenant: "default", Format: "f", Session: "fact\x00a\x00goes\x00b"}.String()} {
		if r, err := ParseKey(other); err == nil && r.Session == "goes" {
			t.Errorf("%q is no fact of that session", other)
		}
	}
}

// sessionOf is the session that the state of a correlation mentions.
func sessionOf(state []byte) string {
	for _, s := range []string{"goes", "stays"} {
		if bytes.Contains(state, []byte(`"`+s+`"`)) {
			return s
		}
	}
	return ""
}

// viewed is a span of which every fact has a value, that of a view.
func viewed(n string, k int64) msg.Span {
	return msg.Span{
		Kind: msg.SpanTool, State: msg.SpanClosed, Start: k, End: k + 9, LastSeen: k + 9, Format: "format " + n,
		Agent: msg.Agent{ID: "agent " + n, Name: "name " + n, Kind: msg.AgentKind(k)}, Client: msg.Client{Project: "/" + n, Branch: "branch " + n, Version: "version " + n, Host: "host " + n, User: "user " + n},
		Model: "model " + n, AskedModel: "asked " + n, Provider: "provider " + n, ResponseID: "response " + n, FinishReasons: []string{"reason " + n}, Ended: "ended " + n,
		Request: []msg.Attr{{Key: msg.ParamSeed, Value: n}}, Server: "server " + n, FirstToken: k + 1, Tool: msg.Tool{Name: "tool " + n, Server: "tools " + n},
		ArgumentBytes: uint32(k), ArgumentShape: "shape " + n, ResultBytes: uint32(k + 2), ResultTokens: uint32(k + 3), ResultTokensFrom: msg.Provider,
		Delegate: msg.Delegate{To: "to " + n, ToID: "id " + n, ChildRun: "child " + n}, Outcome: msg.OutcomeError, ErrorType: "error " + n, StatusMessage: "message " + n,
		Pace: msg.Pace{Total: k}, Events: []msg.SpanEvent{{Time: k, Name: "event " + n}}, Alive: k,
	}
}

// TestAWeakerViewCompletes: of two views of a span, the stronger one's facts stay, and each that it lacks is the weaker one's.
func TestAWeakerViewCompletes(t *testing.T) {
	weak, strong := viewed("weak", 1), viewed("strong", 2)
	got := strong
	complete(&got, &weak)
	if d := cmp.Diff(strong, got, cmp.AllowUnexported(msg.Text{})); d != "" {
		t.Errorf("the stronger view changes (-before +after):\n%s", d)
	}
	got = msg.Span{Kind: msg.SpanTool, Format: "format strong", State: msg.SpanClosed, Start: 1, End: 10, LastSeen: 10}
	complete(&got, &weak)
	want := weak
	want.Format, want.Seen.Outcome, want.Seen.FirstToken = "format strong", "format weak", "format weak"
	if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
		t.Errorf("of a view without facts (-want +got):\n%s", d)
	}
	for name, c := range map[string]struct {
		strong, weak, want func(*msg.Span)
	}{
		"an open span, and one that ended": {func(s *msg.Span) { s.State, s.End, s.Outcome = msg.SpanOpen, 0, msg.OutcomeUnset }, func(*msg.Span) {}, func(s *msg.Span) {
			s.End, s.Ended, s.ErrorType, s.StatusMessage, s.Seen.Outcome = weak.End, weak.Ended, weak.ErrorType, weak.StatusMessage, weak.Format
			s.End = max(weak.End, strong.Start)
		}},
		"a span that went on for long, and one that ended before": {func(s *msg.Span) { s.State, s.End, s.LastSeen = msg.SpanOpen, 0, int64(time.Hour) }, func(*msg.Span) {}, func(s *msg.Span) {
			s.State, s.End, s.LastSeen = msg.SpanOpen, 0, int64(time.Hour)
		}},
		"a call that is ok, and one that failed": {func(s *msg.Span) { s.Outcome, s.ErrorType, s.StatusMessage = msg.OutcomeOK, "", "" }, func(*msg.Span) {}, func(s *msg.Span) {
			s.ErrorType, s.StatusMessage, s.Seen.Outcome = weak.ErrorType, weak.StatusMessage, weak.Format
		}},
		"a run that is ok, and one that failed": {func(s *msg.Span) {
			s.Kind, s.Outcome, s.ErrorType, s.StatusMessage = msg.SpanRun, msg.OutcomeOK, "", ""
		}, func(s *msg.Span) { s.Kind = msg.SpanRun }, func(s *msg.Span) {
			s.Kind, s.Outcome, s.ErrorType, s.StatusMessage = msg.SpanRun, msg.OutcomeOK, "", ""
		}},
		"a call that is ok, and one that never ended": {func(s *msg.Span) { s.Outcome, s.ErrorType, s.StatusMessage = msg.OutcomeOK, "", "" }, func(s *msg.Span) { s.State = msg.SpanIdle }, func(s *msg.Span) {
			s.Outcome, s.ErrorType, s.StatusMessage = msg.OutcomeOK, "", ""
		}},
		"a tool that is a delegation elsewhere":  {func(*msg.Span) {}, func(s *msg.Span) { s.Kind = msg.SpanDelegation }, func(s *msg.Span) { s.Kind = msg.SpanDelegation }},
		"a delegation that is a tool elsewhere":  {func(s *msg.Span) { s.Kind = msg.SpanDelegation }, func(*msg.Span) {}, func(s *msg.Span) { s.Kind = msg.SpanDelegation }},
		"a life sign that only the weaker has":   {func(*msg.Span) {}, func(s *msg.Span) { s.Alive = 99 }, func(s *msg.Span) { s.Alive = 99 }},
		"a run, and a delegation of a weak view": {func(s *msg.Span) { s.Kind = msg.SpanRun }, func(s *msg.Span) { s.Kind = msg.SpanDelegation }, func(s *msg.Span) { s.Kind = msg.SpanRun }},
	} {
		s, o, want := strong, weak, strong
		c.strong(&s)
		c.weak(&o)
		c.want(&want)
		complete(&s, &o)
		if d := cmp.Diff(want, s, cmp.AllowUnexported(msg.Text{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestAStreamEnds: the runs of a stream that ends are over, those of others go on, as does a run whose call another stream has.
func TestAStreamEnds(t *testing.T) {
	w := &watched{harness: newHarness(t), stream: 2}
	w.read(user("a", 0), user("other", 0), called("other", "c", "Read", 1))
	if err := w.a.CloseStream(1, []RunRef{{"default", "f", "s", "a"}}); err != nil {
		t.Fatal(err)
	}
	w.commit()
	g := w.a.mustGroup(t)
	if g.Runs["a"].Ended != bySilence || g.Runs["other"].Ended != running || g.Open["c"] == nil {
		t.Errorf("a: %d, other: %d", g.Runs["a"].Ended, g.Runs["other"].Ended)
	}
	if _, known := g.Turns[1]; known || g.Turns[2] != "other" {
		t.Errorf("the turns are %v", g.Turns)
	}
}

// TestWhatIsLearned: how long models answer and calls take is known after a restart, once the state was stored.
func TestWhatIsLearned(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	learned := func() map[string]int {
		t.Helper()
		b, err := w.a.learning.History.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]struct{ N int }
		if err := json.Unmarshal(b, &keys); err != nil {
			t.Fatal(err, string(b))
		}
		out := make(map[string]int)
		for key, s := range keys {
			out[key] = s.N
		}
		return out
	}
	for i := range int64(3) {
		w.until(20 * i)
		answer := said("a", fmt.Sprint("r", i), 20*i+4)
		answer.Model = "lamp-large"
		call, id := makes(fmt.Sprint("c", i), 20*i+5), fmt.Sprint("c", i)
		w.read(user("a", 20*i), answer, call, ends(id, fmt.Sprint("ok ", i), 20*i+9))
	}
	w.until(60 + int64(saveEvery/time.Second) + 5)
	want := learned()
	if want["model lamp-large"] != 3 {
		t.Errorf("learned: %v", want)
	}
	calls := 0
	for key, n := range want {
		if strings.Contains(key, "make") || strings.Contains(key, "Bash") {
			calls += n
		}
	}
	if calls != 3 {
		t.Errorf("learned: %v", want)
	}
	w.restart()
	w.read(user("a", w.now))
	if d := cmp.Diff(want, learned()); d != "" {
		t.Errorf("after a restart (-before +after):\n%s", d)
	}
}
