package main

import "testing"

// TestPlanCluster: 10,000 messages a second for 90 days are 250 GB a day and six shards of 4 TB,
// and many sidecars flush less often.
func TestPlanCluster(t *testing.T) {
	p := planCluster(10_000, 90, 2, 100)
	if gb := p.DiskPerDay / 1e9; gb < 249 || gb > 252 {
		t.Errorf("%.0f GB a day", gb)
	}
	if p.Shards != 6 || p.Servers != 12 || p.Flush != 2 {
		t.Errorf("%d shards, %d servers, a flush every %g s", p.Shards, p.Servers, p.Flush)
	}
	if p.StoreCPU < 2*p.InsertCPU || p.InsertCPU < 0.3 {
		t.Errorf("%g cores for inserts, %g in all", p.InsertCPU, p.StoreCPU)
	}
	if small := planCluster(10, 30, 1, 1); small.Shards != 1 || small.Flush != 1 || small.StoreCPU > 0.2 {
		t.Errorf("a small one: %+v", small)
	}
	for text, want := range map[string]float64{"90d": 90, "36h": 1.5, "0.5d": 0.5, "": 0, "-1d": 0, "d": 0, "x": 0} {
		if got, err := parseDays(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %g days, error %v", text, got, err)
		}
	}
}
