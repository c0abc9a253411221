package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// SearchQuery is a text, and where to look for it.
type SearchQuery struct {
	Text     string
	From, To time.Time     // a zero From: the last day, then longer until there is enough
	Where    Condition     // on the columns tenant, format, agent_name, tool_name and model of messages
	Enough   int           // messages; 50 when zero
	Budget   time.Duration // for all of it, about; 3 s when zero
}

// SearchResult lists the matches of a text, and the range that was searched.
type SearchResult struct {
	// Messages were looked for from From to To, the latest first: as whole words by the index,
	// or, where no message has these, as a part of the text, which PartOfText reports.
	From, To   time.Time
	All        bool // From is the beginning of everything
	PartOfText bool
	Stopped    bool // the budget ended the search at From, before its range ended
	More       bool // there are more messages in the range
	Messages   []Hit

	Sessions []NameHit // by id
	Traces   []NameHit // by the id of a trace, a span, a run or a call; Name is that of the trace
	Agents   []NameHit // Name is an agent or a delegate
	Tools    []NameHit
	Files    []NameHit // paths in the arguments of calls
	Partial  []string  // of these, those whose search was ended by the budget
}

// Hit is a message that has the text.
type Hit struct {
	At                               time.Time
	Session, Trace, Span, Kind, Name string // Name is the tool's, else the agent's
	Field                            string // content, arguments or task
	Hidden                           bool   // the conversation does not show it
	Excerpt                          []Fragment
}

// Fragment is a part of an excerpt; Match is set on the text that was searched.
type Fragment struct {
	Text  string
	Match bool
}

// NameHit is something whose name or id has the text.
type NameHit struct {
	Name, Session, Span string
	What                string // of an id: conversation, trace, span, run or call
	Count               uint64
	Last                time.Time
}

// spansOfSearch are the ranges that a search widens over; zero is all there is.
var spansOfSearch = []time.Duration{24 * time.Hour, 30 * 24 * time.Hour, 0}

// Search looks for a text in the bodies of messages, in ids, and in the names of agents, tools and files.
func Search(ctx context.Context, q Querier, s SearchQuery) (*SearchResult, error) {
	if s.Text = strings.TrimSpace(s.Text); s.Text == "" {
		return &SearchResult{}, nil
	}
	s.Enough, s.Budget = cmp.Or(s.Enough, 50), cmp.Or(s.Budget, 3*time.Second)
	x := &search{SearchQuery: s, q: q, end: time.Now().Add(s.Budget), result: &SearchResult{To: s.To}}
	x.words, x.others = words(s.Text)
	err := x.messages(ctx)
	if err == nil {
		err = x.names(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return x.result, nil
}

type search struct {
	SearchQuery
	q             Querier
	end           time.Time // of the budget
	words, others []string
	result        *SearchResult
}

// words splits a text as the index does, at everything but letters and digits of ASCII. The index folds the case
// of ASCII alone: words with other letters are looked up without it.
func words(text string) (indexed, others []string) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool {
		return r < utf8.RuneSelf && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}) {
		if strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) {
			others = append(others, w)
		} else if w = strings.ToLower(w); !slices.Contains(indexed, w) {
			indexed = append(indexed, w)
		}
	}
	return indexed[:min(len(indexed), 32)], others[:min(len(others), 32)]
}

// messages looks for whole words, and for parts of the text if no message has them.
func (x *search) messages(ctx context.Context) error {
	r := x.result
	if len(x.words)+len(x.others) > 0 {
		if err := x.widen(ctx, x.byWords); err != nil {
			return err
		}
	}
	if len(r.Messages) > 0 || r.Stopped {
		return nil
	}
	r.PartOfText = true
	return x.widen(ctx, x.byPart)
}

