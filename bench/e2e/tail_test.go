package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTailRaw follows a sidecar that reads a file: the frames are redacted, include those that
// no decoder understands, and end with the sidecar.
func TestTailRaw(t *testing.T) {
	h := newHome(t).configure("redact: {keys: [berth_code]}", "sources:", files("legion", "s/*.jsonl"))
	h.write("s/m.jsonl", legionLine(1, "before anybody looks")+"\n")
	p := h.startRunning()
	all, some := h.start("tail", "--raw", "-o", "json"), h.start("tail", "--raw", "--source", "legion", "--match", "ferry")
	// tail shows frames from its start on, so lines are added until both have started.
	n := 1
	h.until("the first frames", func() bool {
		n++
		h.add("s/m.jsonl", legionLine(n, "the ferry leaves")+"\n")
		return strings.Contains(all.out.String(), "ferry") && strings.Contains(some.out.String(), "ferry")
	})
	h.add("s/m.jsonl", "not json\n"+`{"type":"assistant","berth_code":"hunter2hunter2"}`+"\n")
	h.until("the last frame", func() bool { return strings.Contains(all.out.String(), "berth_code") })
	p.kill()
	for _, q := range []*process{all, some} {
		<-q.done
	}
	if out := all.out.String(); strings.Contains(out, "hunter2") || !strings.Contains(out, `"data":"not json"`) {
		t.Errorf("frames:\n%s", tail(out))
	}
	var first struct{ Source, Format, Kind, Data string }
	if err := json.NewDecoder(strings.NewReader(all.out.String())).Decode(&first); err != nil || first.Source != "legion" || first.Format != "legion" || first.Kind != "line" {
		t.Errorf("%+v, %v", first, err)
	}
	if out := some.out.String(); strings.Contains(out, "not json") {
		t.Errorf("frames without the text:\n%s", tail(out))
	}
	q := h.start("tail", "--raw")
	<-q.done
	if q.err == nil || !strings.Contains(q.out.String(), "no sidecar runs") {
		t.Errorf("without a sidecar: %v, %s", q.err, q.out.String())
	}
}
