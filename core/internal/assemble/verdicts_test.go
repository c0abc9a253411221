package assemble

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// watched is a session that is read while it goes on, second by second.
type watched struct {
	*harness
	now    int64 // in seconds
	n      uint64
	stream uint64        // that is read, of each run but a
	late   time.Duration // after which a message is read
}

// read reads messages now; a message has its own time.
func (w *watched) read(list ...msg.Message) {
	w.t.Helper()
	for _, m := range list {
		w.n++
		m.Session, m.Complete, m.Key = "s", msg.Complete, fmt.Sprint(w.n)
		m.Host = msg.Host{Tenant: "default", Format: "f", Source: "src", Ver: w.n}
		m.Time = t0 + m.Time*sec
		stream := uint64(1)
		if m.Run != "a" && w.stream != 0 {
			stream = w.stream
		}
		if _, err := w.a.Apply(&m, stream, 1, time.Unix(0, t0+w.now*sec), m.Time+int64(w.late)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// until goes on to a time without a message.
func (w *watched) until(at int64) {
	w.t.Helper()
	for ; w.now < at; w.now += 5 {
		if err := w.a.Idle(time.Unix(0, t0+w.now*sec), 0); err != nil {
			w.t.Fatal(err)
		}
	}
	w.now = at
	if err := w.a.Idle(time.Unix(0, t0+w.now*sec), 0); err != nil {
		w.t.Fatal(err)
	}
	w.commit()
}

// judged are the verdicts since the last time, in words.
func (w *watched) judged() (out []string) {
	for _, v := range w.verdicts {
		text := fmt.Sprintf("%s %s of %s since %d", v.Kind, v.Name, v.Run, (v.Since-t0)/sec)
		if v.Tool != "" {
			text += ", " + v.Tool
		}
		if v.Resolved != 0 {
			text += fmt.Sprintf(", resolved at %d: %s", (v.Resolved-t0)/sec, v.Resolution)
		}
		out = append(out, text)
	}
	w.verdicts = nil
	return out
}

func (w *watched) wants(when string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.judged()); d != "" {
		w.t.Errorf("%s: -want +got:\n%s", when, d)
	}
}

func makes(id string, at int64) msg.Message {
	m := called("a", id, "Bash", at)
	m.Tool.Arguments = msg.Plain(`{"command":"make test"}`)
	return m
}

func ends(id, text string, at int64) msg.Message {
	m := result("a", id, at)
	m.Content = msg.Plain(text)
	return m
}

// TestVerdictOfALoop: a run that has the same results again and again loops, once, until it has another.
func TestVerdictOfALoop(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0))
	for i := range int64(8) {
		w.until(10 * i)
		w.read(makes(fmt.Sprint("c", i), 10*i), ends(fmt.Sprint("c", i), "FAIL", 10*i+1))
	}
	w.until(90)
	w.wants("after eight results", "run looping of a since 1")
	w.restart()
	w.read(msg.Message{Kind: msg.Assistant, Run: "a", ResponseID: "r", Time: 95, Content: msg.Plain("It fails still.")})
	w.until(102)
	w.wants("after a restart", "run looping of a since 1")
	w.read(makes("other", 101), ends("other", "ok", 102))
	w.until(110)
	w.wants("after another result", "run looping of a since 1, resolved at 102: progress")
	w.read(msg.Message{Kind: msg.Stop, Run: "a", Time: 111, Signal: msg.RunEnd})
	w.commit()
	held := ""
	for _, s := range w.rows {
		for _, e := range s.Events {
			if e.Name == msg.EventVerdict {
				held += fmt.Sprint(s.Kind, " ", e.Attrs)
			}
		}
	}
	if !strings.Contains(held, "run [") || !strings.Contains(held, "looping") || !strings.Contains(held, "held_s 101") {
		t.Errorf("the event of its span: %s", held)
	}
}

// TestALoopIsOneVerdict: its records are read now sooner, now later after they were written.
func TestALoopIsOneVerdict(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0))
	for i := range int64(12) {
		w.until(10 * i)
		w.late = time.Duration(i%3) * 300 * time.Millisecond
		w.read(makes(fmt.Sprint("c", i), 10*i), ends(fmt.Sprint("c", i), "FAIL", 10*i))
	}
	w.until(130)
	if got := w.judged(); len(got) != 1 || !strings.HasPrefix(got[0], "run looping of a since ") {
		t.Errorf("twelve equal results made the verdicts %q", got)
	}
}

// TestALoopEndsWithTheAnswer: a run whose model has answered for good loops no more, also in a protocol that does not state the end of a run.
func TestALoopEndsWithTheAnswer(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0))
	for i := range int64(5) {
		w.read(makes(fmt.Sprint("c", i), 10*i), ends(fmt.Sprint("c", i), "FAIL", 10*i+1))
	}
	w.until(50)
	w.wants("after five results", "run looping of a since 1")
	w.until(52)
	w.read(msg.Message{Kind: msg.Assistant, Run: "a", ResponseID: "r", Time: 52, FinishReason: "end_turn", Content: msg.Plain("It fails still.")})
	w.until(60)
	w.wants("after the answer", "run looping of a since 1, resolved at 52: progress")
}

