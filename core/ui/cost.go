package ui

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
	"golang.org/x/sync/errgroup"
)

// costPage is the cost of work, and the reasons for it.
type costPage struct {
	Filters  filters
	Total    inspect.Spending
	Around   string // the address of the last day that has something, if this range has nothing
	Sections []section
}

// section is a table with its own heading.
type section struct {
	Title, Note, Empty string
	Head               []string
	Rows               []costRow
}

// costRow is a row of a section: a name, and its numbers.
type costRow struct {
	Name    string
	Session string // that Href leads to
	Href    string
	Share   int // percent; -1: no bar
	Cells   []string
}

// costs has the columns of the rows that inspect.LoadSpent reads.
var costs = address.Columns{"time": "ts", "agent": "agent_name", "model": "model", "format": "format", "tenant": "tenant", "project": "project",
	"team": "team", "user": "user", "repository": "repository", "ticket": "ticket"}

func (u *UI) cost(r request) (string, any, error) {
	p := &costPage{}
	group, ctx := errgroup.WithContext(r.Context())
	r.Request = r.WithContext(ctx)
	group.Go(func() (err error) { p.Filters, err = u.filters(r, inspect.Usage, costs); return err })
	group.Go(func() error { p.Around = u.around(r); return nil })
	loads := []func(*UI, request) ([]section, error){p.spent, toolCosts, contexts, findings, waits}
	parts := make([][]section, len(loads))
	for i, load := range loads {
		group.Go(func() (err error) { parts[i], err = load(u, r); return err })
	}
	err := group.Wait()
	p.Sections = slices.Concat(parts...)
	return "", p, err
}

// costRows is how many rows a section has.
const costRows = 15

// spent is the cost by day and by each dimension. One that no work has is left out.
func (p *costPage) spent(u *UI, r request) (out []section, err error) {
	where, params := r.State.Where(costs)
	spent, err := inspect.LoadSpent(r.Context(), u.q, inspect.Condition{SQL: where, Params: params})
	if err != nil {
		return nil, err
	}
	p.Total = spent.Total
	for _, b := range [...]struct {
		title, filter string
		lines         []inspect.Spending
	}{{"By day (UTC)", "", spent.Days}, {"By agent", "agent", spent.Agents}, {"By model", "model", spent.Models}, {"By project", "project", spent.Projects},
		{"By team", "team", spent.Teams}, {"By user", "user", spent.Users}, {"By repository", "repository", spent.Repositories}, {"By ticket", "ticket", spent.Tickets}} {
		if len(b.lines) == 0 || len(b.lines) == 1 && b.lines[0].Name == "" && b.filter != "project" {
			continue
		}
		s := section{Title: b.title, Head: []string{"cost", "tokens", "output", "from cache"}}
		var top float64
		for _, l := range b.lines {
			top = max(top, l.CostUSD)
		}
		for _, l := range b.lines[:min(len(b.lines), 2*costRows)] {
			row := costRow{Name: l.Name, Share: -1, Cells: []string{l.Dollars(), short(l.Tokens), short(l.Answer), l.Hits()}}
			if top > 0 {
				row.Share = int(100 * l.CostUSD / top)
			}
			switch {
			case b.filter == "":
				row.Href = r.State.In(address.Range{From: row.Name + "T00:00:00Z", To: row.Name + "T23:59:59.999Z"}).String()
			case row.Name == "":
				row.Name = "none is known"
			case b.filter == "agent" && strings.HasPrefix(row.Name, "("): // one without a name, which no filter picks
			default:
				row.Href = r.State.With(b.filter, row.Name).String()
			}
			s.Rows = append(s.Rows, row)
		}
		out = append(out, s)
	}
	return out, nil
}

