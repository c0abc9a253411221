package telemetry

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCountOfASource: the counter of a source replaces the former one of the same source, and
// is beside those of others.
func TestCountOfASource(t *testing.T) {
	m := New()
	m.Count("tap_requests_total", "Requests.", map[string]string{"source": "a"}, func() int64 { return 7 })
	m.Count("tap_requests_total", "Requests.", map[string]string{"source": "b"}, func() int64 { return 2 })
	m.Count("tap_requests_total", "Requests.", map[string]string{"source": "a"}, func() int64 { return 3 })
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, x := range f.GetMetric() {
			if f.GetName() == "earshot_tap_requests_total" {
				got[x.GetLabel()[0].GetValue()] = x.GetCounter().GetValue()
			}
		}
	}
	if len(got) != 2 || got["a"] != 3 || got["b"] != 2 {
		t.Errorf("%v", got)
	}
}
