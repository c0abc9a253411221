package exporttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// Batches returns n batches with that many messages and spans each, and a
// letter and an account. No two records have one id. A tenth of the spans are
// open.
func Batches(n, records int) []*export.Batch {
	start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano()
	out := make([]*export.Batch, n)
	for i := range out {
		b := &export.Batch{ID: msg.HashKey("exporttest", fmt.Sprint(i))}
		for k := range records {
			key := fmt.Sprintf("%d/%d", i, k)
			at := start + int64(i*records+k)*int64(time.Second)
			trace := msg.NewTraceID("default", "legion", "s", fmt.Sprint(i))
			span := &msg.Span{
				Tenant: "default", Source: fmt.Sprint("source-", k%2), Format: "legion", Session: "s", Run: "r",
				TraceID: trace, ID: msg.NewSpanID("default", "legion", "s", msg.SpanTool, key), Kind: msg.SpanTool, State: msg.SpanClosed,
				Start: at, End: at + int64(time.Second), LastSeen: at, Ver: uint64(k), Outcome: msg.OutcomeOK,
				Tool: msg.Tool{CallID: key, Name: "tides"},
			}
			if k%10 == 9 {
				span.State, span.End = msg.SpanOpen, 0
			}
			b.Spans = append(b.Spans, span)
			m := &msg.Message{
				Key: key, Session: "s", Run: "r", Kind: msg.ToolCall, Role: msg.RoleAssistant, Time: at, Precision: msg.Millis,
				Complete: msg.Complete, Tool: span.Tool, Content: msg.Quoted([]byte(`low water at\tnoon`)),
			}
			m.Host = msg.Host{
				Tenant: "default", Source: span.Source, Format: "legion", ID: msg.NewID("default", "legion", "s", key),
				TraceID: trace, SpanID: span.ID, Seq: uint64(k), Ver: uint64(k),
			}
			b.Messages = append(b.Messages, m)
		}
		b.DeadLetters = append(b.DeadLetters, msg.DeadLetter{
			ID: msg.NewDeadLetterID("default", "source-0", "decode", "x", fmt.Sprint(i)), Tenant: "default", Source: "source-0",
			Stage: "decode", Reason: msg.ReasonInvalidJSON, Payload: []byte("{"), Bytes: 1, Seen: start, Ver: 1,
		})
		b.Ledger = append(b.Ledger, msg.Ledger{Tenant: "default", Source: "source-0", Stream: fmt.Sprint(i), Read: 1, Decoded: 1, Seen: start, Ver: 1})
		b.Streams = append(b.Streams, msg.Stream{Tenant: "default", Source: "source-0", Stream: fmt.Sprint(i), Pace: msg.Pace{Start: start, Total: 1}, Ver: 1})
		out[i] = b
	}
	return out
}

// Records returns copies of records as a batch has them.
func Records[T any](list ...T) []*T {
	out := make([]*T, 0, len(list))
	for _, r := range list {
		out = append(out, &r)
	}
	return out
}

func copies[T any](list []*T) []*T {
	out := make([]*T, 0, len(list))
	for _, r := range list {
		out = append(out, new(*r))
	}
	return out
}

func clone(b *export.Batch) *export.Batch {
	c := *b
	c.Messages, c.Spans = copies(b.Messages), copies(b.Spans)
	c.DeadLetters, c.Ledger, c.Streams = slices.Clone(b.DeadLetters), slices.Clone(b.Ledger), slices.Clone(b.Streams)
	return &c
}
