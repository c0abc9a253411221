package clickhouse

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
)

// TestStreamsAreStored exports a response twice: the second time its run is known.
func TestStreamsAreStored(t *testing.T) {
	x, c := exporter(t, nil)
	start := time.Date(2026, 3, 1, 0, 0, 0, 5, time.UTC).UnixNano()
	s := msg.Stream{
		Tenant: "default", Source: "tap", Format: "agno", Stream: "st", Origin: "http://h/runs", Method: "POST", Status: 200,
		RemoteTrace: msg.TraceID{1}, RemoteSpan: msg.SpanID{2}, RemoteState: "k=v",
		Pace: msg.Pace{
			Start: start, FirstByte: 1e6, FirstChunk: 2e6, FirstEvent: 3e6, Total: 9e6, Chunks: 4, Bytes: 5, Events: 6,
			LongestStall: 7e6, GapP50: 1e6, GapP95: 8e6, Buffered: true,
		},
		Ver: 1,
	}
	later := s
	later.Session, later.Run, later.Chat, later.Ver = "s", "r", msg.SpanID{3}, 2
	next := s // of the same recording, without a traceparent and without an event
	next.Pace, next.RemoteTrace, next.RemoteSpan = msg.Pace{Start: start + 1}, msg.TraceID{}, msg.SpanID{}
	export1(t, x, &export.Batch{ID: "a", Streams: []msg.Stream{s, next}})
	export1(t, x, &export.Batch{ID: "b", Streams: []msg.Stream{later}})
	got := rows(t, c, "SELECT * EXCEPT (stream, origin) FROM v_streams ORDER BY ts")
	n := func(s string) json.Number { return json.Number(s) }
	want := []map[string]any{{
		"tenant": "default", "source": "tap", "format": "agno", "ts": "2026-03-01 00:00:00.000000005", "method": "POST", "status": n("200"),
		"session_id": "s", "run_id": "r", "remote_trace_id": s.RemoteTrace.String(), "remote_span_id": s.RemoteSpan.String(),
		"first_byte_ms": n("1"), "first_event_ms": n("3"), "duration_ms": n("9"), "chunks": n("4"), "bytes": n("5"), "events": n("6"),
		"longest_stall_ms": n("7"), "gap_p50_ms": n("1"), "gap_p95_ms": n("8"), "buffered": true, "chat_span_id": later.Chat.String(),
	}, {
		"tenant": "default", "source": "tap", "format": "agno", "ts": "2026-03-01 00:00:00.000000006", "method": "POST", "status": n("200"),
		"session_id": "", "run_id": "", "remote_trace_id": "", "remote_span_id": "",
		"first_byte_ms": n("0"), "first_event_ms": nil, "duration_ms": n("0"), "chunks": n("0"), "bytes": n("0"), "events": n("0"),
		"longest_stall_ms": n("0"), "gap_p50_ms": n("0"), "gap_p95_ms": n("0"), "buffered": false, "chat_span_id": "",
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestEveryFieldOfAStreamIsStored changes one field at a time and looks for the
// difference in the row.
func TestEveryFieldOfAStreamIsStored(t *testing.T) {
	r := newStreamRows()
	row := func(s *msg.Stream) []byte {
		r.block.Reset()
		r.add(s)
		var buf proto.Buffer
		if err := r.block.Encode(&buf); err != nil {
			t.Fatal(err)
		}
		return buf.Buf
	}
	stands := row(&msg.Stream{})
	msgtest.EachField(msg.Stream{}, func(name string, changed msg.Stream) {
		if stored := !bytes.Equal(stands, row(&changed)); stored == (name == "Pace.Gaps") { // a metric has them
			t.Errorf("%s is stored: %t", name, stored)
		}
	})
}
