package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StepMessage is a message of a step.
type StepMessage struct {
	At          time.Time
	Kind, Agent string
	Tool        string
	Content     string // cut after that many characters that were asked for
	Arguments   string
	Task        string
	Bytes       uint64 // of the whole content
	Failed      bool
	Hidden      bool
	Attachments []Attachment
	SeenBy      []string // formats, where several have it; the one whose words these are first
}

// Attachment describes bytes that are not kept.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	URL       string `json:"url"`
}

// attachmentsOf parses the attribute of a message; nil when there are none.
func attachmentsOf(text string) (out []Attachment) {
	if text != "" && json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

// around are the times in which messages of a trace are looked for.
func (t *Trace) around() map[string]string {
	return map[string]string{
		"trace": t.ID, "from": strconv.FormatInt(t.from-int64(time.Hour), 10), "to": strconv.FormatInt(t.to+int64(time.Hour), 10),
	}
}

const ofTrace = `ts >= fromUnixTimestamp64Nano({from:Int64}) AND ts <= fromUnixTimestamp64Nano({to:Int64})`

// Messages returns the messages of a span in order, of each text at most that many characters.
func (t *Trace) Messages(ctx context.Context, q Querier, span string, texts int) ([]StepMessage, error) {
	params := t.around()
	params["span"], params["texts"], params["session"] = span, strconv.Itoa(texts), escaped(t.Session)
	if w := t.Works[span]; w != nil {
		params["session"] = escaped(w.Session)
	}
	var out []StepMessage
	err := q.Each(ctx, `
		SELECT ts, toString(kind), toString(agent_name), toString(tool_name), substringUTF8(content, 1, {texts:UInt32}), substringUTF8(tool_arguments, 1, {texts:UInt32}),
			substringUTF8(delegate_task, 1, {texts:UInt32}), toUInt64(content_bytes), toUInt8(`+Failure+`), hidden, attributes['attachments'],
			toString(message_id), ifNull((SELECT any(attributes['earshot.seen_by.messages']) FROM spans FINAL WHERE session_id = `+text("session")+` AND trace_id = unhex({trace:String}) AND span_id = unhex({span:String}) AND `+ofTrace+`), '')
		FROM messages FINAL
		WHERE session_id = `+text("session")+` AND span_id = {span:String} AND `+ofTrace+`
		ORDER BY ts, seq
		LIMIT 200`, params, func(v []any) error {
		r := reader{values: v}
		m := StepMessage{At: r.time(), Kind: r.str(), Agent: r.str(), Tool: r.str(), Content: r.str(), Arguments: r.str(), Task: r.str(), Bytes: r.num(), Failed: r.small() != 0, Hidden: r.flag()}
		m.Attachments = attachmentsOf(r.str())
		id := r.str()
		m.SeenBy = seenMessages(r.str())[id]
		out = append(out, m)
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("messages of the step: %w", err)
	}
	return out, nil
}

// telling are the names of arguments that distinguish a call from others of its tool.
var telling = []string{"command", "cmd", "file_path", "path", "pattern", "query", "url", "prompt", "description", "input"}

// argument is the SQL expression of Argument.
var argument = `arrayFirst(a -> a != '', arrayConcat(arrayMap(name -> JSONExtractString(tool_arguments, name), ['` + strings.Join(telling, "', '") + `']), [tool_arguments]))`

// Argument is the one of a call's arguments that distinguishes it from others of its tool; all of them where none does.
func Argument(arguments string) string {
	var values map[string]any
	if json.Unmarshal([]byte(arguments), &values) == nil {
		for _, name := range telling {
			if s, _ := values[name].(string); s != "" {
				return s
			}
		}
	}
	return arguments
}

// Hints returns by span how its arguments or its text begin.
func (t *Trace) Hints(ctx context.Context, q Querier, spans []string) (map[string]string, error) {
	out := make(map[string]string)
	if len(spans) == 0 {
		return out, nil
	}
	sessions := make(map[string]bool)
	for _, s := range spans {
		if w := t.Works[s]; w != nil {
			sessions[w.Session] = true
		}
	}
	params := t.around()
	var among []string
	for s := range sessions {
		p := "session_" + strconv.Itoa(len(among))
		params[p] = escaped(s)
		among = append(among, text(p))
	}
	if len(among) == 0 || len(among) > 50 {
		return out, nil
	}
	params["spans"] = "['" + strings.Join(spans, "','") + "']" // ids in hex
	err := q.Each(ctx, `
		SELECT span_id, substringUTF8(argMin(multiIf(delegate_task != '', delegate_task, tool_arguments != '', `+argument+`, content), (kind NOT IN ('tool_call', 'delegation', 'assistant', 'user'), ts, seq)), 1, 300)
		FROM messages FINAL
		WHERE session_id IN (`+strings.Join(among, ", ")+`) AND span_id IN {spans:Array(String)} AND NOT hidden AND kind IN ('tool_call', 'delegation', 'assistant', 'user', 'reasoning') AND `+ofTrace+`
			AND (content != '' OR tool_arguments != '' OR delegate_task != '')
		GROUP BY span_id`, params, func(v []any) error {
		r := reader{values: v}
		span := r.str()
		out[span] = Clip(r.str(), 120)
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("beginnings of the steps: %w", err)
	}
	return out, nil
}

// TraceLink is a way from a span of a trace to a span of another, or of that one.
type TraceLink struct {
	Span    string // in this trace
	TraceID string
	SpanID  string
	What    string // previous_turn, next_turn, delegation, traceparent
}

// Links returns the links of the trace's spans, and the links of its session's later turns to them.
func (t *Trace) Links(ctx context.Context, q Querier) ([]TraceLink, error) {
	params := t.around()
	params["session"] = escaped(t.Session)
	var out []TraceLink
	err := q.Each(ctx, `
		SELECT lower(hex(s.span_id)), linked_trace, linked_span, facts['earshot.link']
		FROM spans AS s FINAL
		ARRAY JOIN s.links.trace_id AS linked_trace, s.links.span_id AS linked_span, s.links.attributes AS facts
		WHERE lower(hex(s.trace_id)) = {trace:String}
		UNION ALL
		SELECT linked_span, lower(hex(s.trace_id)), lower(hex(s.span_id)), 'next_turn'
		FROM spans AS s FINAL
		ARRAY JOIN s.links.trace_id AS linked_trace, s.links.span_id AS linked_span, s.links.attributes AS facts
		WHERE session_id = `+text("session")+` AND linked_trace = {trace:String} AND facts['earshot.link'] = 'previous_turn' AND lower(hex(s.trace_id)) != {trace:String}
		LIMIT 50`, params, func(v []any) error {
		r := reader{values: v}
		out = append(out, TraceLink{r.str(), r.str(), r.str(), r.str()})
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	slices.SortFunc(out, func(a, b TraceLink) int {
		return cmp.Or(strings.Compare(b.What, a.What), strings.Compare(a.TraceID, b.TraceID), strings.Compare(a.Span, b.Span))
	})
	return out, nil
}

// Spent is the tokens and the cost of a span and everything below it.
func (t *Trace) Spent(span string) Cost { return t.spent[t.Tree.Node(span).Number()] }
