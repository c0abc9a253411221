package assemble

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// The views of some families have names of their own for their facts: a transcript has no ids of
// responses, telemetry none of turns. A fact of one cannot always be found in another, but
// all name the conversation. So the strongest view that has anything of a conversation leads: the
// messages, runs, responses and calls are its own; of the others, hidden messages of no run stay. A fact that a weaker view names alike (a call, a
// response by its id or by a call in it) adds numbers to these; the rest of it is taken back when the
// stronger view is read, and not emitted after that.
//
// A sub-agent may be a conversation of its own in a weaker view, under the id of its run: the view
// that shows the run leads there, too.

const (
	highest  = 3    // the rank above which there is none
	maxBelow = 4096 // the facts of a conversation that are remembered until a stronger view leads
	maxOwn   = 512  // the messages of a fact that are remembered so
)

// conversation is the record of a conversation as a whole, which is a fact with the zero id.
type conversation struct {
	// Top is the rank of the view that leads, plus one; 0 where each view has its share.
	Top uint8 `json:"top,omitempty"`
	// Below has the ids of the facts that a stronger view may have to take back.
	Below []byte `json:"below,omitempty"`
	// Rest are usage messages with the tokens that the responses lack of a total, and Excess are those
	// that other views know of the responses of a format and a run beyond its own counts.
	Rest   []remainder        `json:"rest,omitempty"`
	Excess map[string]classes `json:"excess,omitempty"`
}

// conversationOf returns the record of a fact's conversation.
func (x *reconciler) conversationOf(f *fact) *fact { return x.load(f.prefix() + msg.SpanID{}.String()) }

// prefix is the key without the id.
func (f *fact) prefix() string { return f.key[:len(f.key)-2*len(f.id)] }

// raise records that a view has a fact. If no stronger view has shown anything of the conversation, it leads.
func (x *reconciler) raise(f *fact, v View) {
	if !v.OwnNames || f.Ranked > v.Rank {
		return
	}
	f.Ranked, f.dirty = v.Rank+1, true
	if c := x.conversationOf(f); c.Top < f.Ranked {
		c.Top, c.dirty = f.Ranked, true
		below := c.Below
		c.Below = nil
		for id := range slices.Chunk(below, len(f.id)) {
			old := x.load(f.prefix() + msg.SpanID(id).String())
			old.Listed = false
			x.settle(old)
		}
		x.settleRest(c)
	}
	if len(f.Spans) > 0 || len(f.Rows) > 0 { // of weaker views, which now have their part of it
		x.settle(f)
	}
}

// leads reports whether the view that leads has the fact. A fact that a stronger view may have to take back
// is listed.
func (x *reconciler) leads(f *fact) bool {
	if f.Ranked == 0 {
		return true
	}
	c := x.conversationOf(f)
	if f.Ranked < c.Top || c == f {
		return c == f
	}
	if f.Ranked <= highest && !f.Listed {
		if c.Below = append(c.Below, f.id[:]...); len(c.Below) > maxBelow*len(f.id) {
			c.Below = c.Below[len(f.id):]
		}
		f.Listed, f.dirty, c.dirty = true, true, true
	}
	return true
}

// settle emits a fact as the view that leads has it, and takes back rows that are not valid any more.
func (x *reconciler) settle(f *fact) {
	f.dirty = true
	top := x.conversationOf(f).Top
	for part, rows := range f.Rows {
		if part == usagePart {
			continue
		}
		for _, r := range rows {
			if r.Rank+1 < top {
				x.takeBackRow(f, r)
			}
		}
		f.Rows[part] = slices.DeleteFunc(rows, func(r row) bool { return r.Rank+1 < top })
		if len(f.Rows[part]) == 0 {
			delete(f.Rows, part)
		}
	}
	x.settleUsage(f, nil)
	x.emit(f, false)
}

// lead takes a message of a view with names of its own.
func (x *reconciler) lead(g *group, m *msg.Message) {
	if m.Run == "" && m.Hidden && m.Kind != msg.Usage {
		return
	}
	f := x.load(factKey(g.key.Tenant, g.view.Family, g.key.Session, msg.SpanID{}))
	if m.Run != "" {
		f = x.named(g, g.ids.of(msg.SpanRun, m.Run))
		if m.ParentRun != "" || m.ParentCall != "" || m.Agent.ID == m.Run {
			x.raise(x.load(factKey(g.key.Tenant, g.view.Family, m.Run, msg.SpanID{})), g.view)
		}
	}
	x.raise(f, g.view)
	if m.Run != "" && m.ResponseID != "" {
		f = x.named(g, g.ids.of(msg.SpanChat, m.ResponseID))
		x.raise(f, g.view)
		if item := m.Attr(msg.ResponseItem); item != "" {
			f = x.unite(x.fact(g, g.ids.of(msg.SpanChat, item)), f)
		}
	}
	if m.Run != "" && m.Tool.CallID != "" {
		f = x.madeBy(g, m, f)
	}
	if m.Kind == msg.Usage && m.ResponseID != "" || x.isRest(m) {
		return
	}
	switch {
	case g.view.Rank+1 < x.conversationOf(f).Top:
		takeBack(m, m.Host.ID, m.Time)
	case g.view.Rank < highest && len(f.Rows) < maxOwn:
		x.leads(f)
		f.addRow(m.Host.Format+"\x00"+m.Host.ID.String(), rowOf(g, m))
	}
}

