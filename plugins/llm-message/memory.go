package llmmessage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// memory is the memory of one agent, as its last snapshot showed it.
type memory struct {
	Agent string   `json:",omitempty"`
	Size  int      // messages
	Items []uint64 // hashes of the messages and of their calls
	Was   []uint64 `json:",omitempty"` // Items before it last lost some: they may reappear
	Cut   bool     `json:",omitempty"` // there were more at the front
	Conn  string   `json:",omitempty"` // connection of the last snapshot
	Seq   int64    `json:",omitempty"` // its number there
	Time  int64    `json:",omitempty"` // its time; an older snapshot is ignored
	Phase string   `json:",omitempty"` // that the agent works on
}

// memory decodes agent.llm_message.
func (e *event) memory() {
	list := e.content.Get("messages")
	if !list.Is(jsonv.Array) {
		e.singleMessage()
		return
	}
	(&reader{e: e}).snapshot(list)
	total := e.content.Get("total_messages")
	if n := list.Len(); total.Is(jsonv.Number) && total.Int() != int64(n) {
		m := e.status("mismatch:" + e.id)
		m.SetAttr("total_messages", string(total.Raw()))
		m.SetAttr("messages", strconv.Itoa(n))
	}
}

// singleMessage decodes one message of the model, which some servers are reported to send here
// in place of a memory.
func (e *event) singleMessage() {
	if !e.content.Is(jsonv.String) {
		e.unknown(e.name, e.Root)
		return
	}
	e.ensureTurn()
	if e.meta.Get("role").In("user", "system") {
		m := e.add(msg.System, e.key())
		m.Hidden, m.Content = true, e.content.Text()
		return
	}
	e.meta.Get("role").Equal("assistant")
	e.assistant(msg.Assistant, e.content.Text())
}

// snapshot emits the new messages of a memory and reads its metadata.
func (g *reader) snapshot(list jsonv.Value) {
	e, s, agent, from := g.e, g.e.s, ident.Peek(g.e.meta.Get("agent_name")), len(g.e.Out.Messages)
	sums := g.find(list)
	l := s.memory(agent, sums)
	g.memory = l
	if l.isOlder(e) {
		list.MarkRead()
		return
	}
	if s.Phases.count() > 0 {
		prompt := ""
		if len(g.items) > 0 {
			prompt = g.items[0].Get("content").PeekStr()
		}
		s.Phases.bind(l, prompt)
	} else if s.Agent == "" {
		s.Agent = agent
	}
	added := 0
	for _, i := range l.newItems(sums) {
		g.items[i].isNew = true
		added += messages(g.items[i : i+1])
	}
	known, size, before := len(l.Items) > 0, list.Len(), l.Size
	shrunk := size < before && !l.Cut
	l.update(e, size, sums)
	g.findPrompt()
	if s.Restored {
		s.Restored, g.first = false, len(g.items)
		if g.current >= 0 {
			g.first = g.current
		}
		e.status("baseline:"+e.id).SetAttr("messages", strconv.Itoa(messages(g.items[:g.first])))
	}
	for i := range g.items {
		g.read(i)
	}
	g.readMetadata()
	if known || agent == s.Agent || slices.ContainsFunc(e.Out.Messages[from:], func(m msg.Message) bool { return m.Agent.Name == agent }) {
		ident.Of(e.meta.Get("agent_name"))
	}
	if shrunk { // the memory has lost messages
		m := e.status("shrunk:" + e.id)
		m.SetAttr("messages", strconv.Itoa(size))
		m.SetAttr("before", strconv.Itoa(before))
		m.SetAttr("new", conversation.NonZero(added))
	}
}

// memory finds the memory that the snapshot continues: of the same agent, with the same
// beginning or with many common messages. Several agents of a session may have one name.
func (s *session) memory(agent string, sums []uint64) *memory {
	best, most := &memory{Agent: agent}, 0
	for _, l := range s.Memories {
		if l.Agent == agent {
			if n := l.similarity(sums); n > most {
				best, most = l, n
			}
		}
	}
	s.Memories = slices.DeleteFunc(s.Memories, func(l *memory) bool { return l == best })
	s.Memories = bounded.Push(s.Memories, best, maxMemories)
	return best
}

// similarity is the number of messages that a memory and a snapshot have in common; 0 when they
// are not of one agent.
func (l *memory) similarity(sums []uint64) int {
	n := len(sums) - len(newItems(l.Items, sums, false))
	if n > 0 && !l.Cut && sums[0] == l.Items[0] {
		return n + len(sums) + len(l.Items) // the same beginning outranks any other
	}
	if 2*n < min(len(sums), len(l.Items)) {
		return 0
	}
	return n
}

// isOlder reports whether the snapshot is not newer than the last one of the memory.
func (l *memory) isOlder(e *event) bool {
	if e.conn != "" && e.conn == l.Conn && e.seq > 0 {
		return e.seq <= l.Seq
	}
	return e.at.Nanos != 0 && e.at.Nanos < l.Time
}

