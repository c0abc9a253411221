package assemble

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

func asked(trace byte, method string, status int64) *msg.Stream {
	return &msg.Stream{Tenant: "default", Format: "f", Method: method, Status: status, RemoteTrace: msg.TraceID{trace}, RemoteSpan: msg.SpanID{trace}}
}

// span is the current span of a run.
func (w *harness) span(run string) msg.Span {
	w.t.Helper()
	w.commit()
	for _, s := range w.rows {
		if s.Kind == msg.SpanRun && s.Run == run && !s.Tombstone {
			return s
		}
	}
	w.t.Fatalf("no span of run %s", run)
	return msg.Span{}
}

func (w *harness) setResponse(stream uint64, at int64, s *msg.Stream) {
	w.t.Helper()
	if err := w.a.SetResponse(stream, at, s); err != nil {
		w.t.Fatal(err)
	}
}

// A run is linked to the sender of its request and has the pace of its response, also when the
// response ends after the run, in another process.
func TestHeardTellsOfItsRun(t *testing.T) {
	w := newHarness(t)
	x := asked(7, "POST", 200)
	w.setResponse(1, t0, x)
	w.apply(user("a", 0), delegated("a", "d", "scout", 1))
	child := user("b", 1)
	child.ParentCall = "d"
	w.apply(child, said("b", "r", 2), answered("a", "d", 3), msg.Message{Kind: msg.Stop, Run: "a", Time: 4, Signal: msg.RunEnd})
	before := w.span("a")
	if len(before.Links) != 1 || before.Links[0].TraceID != x.RemoteTrace || before.Links[0].SpanID != x.RemoteSpan || before.Pace != (msg.Pace{}) {
		t.Errorf("links %+v, pace %+v", before.Links, before.Pace)
	}
	w.restart()
	x.Session, x.Run, x.Pace = "s", "a", msg.Pace{Start: t0, Total: 5 * sec, LongestStall: 2 * sec}
	w.setResponse(1, t0, x)
	after := w.span("a")
	if after.Pace != x.Pace || len(after.Links) != 1 || after.End != before.End || after.Ver <= before.Ver {
		t.Errorf("version %x after %x, end %d after %d, links %+v, pace %+v", after.Ver, before.Ver, after.End, before.End, after.Links, after.Pace)
	}
	if s := w.span("b"); len(s.Links) != 0 || s.Pace != (msg.Pace{}) {
		t.Errorf("the child has links %+v, pace %+v", s.Links, s.Pace)
	}
	// The same response again changes nothing.
	w.setResponse(1, t0, x)
	if err := w.a.Commit(func(string, bool, []byte) { t.Error("the group has changed") }); err != nil {
		t.Fatal(err)
	}
}

// Of the requests that may have begun a run the earliest did, in any order of their streams;
// one that reads the run again did not.
func TestEarliestRequestBeganTheRun(t *testing.T) {
	for _, order := range [][]uint64{{1, 2, 3}, {3, 2, 1}, {2, 1, 3}} {
		w := newHarness(t)
		w.setResponse(1, t0+sec, asked(1, "POST", 200))
		w.setResponse(2, t0+2*sec, asked(2, "POST", 200))
		w.setResponse(3, t0, asked(3, "GET", 200))
		for _, stream := range order {
			m := user("a", 0)
			m.Session, m.Key, m.Complete, m.Time, m.Host = "s", "u", msg.Complete, t0, msg.Host{Tenant: "default", Format: "f", Source: "src", Ver: stream}
			if _, err := w.a.Apply(&m, stream, 1, time.Unix(0, t0), t0); err != nil {
				t.Fatal(err)
			}
		}
		w.a.Finish()
		if s := w.span("a"); len(s.Links) != 1 || s.Links[0].TraceID != (msg.TraceID{1}) {
			t.Errorf("%v: links %+v", order, s.Links)
		}
	}
}

// Many runs share one WebSocket: each is linked to its opener, and none has its pace.
func TestRunsOfASocket(t *testing.T) {
	w := newHarness(t)
	x := asked(9, "GET", 101)
	w.setResponse(1, t0, x)
	w.apply(user("a", 0), said("a", "r", 1), user("b", 2), said("b", "r2", 3))
	x.Session, x.Run, x.Pace = "s", "a", msg.Pace{Start: t0, Total: 9 * sec}
	w.setResponse(1, t0, x)
	w.a.Finish()
	for _, run := range []string{"a", "b"} {
		remote := 0
		s := w.span(run)
		for _, l := range s.Links {
			if l.TraceID == x.RemoteTrace {
				remote++
			}
		}
		if remote != 1 || s.Pace != (msg.Pace{}) {
			t.Errorf("%s: links %+v, pace %+v", run, s.Links, s.Pace)
		}
	}
}