// widen searches one range after the other, each from where the last one ended.
func (x *search) widen(ctx context.Context, match func(field string) (string, map[string]string)) error {
	r := x.result
	to := x.To
	r.From, r.All, r.Stopped = x.To, false, false
	for _, span := range spansOfSearch {
		from, all := x.To.Add(-span), span == 0
		if !x.From.IsZero() && (all || from.Before(x.From)) {
			from, all = x.From, false
		} else if all {
			from = time.Unix(0, 0)
		}
		if !from.Before(to) {
			continue
		}
		err := x.slice(ctx, from, to, match)
		if outOfTime(err) {
			r.Stopped = true
			return nil
		}
		if err != nil {
			return err
		}
		r.From, r.All = from, all
		if len(r.Messages) > x.Enough { // the older part of the range was not read to its end
			r.More, r.Messages = true, r.Messages[:x.Enough]
			r.From, r.All = r.Messages[x.Enough-1].At, false
			return nil
		}
		if to = from; !all && !from.Equal(x.From) && time.Now().After(x.end) {
			r.Stopped = true
			return nil
		}
	}
	return nil
}

// outOfTime reports whether the store ended a query because it took too long.
func outOfTime(err error) bool {
	return err != nil && (errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "TIMEOUT_EXCEEDED") || strings.Contains(err.Error(), "code: 159"))
}

// byWords is the condition that a field has all the words.
func (x *search) byWords(field string) (string, map[string]string) {
	params := make(map[string]string)
	var and []string
	if len(x.words) > 0 {
		and = append(and, "hasAllTokens(lower("+field+"), {words:Array(String)})")
		params["words"] = "['" + strings.Join(x.words, "','") + "']" // letters and digits
	}
	for i, w := range x.others {
		p := fmt.Sprintf("word_%d", i)
		params[p] = escaped(w)
		and = append(and, "positionCaseInsensitiveUTF8("+field+", "+text(p)+") > 0")
	}
	return strings.Join(and, " AND "), params
}

// byPart is the condition that a field has the text anywhere.
func (x *search) byPart(field string) (string, map[string]string) {
	return "positionCaseInsensitiveUTF8(" + field + ", " + text("part") + ") > 0", map[string]string{"part": escaped(x.Text)}
}

// Lengths of an excerpt, in characters.
const (
	excerptBefore = 120
	excerptLength = 420
)

// slice adds the messages of a range, the latest first. Bodies are found by the index; arguments and tasks, which
// have none, are read.
func (x *search) slice(ctx context.Context, from, to time.Time, match func(field string) (string, map[string]string)) error {
	var parts []string
	params := x.Where.with(map[string]string{
		"search_from": strconv.FormatInt(from.UnixNano(), 10), "search_to": strconv.FormatInt(to.UnixNano(), 10),
		"limit": strconv.Itoa(x.Enough + 1 - len(x.result.Messages)), "text": escaped(x.Text), "first": escaped(x.longest()),
	})
	for _, f := range []struct{ column, name, only string }{
		{"content", "content", "1"},
		{"tool_arguments", "arguments", "kind IN ('tool_call', 'delegation')"},
		{"delegate_task", "task", "kind = 'delegation' AND position(tool_arguments, delegate_task) = 0"},
	} {
		condition, more := match(f.column)
		for k, v := range more {
			params[k] = v
		}
		parts = append(parts, `
			SELECT ts, session_id, trace_id, span_id, toString(kind) AS what, toString(if(tool_name != '', tool_name, agent_name)) AS name, '`+f.name+`' AS field, hidden,
				positionCaseInsensitiveUTF8(`+f.column+`, `+text("text")+`) AS whole,
				if(whole > 0, whole, positionCaseInsensitiveUTF8(`+f.column+`, `+text("first")+`)) AS at,
				substringUTF8(`+f.column+`, greatest(1, toInt64(at) - `+strconv.Itoa(excerptBefore)+`), `+strconv.Itoa(excerptLength)+`) AS excerpt, toInt64(at) > `+strconv.Itoa(excerptBefore)+` + 1 AS cut
			FROM messages FINAL
			WHERE ts > fromUnixTimestamp64Nano({search_from:Int64}) AND ts <= fromUnixTimestamp64Nano({search_to:Int64}) AND `+f.only+` AND `+condition+` AND (`+x.Where.sql()+`)
			ORDER BY ts DESC
			LIMIT {limit:UInt32}`)
	}
	var found []Hit
	err := x.each(ctx, `SELECT ts, session_id, trace_id, span_id, what, name, field, hidden, excerpt, cut FROM ((`+strings.Join(parts, ") UNION ALL (")+`)) ORDER BY ts DESC, session_id, field LIMIT {limit:UInt32}`, params, func(r *reader) {
		h := Hit{At: r.time(), Session: r.str(), Trace: r.str(), Span: r.str(), Kind: r.str(), Name: r.str(), Field: r.str(), Hidden: r.flag()}
		excerpt, cut := r.str(), r.small() != 0
		if h.Excerpt = x.fragments(excerpt); cut && len(h.Excerpt) > 0 {
			h.Excerpt[0].Text = "…" + h.Excerpt[0].Text
		}
		found = append(found, h)
	})
	if err == nil {
		x.result.Messages = append(x.result.Messages, found...)
	}
	return err
}

