package inspect

import (
	"context"
	"fmt"
	"time"
)

// messageRow is a message of a session.
type messageRow struct {
	at                                          traceOrder // of its trace
	span, kind, content, arguments, task, agent string
	id                                          string
	ts                                          time.Time
	hidden, failed                              bool
	tokens                                      Tokens
	files                                       []Attachment
}

// step is a message that is shown by itself.
func (w *messageRow) step() *Step {
	s := &Step{Kind: "message", Name: w.kind, Started: w.ts, Output: w.content, Files: w.files}
	if w.failed {
		s.Status = "error"
	}
	return s
}

// messageReader are the messages of a session in the order of their traces' places; those of
// traces that have no spans come first. They are read beside the spans.
type messageReader struct {
	pages chan []messageRow
	page  []messageRow
	err   error // once pages is closed
}

const pageSize = 512

func readMessages(ctx context.Context, q Querier, id Ref, texts int) *messageReader {
	w := &messageReader{pages: make(chan []messageRow, 2)}
	go func() {
		defer close(w.pages)
		page := make([]messageRow, 0, pageSize)
		send := func() error {
			select {
			case w.pages <- page:
				page = make([]messageRow, 0, pageSize)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := q.Each(ctx, `
			SELECT first, first_seq, trace_id, span_id, toString(kind), substringUTF8(content, 1, {limit:UInt32}), substringUTF8(tool_arguments, 1, {limit:UInt32}),
				substringUTF8(delegate_task, 1, {limit:UInt32}), ts, toString(agent_name), hidden, (`+Failure+`),
				input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, toUInt64OrZero(attributes['cache_write_1h_tokens']),
				attributes['attachments'], toString(message_id)
			FROM (SELECT * FROM messages FINAL WHERE `+ofSession+`) AS m
			LEFT JOIN (
				SELECT trace, min(began) AS first FROM (
					SELECT TraceId AS trace, toUnixTimestamp64Nano(Timestamp) AS began FROM otel_traces FINAL WHERE `+tracesOfSession+`
					UNION ALL
					SELECT trace_id, toUnixTimestamp64Nano(ts) FROM open_spans FINAL WHERE `+ofSession+`)
				GROUP BY trace) AS t ON m.trace_id = t.trace
			LEFT JOIN `+firstSeqSQL+` ON m.trace_id = o.of_trace
			ORDER BY first, first_seq, trace_id, ts, seq
			SETTINGS join_use_nulls = 0, max_block_size = 4096`, map[string]string{"id": id.ID, "tenant": id.Tenant, "limit": fmt.Sprint(texts)},
			func(v []any) error {
				r := reader{values: v}
				x := messageRow{at: traceOrder{began: r.signed(), seq: r.num()}}
				x.at.trace = r.str()
				x.span, x.kind, x.content, x.arguments, x.task = r.str(), r.str(), r.str(), r.str(), r.str()
				x.ts, x.agent, x.hidden, x.failed = r.time(), r.str(), r.flag(), r.flag()
				x.tokens = Tokens{r.num(), r.num(), r.num(), r.num(), r.num(), r.num()}
				x.files, x.id = attachmentsOf(r.str()), r.str()
				if r.err != nil {
					return r.err
				}
				if page = append(page, x); len(page) < pageSize {
					return nil
				}
				return send()
			})
		if err == nil && len(page) > 0 {
			err = send()
		}
		if err != nil {
			w.err = fmt.Errorf("messages: %w", err)
		}
	}()
	return w
}

// peek is the next message; nil when there are no more.
func (w *messageReader) peek(ctx context.Context) (*messageRow, error) {
	if len(w.page) == 0 {
		var ok bool
		select {
		case w.page, ok = <-w.pages:
			if !ok {
				return nil, w.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &w.page[0], nil
}

// take goes on behind it.
func (w *messageReader) take() { w.page = w.page[1:] }