// newItems returns the indices of the items that the memory did not have.
func (l *memory) newItems(sums []uint64) []int {
	added := newItems(l.Items, sums, l.Cut)
	if len(l.Was) > 0 && len(added) > 0 {
		before := newItems(l.Was, sums, false)
		added = slices.DeleteFunc(added, func(i int) bool { return !slices.Contains(before, i) })
	}
	return added
}

func (l *memory) update(e *event, size int, sums []uint64) {
	l.Conn, l.Seq, l.Time, l.Size = e.conn, e.seq, max(e.at.Nanos, l.Time), size
	if l.Cut = len(sums) > maxItems; l.Cut {
		sums = sums[len(sums)-maxItems:]
	}
	if !l.Cut && len(l.Items) > 0 && len(newItems(sums, l.Items, false)) > 0 {
		l.Was = l.Items
	}
	l.Items = sums
}

// readMetadata reads the answer, which the memory may not have yet, and whether the agent is
// done. The metadata of an agent below the session's turn do not decide that.
func (g *reader) readMetadata() {
	e, s, l := g.e, g.e.s, g.memory
	if l.Phase != "" || s.Phases.count() > 0 || s.isOther(l) {
		return
	}
	done := strings.EqualFold(e.meta.Get("agent_state").PeekStr(), "FINISHED")
	if answer := e.meta.Get("final_response"); len(answer.Escaped()) > 0 && s.Turn.Run != "" {
		key := textKey("assistant", answer.Text())
		// While the agent works, it keeps the answer of the previous turn.
		if !s.Turn.isLastText(key) && (done && s.Turn.Open || s.Emitted.entry(key).Emitted == 0) {
			key = s.Emitted.emit(key)
			m := e.add(msg.Assistant, key)
			m.Role, m.Content, m.Complete = msg.RoleAssistant, answer.Text(), msg.Summary
			s.Turn.Text, s.Turn.Shown = key, true
		}
	}
	if done && s.Turn.Open {
		e.endAnswered()
	}
}

// isOther reports whether a memory is that of another agent than the session's.
func (s *session) isOther(l *memory) bool {
	return s.Agent != "" && l.Agent != "" && l.Agent != s.Agent
}

// newItems returns the indices of the items in now that were not in was. A memory gains items at
// its end and mostly loses them at its front and in its middle; an item that changed in between
// is new. With cutFront the memory was longer than the state keeps: its front is not new.
func newItems(was, now []uint64, cutFront bool) (added []int) {
	end := seam(was, now)
	left := make(map[uint64]int, len(was))
	for _, sum := range was {
		left[sum]++
	}
	for i, sum := range now {
		switch {
		case i < end && left[sum] > 0:
			left[sum]--
			cutFront = false
		case i < end && cutFront:
		default:
			added = append(added, i)
		}
	}
	return added
}

// seam returns the index in now at which the items of was end: behind the last item of was that
// is still there, where the longest run before it is in both.
func seam(was, now []uint64) (end int) {
	for last := len(was) - 1; last >= 0 && end == 0; last-- {
		longest := 0
		for i, sum := range now {
			if sum != was[last] {
				continue
			}
			run := 1
			for run <= i && run <= last && now[i-run] == was[last-run] {
				run++
			}
			if run > longest {
				longest, end = run, i+1
			}
		}
	}
	return end
}

// ledger counts how often each text and each call was emitted, and how often snapshots have
// shown it: the nth occurrence in a snapshot is new if fewer than n were emitted.
type ledger struct {
	Entries []*entry `json:",omitempty"` // oldest first
	byKey   map[string]*entry
}

type entry struct {
	Key     string
	Emitted int `json:",omitempty"`
	Shown   int `json:",omitempty"`
}

func (l *ledger) entry(key string) *entry {
	if l.byKey == nil {
		l.byKey = make(map[string]*entry, len(l.Entries))
		for _, e := range l.Entries {
			l.byKey[e.Key] = e
		}
	}
	e := l.byKey[key]
	if e == nil {
		e = &entry{Key: key}
		if len(l.Entries) >= maxEmitted {
			delete(l.byKey, l.Entries[0].Key)
		}
		l.Entries, l.byKey[key] = bounded.Push(l.Entries, e, maxEmitted), e
	}
	return e
}

// emit counts an emitted message, and returns the key of this occurrence.
func (l *ledger) emit(key string) string {
	e := l.entry(key)
	e.Emitted++
	return key + nth(e.Emitted)
}

// show counts an occurrence that a snapshot did not show before, and returns its key, and
// whether it was emitted already.
func (l *ledger) show(key string) (occurrence string, emitted bool) {
	e := l.entry(key)
	e.Shown++
	emitted = e.Shown <= e.Emitted
	e.Emitted = max(e.Emitted, e.Shown)
	return key + nth(e.Shown), emitted
}

// nth is the suffix of the nth occurrence.
func nth(n int) string {
	if n <= 1 {
		return ""
	}
	return "#" + strconv.Itoa(n)
}

// imageOf describes an image by its bytes: the protocol names no type, and its documents
// guess JPEG for all.
func imageOf(v jsonv.Value) []msg.Attachment {
	if len(v.Escaped()) == 0 {
		return nil
	}
	return []msg.Attachment{media.Sniffed(v)}
}
