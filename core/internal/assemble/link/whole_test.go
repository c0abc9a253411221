package link

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestClaimsOfExchanges has the ids of each message of exchanges, whole: calls that are repeated, results of calls that several
// exchanges made, answers at once, retries, and streams that are read again.
func TestClaimsOfExchanges(t *testing.T) {
	marks := strings.NewReplacer(SuffixOf(1), "#1", SuffixOf(2), "#2", SuffixOf(3), "#3", SuffixOf(4), "#4")
	var ids Claims
	begun := map[string]uint64{}
	say := func(stream uint64, run, key, parent, response, call string, kind msg.Kind, signal msg.Signal, want string) {
		t.Helper()
		m := msg.Message{Session: "s", Run: run, Key: key, ParentKey: parent, ResponseID: response, Kind: kind, Signal: signal, Tool: msg.Tool{CallID: call}}
		reused := ids.Claim(&m, stream, func(run string, stream uint64) bool { return begun[run] == stream })
		got := marks.Replace(fmt.Sprintf("run %s key %s parent %s response %s call %s protocol %s attr %s reused %t", m.Run, m.Key, m.ParentKey, m.ResponseID, m.Tool.CallID, m.Tool.ProtocolID, m.Attr(ReusedID), reused))
		if got != want {
			t.Errorf("%d %s %s:\n got %s\nwant %s", stream, kind, key, got, want)
		}
	}
	if ids.InUse() {
		t.Error("ids are in use before the first")
	}
	say(1, "", "k", "", "x", "", msg.Assistant, 0, "run  key k parent  response x call  protocol  attr  reused false")
	say(1, "r", "p", "", "", "", msg.User, msg.RunStart, "run r key p parent  response  call  protocol  attr  reused false")
	say(1, "r", "c", "p", "x", "call_0", msg.ToolCall, 0, "run r key c parent p response x call call_0 protocol  attr  reused false")
	say(1, "r", "c", "p", "x", "call_0", msg.ToolCall, 0, "run r key c parent p response x call call_0 protocol  attr  reused false")
	say(1, "r", "d", "p", "x", "call_1", msg.Delegation, 0, "run r key d parent p response x call call_1 protocol  attr  reused false")
	if !ids.InUse() {
		t.Error("no id is in use")
	}
	// The answer is still coming: the same prompt begins another run.
	say(2, "r", "p", "", "", "", msg.User, msg.RunStart, "run r#2 key p#2 parent  response  call  protocol  attr  reused false")
	say(2, "r", "c", "p", "x", "call_0", msg.ToolCall, 0, "run r#2 key c#2 parent p#2 response x#2 call call_0#2 protocol call_0 attr x reused true")
	say(2, "r", "c", "p", "x", "call_0", msg.ToolCall, 0, "run r#2 key c#2 parent p#2 response x#2 call call_0#2 protocol call_0 attr x reused true")
	say(2, "r", "e", "c", "y", "call_2", msg.ToolCall, 0, "run r#2 key e#2 parent c#2 response y call call_2 protocol  attr  reused false")
	ids.Close(1)
	if _, known := ids.Streams.Of[SuffixOf(2)]; !known || !slices.Equal(ids.Streams.Order, []string{SuffixOf(2)}) {
		t.Errorf("streams %v, in order %v", ids.Streams.Of, ids.Streams.Order)
	}
	ids.Close(2)
	if len(ids.Streams.Of) != 0 || len(ids.Streams.Order) != 0 {
		t.Errorf("streams %v, in order %v", ids.Streams.Of, ids.Streams.Order)
	}
	// Results go to the run that made the newest of their calls; of an unknown call they are of the newest run.
	say(3, "r", "res", "c", "", "call_0", msg.ToolResult, 0, "run r#2 key res#2#2 parent c#2 response  call call_0#2 protocol call_0 attr  reused false")
	say(3, "r", "note", "res", "", "", msg.Status, 0, "run r#2 key note#2 parent res#2#2 response  call  protocol  attr  reused false")
	say(3, "r", "res1", "d", "", "call_1", msg.DelegationResult, 0, "run r#2 key res1#2 parent d response  call call_1 protocol  attr  reused false")
	say(3, "r", "res9", "z", "", "call_9", msg.ToolResult, 0, "run r#2 key res9#2 parent z response  call call_9 protocol  attr  reused false")
	say(4, "r", "res2", "d", "", "call_1", msg.ToolResult, 0, "run r key res2 parent d response  call call_1 protocol  attr  reused false")
	say(4, "r", "res0", "c", "", "call_0", msg.ToolResult, 0, "run r key res0 parent c response  call call_0 protocol  attr  reused false")
	say(5, "r", "state", "", "", "call_0", msg.Status, 0, "run r#2 key state#2 parent  response  call call_0 protocol  attr  reused false")
	say(4, "w", "cc", "", "n1", "call_0", msg.ToolCall, 0, "run w key cc#4 parent  response n1 call call_0#4 protocol call_0 attr  reused false")
	say(6, "r", "resw", "", "", "call_0", msg.ToolResult, 0, "run r#2 key resw#2#2 parent  response  call call_0#2 protocol call_0 attr  reused false")
	say(4, "q", "sys", "", "", "", msg.System, 0, "run q key sys parent  response  call  protocol  attr  reused false")
	say(4, "q", "err", "sys", "x", "", msg.Error, 0, "run q key err#4 parent sys response x#4 call  protocol  attr x reused true")
	ids.Close(4)
	// After a failure the same prompt is a retry; after an answer it is not.
	say(1, "q", "sys", "", "", "", msg.System, 0, "run q key sys parent  response  call  protocol  attr  reused false")
	say(1, "q", "ok", "sys", "w", "", msg.Assistant, 0, "run q key ok parent sys response w call  protocol  attr  reused false")
	ids.Close(1)
	say(2, "q", "ok", "", "v", "", msg.Assistant, 0, "run q#2 key ok#2 parent  response v call  protocol  attr  reused false")
	ids.Close(2)
	// A stream that is read again has its runs.
	begun["q"], begun["q"+SuffixOf(2)] = 1, 2
	say(1, "q", "sys", "", "", "", msg.System, 0, "run q key sys parent  response  call  protocol  attr  reused false")
	say(2, "q", "ok", "", "v", "", msg.Assistant, 0, "run q#2 key ok#2 parent  response v call  protocol  attr  reused false")
	ids.Close(1)
	ids.Close(2)
	say(3, "q", "sys", "", "", "", msg.System, 0, "run q#3 key sys#3 parent  response  call  protocol  attr  reused false")
	// The first of two answers is not that of the second, which fails and is tried again.
	say(1, "u", "p", "", "", "", msg.User, msg.RunStart, "run u key p parent  response  call  protocol  attr  reused false")
	say(2, "u", "p", "", "", "", msg.User, msg.RunStart, "run u#2 key p#2 parent  response  call  protocol  attr  reused false")
	say(1, "u", "ok", "p", "u1", "", msg.Assistant, 0, "run u key ok parent p response u1 call  protocol  attr  reused false")
	say(2, "u", "no", "p", "u2", "", msg.Error, 0, "run u#2 key no#2 parent p#2 response u2 call  protocol  attr  reused false")
	ids.Close(1)
	ids.Close(2)
	say(4, "u", "p", "", "", "", msg.User, msg.RunStart, "run u#2 key p#2 parent  response  call  protocol  attr  reused false")
	// A call of a run of another name.
	say(7, "u", "resc", "", "", "call_2", msg.ToolResult, 0, "run u#2 key resc#2 parent  response  call call_2 protocol  attr  reused false")
	for i := range uint64(maxExchanges + 1) {
		m := msg.Message{Session: "s", Run: "many", Key: "c", ResponseID: fmt.Sprint(i), Kind: msg.ToolCall, Tool: msg.Tool{CallID: "call_m"}}
		ids.Claim(&m, 100+i, func(string, uint64) bool { return false })
	}
	if list := ids.Calls.Of["call_m"]; len(list) != maxExchanges || list[0].Stream != 101 {
		t.Errorf("%d exchanges have the call, the first is %d", len(list), list[0].Stream)
	}
}

