package llmmessage

import (
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// agentMemory is the memory of one agent, as its last snapshot showed it.
type agentMemory struct {
	Agent string   `json:",omitempty"`
	Items []uint64 // hashes of the messages
	Was   []uint64 `json:",omitempty"` // Items before it last lost some: they may reappear
	Cut   bool     `json:",omitempty"` // there were more at the front
	Conn  string   `json:",omitempty"` // connection of the last snapshot
	Seq   int64    `json:",omitempty"` // its number there
	Time  int64    `json:",omitempty"` // its time; an older snapshot is ignored
	Task  string   `json:",omitempty"` // the phase that the agent works on
}

// memory decodes agent.llm_message.
func (d *stream) memory(e *event) {
	list := e.content.Get("messages")
	if !list.Is(jsonv.Array) {
		d.singleMessage(e)
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

// bareSnapshot decodes the messages of a snapshot that no event carries.
func (d *stream) bareSnapshot(root, list jsonv.Value, out *decoder.Output) {
	e := &event{root: root, out: out, name: "agent.llm_message", at: parseTime(root.Get("timestamp"), d.zone)}
	e.s = d.session(root.Get("session_id"))
	e.id = msg.HashKey(string(list.Peek()))
	d.snapshot(e, list, root.Get("metadata"))
}

// singleMessage decodes one message of the model, which some servers are reported to send here
// in place of a memory.
func (d *stream) singleMessage(e *event) {
	if !e.content.Is(jsonv.String) {
		d.addUnknownEvent(e)
		return
	}
	e.ensureTurn()
	switch role := e.meta.Get("role"); {
	case role.In("user", "system"):
		m := e.add(msg.System, e.key())
		m.Hidden, m.Content = true, e.content.Text()
	default:
		role.Equal("assistant")
		m := d.addAssistantText(e, msg.Assistant, e.content.Text())
		m.Model = ident.Of(e.meta.Get("model"))
	}
}

// snapshot emits the new messages of a memory and reads its metadata.
func (d *stream) snapshot(e *event, list, meta jsonv.Value) {
	agent, from := ident.Peek(meta.Get("agent_name")), len(e.out.Messages)
	var items []jsonv.Value
	var sums []uint64
	for v := range list.Elems() {
		items = append(items, v)
		sums = append(sums, d.itemSum(v))
		if v.Get("role").Equal("user") {
			if _, guide, ok := splitGuide(v.Get("content")); ok && !d.addGuide(e.s, guide) {
				v.Get("content").MarkRead() // the question is emitted, and the guide was
			}
		}
	}
	l := e.s.memoryOf(agent, sums)
	if l.isOlder(e) {
		list.MarkRead()
		return
	}
	if e.s.activePhases() > 0 {
		d.bindMemory(e, l, items)
	} else if e.s.Agent == "" {
		e.s.Agent = agent
	}
	places := newItems(l.Items, sums, l.Cut)
	if len(l.Was) > 0 && len(places) > 0 {
		before := newItems(l.Was, sums, false)
		places = slices.DeleteFunc(places, func(i int) bool { return !slices.Contains(before, i) })
	}
	if n := len(l.Items); len(sums) < n && !l.Cut {
		defer d.addShrunk(e, n, len(sums), len(places))
	}
	agentRead := len(l.Items) > 0 || agent == e.s.Agent
	l.update(e, sums)
	g := snapshotReader{d: d, e: e, memory: l, current: d.currentPrompt(e, items, places), items: items}
	if e.s.Turn.Run == "" && d.lacksPrompt(e.s, items, places) {
		e.s.startTurn("turn:" + e.id)
	}
	news := 0 // index of the first new item
	if e.s.Old {
		if news = len(items); g.current >= 0 {
			news = g.current
		}
		d.addBaseline(e, news)
		e.s.Old = false
	}
	for i, v := range items {
		if g.known = i < news; g.known || !slices.Contains(places, i) {
			v.MarkRead() // a copy
		}
		if slices.Contains(places, i) {
			g.readItem(i, v)
		}
	}
	d.readMetadata(e, l, meta)
	if agentRead || slices.ContainsFunc(e.out.Messages[from:], func(m msg.Message) bool { return m.Agent.Name == agent }) {
		ident.Of(meta.Get("agent_name"))
	}
}

// currentPrompt returns the index of the prompt that began the session's turn if no event had
// it; -1 when there is none. During the turn that is the last prompt; after it, the last one
// that has an answer.
func (d *stream) currentPrompt(e *event, items []jsonv.Value, places []int) int {
	t, at := &e.s.Turn, -1
	if t.Run == "" || t.Prompted {
		return -1
	}
	for _, i := range places {
		if _, by := d.authorOf(e.s, items[i]); by != human {
			continue
		}
		answered := false
		if i+1 < len(items) {
			_, by := d.authorOf(e.s, items[i+1])
			answered = by != human
		}
		if t.Open || e.isLate() || answered {
			at = i
		}
	}
	return at
}

// lacksPrompt reports whether the first of the new messages belong to a turn whose prompt the
// memory has lost.
func (d *stream) lacksPrompt(s *session, items []jsonv.Value, places []int) bool {
	for _, i := range places {
		if items[i].Get("role").Equal("system") {
			continue
		}
		_, by := d.authorOf(s, items[i])
		return by != human
	}
	return false
}

// addShrunk emits a status: a memory has lost messages.
func (d *stream) addShrunk(e *event, was, is, added int) {
	m := e.status()
	m.Key = "shrunk:" + e.id
	m.SetAttr("messages", strconv.Itoa(is))
	m.SetAttr("before", strconv.Itoa(was))
	m.SetAttr("new", nonZero(added))
}

// addBaseline emits a status: the messages of a restored memory count as emitted.
func (d *stream) addBaseline(e *event, n int) {
	m := e.status()
	m.Key = "baseline:" + e.id
	m.SetAttr("messages", strconv.Itoa(n))
}

// memoryOf finds the memory that the snapshot continues: of the same agent, with the same
// beginning or with many common messages. Several agents of a session may have one name.
func (s *session) memoryOf(agent string, sums []uint64) *agentMemory {
	best, most := -1, 0
	for i, l := range s.Lanes {
		if l.Agent != agent {
			continue
		}
		if n := l.similarity(sums); n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		if len(s.Lanes) == maxLanes {
			s.Lanes = slices.Delete(s.Lanes, 0, 1)
		}
		s.Lanes = append(s.Lanes, &agentMemory{Agent: agent})
		return s.Lanes[len(s.Lanes)-1]
	}
	l := s.Lanes[best]
	s.Lanes = append(slices.Delete(s.Lanes, best, best+1), l)
	return l
}

// similarity is the number of messages that a memory and a snapshot have in common; 0 when they
// are not of one agent.
func (l *agentMemory) similarity(sums []uint64) int {
	n := 0
	for n < len(sums) && n < len(l.Items) && sums[n] == l.Items[n] {
		n++
	}
	if n > 0 && !l.Cut {
		return n + len(sums) + len(l.Items) // the same beginning outranks any other
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

// isOlder reports whether the snapshot is not newer than the last one of the memory.
func (l *agentMemory) isOlder(e *event) bool {
	if conn := e.conn(); conn != "" && conn == l.Conn && e.seq > 0 {
		return e.seq <= l.Seq
	}
	return e.at.Time != 0 && e.at.Time < l.Time
}

func (l *agentMemory) update(e *event, sums []uint64) {
	l.Conn, l.Seq, l.Time = e.conn(), e.seq, max(e.at.Time, l.Time)
	if l.Cut = len(sums) > maxItems; l.Cut {
		sums = sums[len(sums)-maxItems:]
	}
	if !l.Cut && len(l.Items) > 0 && len(newItems(sums, l.Items, false)) > 0 {
		l.Was = l.Items
	}
	l.Items = slices.Clone(sums)
}
