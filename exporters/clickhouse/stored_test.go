package clickhouse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
	"github.com/earshot-dev/earshot/core/semconv"
)

// rows returns the result of a query as the server writes it in JSON.
func rows(t *testing.T, c *Conn, sql string) []map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := c.Format(t.Context(), &b, "JSONEachRow", sql, nil); err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	var out []map[string]any
	for d.More() {
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

// only leaves of each row the columns that are in want.
func only(want map[string]any, rows []map[string]any) []map[string]any {
	for _, r := range rows {
		maps.DeleteFunc(r, func(k string, _ any) bool { _, there := want[k]; return !there })
	}
	return rows
}

// count returns the only value of a query.
func count(t testing.TB, c *Conn, sql string) string {
	t.Helper()
	var b strings.Builder
	if err := c.Format(t.Context(), &b, "TabSeparated", sql, nil); err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	return strings.TrimSpace(b.String())
}

func export1(t testing.TB, x *Exporter, b *export.Batch) {
	t.Helper()
	if b.ID == "" {
		b.ID = msg.HashKey(fmt.Sprint(time.Now()), t.Name())
	}
	if err := x.Export(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// part1 stores the gathered batches.
func part1(t testing.TB, x *Exporter) {
	t.Helper()
	if err := x.Part()(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestMessagesAreStoredAsTheyAre stores a message for every field that a message
// has, with that field changed, and holds each row against msg.Row.
func TestMessagesAreStoredAsTheyAre(t *testing.T) {
	x, c := exporter(t, nil)
	base := sampleMessages(4)[2]
	base.Usage, base.Attachments = msg.Tokens{}, nil
	var list []msg.Message
	msgtest.EachField(base, func(name string, m msg.Message) {
		switch name {
		case "Host.Tombstone", "Host.Seq":
			return // the order below is by Seq; tombstones have a test of their own
		case "Host.ID":
		default:
			m.Host.ID = msg.NewID("", "", name, "")
		}
		m.Host.Seq = uint64(len(list))
		list = append(list, m)
	})
	export1(t, x, &export.Batch{Messages: exporttest.Records(list...)})

	got := rows(t, c, "SELECT * EXCEPT (ingest_ts, is_deleted, part_index, content_ref), tool_result FROM messages ORDER BY seq")
	if len(got) != len(list) {
		t.Fatalf("%d rows of %d messages", len(got), len(list))
	}
	for i := range list {
		line, err := list[i].Row().AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		for k, v := range got[i] { // a row of the database has the empty columns too
			if _, there := want[k]; there {
				continue
			}
			switch v := v.(type) {
			case string:
				if v == "" {
					want[k] = v
				}
			case bool:
				if !v {
					want[k] = v
				}
			case json.Number:
				if v == "0" {
					want[k] = v
				}
			case map[string]any:
				if len(v) == 0 {
					want[k] = v
				}
			}
		}
		if ts, ok := want["ts"].(string); ok {
			want["ts"] = strings.TrimSuffix(strings.Replace(ts, "T", " ", 1), "Z")
		}
		if d := cmp.Diff(want, got[i]); d != "" {
			t.Errorf("row %d (-want +got):\n%s", i, d)
		}
	}
}

// sampleSpan is a delegation that has everything a span can have.
func sampleSpan() msg.Span {
	start := time.Date(2026, 3, 1, 10, 20, 30, 123456789, time.UTC).UnixNano()
	return msg.Span{
		Tenant: "default", Source: "legion", Format: "legion",
		TraceID: msg.TraceID{1, 2}, ID: msg.SpanID{3, 4}, Parent: msg.SpanID{5},
		Kind: msg.SpanDelegation, State: msg.SpanClosed, Start: start, End: start + int64(1500*time.Millisecond), Ver: 1<<60 + 7,
		Session: "s1", Run: "r1", ParentRun: "r0", Agent: msg.Agent{ID: "a1", Name: "pilot", Kind: msg.KindTeam},
		Client: msg.Client{Project: "/srv/quay", Branch: "main", Version: "3.1", Host: "pier", User: "ada"},
		Model:  "tern-2", Provider: "anthropic", ResponseID: "resp-1", FinishReasons: []string{"stop"},
		Usage: msg.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Provenance: msg.Provider},
		Tool:  msg.Tool{CallID: "c1", Name: "Task", Server: "dock", Internal: true}, ArgumentBytes: 11, ArgumentShape: "task:string", Attempt: 3, ResultBytes: 22,
		Delegate: msg.Delegate{To: "scout", ToID: "scout-1", ChildRun: "r2", Link: msg.ByPrompt, Confidence: 80, Async: true},
		Outcome:  msg.OutcomeError, ErrorType: "timeout", StatusMessage: "the tide was \"out\"",
		Events: []msg.SpanEvent{
			{Time: start + 1, Name: "retry"}, {Time: start + 2, Name: "error", Attrs: []msg.Attr{{Key: "error.type", Value: "timeout"}}},
		},
		Links:    []msg.SpanLink{{TraceID: msg.TraceID{9}, SpanID: msg.SpanID{8}, State: "k=v", Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}}}},
		LastSeen: start + int64(1500*time.Millisecond),
	}
}

func TestSpansAreStoredAsTheCollectorDoes(t *testing.T) {
	x, c := exporter(t, nil)
	s := sampleSpan()
	open := s
	open.ID, open.State = msg.SpanID{77}, msg.SpanOpen
	export1(t, x, &export.Batch{Spans: exporttest.Records(s, open)})

	profile, err := semconv.New("")
	if err != nil {
		t.Fatal(err)
	}
	attributes := make(map[string]any)
	profile.Attributes(&s, func(k string, v semconv.Value) { attributes[k] = string(v.AppendText(nil)) })
	want := map[string]any{
		"Timestamp": "2026-03-01 10:20:30.123456789", "TraceId": s.TraceID.String(), "SpanId": s.ID.String(), "ParentSpanId": s.Parent.String(),
		"TraceState": "", "SpanName": "execute_tool Task", "SpanKind": "Internal", "ServiceName": "legion",
		"ResourceAttributes": map[string]any{"service.name": "legion"}, "ScopeName": semconv.Scope, "ScopeVersion": "",
		"SpanAttributes": attributes, "Duration": json.Number("1500000000"), "StatusCode": "Error", "StatusMessage": "the tide was \"out\"",
		"Events.Timestamp":  []any{"2026-03-01 10:20:30.123456790", "2026-03-01 10:20:30.123456791"},
		"Events.Name":       []any{"earshot.retry", "earshot.error"},
		"Events.Attributes": []any{map[string]any{}, map[string]any{"error.type": "timeout"}},
		"Links.TraceId":     []any{s.Links[0].TraceID.String()}, "Links.SpanId": []any{s.Links[0].SpanID.String()}, "Links.TraceState": []any{"k=v"},
		"Links.Attributes": []any{map[string]any{"earshot.link": "previous_turn"}},
		"Ver":              json.Number("1152921504606846983"), "IsDeleted": json.Number("0"),
		"Operation": "execute_tool", "AgentName": "pilot", "ToolName": "Task", "SessionId": "s1",
	}
	got := rows(t, c, "SELECT * EXCEPT (IngestTs, Kind, Format, Model, Outcome, FirstToken, OutputTokens, State, Async, DelegateTo) FROM otel_traces SETTINGS session_timezone = 'UTC'")
	if d := cmp.Diff([]map[string]any{want}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	when := rows(t, c, "SELECT TraceId, toUnixTimestamp(min(Start)) AS a, toUnixTimestamp(max(End)) AS b FROM otel_traces_trace_id_ts GROUP BY TraceId")
	at := json.Number(fmt.Sprint(s.Start / 1e9))
	if d := cmp.Diff([]map[string]any{{"TraceId": s.TraceID.String(), "a": at, "b": at}}, when); d != "" {
		t.Errorf("when the trace was (-want +got):\n%s", d)
	}
}

func TestCallsAndDelegationsAreStored(t *testing.T) {
	x, c := exporter(t, nil)
	delegation := sampleSpan()
	running := delegation
	running.ID, running.Kind, running.State, running.End = msg.SpanID{6}, msg.SpanTool, msg.SpanOpen, 0
	running.Outcome, running.ErrorType, running.Tool = msg.OutcomeUnset, "", msg.Tool{Name: "tides", CallID: "c2"}
	lost := running
	lost.ID, lost.State, lost.End, lost.Outcome, lost.ErrorType = msg.SpanID{7}, msg.SpanIdle, lost.Start+5, msg.OutcomeCancelled, "no_result"
	fine := lost
	fine.ID, fine.State, fine.Outcome, fine.ErrorType, fine.End = msg.SpanID{8}, msg.SpanClosed, msg.OutcomeOK, "", fine.Start-5
	chat := delegation
	chat.ID, chat.Kind = msg.SpanID{9}, msg.SpanChat
	export1(t, x, &export.Batch{Spans: exporttest.Records(delegation, running, lost, fine, chat)})
	amended := delegation
	amended.Ver, amended.Amends, amended.ResultTokens, amended.ResultTokensFrom = delegation.Ver+8, true, 70, msg.Provider
	export1(t, x, &export.Batch{ID: "amended", Spans: exporttest.Records(amended)})
	want := map[string]any{
		"tenant": "default", "ts": "2026-03-01 10:20:30.123456789", "source": "legion", "format": "legion",
		"tool_name": "Task", "tool_type": "extension", "mcp_server": "dock", "agent_name": "pilot", "model": "tern-2",
		"session_id": "s1", "run_id": "r1", "trace_id": delegation.TraceID.String(), "span_id": delegation.ID.String(), "tool_call_id": "c1",
		"duration_ns": json.Number("1500000000"), "status": "error", "error_type": "timeout",
		"args_bytes": json.Number("11"), "result_bytes": json.Number("22"), "is_delegation": true, "internal": true, "waits_for": "", "waited_ns": json.Number("0"),
		"args_shape": "task:string", "attempt": json.Number("3"), "result_tokens": json.Number("70"), "result_tokens_from": "provider",
		"ver": json.Number("1152921504606846991"), "is_deleted": json.Number("0"),
	}
	got := only(want, rows(t, c, "SELECT * FROM tool_calls FINAL WHERE is_delegation"))
	if d := cmp.Diff([]map[string]any{want}, got); d != "" {
		t.Errorf("tool_calls (-want +got):\n%s", d)
	}
	for _, k := range []string{"tool_type", "mcp_server", "model", "is_delegation", "internal", "waits_for", "waited_ns", "args_shape", "attempt", "result_tokens", "result_tokens_from"} {
		delete(want, k)
	}
	for k, v := range map[string]any{
		"delegate_id": "scout-1", "delegate_to": "scout", "child_run_id": "r2", "link_method": "prompt", "link_confidence": json.Number("80"), "async": true,
	} {
		want[k] = v
	}
	got = only(want, rows(t, c, "SELECT * FROM delegations"))
	if d := cmp.Diff([]map[string]any{want}, got); d != "" {
		t.Errorf("delegations (-want +got):\n%s", d)
	}
	facts := map[string]any{"error": delegation.StatusMessage, "project": "/srv/quay", "branch": "main", "agent_version": "3.1", "host": "pier", "user": "ada"}
	for _, view := range []string{"v_tool_calls", "v_delegations"} {
		got := rows(t, c, "SELECT error, project, branch, agent_version, host, user FROM "+view+" WHERE span_id = '"+delegation.ID.String()+"'")
		if d := cmp.Diff([]map[string]any{facts}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", view, d)
		}
	}
	conn, exported := x.conn, x
	for _, x := range []struct{ prices, want string }{ // of 70 tokens
		{"('tern-2', '1970-01-01', 1)", "70"}, // those of the program have no beginning
		{"('tern-2', '2026-01-01', 2), ('tern-2', '2026-02-01', 3), ('tern-2', '2026-04-01', 5)", "210"},
	} {
		if err := conn.Exec(t.Context(), "INSERT INTO "+quoteName(c.Database())+".model_prices (model, valid_from, input_usd_per_m) VALUES "+x.prices); err != nil {
			t.Fatal(err)
		}
		if got := count(t, c, "SELECT round(cost_usd * 1e6) FROM v_tool_calls WHERE is_delegation"); got != x.want {
			t.Errorf("with %s the cost is %s, want %s", x.prices, got, x.want)
		}
	}
	if err := conn.Exec(t.Context(), "INSERT INTO "+quoteName(c.Database())+".model_prices (model, valid_from, input_usd_per_m, tiers) VALUES ('tern-2', '2026-02-15', 3, map('flex', 0.5))"); err != nil {
		t.Fatal(err)
	}
	for i, x := range []struct{ tier, want string }{{"flex", "105"}, {"batch+us", "\\N"}, {"", "210"}} {
		tiered := amended
		tiered.Ver, tiered.Usage.Tier = amended.Ver+uint64(8*(i+1)), x.tier
		export1(t, exported, &export.Batch{ID: "tier " + x.tier, Spans: exporttest.Records(tiered)})
		if got := count(t, c, "SELECT round(cost_usd * 1e6) FROM v_tool_calls WHERE is_delegation"); got != x.want {
			t.Errorf("at the tier %q the cost is %s, want %s", x.tier, got, x.want)
		}
	}
	states := count(t, c, "SELECT arrayStringConcat(groupArray(status || ' ' || toString(duration_ns) || ' ' || error_type || ' ' || tool_type), ', ') FROM (SELECT * FROM tool_calls WHERE NOT is_delegation ORDER BY span_id)")
	if want := "running 0  function, cancelled 5 no_result function, ok 0  function"; states != want {
		t.Errorf("calls %q, want %q", states, want)
	}
	view := rows(t, c, "SELECT duration_ms, delegate_id, delegate_to FROM v_delegations")
	if d := cmp.Diff([]map[string]any{{"duration_ms": json.Number("1500"), "delegate_id": "scout-1", "delegate_to": "scout"}}, view); d != "" {
		t.Errorf("v_delegations (-want +got):\n%s", d)
	}
}

// A call that waits for a person is marked so in open_spans, and tool_calls has how long
// it waited once it has ended.
func TestWaitsAreStored(t *testing.T) {
	x, c := exporter(t, nil)
	asked := sampleSpan()
	asked.Kind, asked.State, asked.End, asked.Tool = msg.SpanTool, msg.SpanOpen, 0, msg.Tool{Name: "ask", CallID: "c9"}
	asked.Events = []msg.SpanEvent{{Time: asked.Start + 1e6, Name: msg.WaitStart.String()}}
	export1(t, x, &export.Batch{ID: "asks", Spans: exporttest.Records(asked)})
	if got := count(t, c, "SELECT concat(any(o.waits_for), ' ', any(c.waits_for), ' ', toString(any(c.waited_ms))) FROM v_open_spans AS o JOIN v_tool_calls AS c USING (span_id)"); got != "person person 0" {
		t.Errorf("while it waits: %q", got)
	}
	asked.State, asked.End, asked.Shown, asked.Ver, asked.LastSeen = msg.SpanClosed, asked.Start+10e6, true, asked.Ver+1e9, asked.LastSeen+1e9
	asked.Events = append(asked.Events, msg.SpanEvent{Time: asked.Start + 8e6, Name: msg.WaitEnd.String()})
	export1(t, x, &export.Batch{ID: "answered", Spans: exporttest.Records(asked)})
	if got := count(t, c, "SELECT concat(any(waits_for), ' ', toString(any(waited_ms)), ' of ', toString(any(duration_ms))) FROM v_tool_calls"); got != "person 7 of 10" {
		t.Errorf("once it is answered: %q", got)
	}
}

func TestDeadLettersAndLedgerAreStored(t *testing.T) {
	x, c := exporter(t, nil)
	seen := time.Date(2026, 3, 1, 0, 0, 0, 5e6, time.UTC).UnixNano()
	letter := msg.DeadLetter{
		ID: msg.ID{1}, Tenant: "default", Source: "legion", Format: "legion", Session: "s", Stage: "decode", Reason: msg.ReasonInvalidJSON,
		Detail: "unexpected }", Origin: "/var/x.jsonl", Offset: 12, Payload: []byte("a\xff\x00b"), Bytes: 99, Seen: seen, Ver: 3, Resolved: true,
	}
	ledger := msg.Ledger{
		Tenant: "default", Source: "legion", Format: "legion", Stream: "st", Origin: "/var/x.jsonl", Read: 100, Decoded: 50, Quarantined: 30, Dropped: 19, DroppedAt: seen,
		Reason: "too_long", Frames: 4, Messages: 3, Unknown: 2, Problems: 1, Seen: seen, Since: seen, Ver: 5,
	}
	export1(t, x, &export.Batch{DeadLetters: []msg.DeadLetter{letter}, Ledger: []msg.Ledger{ledger}})
	got := rows(t, c, "SELECT * EXCEPT payload, hex(payload) AS payload, payload_truncated FROM dead_letters")
	want := map[string]any{
		"tenant": "default", "source": "legion", "dl_id": letter.ID.String(), "format": "legion", "session_id": "s", "stage": "decode",
		"reason": "invalid_json", "error": "unexpected }", "origin": "/var/x.jsonl", "origin_offset": json.Number("12"), "payload": "61FF0062",
		"payload_bytes": json.Number("99"), "payload_truncated": true, "seen_at": "2026-03-01 00:00:00.005", "resolved": true, "ver": json.Number("3"),
	}
	if d := cmp.Diff([]map[string]any{want}, got); d != "" {
		t.Errorf("dead_letters (-want +got):\n%s", d)
	}
	got = rows(t, c, "SELECT *, unaccounted_bytes FROM source_ledger")
	want = map[string]any{
		"tenant": "default", "source": "legion", "stream": "st", "format": "legion", "origin": "/var/x.jsonl",
		"read_bytes": json.Number("100"), "decoded_bytes": json.Number("50"), "dropped_at": "2026-03-01 00:00:00.005", "quarantined_bytes": json.Number("30"), "dropped_bytes": json.Number("19"),
		"unaccounted_bytes": json.Number("1"), "reason": "too_long", "frames": json.Number("4"), "messages": json.Number("3"),
		"unknown": json.Number("2"), "problems": json.Number("1"), "seen_at": "2026-03-01 00:00:00.005", "since": "2026-03-01 00:00:00.005", "ver": json.Number("5"),
	}
	if d := cmp.Diff([]map[string]any{want}, got); d != "" {
		t.Errorf("source_ledger (-want +got):\n%s", d)
	}
	// Every field of both is a column: a field that is added must be stored too.
	for typ, columns := range map[reflect.Type]int{
		reflect.TypeFor[msg.DeadLetter](): len(newDeadLetterRows().block.Columns),
		reflect.TypeFor[msg.Ledger]():     len(newLedgerRows().block.Columns),
	} {
		if typ.NumField() != columns {
			t.Errorf("%s has %d fields and %d columns", typ, typ.NumField(), columns)
		}
	}
}