// longest is the longest word, which is the most selective.
func (x *search) longest() string {
	all := append(slices.Clone(x.words), x.others...)
	if len(all) == 0 {
		return x.Text
	}
	return slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// fragments splits an excerpt, on one line, at the matches.
func (x *search) fragments(excerpt string) (out []Fragment) {
	s := printable(strings.Join(strings.Fields(Plain(excerpt)), " "))
	needles := append([]string{x.Text}, append(slices.Clone(x.words), x.others...)...)
	for s != "" {
		at, size := -1, 0
		for i, n := range needles {
			if p, l := indexFold(s, n); p >= 0 && l > 0 && (at < 0 || p < at) && (i == 0 || x.result.PartOfText || isWord(s, p, l)) {
				at, size = p, l
			}
		}
		if at < 0 {
			return append(out, Fragment{Text: s})
		}
		if at > 0 {
			out = append(out, Fragment{Text: s[:at]})
		}
		out = append(out, Fragment{s[at : at+size], true})
		s = s[at+size:]
	}
	return out
}

// isWord reports whether s[at:at+size] is no part of a longer word of ASCII.
func isWord(s string, at, size int) bool {
	part := func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	return (at == 0 || !part(s[at-1])) && (at+size == len(s) || !part(s[at+size]))
}

// indexFold is strings.Index without regard to case; size is that of the match, -1 and 0 without one.
func indexFold(s, find string) (at, size int) {
	n := utf8.RuneCountInString(find)
	for at := range s {
		end := at
		for range n {
			_, l := utf8.DecodeRuneInString(s[end:])
			end += l
		}
		if strings.EqualFold(s[at:end], find) {
			return at, end - at
		}
	}
	return -1, 0
}

// each runs a query within the rest of the budget, and at least a second.
func (x *search) each(ctx context.Context, sql string, params map[string]string, row func(*reader)) error {
	left := max(time.Second, time.Until(x.end))
	sql += fmt.Sprintf(" SETTINGS max_execution_time = %.1f, timeout_overflow_mode = 'throw'", left.Seconds())
	return x.q.Each(ctx, sql, params, func(v []any) error {
		r := reader{values: v}
		row(&r)
		return r.err
	})
}

// names looks for the text in ids and names: of agents, tools and files in the time that messages were looked for in.
func (x *search) names(ctx context.Context) error {
	r := x.result
	from := r.From
	if r.More { // the messages were cut off, names need not be
		from = x.To.Add(-spansOfSearch[1])
		if !x.From.IsZero() {
			from = x.From
		}
	}
	params := func() map[string]string {
		return map[string]string{
			"text": escaped(x.Text), "id": escaped(strings.ToLower(x.Text)),
			"search_from": strconv.FormatInt(from.UnixNano(), 10), "search_to": strconv.FormatInt(x.To.UnixNano(), 10),
		}
	}
	list := func(into *[]NameHit) func(*reader) {
		return func(r *reader) {
			*into = append(*into, NameHit{Name: r.str(), Session: r.str(), Span: r.str(), What: r.str(), Count: r.num(), Last: r.time()})
		}
	}
	const within = `ts > fromUnixTimestamp64Nano({search_from:Int64}) AND ts <= fromUnixTimestamp64Nano({search_to:Int64})`
	has := func(column string) string {
		return "positionCaseInsensitiveUTF8(" + column + ", " + text("text") + ") > 0"
	}
	steps := []struct {
		what string
		sql  string
		into *[]NameHit
	}{
		{"agents", `
			SELECT toString(agent) AS name, '', '', '', uniqExact(span_id) AS n, max(ts) AS last
			FROM spans FINAL ARRAY JOIN arrayDistinct([toString(agent_name), toString(delegate_to)]) AS agent
			WHERE ` + within + ` AND agent != '' AND ` + has("agent") + ` GROUP BY name ORDER BY n DESC, name LIMIT 10`, &r.Agents},
		{"tools", `
			SELECT toString(tool_name) AS name, '', '', '', count() AS n, max(ts) AS last
			FROM spans FINAL WHERE ` + within + ` AND tool_name != '' AND ` + has("tool_name") + ` GROUP BY name ORDER BY n DESC, name LIMIT 10`, &r.Tools},
		{"files", `
			SELECT arrayFirst(p -> p != '', [JSONExtractString(tool_arguments, 'file_path'), JSONExtractString(tool_arguments, 'path'), JSONExtractString(tool_arguments, 'notebook_path'),
					JSONExtractString(tool_arguments, 'filename'), JSONExtractString(tool_arguments, 'filePath'), JSONExtractString(tool_arguments, 'absolute_path')]) AS name,
				argMax(session_id, ts), argMax(span_id, ts), argMax(trace_id, ts), count() AS n, max(ts) AS last
			FROM messages FINAL
			WHERE ` + within + ` AND kind = 'tool_call' AND ` + has("tool_arguments") + ` AND ` + has("name") + ` GROUP BY name ORDER BY last DESC LIMIT 10`, &r.Files},
	}
	if id(x.Text) {
		steps = append(steps, struct {
			what string
			sql  string
			into *[]NameHit
		}{"sessions", `
			SELECT session_id AS name, session_id, '', 'conversation', toUInt64(1) AS n, toDateTime64(max(latest), 9, 'UTC') AS last
			FROM sessions WHERE startsWith(session_id, ` + text("text") + `) GROUP BY session_id ORDER BY last DESC LIMIT 10`, &r.Sessions},
			struct {
				what string
				sql  string
				into *[]NameHit
			}{"traces", `
			SELECT lower(hex(s.trace_id)) AS name, any(session_id), if(max(own) = 1, any(lower(hex(s.span_id))), ''),
				multiIf(any(startsWith(lower(hex(s.trace_id)), ` + text("id") + `)), 'trace', any(lower(hex(s.span_id)) = ` + text("id") + `), 'span', any(run_id = ` + text("text") + `), 'run', 'call') AS what,
				count() AS n, max(ts) AS last
			FROM (SELECT *, NOT startsWith(lower(hex(trace_id)), ` + text("id") + `) AS own FROM spans FINAL
				WHERE startsWith(lower(hex(trace_id)), ` + text("id") + `) OR lower(hex(span_id)) = ` + text("id") + ` OR run_id = ` + text("text") + ` OR tool_call_id = ` + text("text") + `) AS s
			GROUP BY name ORDER BY last DESC LIMIT 10`, &r.Traces})
	}
	for _, s := range steps {
		err := x.each(ctx, s.sql, params(), list(s.into))
		switch {
		case outOfTime(err):
			r.Partial = append(r.Partial, s.what)
		case err != nil:
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return nil
}

// id reports whether a text may be an id, or the beginning of one.
func id(text string) bool { return len(text) >= 4 && !strings.ContainsAny(text, " \t\n") }
