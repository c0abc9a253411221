package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TailFilter picks rows to follow. The zero value picks all messages.
type TailFilter struct {
	Spans   bool // spans that have ended, instead of messages
	Session string
	Source  string
	Format  string
	Kind    string // of a message: user, tool_call, ...; of a span: its operation
	Hidden  bool   // messages that a user interface would not show as well
	Limit   int    // of the past, to begin with
}

// TailLine is a message or a span.
type TailLine struct {
	ID      string    `json:"id"`
	TS      time.Time `json:"ts"`
	Session string    `json:"session_id"`
	Format  string    `json:"format"`
	Agent   string    `json:"agent_name,omitempty"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name,omitempty"` // of the tool, the delegate, the model
	Text    string    `json:"text,omitempty"`
	Error   bool      `json:"is_error,omitempty"`
	TraceID string    `json:"trace_id,omitempty"`
	SpanID  string    `json:"span_id,omitempty"`
	TookMS  float64   `json:"duration_ms,omitempty"` // of a span

	stored time.Time
}

// A Tail follows new rows of the store.
type Tail struct {
	filter TailFilter
	since  time.Time
	seen   map[string]time.Time // by id, when it was stored
}

// NewTail returns a tail.
func NewTail(f TailFilter) *Tail { return &Tail{filter: f, seen: make(map[string]time.Time)} }

// overlap is how much later than its stamp a row may become visible: an insert
// stamps its rows when it begins.
const overlap = 5 * time.Second

// The queries read rows as they were stored, without FINAL, which would merge the
// whole table each time: the tail drops repeated versions itself.
const asStored = " SETTINGS final = 0"

const tailMessages = `
	SELECT message_id, ts, session_id, format, agent_name, toString(kind), if(tool_name != '', tool_name, toString(model)), delegate_to,
		multiIf(kind IN ('tool_call', 'delegation') AND delegate_task != '', substringUTF8(delegate_task, 1, {text:UInt32}),
			kind IN ('tool_call', 'delegation'), substringUTF8(tool_arguments, 1, {text:UInt32}), substringUTF8(content, 1, {text:UInt32})),
		(` + Failure + `), trace_id, span_id, toFloat64(0), ingest_ts
	FROM messages
	WHERE ({session:String} = '' OR startsWith(session_id, {session:String})) AND ({source:String} = '' OR source = {source:String}) AND ({format:String} = '' OR format = {format:String})
		AND ({kind:String} = '' OR kind = {kind:String}) AND ({hidden:UInt8} = 1 OR NOT hidden)
		AND is_deleted = 0`

const tailSpans = `
	SELECT concat(TraceId, SpanId), Timestamp, SessionId, Format, AgentName, Operation,
		if(ToolName != '', ToolName, Model), SpanAttributes['earshot.delegate.to'],
		if(StatusCode = 'Error', concat(SpanAttributes['error.type'], ' ', StatusMessage), ''), StatusCode = 'Error', TraceId, SpanId, Duration / 1e6, IngestTs
	FROM otel_traces
	WHERE ({session:String} = '' OR startsWith(SessionId, {session:String})) AND ({source:String} = '' OR ServiceName = {source:String}) AND ({format:String} = '' OR Format = {format:String})
		AND ({kind:String} = '' OR Operation = {kind:String}) AND {hidden:UInt8} IN (0, 1)
		AND IsDeleted = 0`

