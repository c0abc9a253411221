package ui

import (
	"strconv"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// Message is a message, the latest first.
type Message struct {
	At                   time.Time
	Session, Agent, Kind string
	Text                 string
	Error                bool
}

type nowPage struct {
	Open   []inspect.OpenWork
	Counts map[string]uint64 // open spans that wait for no span below them, by state
	Latest []Message
	// Sources have their accounts: every byte that was read became messages, a dead letter, or was dropped.
	Sources []Source
}

// Running is how many pieces of work run, silent or not.
func (p nowPage) Running() uint64 { return p.Counts[inspect.Running] + p.Counts[inspect.Silent] }

const (
	working = 200 // pieces of work that are shown, of each state
	shown   = 100 // messages that are shown
)

// now asks for the messages of an hour: so the tables' order by hour serves,
// however much there is.
func (u *UI) now(r request) (string, any, error) {
	p := nowPage{Counts: make(map[string]uint64)}
	var err error
	if p.Open, err = inspect.OpenWorks(r.Context(), u.q, false, working); err != nil {
		return "Now", p, err
	}
	for _, o := range p.Open {
		p.Counts[o.State] = o.Leaves
	}
	if p.Sources, err = u.sources(r); err != nil {
		return "Now", p, err
	}
	err = u.q.Each(r.Context(), `
		SELECT ts, session_id, toString(agent_name), toString(kind),
			multiIf(kind = 'delegation' AND delegate_task != '', concat('→ ', delegate_to, ' ', substringUTF8(delegate_task, 1, 300)),
				kind IN ('tool_call', 'delegation'), concat(tool_name, ' ', substringUTF8(tool_arguments, 1, 300)), substringUTF8(content, 1, 300)) AS text,
			toUInt8(`+inspect.Failure+`)
		FROM v_messages
		WHERE ts > now() - INTERVAL 1 HOUR AND ts < now() + INTERVAL 1 HOUR AND NOT hidden AND text != ''
		ORDER BY ts DESC, seq DESC
		LIMIT {limit:UInt32}`, map[string]string{"limit": strconv.Itoa(shown)}, func(v []any) error {
		m := Message{}
		var failed uint8
		if err := scan(v, &m.At, &m.Session, &m.Agent, &m.Kind, &m.Text, &failed); err != nil {
			return err
		}
		m.Error = failed == 1
		p.Latest = append(p.Latest, m)
		return nil
	})
	return "Now", p, err
}