// load fills a section by one query, whose rows are a name, the id of a session or nothing, a
// number to compare by, and cells.
func (s section) load(u *UI, r request, sql string, params map[string]string) ([]section, error) {
	var numbers []float64
	var top float64
	err := u.q.Each(r.Context(), sql, params, func(v []any) error {
		var session string
		var n float64
		row := costRow{Cells: make([]string, len(v)-3)}
		into := []any{&row.Name, &session, &n}
		for i := range row.Cells {
			into = append(into, &row.Cells[i])
		}
		if err := scan(v, into...); err != nil {
			return err
		}
		if row.Session = session; session != "" {
			row.Href = conversation(session)
		}
		top = max(top, n)
		s.Rows, numbers = append(s.Rows, row), append(numbers, n)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Title, err)
	}
	for i := range s.Rows {
		if s.Rows[i].Share = -1; top > 0 {
			s.Rows[i].Share = int(100 * numbers[i] / top)
		}
	}
	return []section{s}, nil
}

// toolCalls has the columns of v_tool_calls.
var toolCalls = address.Columns{"time": "ts", "agent": "agent_name", "tool": "tool_name", "model": "model", "format": "format", "tenant": "tenant", "status": "status", "project": "project"}

func toolCosts(u *UI, r request) ([]section, error) {
	where, params := r.State.Where(toolCalls)
	out, err := section{
		Title: "By tool", Head: []string{"cost", "calls", "tokens a call"}, Empty: "No result has a known size in tokens.",
		Note: "What reading the results cost the first time. Each later request of a run reads them again, from a cache as a rule.",
	}.load(u, r, `
		SELECT toString(tool_name), '' AS session, ifNull(sum(cost_usd), 0) AS cost, if(count(cost_usd) = 0, '?', toString(cost)), toString(count()), toString(round(ifNull(avg(result_tokens), 0)))
		FROM v_tool_calls
		WHERE result_tokens IS NOT NULL AND `+where+`
		GROUP BY tool_name
		ORDER BY cost DESC, sum(result_tokens) DESC, tool_name
		LIMIT `+strconv.Itoa(costRows), params)
	if err != nil {
		return nil, err
	}
	for _, row := range out[0].Rows {
		if dollars, err := strconv.ParseFloat(row.Cells[0], 64); err == nil {
			row.Cells[0] = inspect.Cost{Tokens: inspect.Tokens{Input: 1}, CostUSD: dollars}.Dollars()
		}
	}
	return out, nil
}

// contexts are the runs whose requests grew most.
func contexts(u *UI, r request) ([]section, error) {
	columns := address.Columns{"time": "ts", "agent": "agent_name", "model": "model", "format": "format", "tenant": "tenant", "project": "project"}
	where, params := r.State.Where(columns)
	out, err := section{
		Title: "Contexts that grew most", Head: []string{"first request", "largest", "requests", "agent"}, Empty: "No request has counts of its tokens.",
		Note: "Tokens of a conversation's requests, by agent. A larger request costs more each time it is sent.",
	}.load(u, r, `
		SELECT any(title) AS name, session_id, toFloat64(max(size)) AS largest, toString(argMin(size, ts)), toString(max(size)), toString(count()), if(agent_name = '', concat('(', any(format), ')'), toString(agent_name))
		FROM (
			SELECT u.*, u.input_tokens + u.cache_read_tokens + u.cache_write_tokens AS size, f.project AS project, f.title AS title
			FROM v_usage AS u LEFT JOIN v_session_facts AS f ON f.tenant = u.tenant AND f.session_id = u.session_id)
		WHERE size > 0 AND `+where+`
		GROUP BY tenant, session_id, agent_name
		HAVING count() > 1
		ORDER BY max(size) - argMin(size, ts) DESC, session_id
		LIMIT `+strconv.Itoa(costRows), params)
	if err != nil {
		return nil, err
	}
	if err := nameRows(u, r, out[0].Rows); err != nil {
		return nil, err
	}
	for _, row := range out[0].Rows {
		for i := range 2 {
			if n, err := strconv.ParseUint(row.Cells[i], 10, 64); err == nil {
				row.Cells[i] = short(n)
			}
		}
	}
	return out, nil
}

