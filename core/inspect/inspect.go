// Package inspect reads the tables back for people: which sessions there are,
// the turns of one of them, the slow delegations and their bottlenecks (see package
// blame), the work in progress, and new rows as they arrive. It passes SQL to a Querier
// and knows no driver.
package inspect

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Querier runs a query with {name:Type} parameters and calls row with the values
// of each row, which are valid during the call.
type Querier interface {
	Each(ctx context.Context, sql string, params map[string]string, row func(values []any) error) error
}

// Session is a conversation, summed up.
type Session struct {
	ID          string    `json:"session_id"`
	Tenant      string    `json:"tenant"`
	Source      string    `json:"source"`
	Format      string    `json:"format"`
	Agents      []string  `json:"agents"`
	Models      []string  `json:"models"`
	Started     time.Time `json:"started"`      // of its first message that is of a run or shown
	Last        time.Time `json:"last_message"` // of its last such message: the end of a run is one
	Turns       uint64    `json:"turns"`
	Messages    uint64    `json:"messages"`
	ToolCalls   uint64    `json:"tool_calls"`
	Delegations uint64    `json:"delegations"`
	Errors      uint64    `json:"errors"`
	Tokens      uint64    `json:"tokens"`
	Title       string    `json:"title"` // its recorded one, else how its first prompt begins
	Project     string    `json:"project"`
	Branch      string    `json:"branch"`
	Version     string    `json:"agent_version"`
	Host        string    `json:"host"`
	User        string    `json:"user"`
	Shares      string    `json:"shares_turns_with,omitempty"` // the session in which turns count that both have; of one that is read whole
}

// Filter picks sessions. The zero value picks the latest of all.
type Filter struct {
	Since  time.Duration // with a message within; 0: ever
	Search string        // in id, agents, title, project, branch; case does not matter
	ID     string        // only this one
	Tenant string        // of this one
	Format string
	Limit  int       // 50 when zero
	Where  Condition // of the rows of Conversations
}

// Conversations has a row for each agent and model of each conversation, with its times, format, project
// and user, for conditions on them.
const Conversations = `(
	SELECT t.tenant AS tenant, t.session_id AS session_id, t.began AS began, t.latest AS latest, t.formats AS formats, arrayJoin(t.formats) AS format,
		arrayJoin(if(empty(t.agents), [''], t.agents)) AS agent, arrayJoin(if(empty(t.models), [''], t.models)) AS model, f.project AS project, f.user AS user
	FROM v_session_times AS t LEFT JOIN v_session_facts AS f ON f.tenant = t.tenant AND f.session_id = t.session_id)`

// Speakers has a row for each agent that has messages in a slot of five minutes. A conversation of Conversations also
// keeps the name that an agent had before its own was known.
const Speakers = `(SELECT ts, ts + INTERVAL 5 MINUTE AS ended, agent_name FROM messages_slots WHERE messages > 0 AND kind != 'user')`

// Sessions returns sessions, the one with the latest message first.
func Sessions(ctx context.Context, q Querier, f Filter) ([]Session, error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	from := "v_session_times"
	if f.Where.SQL != "" {
		from = Conversations
	}
	among := `(tenant, session_id) IN (
			SELECT tenant, session_id FROM ` + from + `
			WHERE ` + f.Where.sql()
	switch {
	case f.ID != "" || f.Search != "" && f.Where.SQL == "":
		return sessions(ctx, q, f, "TRUE")
	case f.Search != "":
		return sessions(ctx, q, f, among+")")
	}
	// Only the messages of those are read that were the latest, of which some may have nothing that is shown.
	return sessions(ctx, q, f, among+` AND ({format:String} = '' OR has(formats, {format:String})) AND ({since:Int64} = 0 OR latest >= now() - toIntervalSecond({since:Int64}))
			ORDER BY latest DESC, session_id
			LIMIT 1 BY tenant, session_id
			LIMIT {limit:UInt32} * 4)`)
}