// TestVerdictOfACall: a call that takes longer than calls take has a verdict, with the way to it, until its result.
func TestVerdictOfACall(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0), makes("c", 10))
	w.until(1000)
	w.wants("for a quarter of an hour")
	w.until(1300)
	if len(w.verdicts) != 2 || w.verdicts[1].Path != "agent (20 min) › Bash `make test` (20 min)" || !strings.Contains(w.verdicts[1].Evidence, "has run 20 min") || w.verdicts[0].Cause != w.verdicts[1].Span {
		t.Errorf("%+v", w.verdicts)
	}
	w.wants("for twenty minutes", "run tool_running of a since 10", "tool tool_running of a since 10, Bash")
	w.until(1305)
	w.read(ends("c", "ok", 1305))
	w.until(1310)
	w.wants("with its result", "tool tool_running of a since 10, Bash, resolved at 1305: ended", "run tool_running of a since 10, resolved at 1305: progress")
	w.read(msg.Message{Kind: msg.Stop, Run: "a", Time: 1311, Signal: msg.RunEnd})
	w.commit()
	held := make(map[msg.SpanKind]string)
	for _, s := range w.rows {
		for _, e := range s.Events {
			if e.Name == msg.EventVerdict {
				held[s.Kind] += fmt.Sprint((e.Time-t0)/sec, " ", e.Attrs)
			}
		}
	}
	for _, kind := range []msg.SpanKind{msg.SpanRun, msg.SpanTool} {
		if text := held[kind]; !strings.HasPrefix(text, "10 [") || !strings.Contains(text, "tool_running") || !strings.Contains(text, "held_s 1295") {
			t.Errorf("the event of the %s: %s", kind, text)
		}
	}
}

// TestACallOfACopyRunsNoMore: a copy that ends between a call and its result, of a session that is forked meanwhile, has no call that runs.
func TestACallOfACopyRunsNoMore(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0), makes("c", 10), ends("c", "ok", 20), makes("d", 21))
	w.read(makes("c", 10))
	w.restart()
	w.until(25)
	w.read(ends("d", "ok", 25))
	w.until(1500)
	w.wants("after its result", "run model_silent of a since 25")
}

// TestVerdictIsRepeated: when a session is read again from the store, its verdicts have the way to the work as it was, with the ages.
func TestVerdictIsRepeated(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0), makes("c", 10))
	w.until(1300)
	was := []string{w.verdicts[0].Path, w.verdicts[1].Path}
	w.verdicts = nil
	w.restart()
	w.until(1305)
	w.read(msg.Message{Run: "b", Kind: msg.Status, Time: 1306})
	w.until(1310)
	var now []string
	for _, v := range w.verdicts {
		if v.Resolved == 0 {
			now = append(now, v.Path)
		}
	}
	if slices.Sort(was); !slices.Equal(slices.Sorted(slices.Values(now)), was) {
		t.Errorf("repeated: %q, were %q", now, was)
	}
}

// TestOldWorkIsNotJudged: of a session that goes on, the runs of which the records are older than verdict.Recent have no verdict.
func TestOldWorkIsNotJudged(t *testing.T) {
	w := &watched{harness: newHarness(t), now: 7200}
	old := makes("c1", 10)
	old.Run = "b"
	w.read(user("b", 0), old)
	w.until(9000)
	w.wants("alone")
	w.read(user("a", 9000), makes("c2", 9010))
	w.until(10300)
	w.wants("beside a run that goes on", "run tool_running of a since 9010", "tool tool_running of a since 9010, Bash")
}

// TestVerdictOfAnAnswer: a run that waits for a person is over when another one goes on with the answer.
func TestVerdictOfAnAnswer(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0))
	w.until(5)
	pause := msg.Message{Run: "a", Kind: msg.Status, Signal: msg.RunPause, Time: 5}
	w.read(pause)
	w.until(20)
	w.wants("asked", "run waiting_person of a since 5")
	w.read(msg.Message{Run: "b", Kind: msg.Status, Signal: msg.RunResume, Time: 20})
	w.until(25)
	w.wants("answered", "run waiting_person of a since 5, resolved at 20: ended")
}

// TestAnAnswerEndsNoOtherRun: an answer ends the run that waits for a person, and neither one that works nor one below another.
func TestAnAnswerEndsNoOtherRun(t *testing.T) {
	w := &watched{harness: newHarness(t), stream: 1}
	pause := func(run string) msg.Message {
		return msg.Message{Run: run, Kind: msg.Status, Signal: msg.RunPause, Time: 5}
	}
	w.read(user("a", 0), pause("a"))
	w.stream = 2
	w.read(user("works", 0))
	w.stream = 3
	below := user("below", 0)
	below.ParentRun = "works"
	w.read(below, pause("below"))
	w.stream = 4
	w.read(msg.Message{Run: "b", Kind: msg.Status, Signal: msg.RunResume, Time: 20})
	w.commit()
	for run, ended := range map[string]bool{"a": true, "works": false, "below": false, "b": false} {
		if r := w.a.mustGroup(t).Runs[run]; (r.Ended != running) != ended {
			t.Errorf("%s has ended: %t", run, !ended)
		}
	}
}

// TestVerdictOfALoopInPart: results of a trace that is not whole make a loop, and findings are made of
// the final ones.
func TestVerdictOfALoopInPart(t *testing.T) {
	w := &watched{harness: newHarness(t)}
	w.read(user("a", 0))
	for i := range int64(5) {
		w.until(4 + 4*i)
		for _, m := range []msg.Message{makes(fmt.Sprint("c", i), 3+4*i), ends(fmt.Sprint("c", i), "the same", 4+4*i)} {
			m.Session, m.Complete, m.Key = "s", msg.Partial, m.Tool.CallID+m.Kind.String()
			m.Host = msg.Host{Tenant: "default", Format: "f", Source: "src", Ver: uint64(w.now)}
			m.Time = t0 + m.Time*sec
			if _, err := w.a.Apply(&m, 1, 1, time.Unix(0, t0+w.now*sec), m.Time+int64(w.late)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.until(30)
	w.wants("five times", "run looping of a since 4")
}
