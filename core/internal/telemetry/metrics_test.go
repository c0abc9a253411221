package telemetry

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series are a metric's values, by the values of its labels.
func series(t *testing.T, m *Metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, x := range f.GetMetric() {
			if f.GetName() == name {
				labels := ""
				for _, l := range x.GetLabel() {
					labels += " " + l.GetValue()
				}
				got[labels] = x.GetCounter().GetValue()
			}
		}
	}
	return got
}

// TestCountOfASource: a function that is read for a source replaces the former one of the same
// source, and is beside those of others.
func TestCountOfASource(t *testing.T) {
	m := New()
	m.TapRequests.With("a").Read(func() int64 { return 7 })
	m.TapRequests.With("b").Read(func() int64 { return 2 })
	m.TapRequests.With("a").Read(func() int64 { return 3 })
	if got := series(t, m, "earshot_tap_requests_total"); len(got) != 2 || got[" a"] != 3 || got[" b"] != 2 {
		t.Errorf("%v", got)
	}
}

// TestNamesFromTheTrafficAreBounded: types that a format invents without end, each as long as
// it likes, make a hundred series of that format and one for the others. Nothing is lost.
func TestNamesFromTheTrafficAreBounded(t *testing.T) {
	m := New()
	const n = 5000
	for i := range n {
		m.Unknown.With("legion", fmt.Sprintf("\xff%d%s", i, strings.Repeat("x", 1000))).Inc()
	}
	m.Unknown.With("agno", "late").Inc()
	got, total := series(t, m, "earshot_unknown_total"), 0.0
	for labels, v := range got {
		total += v
		if len(labels) > 2*MaxNameBytes {
			t.Errorf("a series of %d bytes: %.20q", len(labels), labels)
		}
	}
	if len(got) != MaxNames+2 || total != n+1 || got[" legion _OTHER"] != n-MaxNames || got[" agno late"] != 1 {
		t.Errorf("%d series, %v messages, %v of other types", len(got), total, got[" legion _OTHER"])
	}
}

// TestEverySourceIsCounted: what the configuration names is not bounded.
func TestEverySourceIsCounted(t *testing.T) {
	m := New()
	const n = 3000
	for i := range n {
		m.Frames.With(fmt.Sprint(i)).Inc()
	}
	if got := series(t, m, "earshot_source_frames_total"); len(got) != n {
		t.Errorf("%d series of %d sources", len(got), n)
	}
}

// TestCountedWhileRead: components count, find their series and set functions while scrapes read.
func TestCountedWhileRead(t *testing.T) {
	m := New()
	var counting sync.WaitGroup
	for i := range 4 {
		counting.Go(func() {
			for n := range 500 {
				m.Unknown.With("legion", fmt.Sprint(n%200)).Inc()
				m.InFlight.Add(1)
				m.Streams.With(fmt.Sprint(i)).Read(func() int64 { return int64(n) })
			}
		})
	}
	for range 20 {
		series(t, m, "")
	}
	counting.Wait()
	total := 0.0
	for _, v := range series(t, m, "earshot_unknown_total") {
		total += v
	}
	if total != 2000 || m.InFlight.value() != 2000 {
		t.Errorf("%v counted, %v in flight", total, m.InFlight.value())
	}
}

func BenchmarkCount(b *testing.B) {
	c := New().Bytes.With("quay", "decoded")
	for b.Loop() {
		c.Add(2345)
	}
}

func BenchmarkCountByLabels(b *testing.B) {
	m := New()
	b.ReportAllocs()
	for b.Loop() {
		m.Bytes.With("quay", "dropped").Inc()
	}
}
