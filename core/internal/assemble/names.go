package assemble

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// One agent has one name, in whatever form of the conversation it is met: a caller
// writes the id of its delegate, the delegate's own messages have the display name, and
// a stored run may have the id alone.

// addressed takes over to whom a call hands work. A later telling may know the name
// where the first one had what the caller wrote.
func (c *call) addressed(d *msg.Delegate) {
	if d.ToID != "" && d.To != c.To {
		c.To, c.changed = strings.Clone(d.To), true
	}
	keep(&c.To, d.To)
	keep(&c.ToID, d.ToID)
}

// name learns the names that a message has, and puts in those that it lacks.
func (g *group) name(out Emitter, m *msg.Message) {
	if a := &m.Agent; a.ID != "" {
		switch known := g.Names[a.ID]; {
		case a.Name != "" && a.Name != a.ID:
			if known == "" {
				g.learn(out, a.ID, a.Name)
			}
		case known != "":
			a.Name = known
		}
	}
	if d := &m.Delegation; d.ToID == "" && d.To != "" {
		if name := g.Names[d.To]; name != "" {
			d.To, d.ToID = name, d.To
		}
	}
}

// learn notes the name of an agent. Delegations that were given with its id are given
// again.
func (g *group) learn(out Emitter, id, name string) {
	if len(g.Names) >= maxNames {
		return
	}
	if g.Names == nil {
		g.Names = make(map[string]string)
	}
	id, name = strings.Clone(id), strings.Clone(name)
	g.Names[id] = name
	for _, c := range g.Open {
		if c.To == id {
			c.To, c.ToID, c.changed, c.Given = name, id, true, false
		}
	}
	for call, d := range g.Done {
		if d.To != id {
			continue
		}
		if d.To = name; d.Told != nil {
			d.Told.Call.To, d.Told.Call.ToID = name, id
			g.retell(out, &d)
		}
		g.Done[call] = d
	}
}