// TestWindowsOfHops: a name is of a window of time where the time is a part of the evidence, and a cause is looked for in each that it reaches.
func TestWindowsOfHops(t *testing.T) {
	const window, slack, margin = hopWindow, hopSlack, hopMargin
	timed := TextHop(msg.Plain("Where is the tide now?"))
	at := func(from, n int64) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(timed, "\x00", from+i))
		}
		return out
	}
	for _, c := range []struct {
		start, end int64
		want       []string
	}{
		{5*window + slack, 0, at(5, 1)},
		{5*window + slack - 1, 0, at(4, 2)},
		{6*window - margin - slack - 1, 0, at(5, 1)},
		{6*window - margin - slack, 0, at(5, 2)},
		{5*window + margin, 7*window - slack - 1, at(5, 2)},
		{5*window + margin, 7*window - slack, at(5, 3)},
		{5*window + margin, 90 * window, at(5, maxWindows+1)},
	} {
		if d := cmp.Diff(c.want, timed.During(c.start, c.end)); d != "" {
			t.Errorf("from %d to %d (-want +got):\n%s", c.start, c.end, d)
		}
	}
	if got := timed.At(7*window - 1); got != at(6, 1)[0] {
		t.Errorf("a hop is in %q", got)
	}
	span := SpanHop("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
	session := SessionHop("0d1e2f3a-session")
	for n, want := range map[HopName]struct {
		link  msg.LinkMethod
		timed bool
	}{CallHop("c"): {msg.ByNativeID, false}, span: {msg.ByTrace, false}, ArgumentsHop("turn", "", msg.Plain("{}")): {msg.ByPrompt, true}, timed: {msg.ByPrompt, true}, session: {msg.ByNativeID, true}} {
		if n.Link() != want.link || (n.At(0) != string(n)) != want.timed || (len(n.During(0, window)) == 1) == want.timed {
			t.Errorf("%q is by %s, at %q", n, n.Link(), n.At(0))
		}
	}
	for u, served := range map[*Remote]bool{{Hop: true, Name: session.At(0)}: true, {Name: session.At(0)}: false, {Hop: true, Name: timed.At(0)}: false} {
		if u.Served() != served {
			t.Errorf("%+v is served: %t", u, !served)
		}
	}
	for _, tool := range [][3]string{{"mcp__lamp__turn", "lamp", "turn"}, {"lamp.turn", "lamp", "turn"}, {"turn", "lamp", "turn"}, {"lamp", "lamp", "lamp"}, {"mcp__lamp__turn", "", "mcp__lamp__turn"}} {
		if got := toolOf(tool[0], tool[1]); got != tool[2] {
			t.Errorf("%s of %s is %s", tool[0], tool[1], got)
		}
	}
	long := msg.Plain(strings.Repeat("x", maxCompared))
	for i, c := range []struct {
		name HopName
		none bool
	}{
		{SpanHop("0af7651916cd43dd8448eb211c80319", "b7ad6b7169203331"), true}, {SpanHop("0af7651916cd43dd8448eb211c80319c", "b7ad6b716920333"), true},
		{ArgumentsHop("", "", msg.Plain("{}")), true}, {ArgumentsHop("t", "", long), false}, {ArgumentsHop("t", "", msg.Plain(long.String()+"x")), true},
		{TextHop(long), false}, {TextHop(msg.Plain(long.String() + "x")), true}, {TextHop(msg.Plain("sixteen letters.")), false}, {TextHop(msg.Plain("fifteen letters")), true},
		{SessionHop("0123456789abcdef"), false}, {SessionHop("0123456789abcde"), true},
	} {
		if (c.name == "") != c.none {
			t.Errorf("%d: %.40q is a name: %t", i, c.name, !c.none)
		}
	}
	if ArgumentsHop("t", "", msg.Plain(" ")) != ArgumentsHop("t", "", msg.Plain("{}")) {
		t.Error("no arguments are other ones than none")
	}
}

