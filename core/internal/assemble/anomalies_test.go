package assemble

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// with has arguments on a call, or content on a result.
func with(text string, m msg.Message) msg.Message {
	if m.Kind == msg.ToolCall {
		m.Tool.Arguments = msg.Quoted([]byte(text))
	} else {
		m.Content = msg.Plain(text)
	}
	return m
}

func failed(m msg.Message) msg.Message { m.IsError = true; return m }

// findings are the findings on the spans, as a table shows them.
func (w *harness) findings() (out []string) {
	w.commit()
	for _, s := range w.rows {
		for _, e := range s.Events {
			if e.Name == "finding" && !s.Tombstone {
				line := fmt.Sprintf("%s %s %d", s.Kind, s.Run, (e.Time-t0)/sec)
				for _, a := range e.Attrs {
					line += " " + a.Value
				}
				out = append(out, line)
			}
		}
	}
	return out
}

func (w *harness) wantFindings(want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.findings()); d != "" {
		w.t.Errorf("findings (-want +got):\n%s", d)
	}
}

var runEnd = msg.Message{Kind: msg.Stop, Run: "a", Time: 9000, Signal: msg.RunEnd}

// TestLoopIsFound has a loop that a restart cuts in two.
func TestLoopIsFound(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0))
	for i := range int64(5) {
		id := fmt.Sprint("c", i)
		w.apply(with(`{\"job\":7}`, called("a", id, "poll", 10*i+1)), with("pending", result("a", id, 10*i+2)))
		w.restart()
	}
	if len(w.found) != 1 || !w.open[w.a.mustGroup(t).ids.of(msg.SpanRun, "a")] {
		t.Errorf("found %v while it runs", w.found)
	}
	w.apply(runEnd)
	w.wantFindings("run a 42 repeat 5 poll")
}

func (a *Assembler) mustGroup(t *testing.T) *group {
	g, err := a.group(link.Key{Tenant: "default", Format: "f", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestProgressIsNoLoop(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0))
	for i := range int64(20) {
		id := fmt.Sprint("c", i)
		w.apply(with(`{}`, called("a", id, "poll", 10*i+1)), with(fmt.Sprint(i, " of 20"), result("a", id, 10*i+2)))
	}
	for i := range int64(20) { // the framework's own
		id := fmt.Sprint("d", i)
		m := with(`{}`, called("a", id, "think", 10*i+1))
		m.Tool.Internal = true
		w.apply(m, with("ok", result("a", id, 10*i+2)))
	}
	w.apply(runEnd)
	w.wantFindings()
}

func TestErrorStormIsFound(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0))
	for i := range int64(5) { // side by side
		w.apply(called("a", fmt.Sprint("p", i), "read", 1))
	}
	for i := range int64(5) {
		w.apply(failed(with(fmt.Sprint("no file ", i), result("a", fmt.Sprint("p", i), 2+i))))
	}
	for i := range int64(5) {
		id := fmt.Sprint("c", i)
		w.apply(with(fmt.Sprint(i), called("a", id, "fetch", 10*i+11)), failed(with(fmt.Sprint("503 ", i), result("a", id, 10*i+12))))
	}
	w.apply(runEnd)
	w.wantFindings("run a 52 error_storm 5 fetch")
}

func TestFanOutIsFound(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0))
	for i := range int64(30) { // one after the other
		id := fmt.Sprint("c", i)
		w.apply(delegated("a", id, "scout", 10*i+1), answered("a", id, 10*i+5))
	}
	for i := range int64(17) {
		w.apply(delegated("a", fmt.Sprint("p", i), "scout", 400+i))
	}
	w.apply(runEnd)
	w.wantFindings("run a 415 fan_out 16 Task")
}

func TestSilenceIsFound(t *testing.T) {
	w := newHarness(t)
	w.apply(
		user("a", 0), said("a", "r1", 290), // a slow model
		called("a", "c1", "build", 300), result("a", "c1", 1300), // a slow tool
		user("a", 2000), // a person who returns
		said("a", "r2", 2300), said("a", "r3", 2310),
		msg.Message{Kind: msg.Status, Run: "a", Time: 2320, Signal: msg.RunPause},
		said("a", "r4", 3000), // a person was asked
	)
	w.apply(runEnd)
	w.wantFindings("run a 2300 silence 300")
}