// nameRows names the rows of conversations without a recorded title by their first prompts, or by their ids.
func nameRows(u *UI, r request, rows []costRow) error {
	var ids []string
	for i := range rows {
		if rows[i].Name == "" {
			ids = append(ids, url.PathEscape(rows[i].Session))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	named, err := titles(r.Context(), u.q, inspect.Condition{
		SQL: "has(arrayMap(id -> decodeURLComponent(id), splitByChar(',', {ids:String})), session_id)", Params: map[string]string{"ids": strings.Join(ids, ",")},
	}, len(ids))
	for i := range rows {
		rows[i].Name = cmp.Or(rows[i].Name, inspect.Clip(named[rows[i].Session], 80), rows[i].Session)
	}
	return err
}

func findings(u *UI, r request) ([]section, error) {
	where, params := r.State.Where(address.Columns{"time": "ts", "agent": "agent_name", "tool": "tool_name", "format": "format", "tenant": "tenant"})
	return section{
		Title: "Loops and storms", Head: []string{"runs", "most", "tool"}, Empty: "No run repeats itself, fails in a row or falls silent.",
	}.load(u, r, `
		SELECT transform(toString(kind), ['repeat', 'ping_pong', 'error_storm', 'fan_out', 'silence'], ['the same call again', 'to and fro between two calls', 'failures in a row', 'many delegations at once', 'silence'], toString(kind)),
			argMax(session_id, count), toFloat64(uniqExact(tenant, session_id, run_id)) AS runs, toString(toUInt64(runs)), toString(max(count)), toString(tool_name)
		FROM v_findings
		WHERE `+where+`
		GROUP BY kind, tool_name
		ORDER BY runs DESC, kind, tool_name
		LIMIT `+strconv.Itoa(costRows), params)
}

func waits(u *UI, r request) ([]section, error) {
	where, params := r.State.Where(toolCalls)
	out, err := section{
		Title: "Waits for people", Head: []string{"total", "calls", "longest"}, Empty: "No call waited for a person.",
	}.load(u, r, `
		SELECT toString(tool_name), argMax(session_id, waited_ms), sum(waited_ms) AS together, toString(together), toString(count()), toString(max(waited_ms))
		FROM v_tool_calls
		WHERE waited_ms > 0 AND `+where+`
		GROUP BY tool_name
		ORDER BY together DESC, tool_name
		LIMIT `+strconv.Itoa(costRows), params)
	if err != nil {
		return nil, err
	}
	for _, row := range out[0].Rows {
		for _, i := range [...]int{0, 2} {
			if ms, err := strconv.ParseFloat(row.Cells[i], 64); err == nil {
				row.Cells[i] = inspect.Span(time.Duration(ms * 1e6))
			}
		}
	}
	return out, nil
}

// Source is the account of a source.
type Source struct {
	Name, Format                                     string
	Read, Decoded, Quarantined, Dropped, Unaccounted float64 // bytes
	Problems                                         uint64
	Last                                             time.Time
}

// sources reads the account of every source.
func (u *UI) sources(r request) (out []Source, err error) {
	err = u.q.Each(r.Context(), `
		SELECT toString(source), toString(format), toFloat64(read_bytes), toFloat64(decoded_bytes), toFloat64(quarantined_bytes), toFloat64(dropped_bytes),
			toFloat64(unaccounted_bytes), toUInt64(problems), toDateTime64(last_seen, 3, 'UTC')
		FROM v_sources
		ORDER BY source`, nil, func(v []any) error {
		var s Source
		if err := scan(v, &s.Name, &s.Format, &s.Read, &s.Decoded, &s.Quarantined, &s.Dropped, &s.Unaccounted, &s.Problems, &s.Last); err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	return out, err
}