// TestHopsByID: of the causes with an id, a hop belongs to the last one that was going on when it began; an id of a call needs no time, that
// of a session does.
func TestHopsByID(t *testing.T) {
	const s = int64(1e9)
	for _, c := range []struct {
		name  string
		link  msg.LinkMethod
		call  string // of the causes; none of turns
		times [][2]int64
		runs  []int64
		want  []int
	}{
		{"the last that had begun", msg.ByNativeID, "c", [][2]int64{{10, 60}, {20, 50}}, []int64{15, 20, 30}, []int{0, 1, 1}},
		{"one that had begun, and one that a clock behind would have", msg.ByNativeID, "c", [][2]int64{{10, 60}, {30, 50}}, []int64{29}, []int{0}},
		{"a clock that is behind", msg.ByNativeID, "", [][2]int64{{10, 20}, {30, 40}}, []int64{9, 29, 41}, []int{0, 1, 1}},
		{"of no turn", msg.ByNativeID, "", [][2]int64{{10, 20}}, []int64{8, 22}, []int{-1, -1}},
		{"an id of a call", msg.ByNativeID, "c", [][2]int64{{10, 20}}, []int64{8, 22}, []int{0, 0}},
		{"an id of a span", msg.ByTrace, "", [][2]int64{{10, 20}}, []int64{8, 22}, []int{0, 0}},
		{"no cause", msg.ByTrace, "", nil, []int64{8}, []int{-1}},
		{"one that lasts", msg.ByNativeID, "", [][2]int64{{10, 0}}, []int64{6*3600 + 11, 6*3600 + 12}, []int{0, -1}},
	} {
		at := Correlation{Hops: true, Link: c.link}
		for i, times := range c.times {
			site := CallSite{Format: "f", Session: "s", Run: fmt.Sprint("r", i), Start: times[0] * s, End: times[1] * s}
			if c.call != "" {
				site.Call = fmt.Sprint(c.call, i)
			}
			at.AddCause(site)
		}
		for i, start := range c.runs {
			at.AddHop(Candidate{Format: "g", Session: "h", Run: fmt.Sprint(i), Start: start * s})
		}
		var got []int
		for _, p := range at.Pairs() {
			got = append(got, p.Call)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestCausesOfSeveralViews: a call, or a turn, that several views of a conversation have is one cause, as the strongest has it; causes are in the order of time.
func TestCausesOfSeveralViews(t *testing.T) {
	weak := CallSite{Format: "log", Family: "fam", Session: "s", Run: "r", Call: "c", Start: 2, Rank: 1}
	strong := CallSite{Format: "fam", Session: "s", Run: "q", Call: "c", Start: 3, Rank: 2}
	for _, list := range [][]CallSite{{weak, strong}, {strong, weak}, {weak, weak, strong}} {
		var at Correlation
		for _, c := range list {
			if lost := at.AddCause(c); lost != nil {
				t.Errorf("%v is forgotten", lost)
			}
		}
		if d := cmp.Diff([]CallSite{strong}, at.Calls); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	ended := weak
	ended.End = 7
	var twice Correlation
	twice.AddCause(weak)
	if twice.AddCause(ended); len(twice.Calls) != 1 || twice.Calls[0].End != 7 {
		t.Errorf("the next version of a cause: %+v", twice.Calls)
	}
	turn := CallSite{Format: "f", Session: "s", Run: "r", Start: 9}
	var at Correlation
	other := func(change func(c *CallSite)) CallSite { c := turn; change(&c); return c }
	want := []CallSite{
		other(func(c *CallSite) { c.Start = 1; c.Run = "first" }), turn, other(func(c *CallSite) { c.Call = "c" }), other(func(c *CallSite) { c.Format = "g"; c.Call = "d" }), other(func(c *CallSite) { c.Run = "s" }),
		other(func(c *CallSite) { c.Session = "t" }),
	}
	for _, c := range slices.Backward(want) {
		at.AddCause(c)
	}
	if d := cmp.Diff(want, at.Calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWhichRunIsKnown: a run is one of its format and its session, and so is the hop whose end is known, once.
func TestWhichRunIsKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *Candidate)
		same   bool
	}{
		{"the same", func(*Candidate) {}, true}, {"another run", func(r *Candidate) { r.Run = "x" }, false},
		{"another session", func(r *Candidate) { r.Session = "x" }, false}, {"another format", func(r *Candidate) { r.Format = "x" }, false},
	} {
		r := Candidate{Format: "g", Session: "s", Run: "r", Request: "q", Start: 1}
		var at Correlation
		at.AddRun(r)
		c.change(&r)
		if got := at.HasRun(r.Format, r.Session, r.Run); got != c.same {
			t.Errorf("%s is known: %t", c.name, got)
		}
		if got := at.EndHop(r.Format, r.Session, r.Run, 7); got != c.same || (at.Runs[0].End == 7) != c.same {
			t.Errorf("%s ends it: %t, at %d", c.name, got, at.Runs[0].End)
		}
		if c.same && at.EndHop(r.Format, r.Session, r.Run, 7) {
			t.Error("the same end is another one")
		}
		at.Runs[0].Request = ""
		if at.EndHop("g", "s", "r", 8) {
			t.Error("a run of no request ends")
		}
		site := CallSite{Format: "g", Session: "s", Run: "r"}
		if got := site.Is(&r, "r"); got != c.same {
			t.Errorf("%s has the call: %t", c.name, got)
		}
	}
	var at Correlation
	for _, r := range []Candidate{{Start: 1, Session: "b"}, {Start: 1, Session: "a", Format: "y"}, {Start: 1, Session: "a", Format: "x", Run: "2"}, {Start: 1, Session: "a", Format: "x", Run: "1"}, {Start: 0}} {
		at.AddRun(r)
	}
	if d := cmp.Diff([]Candidate{{}, {Start: 1, Session: "a", Format: "x", Run: "1"}, {Start: 1, Session: "a", Format: "x", Run: "2"}, {Start: 1, Session: "a", Format: "y"}, {Start: 1, Session: "b"}}, at.Runs); d != "" {
		t.Errorf("the order of runs (-want +got):\n%s", d)
	}
	for _, c := range []CallSite{{Start: 1, Session: "b"}, {Start: 1, Session: "a", Call: "2"}, {Start: 1, Session: "a", Call: "1", Alias: "owl"}, {Start: 0}, {Start: 1, Session: "a", Call: "1"}, {Start: 1, Session: "a", Call: "1", Format: "g"}} {
		at.AddCall(c)
	}
	if d := cmp.Diff([]CallSite{{}, {Start: 1, Session: "a", Call: "1", Alias: "owl"}, {Start: 1, Session: "a", Call: "1", Format: "g"}, {Start: 1, Session: "a", Call: "2"}, {Start: 1, Session: "b"}}, at.Calls); d != "" {
		t.Errorf("the order of calls (-want +got):\n%s", d)
	}
}

// TestSpanBelowACallOfAnotherSession: the span of a run is below the call, by the ids of its family; one that is apart has a link to it.
func TestSpanBelowACallOfAnotherSession(t *testing.T) {
	site := CallSite{Format: "g", Family: "fam", Session: "s", Run: "r", Call: "c", Root: "root"}
	call, trace := msg.NewSpanID("t", "fam", "s", msg.SpanTool, "c"), msg.NewTraceID("t", "fam", "s", "root")
	below := msg.Span{Parent: call, Delegate: msg.Delegate{Link: msg.ByPrompt, Confidence: 80}}
	apart := msg.Span{Delegate: below.Delegate, Links: []msg.SpanLink{{TraceID: trace, SpanID: call, Attrs: []msg.Attr{{Key: "earshot.link", Value: "delegation"}}}}}
	for u, want := range map[*Remote]msg.Span{{CallSite: site, Link: msg.ByPrompt, Confidence: 80}: below, {CallSite: site, Link: msg.ByPrompt, Confidence: 80, Apart: true}: apart} {
		var got msg.Span
		u.Apply("t", &got)
		if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	if site.Call = ""; site.Span("t") != msg.NewSpanID("t", "fam", "s", msg.SpanRun, "r") {
		t.Error("a turn's span is another one")
	}
	if site.Family = ""; site.Span("t") != msg.NewSpanID("t", "g", "s", msg.SpanRun, "r") || site.Key("t") != (Key{"t", "g", "s"}) {
		t.Error("the span of a format without a family is another one")
	}
	k := Key{"t", "g", "s"}
	if bad := foreign + "no id"; k.Trace(bad) != msg.NewTraceID("t", "g", "s", bad) || k.As("fam") != (Key{"t", "fam", "s"}) || k.Clone() != k {
		t.Error("a key is another one")
	}
}

// TestPlacesOfRuns: a run names its parent once, by the first that it names, and is moved with those below it alone.
func TestPlacesOfRuns(t *testing.T) {
	for _, c := range []struct {
		was          Place
		parent, call string
		want         Place
	}{
		{Place{}, "p", "c", Place{Parent: "p", Call: "c", Link: msg.ByPrompt, Confidence: 40}},
		{Place{Parent: "q", Call: "d", Link: msg.ByOrder}, "p", "c", Place{Parent: "q", Call: "d", Link: msg.ByOrder}},
		{Place{Link: msg.ByParent}, "", "", Place{Link: msg.ByParent}},
		{Place{}, msg.UnknownRun, "c", Place{Call: "c", Link: msg.ByPrompt, Confidence: 40}},
		{Place{Call: "d"}, "p", "", Place{Parent: "p", Call: "d"}},
	} {
		p := c.was
		p.Join(c.parent, c.call, msg.ByPrompt, 40)
		if d := cmp.Diff(c.want, p); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.was, d)
		}
	}
	s := session{runs: map[string]*Place{"top": {}, "mid": {Parent: "top"}, "leaf": {Parent: "mid"}, "orphan": {Parent: "gone"}, "self": {Parent: "self"}}}
	for _, c := range []struct {
		run, top string
		below    bool
	}{{"leaf", "top", true}, {"leaf", "mid", true}, {"mid", "leaf", false}, {"leaf", "leaf", true}, {"orphan", "top", false}, {"orphan", "gone", false}, {"none", "top", false}} {
		if got := Below(s, c.run, c.top); got != c.below {
			t.Errorf("%s is below %s: %t", c.run, c.top, got)
		}
	}
	for run, want := range map[string]string{"leaf": "top", "mid": "top", "top": "top", "orphan": "gone", "none": "none"} {
		if got, p := Top(s, run); got != want || (p == nil) != (want == "gone" || want == "none") {
			t.Errorf("the top of %s is %s, known: %t", run, got, p != nil)
		}
	}
	if id, p := ParentOf(s, "self", s.runs["self"]); id != "" || p != nil {
		t.Errorf("a run is below itself: %q", id)
	}
	if id, p := ParentOf(s, "leaf", s.runs["leaf"]); id != "mid" || p != s.runs["mid"] {
		t.Errorf("the parent is %q", id)
	}
	waits := session{runs: map[string]*Place{"top": {Parent: "gone"}, "orphan": {Root: "orphan", Parent: "top"}}}
	if moved := Attach(waits, "orphan"); moved != nil {
		t.Errorf("moved %v below one that waits", moved)
	}
	if moved := Attach(waits, "top"); moved != nil {
		t.Errorf("moved %v below none", moved)
	}
	// A better link of a call than that of its child counts for both; moves are those of the same trace that have no place yet.
	f := family()
	f.runs["waits"] = &Place{Root: "child", Parent: "gone"}
	f.runs["linked"] = &Place{Root: "child", Linked: true}
	f.runs["child"] = &Place{Root: "child", Call: "call", Link: msg.ByPrompt, Confidence: 7}
	moved := Attach(f, "child")
	slices.Sort(moved)
	if d := cmp.Diff([]string{"child", "waits"}, moved); d != "" {
		t.Errorf("moved (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Place{Root: "child", Linked: true}, *f.runs["linked"]); d != "" {
		t.Errorf("one that had its place (-want +got):\n%s", d)
	}
	p := Place{Root: "x", Parent: "q"}
	Resolve(family(), "x", &p, "top", "call", msg.ByPrompt, 7)
	if d := cmp.Diff(Place{Root: "top", Parent: "top", Call: "call", Link: msg.ByMetaFile, Linked: true, Delegate: "scout"}, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestForgottenHops: beyond the limit the oldest calls and hops are forgotten, and those near them in time are crowded.
func TestForgottenHops(t *testing.T) {
	const s = int64(1e9)
	cause := func(i int64, end int64) CallSite {
		return CallSite{Format: "f", Session: "s", Call: fmt.Sprintf("c%04d", i), Start: 10 * i * s, End: end}
	}
	hop := func(run string, at int64) Candidate { return Candidate{Format: "g", Session: "r", Run: run, Start: at} }
	runs := func(list []Candidate) (out []string) {
		for _, r := range list {
			out = append(out, r.Run)
		}
		return out
	}
	// One cause too many.
	at := Correlation{Hops: true, Link: msg.ByPrompt}
	at.AddHop(hop("behind the first", 2*s))
	at.AddHop(hop("just before the second", 9*s-1))
	at.AddHop(hop("of the second", 9*s))
	for i := range int64(maxHops) {
		if lost := at.AddCause(cause(i, (10*i+5)*s)); lost != nil {
			t.Fatalf("call %d: %v are forgotten", i, runs(lost))
		}
	}
	if len(at.Calls) != maxHops || at.Lost != 0 || at.Crowded(&Candidate{Start: s}) {
		t.Errorf("%d calls, lost until %d", len(at.Calls), at.Lost)
	}
	lost := at.AddCause(cause(maxHops, 0))
	if d := cmp.Diff([]string{"behind the first", "just before the second"}, runs(lost)); d != "" || len(at.Calls) != maxHops || at.Calls[0].Start != 10*s || at.Lost != 9*s-1 || len(at.Runs) != 1 {
		t.Errorf("%d calls from %d on, lost until %d (-want +got):\n%s", len(at.Calls), at.Calls[0].Start, at.Lost, d)
	}
	for start, want := range map[int64]bool{at.Lost + hopSlack: true, at.Lost + hopSlack + 1: false, 0: true} {
		r := hop("", start)
		if at.Crowded(&r) != want {
			t.Errorf("one that began at %d is crowded: %t", start, !want)
		}
	}
	if at.Link = msg.ByNativeID; at.Crowded(&Candidate{}) {
		t.Error("an id is crowded")
	}
	// One hop too many: with it go the calls that ended before the next.
	at = Correlation{Hops: true, Link: msg.ByPrompt}
	for _, c := range []CallSite{cause(0, 9*s-1), {Call: "near", Start: 1, End: 9 * s}, {Call: "lasts", Start: 2}} {
		at.AddCause(c)
	}
	for i := range int64(maxHops) {
		if lost := at.AddHop(hop(fmt.Sprint(i), 10*i*s)); lost != nil {
			t.Fatalf("hop %d: %v are forgotten", i, runs(lost))
		}
	}
	lost = at.AddHop(hop("last", 1e6*s))
	if d := cmp.Diff([]string{"0"}, runs(lost)); d != "" || len(at.Runs) != maxHops || len(at.Calls) != 2 || at.Calls[0].Call != "near" || at.Lost != 9*s-1 {
		t.Errorf("%d hops, calls %+v, lost until %d (-want +got):\n%s", len(at.Runs), at.Calls, at.Lost, d)
	}
	// They began together.
	at = Correlation{Hops: true, Link: msg.ByPrompt}
	for i := range maxHops + 1 {
		lost = at.AddHop(hop(fmt.Sprint(i), s))
	}
	if len(lost) != maxHops+1 || len(at.Runs) != 0 || at.Lost != s {
		t.Errorf("%d of %d are forgotten, until %d", len(lost), maxHops+1, at.Lost)
	}
}

// TestInnerOfTheSameCall: the other recording of a request is of the same call, has the same request, and is inside of it, as far as clocks agree.
func TestInnerOfTheSameCall(t *testing.T) {
	const s = int64(1e9)
	outer := Candidate{Format: "mcp", Session: "here", Run: "r", Request: "q", Start: 10 * s, End: 20 * s}
	for _, c := range []struct {
		name   string
		change func(r, o *Candidate)
		call   int // of the other
		want   int64
	}{
		{"inside", func(r, o *Candidate) {}, 0, 5 * s},
		{"of none", func(r, o *Candidate) {}, -1, 0},
		{"of another call", func(r, o *Candidate) {}, 1, 0},
		{"no requests", func(r, o *Candidate) { r.Request, o.Request = "", "" }, 0, 0},
		{"not ended", func(r, o *Candidate) { r.End = 0 }, 0, 0},
		{"a clock that is behind", func(r, o *Candidate) { o.Start = r.Start - hopSlack }, 0, 8 * s},
		{"too far behind", func(r, o *Candidate) { o.Start = r.Start - hopSlack - 1 }, 0, 0},
		{"a clock that is ahead", func(r, o *Candidate) { o.End = r.End + hopSlack }, 0, 9 * s},
		{"too far ahead", func(r, o *Candidate) { o.End = r.End + hopSlack + 1 }, 0, 0},
		{"as long", func(r, o *Candidate) { o.Start, o.End = r.Start+1, r.End+1 }, 0, 0},
		{"another format", func(r, o *Candidate) { o.Session, o.Format = r.Session, "acp" }, 0, 5 * s},
	} {
		r, o := outer, outer
		o.Session, o.Start, o.End = "there", 12*s, 17*s
		c.change(&r, &o)
		at := Correlation{Hops: true, Runs: []Candidate{r, o}}
		call := 0
		if c.call < 0 {
			call = -1
		}
		if got := at.Inner(0, []Pair{{Call: call}, {Call: c.call}}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestBoundsOfPairs: a run belongs to a call from a little before it to a little behind it; by a name of many only a pair of one call and one run is sure.
func TestBoundsOfPairs(t *testing.T) {
	at := func(c CallSite, start int64, agent string, by msg.LinkMethod) int {
		co := Correlation{Link: by}
		co.AddCall(c)
		co.AddRun(Candidate{Format: "g", Session: "s", Run: "x", Agent: agent, Start: start})
		return co.Pairs()[0].Call
	}
	call, later := site("a", 100, 200), site("a", 100, 101)
	later.Async = true
	for _, c := range []struct {
		call  CallSite
		start int64
		want  int
	}{
		{call, call.Start - Slack, 0}, {call, call.Start - Slack - 1, -1}, {call, call.End + Slack, 0}, {call, call.End + Slack + 1, -1},
		{later, later.Start + longestWait, 0}, {later, later.Start + longestWait + 1, -1}, {later, later.Start - Slack - 1, -1}, {later, later.End + Slack, 0},
	} {
		if got := at(c.call, c.start, "", msg.ByPrompt); got != c.want {
			t.Errorf("a run at %d is of call %d", c.start, got)
		}
	}
	own := Candidate{Format: "f", Session: "caller", Run: "k"}
	for _, c := range []struct {
		agent, run string
		want       bool
	}{{"", "k", true}, {"owl", "k", false}, {"owl", "r", true}} {
		if own.Agent, own.Run = c.agent, c.run; call.excludes(&own) != c.want {
			t.Errorf("the call excludes run %s of %q: %t", c.run, c.agent, !c.want)
		}
	}
	for p, want := range map[Pair]bool{{0, 0}: true, {0, promptConfidence}: true, {0, promptConfidence - 1}: false, {-1, 0}: false, {-1, 90}: false, {3, 90}: true} {
		if p.Sure() != want {
			t.Errorf("%+v is sure: %t", p, !want)
		}
	}
}
