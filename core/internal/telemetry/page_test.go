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
	m.Bytes.With("quay", "decoded").Add(1234567)
	m.Bytes.With("quay", "dropped").Add(3)
	m.Frames.With("quay").Inc()
	m.Messages.With("quay", "legion", "assistant").Inc()
	m.Messages.With("harbour", "agno", "user").Add(2)
	m.Unknown.With("legion", `a "type"\of`+"\nlines").Inc()
	m.Problems.With("quay", "decode", "invalid_json").Inc()
	m.Spans.With("legion", "chat", "ok").Inc()
	m.Findings.With("legion", "repeat").Inc()
	m.Verdicts.With("stuck").Inc()
	m.Verdicts.With("stuck").Inc()
	m.Verdicts.With("stuck").Dec()
	m.VerdictsMade.With("legion", "stuck").Inc()
	m.Responses.With("quay", "legion").Inc()
	m.Buffered.With("quay", "legion").Inc()
	m.FirstByte.With("quay", "legion").Observe(0.01)
	m.FirstEvent.With("quay", "legion").Observe(0.02)
	m.Gap.With("quay", "legion").Observe(3)
	m.Stall.With("quay", "legion").Observe(1000)
	m.DecoderRestarts.With("legion").Inc()
	m.DecoderFailures.With("legion").Inc()
	m.DecoderCircuit.With("legion").Set(1)
	m.Redacted.With("aws_key").Inc()
	m.Erased.With("quay").Inc()
	m.SpoolBytes.With("clickhouse").Set(1 << 40)
	m.SpoolLost.With("clickhouse").Inc()
	m.Batches.With("clickhouse", "ok").Inc()
	m.BatchSeconds.With("clickhouse").Observe(0.25)
	m.Records.With("clickhouse").Add(2500)
	m.ExporterLag.With("clickhouse").Set(1.5)
	m.StoreBehind.With("clickhouse").Add(2)
	m.Streams.With("quay").Inc()
	m.Failing.With("quay").Set(1)
	m.InFlight.Set(65536)
	m.Commits.Add(2)
	seven := func() int64 { return 7 }
	for _, g := range []*Gauges{m.JournalBytes, m.JournalPending, m.JournalStreams, m.JournalFailures, m.JournalEvicted, m.JournalRefused, m.JournalCorrupt} {
		g.With().Read(seven)
	}
	for _, c := range []*Counters{m.TapRequests, m.TapRecorded, m.TapFailed, m.TapLost} {
		c.With("quay").Read(seven)
	}
	m.Sampled.With("otlp", "kept").Read(func() int64 { return 4 })
	m.SampleHeld.With("otlp").Read(func() int64 { return 5 })
}