// Next returns the rows stored since the last call, the earlier first; the first call
// returns the latest rows of the past. Each message and each span is returned once: a
// later version is dropped.
func (t *Tail) Next(ctx context.Context, q Querier, now time.Time) ([]TailLine, error) {
	f := t.filter
	params := map[string]string{
		"session": f.Session, "source": f.Source, "format": f.Format, "kind": f.Kind, "hidden": "0", "text": fmt.Sprint(LongTexts),
		"since": fmt.Sprint(t.since.UnixMilli()), "limit": fmt.Sprint(max(f.Limit, 0)),
	}
	if f.Hidden {
		params["hidden"] = "1"
	}
	sql, stored, order := tailMessages, "ingest_ts", "ts, seq"
	if f.Spans {
		sql, stored, order = tailSpans, "IngestTs", "Timestamp, SpanId"
	}
	recent := sql + " AND " + stored + " >= fromUnixTimestamp64Milli({since:Int64}) ORDER BY " + order + asStored
	first := t.since.IsZero()
	if first {
		// Existing rows are not new, except those that the past shows. In this order no row
		// falls between the two.
		if err := t.begin(ctx, q, now); err != nil {
			return nil, err
		}
		params["since"] = fmt.Sprint(t.since.UnixMilli())
		there, err := t.read(ctx, q, recent, params)
		if err != nil {
			return nil, err
		}
		past, err := t.read(ctx, q, sql+" ORDER BY "+strings.ReplaceAll(order, ",", " DESC,")+" DESC LIMIT {limit:UInt32}"+asStored, params)
		if err != nil {
			return nil, err
		}
		slices.Reverse(past)
		for _, l := range there {
			t.seen[l.ID] = l.stored
		}
		return t.news(past, true), nil
	}
	list, err := t.read(ctx, q, recent, params)
	if err != nil {
		return nil, err
	}
	return t.news(list, false), nil
}

// news returns the lines that were not returned before, or all.
func (t *Tail) news(list []TailLine, all bool) (out []TailLine) {
	told := make(map[string]bool)
	for _, l := range list {
		if _, known := t.seen[l.ID]; !told[l.ID] && (all || !known) {
			out = append(out, l)
		}
		told[l.ID] = true
		t.seen[l.ID] = l.stored
		if from := l.stored.Add(-overlap); from.After(t.since) {
			t.since = from
		}
	}
	for id, at := range t.seen {
		if at.Before(t.since) {
			delete(t.seen, id)
		}
	}
	return out
}

func (t *Tail) read(ctx context.Context, q Querier, sql string, params map[string]string) (out []TailLine, err error) {
	err = q.Each(ctx, sql, params, func(v []any) error {
		r := reader{values: v}
		l := TailLine{ID: r.str(), TS: r.time(), Session: r.str(), Format: r.str(), Agent: r.str(), Kind: r.str(), Name: r.str()}
		if to := r.str(); to != "" {
			l.Name = to
		}
		l.Text = r.str()
		l.Error = r.truth()
		l.TraceID, l.SpanID, l.TookMS, l.stored = r.str(), r.str(), r.float(), r.time()
		if r.err != nil {
			return r.err
		}
		out = append(out, l)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	return out, nil
}

func (t *Tail) begin(ctx context.Context, q Querier, now time.Time) error {
	t.since = now.Add(-overlap)
	err := q.Each(ctx, "SELECT now64(3, 'UTC')", nil, func(v []any) error {
		r := reader{values: v}
		t.since = r.time().Add(-overlap)
		return r.err
	})
	if err != nil {
		return fmt.Errorf("tail: %w", err)
	}
	return nil
}

func (r *reader) float() float64 { return take[float64](r) }

// truth reads a column that the server types as Bool or UInt8.
func (r *reader) truth() bool {
	if r.next < len(r.values) {
		if _, ok := r.values[r.next].(uint8); ok {
			return r.small() != 0
		}
	}
	return r.flag()
}

// Version returns a token of a session that changes when a message or a span of it is stored.
func Version(ctx context.Context, q Querier, session string) (token string, err error) {
	err = q.Each(ctx, `
		SELECT concat(toString(max(ver)), ' ', toString(max(at)), ' ', toString(sum(n))) FROM (
			SELECT max(ver) AS ver, max(ingest_ts) AS at, count() AS n FROM messages WHERE session_id = `+text("id")+`
			UNION ALL
			SELECT max(ver), max(ingest_ts), count() FROM spans WHERE session_id = `+text("id")+`)`+asStored, map[string]string{"id": escaped(session)}, func(v []any) error {
		r := reader{values: v}
		token = r.str()
		return r.err
	})
	if err != nil {
		return "", fmt.Errorf("version of session: %w", err)
	}
	return token, nil
}
