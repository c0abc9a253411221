package ui

import (
	"net/http"
	"strconv"
	"time"
)

// Open is work that runs now.
type Open struct {
	Kind, Name, Agent, Session string
	Age, Silent                time.Duration
	Stuck                      bool
}

// Said is a message, the latest first.
type Said struct {
	At                   time.Time
	Session, Agent, Kind string
	Text                 string
	Error                bool
}

type nowPage struct {
	head
	Open   []Open
	Stuck  int
	Latest []Said
}

const (
	stuckAfter = 5 * time.Minute // of silence
	heard      = 100             // how many messages are shown
)

// now asks for the messages of an hour: so the tables' order by hour serves,
// however much there is.
func (u *UI) now(r *http.Request) (any, error) {
	p := nowPage{head: head{"Now", "now"}}
	err := u.q.Each(r.Context(), `
		SELECT toString(kind), toString(name), toString(agent_name), session_id, age_ms, silent_ms, toString(span_id) NOT IN (SELECT parent_span_id FROM v_open_spans) AS leaf
		FROM v_open_spans
		ORDER BY leaf AND silent_ms > {stuck:Int64} DESC, silent_ms DESC, span_id
		LIMIT 500`, map[string]string{"stuck": strconv.FormatInt(stuckAfter.Milliseconds(), 10)}, func(v []any) error {
		o := Open{}
		var age, silent int64
		var leaf uint8
		if err := scan(v, &o.Kind, &o.Name, &o.Agent, &o.Session, &age, &silent, &leaf); err != nil {
			return err
		}
		o.Age, o.Silent = time.Duration(age)*time.Millisecond, time.Duration(silent)*time.Millisecond
		if o.Stuck = leaf == 1 && o.Silent > stuckAfter; o.Stuck {
			p.Stuck++
		}
		p.Open = append(p.Open, o)
		return nil
	})
	if err != nil {
		return p, err
	}
	err = u.q.Each(r.Context(), `
		SELECT ts, session_id, toString(agent_name), toString(kind),
			multiIf(kind = 'delegation' AND delegate_task != '', concat('→ ', delegate_to, ' ', substringUTF8(delegate_task, 1, 300)),
				kind IN ('tool_call', 'delegation'), concat(tool_name, ' ', substringUTF8(tool_arguments, 1, 300)), substringUTF8(content, 1, 300)) AS text,
			toUInt8(is_error)
		FROM v_messages
		WHERE ts > now() - INTERVAL 1 HOUR AND ts < now() + INTERVAL 1 HOUR AND NOT hidden AND text != ''
		ORDER BY ts DESC, seq DESC
		LIMIT {limit:UInt32}`, map[string]string{"limit": strconv.Itoa(heard)}, func(v []any) error {
		m := Said{}
		var failed uint8
		if err := scan(v, &m.At, &m.Session, &m.Agent, &m.Kind, &m.Text, &failed); err != nil {
			return err
		}
		m.Error = failed == 1
		p.Latest = append(p.Latest, m)
		return nil
	})
	return p, err
}