func sessions(ctx context.Context, q Querier, f Filter, among string) ([]Session, error) {
	params := f.Where.with(map[string]string{"id": f.ID, "tenant": f.Tenant, "limit": strconv.Itoa(f.Limit), "search": f.Search, "format": f.Format, "since": strconv.FormatInt(int64(f.Since/time.Second), 10)})
	var out []Session
	err := q.Each(ctx, `
		SELECT s.* EXCEPT (title), if(f.title != '', f.title, s.title) AS title, f.project, f.branch, f.agent_version, f.host, f.user
		FROM (WITH (NOT hidden OR run_id != '') AND NOT inferred AS dated
			SELECT session_id, tenant, min(source) AS source, min(format) AS format,
			arraySort(groupUniqArrayIf(agent_name, agent_name != '' AND kind != 'user')) AS agents, arraySort(groupUniqArrayIf(model, model != '')) AS models,
			coalesce(minOrNullIf(ts, dated), min(ts)) AS started, coalesce(maxOrNullIf(ts, dated), max(ts)) AS last,
			uniqExactIf(trace_id, trace_id != '') AS turns, countIf(NOT hidden) AS messages,
			countIf(kind = 'tool_call') AS tool_calls, countIf(kind = 'delegation') AS delegations, countIf(`+Failure+`) AS errors,
			sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens) AS tokens,
			argMinIf(substringUTF8(content, 1, 200), (ts, seq), kind = 'user' AND NOT hidden AND content != '') AS title
		FROM messages AS m FINAL
		WHERE ({format:String} = '' OR m.format = {format:String}) AND ({id:String} = '' OR session_id = {id:String}) AND ({tenant:String} = '' OR tenant = {tenant:String}) AND `+among+`
		GROUP BY tenant, session_id
		HAVING (messages > 0 OR tokens > 0)
			AND ({since:Int64} = 0 OR last >= now() - toIntervalSecond({since:Int64}))) AS s
		LEFT JOIN v_session_facts AS f ON f.tenant = s.tenant AND f.session_id = s.session_id
		WHERE {search:String} = '' OR positionCaseInsensitiveUTF8(concat(s.session_id, ' ', arrayStringConcat(agents, ' '), ' ', s.title, ' ', f.title, ' ', f.project, ' ', f.branch), {search:String}) > 0
		ORDER BY last DESC, session_id
		LIMIT {limit:UInt32}`, params,
		func(v []any) error {
			r := reader{values: v}
			out = append(out, Session{
				ID: r.str(), Tenant: r.str(), Source: r.str(), Format: r.str(), Agents: r.list(), Models: r.list(), Started: r.time(), Last: r.time(),
				Turns: r.num(), Messages: r.num(), ToolCalls: r.num(), Delegations: r.num(), Errors: r.num(), Tokens: r.num(), Title: r.str(),
				Project: r.str(), Branch: r.str(), Version: r.str(), Host: r.str(), User: r.str(),
			})
			return r.err
		})
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return out, nil
}

// reader takes the values of a row one by one, in the types that the query returns.
type reader struct {
	values []any
	next   int
	err    error
}

func take[T any](r *reader) (zero T) {
	if r.next >= len(r.values) {
		r.err = fmt.Errorf("column %d is missing", r.next)
		return zero
	}
	v, ok := r.values[r.next].(T)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("column %d is %T, not %T", r.next, r.values[r.next], zero)
	}
	r.next++
	return v
}

func (r *reader) str() string               { return take[string](r) }
func (r *reader) time() time.Time           { return take[time.Time](r).UTC() }
func (r *reader) num() uint64               { return take[uint64](r) }
func (r *reader) flag() bool                { return take[bool](r) }
func (r *reader) list() []string            { return take[[]string](r) }
func (r *reader) signed() int64             { return take[int64](r) }
func (r *reader) small() uint8              { return take[uint8](r) }
func (r *reader) times() []time.Time        { return take[[]time.Time](r) }
func (r *reader) maps() []map[string]string { return take[[]map[string]string](r) }

// Failure is the SQL condition of a failed row of messages, or of v_messages: a call that
// a person denied, interrupted or cancelled is no failure. The column failed has the same
// condition, but is in no SELECT *.
const Failure = "is_error AND attributes['error_type'] NOT IN ('denied', 'interrupted', 'cancelled')"

// escaped and text pass a text as a parameter: a backslash means different things by HTTP and by
// the native protocol.
func escaped(s string) string { return url.PathEscape(s) }

func (r Ref) escaped() map[string]string {
	return map[string]string{"id": escaped(r.ID), "tenant": escaped(r.Tenant)}
}

func text(param string) string { return "decodeURLComponent({" + param + ":String})" }