// madeBy returns the fact of a message's call. The responses in which two views have the call are one.
func (x *reconciler) madeBy(g *group, m *msg.Message, response *fact) *fact {
	c := x.named(g, g.ids.of(msg.SpanTool, m.Tool.CallID))
	x.raise(c, g.view)
	if m.ResponseID == "" || m.Kind != msg.ToolCall && m.Kind != msg.Delegation {
		return c
	}
	if c.Response == "" {
		c.Response = response.key
		return c
	}
	x.unite(x.resolve(x.load(c.Response)), response)
	return c
}

// unite makes one of two responses that are the same, under the name of the stronger view. A view that has both knows better.
func (x *reconciler) unite(a, b *fact) *fact {
	switch {
	case a == b, a.shares(b):
		return b
	case a.Named > b.Named:
		x.merge(b, a)
		return a
	}
	x.merge(a, b)
	return b
}

// shares reports whether a view has both facts.
func (f *fact) shares(o *fact) bool {
	for i := range f.Spans {
		if o.of(f.Spans[i].Span.Format) != nil {
			return true
		}
	}
	for _, r := range f.Rows[usagePart] {
		if slices.ContainsFunc(o.Rows[usagePart], func(other row) bool { return other.Format == r.Format }) {
			return true
		}
	}
	return false
}

// classes are token counts of which some may be negative: input, output, cache read and write, reasoning,
// and how much of the written cache is kept for an hour.
type classes [6]int64

func classesOf(t msg.Tokens) classes {
	return classes{int64(t.Input), int64(t.Output), int64(t.CacheRead), int64(t.CacheWrite), int64(t.Reasoning), int64(t.CacheWrite1h)}
}

func (c classes) less(o classes) classes {
	for i := range c {
		c[i] -= o[i]
	}
	return c
}

// tokens returns the counts with a provenance.
func (c classes) tokens(p msg.Provenance) msg.Tokens {
	return msg.Tokens{
		Input: uint64(c[0]), Output: uint64(c[1]), CacheRead: uint64(c[2]), CacheWrite: uint64(c[3]), Reasoning: uint64(c[4]),
		CacheWrite1h: uint64(c[5]), Provenance: p,
	}
}

// remainder is a usage message with the tokens that the responses of its run, or of the conversation, lack of a total.
type remainder struct {
	row
	Shown *msg.Tokens `json:"shown,omitempty"` // as it was emitted
}

// maxRest is the number of them that a conversation remembers.
const maxRest = 256

// isRest reports whether a message is the remainder of a total. The attribute names the total.
func (*reconciler) isRest(m *msg.Message) bool {
	return m.Kind == msg.Usage && m.ResponseID == "" && m.Attr(msg.RestOf) != ""
}

// rest takes the remainder of a total.
func (x *reconciler) rest(g *group, m *msg.Message) {
	c := x.load(factKey(g.key.Tenant, g.view.Family, g.key.Session, msg.SpanID{}))
	mine := remainder{row: rowOf(g, m)}
	if at := slices.IndexFunc(c.Rest, func(r remainder) bool { return r.ID == mine.ID }); at >= 0 {
		mine.Ver = max(mine.Ver, c.Rest[at].Ver+1)
		c.Rest = slices.Delete(c.Rest, at, at+1)
	}
	if len(c.Rest) >= maxRest {
		return
	}
	c.Rest, c.dirty = append(c.Rest, mine), true
	takeBack(m, m.Host.ID, m.Time)
	x.settleRest(c)
}

// settleRest takes from the remainders the tokens that other views know of the responses.
func (x *reconciler) settleRest(c *fact) {
	left := make(map[string]classes, len(c.Excess))
	for key, n := range c.Excess {
		left[key] = n
	}
	slices.SortFunc(c.Rest, func(a, b remainder) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for i := range c.Rest {
		r := &c.Rest[i]
		rest := classesOf(r.Usage.Usage)
		for key, n := range left {
			if key != r.Format+"\x00"+r.Usage.Run && (r.Usage.Attr(msg.RestOf) != msg.OfSession || !strings.HasPrefix(key, r.Format+"\x00")) {
				continue
			}
			for k := range n {
				used := min(n[k], rest[k])
				rest[k] -= used
				n[k] -= used
			}
			left[key] = n
		}
		now := rest.tokens(r.Usage.Usage.Provenance)
		if now.Tier = r.Usage.Usage.Tier; rest == classesOf(r.Usage.Usage) { // the stated cost is that of all of it
			now.Stated = r.Usage.Usage.Stated
		}
		if r.Rank+1 < c.Top {
			now = msg.Tokens{}
		}
		if r.Shown != nil && *r.Shown == now {
			continue
		}
		if r.Shown != nil {
			r.Ver++
		}
		shown := *r.Usage
		shown.Usage, shown.Host.Ver = now, r.Ver
		if r.Shown = &now; now.IsZero() {
			takeBack(&shown, r.ID, r.Time)
			shown.Host.Ver++
		}
		c.dirty = true
		x.emitter.Message(shown)
	}
}
