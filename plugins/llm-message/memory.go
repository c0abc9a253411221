package llmmessage

import (
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// lane is the memory of one agent, as its last snapshot showed it.
type lane struct {
	Agent string   `json:",omitempty"`
	Items []uint64 // hashes of the messages
	Was   []uint64 `json:",omitempty"` // the same before it last lost some: they may come back
	Cut   bool     `json:",omitempty"` // there were more at the front
	Conn  string   `json:",omitempty"` // where the snapshot came from,
	Seq   int64    `json:",omitempty"` // its number there,
	Time  int64    `json:",omitempty"` // and its time: an older one says nothing
	Task  string   `json:",omitempty"` // the work, handed on, that the agent does
}

// memory decodes agent.llm_message.
func (d *stream) memory(e *event) {
	list := e.content.Get("messages")
	if !list.Is(jsonv.Array) {
		d.single(e)
		return
	}
	d.snapshot(e, list, e.meta)
	total := e.content.Get("total_messages")
	if n := list.Len(); total.Is(jsonv.Number) && total.Int() != int64(n) {
		m := e.status()
		m.Key = "mismatch:" + e.id
		m.SetAttr("total_messages", string(total.Raw()))
		m.SetAttr("messages", strconv.Itoa(n))
	}
}

// bare decodes the messages of a snapshot that no event carries.
func (d *stream) bare(root, list jsonv.Value, out *decoder.Output) {
	e := &event{root: root, out: out, name: "agent.llm_message", at: clock(root.Get("timestamp"), d.zone)}
	e.s = d.session(root.Get("session_id"))
	e.id = msg.HashKey(string(list.Peek()))
	d.snapshot(e, list, root.Get("metadata"))
}

// single decodes the message of the model that some servers are said to send here
// in place of a memory.
func (d *stream) single(e *event) {
	if !e.content.Is(jsonv.String) {
		d.strange(e)
		return
	}
	e.wake()
	switch role := e.meta.Get("role"); {
	case role.In("user", "system"):
		m := e.give(msg.System, e.key())
		m.Hidden, m.Content = true, e.content.Text()
	default:
		role.Equal("assistant")
		m := d.speak(e, msg.Assistant, e.content.Text())
		m.Model = ident.Of(e.meta.Get("model"))
	}
}

// snapshot gives what a memory holds that was not given before, and what its metadata
// say of the agent.
func (d *stream) snapshot(e *event, list, meta jsonv.Value) {
	agent, from := ident.Peek(meta.Get("agent_name")), len(e.out.Messages)
	var items []jsonv.Value
	var sums []uint64
	for v := range list.Elems() {
		items = append(items, v)
		sums = append(sums, d.itemSum(v))
		if v.Get("role").Equal("user") {
			if _, guide, ok := rewritten(v.Get("content")); ok && !d.learn(e.s, guide) {
				v.Get("content").MarkRead() // the question is given, and the guide was
			}
		}
	}
	l := e.s.laneOf(agent, sums)
	if l.older(e) {
		list.MarkRead()
		return
	}
	if e.s.handing() > 0 {
		d.bind(e, l, items)
	} else if e.s.Agent == "" {
		e.s.Agent = agent
	}
	places := fresh(l.Items, sums, l.Cut)
	if len(l.Was) > 0 && len(places) > 0 {
		before := fresh(l.Was, sums, false)
		places = slices.DeleteFunc(places, func(i int) bool { return !slices.Contains(before, i) })
	}
	if n := len(l.Items); len(sums) < n && !l.Cut {
		defer d.shrunk(e, n, len(sums), len(places))
	}
	told := len(l.Items) > 0 || agent == e.s.Agent
	l.remember(e, sums)
	g := giving{d: d, e: e, lane: l, current: d.current(e, items, places), items: items}
	if e.s.Turn.Run == "" && d.headless(e.s, items, places) {
		e.s.begin("turn:" + e.id)
	}
	news := 0 // where it begins
	if e.s.Old {
		if news = len(items); g.current >= 0 {
			news = g.current
		}
		d.baseline(e, news)
		e.s.Old = false
	}
	for i, v := range items {
		if g.old = i < news; g.old || !slices.Contains(places, i) {
			v.MarkRead() // a copy
		}
		if slices.Contains(places, i) {
			g.item(i, v)
		}
	}
	d.finish(e, l, meta)
	if told || slices.ContainsFunc(e.out.Messages[from:], func(m msg.Message) bool { return m.Agent.Name == agent }) {
		ident.Of(meta.Get("agent_name"))
	}
}

// current returns the place of the prompt that began the session's turn, which was
// not heard; -1 when there is none. While the turn goes on that is the last prompt;
// when it is over, the last one that has an answer.
func (d *stream) current(e *event, items []jsonv.Value, places []int) int {
	t, at := &e.s.Turn, -1
	if t.Run == "" || t.Prompted {
		return -1
	}
	for _, i := range places {
		if _, by := d.prompted(e.s, items[i]); by != human {
			continue
		}
		answered := false
		if i+1 < len(items) {
			_, by := d.prompted(e.s, items[i+1])
			answered = by != human
		}
		if t.Open || e.late() || answered {
			at = i
		}
	}
	return at
}

// headless reports whether the first of the new messages belong to a turn whose
// prompt is not there any more.
func (d *stream) headless(s *session, items []jsonv.Value, places []int) bool {
	for _, i := range places {
		if items[i].Get("role").Equal("system") {
			continue
		}
		_, by := d.prompted(s, items[i])
		return by != human
	}
	return false
}

// shrunk notes that a memory has lost messages.
func (d *stream) shrunk(e *event, was, is, added int) {
	m := e.status()
	m.Key = "shrunk:" + e.id
	m.SetAttr("messages", strconv.Itoa(is))
	m.SetAttr("before", strconv.Itoa(was))
	m.SetAttr("new", count(added))
}

// baseline notes that a restored memory was taken for known.
func (d *stream) baseline(e *event, n int) {
	m := e.status()
	m.Key = "baseline:" + e.id
	m.SetAttr("messages", strconv.Itoa(n))
}

// laneOf finds the memory of which the snapshot is the next one: of the same agent,
// with the same beginning or with much in common. Several agents of a session may
// have one name.
func (s *session) laneOf(agent string, sums []uint64) *lane {
	best, most := -1, 0
	for i, l := range s.Lanes {
		if l.Agent != agent {
			continue
		}
		if n := l.likeness(sums); n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		if len(s.Lanes) == maxLanes {
			s.Lanes = slices.Delete(s.Lanes, 0, 1)
		}
		s.Lanes = append(s.Lanes, &lane{Agent: agent})
		return s.Lanes[len(s.Lanes)-1]
	}
	l := s.Lanes[best]
	s.Lanes = append(slices.Delete(s.Lanes, best, best+1), l)
	return l
}

// likeness is how much a memory and a snapshot have in common; 0 when they are not
// of one agent.
func (l *lane) likeness(sums []uint64) int {
	n := 0
	for n < len(sums) && n < len(l.Items) && sums[n] == l.Items[n] {
		n++
	}
	if n > 0 && !l.Cut {
		return n + len(sums) + len(l.Items) // the same beginning is more than anything
	}
	there := make(map[uint64]bool, len(l.Items))
	for _, h := range l.Items {
		there[h] = true
	}
	n = 0
	for _, h := range sums {
		if there[h] {
			n++
		}
	}
	if 2*n < min(len(sums), len(l.Items)) {
		return 0
	}
	return n
}

// older reports whether a snapshot that is not older was decoded before.
func (l *lane) older(e *event) bool {
	if conn := e.conn(); conn != "" && conn == l.Conn && e.seq > 0 {
		return e.seq <= l.Seq
	}
	return e.at.Time != 0 && e.at.Time < l.Time
}

func (l *lane) remember(e *event, sums []uint64) {
	l.Conn, l.Seq, l.Time = e.conn(), e.seq, max(e.at.Time, l.Time)
	if l.Cut = len(sums) > maxItems; l.Cut {
		sums = sums[len(sums)-maxItems:]
	}
	if !l.Cut && len(l.Items) > 0 && len(fresh(sums, l.Items, false)) > 0 {
		l.Was = l.Items
	}
	l.Items = slices.Clone(sums)
}
