package dashboards

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// randomTurn makes the spans of a turn, each with a name of its own: agents beside each
// other, in the background and below each other, results that were reported together or
// never came, persons who were waited for, clocks that are off.
func randomTurn(r *rand.Rand, n int, session string, began int64) []msg.Span {
	names := 0
	var list []msg.Span
	add := func(kind msg.SpanKind, parent msg.SpanID, start, end int64) msg.SpanID {
		names++
		name := fmt.Sprint(kind, n, ".", names)
		s := msg.Span{
			Tenant: "default", Source: "random", Format: "random", Session: session, Kind: kind, State: msg.SpanClosed, Outcome: msg.OutcomeOK,
			TraceID: msg.NewTraceID("default", "random", session, "turn"), ID: msg.NewSpanID("default", "random", session, kind, name), Parent: parent,
			Start: began + start*1e6, End: began + max(start, end)*1e6, LastSeen: began + max(start, end)*1e6, Ver: 1,
		}
		switch kind {
		case msg.SpanChat:
			s.Model = name
		case msg.SpanTool, msg.SpanDelegation:
			s.Tool = msg.Tool{CallID: name, Name: name}
		}
		s.Agent.Name = name
		if kind == msg.SpanDelegation {
			s.Delegate.To, s.Delegate.Async = name, r.IntN(3) == 0
		}
		if r.IntN(15) == 0 {
			s.State = msg.SpanIdle
		}
		if r.IntN(4) == 0 {
			from, last := s.Start+r.Int64N(max(s.End-s.Start, 1)), []string{"wait_end", "run_resume", "wait_start"}[r.IntN(3)]
			s.Events = append(s.Events, msg.SpanEvent{Time: from, Name: "wait_start"}, msg.SpanEvent{Time: from + r.Int64N(200e6), Name: last})
			if r.IntN(5) == 0 {
				s.Events[0].Attrs = []msg.Attr{{Key: msg.EventWaitsFor, Value: msg.ForOutside}}
			}
		}
		list = append(list, s)
		return s.ID
	}
	var agent func(parent msg.SpanID, start, end int64, depth int)
	agent = func(parent msg.SpanID, start, end int64, depth int) {
		run := add(msg.SpanRun, parent, start, end)
		together := start + r.Int64N(max(end-start, 1))
		for range 1 + r.IntN(5) {
			from := start + r.Int64N(max(end-start, 1))
			to := from + r.Int64N(max(end-start, 1))
			if kind := msg.SpanKind(1 + r.IntN(3)); kind == msg.SpanDelegation || r.IntN(2) == 0 {
				if r.IntN(2) == 0 { // reported together with others
					from, to = min(from, together), together+r.Int64N(3)/2
				}
				id := add(kind, run, from, to)
				if kind == msg.SpanDelegation && depth > 0 && r.IntN(3) > 0 {
					begin := from + r.Int64N(20) - 3
					agent(id, begin, begin+r.Int64N(max(to-from, 1)*5/4), depth-1)
				}
			} else {
				add(kind, run, from, min(to, end))
			}
		}
	}
	agent(msg.SpanID{}, 0, 1000+r.Int64N(1000), 2)
	return list
}

// TestBoardsBlameAsTheCommandsDo: the critical path of the board is that of package
// blame, and so is where the time went, over random turns.
func TestBoardsBlameAsTheCommandsDo(t *testing.T) {
	w := theWorld(t)
	x, err := clickhouse.New(t.Context(), clickhouse.Settings{Conn: clickhouse.ConnSettings{DSN: w.dsn("default") + "/earshot"}, CreateSchema: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	const turns, inTrace = 200, 10 // several in a trace, because each query takes its time
	batch := &export.Batch{ID: msg.HashKey("dashboards", "random")}
	var traces []string
	began := w.began.Add(-48 * time.Hour)
	for n := range turns {
		spans := randomTurn(rand.New(rand.NewPCG(uint64(n), 4)), n, fmt.Sprint("random-", n/inTrace), began.Add(time.Duration(n)*time.Minute).UnixNano())
		batch.Spans = append(batch.Spans, exporttest.Records(spans...)...)
		if n%inTrace == 0 {
			traces = append(traces, spans[0].TraceID.String())
		}
	}
	if err := x.Export(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	prices, err := price.Load("")
	if err != nil {
		t.Fatal(err)
	}
	waited, shared := 0.0, 0
	for n, id := range traces {
		trace, err := inspect.LoadTrace(t.Context(), rowsOf{w.reader(t)}, id, prices, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		want, waits := make(map[string]float64), 0.0
		var path []blame.Segment
		for _, root := range trace.Tree.Roots() {
			path = append(path, root.Path()...)
		}
		for _, p := range path {
			ms := float64(p.To-p.From) / 1e6
			if want[label(p.Node)] += ms; p.Bucket == blame.Wait {
				waits += ms
			}
			if len(p.Node.ReportedWith()) > 0 {
				shared++
			}
		}
		r := ask(t, w, "trace", "Critical path", map[string]string{"trace_id": id})
		got := make(map[string]float64)
		for i, what := range r.column(t, "What") {
			if ms := number(r.column(t, "Time")[i]); ms > 0 {
				got[strings.TrimLeft(what.(string), "· ")] += ms
			}
		}
		same(t, n, want, got)
		if got := r.sum(t, "Waited for a person"); math.Abs(got-waits) > 1e-3 {
			t.Errorf("trace %d: %v ms of waiting for a person, want %v", n, got, waits)
		}
		waited += waits
		if t.Failed() {
			return
		}
	}
	// The same by its groups.
	r := ask(t, w, "trace", "Where the time went", map[string]string{"trace_id": traces[0]})
	if parts, whole := r.sum(t, "time"), ask(t, w, "trace", "Critical path", map[string]string{"trace_id": traces[0]}).sum(t, "Time"); len(r.rows) < 25 && math.Abs(parts-whole) > 1e-3 {
		t.Errorf("the parts are %v ms together, the path %v", parts, whole)
	}
	if waited < 1000 || shared < 5 {
		t.Errorf("the turns are dull: %v ms of waiting, %d stretches of calls that were reported together", waited, shared)
	}
}

// label is the name that the board has for a node: that of its span, and of those that
// were reported together with it.
func label(n *blame.Node) string {
	names := []string{spanName(n)}
	for _, o := range n.ReportedWith() {
		names = append(names, spanName(o))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " or ")
}

func spanName(n *blame.Node) string {
	return [...]string{"invoke_agent ", "chat ", "execute_tool ", "execute_tool "}[n.Kind] + n.Name
}

func same(t *testing.T, n int, want, got map[string]float64) {
	t.Helper()
	for k := range want {
		if math.Abs(want[k]-got[k]) > 1e-6 {
			t.Errorf("turn %d: %s has %v ms, want %v", n, k, got[k], want[k])
		}
	}
	for k := range got {
		if want[k] == 0 {
			t.Errorf("turn %d: %s has %v ms, want none", n, k, got[k])
		}
	}
}
