package telemetry

import (
	"flag"
	"io"
	"net/http"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden pages")

// TestPage: names, types, texts and labels of the metrics, as Prometheus reads them in both of its
// formats. Alerts and dashboards of users name them.
func TestPage(t *testing.T) {
	m := New()
	touch(m)
	s, err := Listen("127.0.0.1:0", m, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for golden, accept := range map[string]string{
		"testdata/page.txt":         "text/plain;version=0.0.4",
		"testdata/page.openmetrics": "application/openmetrics-text;version=1.0.0",
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", accept)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: the page is\n%s", golden, got)
		}
	}
}

// touch gives every metric a value.
func touch(m *Metrics) {
	m.Bytes.WithLabelValues("quay", "decoded").Add(1234567)
	m.Bytes.WithLabelValues("quay", "dropped").Add(3)
	m.Frames.WithLabelValues("quay").Inc()
	m.Messages.WithLabelValues("quay", "legion", "assistant").Inc()
	m.Messages.WithLabelValues("harbour", "agno", "user").Add(2)
	m.Unknown.WithLabelValues("legion", `a "type"\of`+"\nlines").Inc()
	m.Problems.WithLabelValues("quay", "decode", "invalid_json").Inc()
	m.Spans.WithLabelValues("legion", "chat", "ok").Inc()
	m.Findings.WithLabelValues("legion", "repeat").Inc()
	m.Verdicts.WithLabelValues("stuck").Inc()
	m.Verdicts.WithLabelValues("stuck").Inc()
	m.Verdicts.WithLabelValues("stuck").Dec()
	m.VerdictsMade.WithLabelValues("legion", "stuck").Inc()
	m.Responses.WithLabelValues("quay", "legion").Inc()
	m.Buffered.WithLabelValues("quay", "legion").Inc()
	m.FirstByte.WithLabelValues("quay", "legion").Observe(0.01)
	m.FirstEvent.WithLabelValues("quay", "legion").Observe(0.02)
	m.Gap.WithLabelValues("quay", "legion").Observe(3)
	m.Stall.WithLabelValues("quay", "legion").Observe(1000)
	m.DecoderRestarts.WithLabelValues("legion").Inc()
	m.DecoderFailures.WithLabelValues("legion").Inc()
	m.DecoderCircuit.WithLabelValues("legion").Set(1)
	m.Redacted.WithLabelValues("aws_key").Inc()
	m.Erased.WithLabelValues("quay").Inc()
	m.SpoolBytes.WithLabelValues("clickhouse").Set(1 << 40)
	m.SpoolLost.WithLabelValues("clickhouse").Inc()
	m.Batches.WithLabelValues("clickhouse", "ok").Inc()
	m.BatchSeconds.WithLabelValues("clickhouse").Observe(0.25)
	m.Records.WithLabelValues("clickhouse").Add(2500)
	m.ExporterLag.WithLabelValues("clickhouse").Set(1.5)
	m.StoreBehind.WithLabelValues("clickhouse").Add(2)
	m.Streams.WithLabelValues("quay").Inc()
	m.InFlight.Set(65536)
	m.Commits.Add(2)
	for name, help := range map[string]string{
		"bytes": "Bytes of the journal on disk.", "pending_bytes": "Bytes that are not on disk yet.", "streams": "Recordings that are open.",
		"failures": "Writes and syncs that failed.", "evicted_bytes": "Bytes of segments that were removed before everything in them was safe.",
		"refused_bytes": "Bytes of frames that there was no room for.", "corrupt_bytes": "Damaged bytes that were skipped.",
	} {
		m.Watch("journal_"+name, help, nil, func() float64 { return 7 })
	}
	for name, help := range map[string]string{
		"requests": "Requests that a tap passed on.", "recorded": "Requests whose response a tap recorded.",
		"failed": "Requests for which the upstream gave no response.", "lost_bytes": "Bytes that a tap passed on and should have recorded, but did not.",
	} {
		m.Count("tap_"+name+"_total", help, map[string]string{"source": "quay"}, func() int64 { return 7 })
	}
	m.Count("sampled_spans_total", "Spans of decided conversations.", map[string]string{"exporter": "otlp", "fate": "kept"}, func() int64 { return 4 })
	m.Watch("sample_held_spans", "Spans of undecided conversations.", map[string]string{"exporter": "otlp"}, func() float64 { return 5 })
}
