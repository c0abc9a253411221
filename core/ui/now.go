package ui

import (
	"context"
	"maps"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// Message is a message, the latest first.
type Message struct {
	At                   time.Time
	Session, Agent, Kind string
	Text                 string
	Error                bool
}

type nowPage struct {
	Filters filters
	Range   string
	Open    []inspect.OpenWork
	Counts  map[string]uint64 // open spans that wait for no span below them, by state
	Titles  map[string]string // of the conversations that have open work
	Latest  []Message
	// Sources have their accounts: every byte that was read became messages, a dead letter, or was dropped.
	Sources []Source
}

// Running is how many steps run, silent or not.
func (p nowPage) Running() uint64 { return p.Counts[inspect.Running] + p.Counts[inspect.Silent] }

const (
	working = 200 // steps that are shown, of each state
	shown   = 100 // messages that are shown
)

// seen has the columns of messages, and of open spans but for their time: open work is shown in every range.
var seen = address.Columns{"time": "ts", "agent": "agent_name", "delegate": "delegate_to", "tool": "tool_name", "format": "format", "tenant": "tenant"}

// now shows the open work, and the messages of the range: an hour unless another was picked, so that the tables'
// order by hour serves, however much there is.
func (u *UI) now(r request) (string, any, error) {
	p := nowPage{Counts: make(map[string]uint64), Range: r.State.Label()}
	from, _ := r.State.Times() // in the range, as open work is in every one
	open := maps.Clone(seen)
	delete(open, "time")
	var where inspect.Condition
	where.SQL, where.Params = r.State.Where(open)
	said, params := r.State.Where(seen)
	params["limit"] = strconv.Itoa(shown)
	group, ctx := errgroup.WithContext(r.Context())
	group.Go(func() (err error) {
		p.Filters, err = u.filters(r, `(
		SELECT ts, agent_name, delegate_to, tool_name, format, tenant FROM v_messages
		UNION ALL
		SELECT fromUnixTimestamp64Milli(`+strconv.FormatInt(from.UnixMilli(), 10)+`) AS ts, agent_name, delegate_to, tool_name, format, tenant FROM v_open_spans)`, seen)
		return err
	})
	group.Go(func() (err error) { p.Open, err = inspect.OpenWorks(ctx, u.q, where, false, working); return err })
	group.Go(func() (err error) {
		p.Titles, err = titles(ctx, u.q, inspect.Condition{SQL: "session_id IN (SELECT session_id FROM v_open_spans)"}, working)
		return err
	})
	group.Go(func() (err error) { p.Sources, err = u.sources(r); return err })
	group.Go(func() error {
		return u.q.Each(ctx, `
		SELECT ts, session_id, toString(agent_name), toString(kind),
			multiIf(kind = 'delegation' AND delegate_task != '', concat('→ ', delegate_to, ' ', substringUTF8(delegate_task, 1, 300)),
				kind IN ('tool_call', 'delegation'), concat(tool_name, ' ', substringUTF8(tool_arguments, 1, 300)), substringUTF8(content, 1, 300)) AS text,
			toUInt8(`+inspect.Failure+`)
		FROM v_messages
		WHERE `+said+` AND NOT hidden AND text != ''
		ORDER BY ts DESC, seq DESC
		LIMIT {limit:UInt32}`, params, func(v []any) error {
			m := Message{}
			var failed uint8
			if err := scan(v, &m.At, &m.Session, &m.Agent, &m.Kind, &m.Text, &failed); err != nil {
				return err
			}
			m.Error = failed == 1
			p.Latest = append(p.Latest, m)
			return nil
		})
	})
	err := group.Wait()
	for _, o := range p.Open {
		p.Counts[o.State] = o.Leaves
	}
	return "", p, err
}

// titles are those of the conversations that the condition picks, by their ids: the recorded ones, or how their first prompts begin.
func titles(ctx context.Context, q Querier, where inspect.Condition, limit int) (map[string]string, error) {
	list, err := inspect.Sessions(ctx, q, inspect.Filter{Where: where, Limit: limit})
	out := make(map[string]string, len(list))
	for i := range list {
		out[list[i].ID] = list[i].Title
	}
	return out, err
}
