package assemble

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// names are the names of a session's agents. One agent has one name in every form of the
// conversation: a caller writes the id of its delegate, the delegate's own messages have the
// display name, and a stored run may have the id alone.
type names struct {
	Names map[string]string `json:"names,omitempty"` // of agents, by id
	// Agent is the name of the agent whose session it is, as the session states it, and
	// Aliases are the names that other sessions have for it.
	Agent   string  `json:"agent,omitempty"`
	Aliases []alias `json:"aliases,omitempty"`
}

// maxAliases is the number of names of its agent that a session remembers.
const maxAliases = 16

// alias is a name that other sessions have for a session's agent, and how many of their
// calls and answers use it at present.
type alias struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

// agent is the name of the agent whose session it is: the session's own, else the most
// common alias, of two as common the smaller one.
func (n *names) agent() string {
	if n.Agent != "" || len(n.Aliases) == 0 {
		return n.Agent
	}
	return slices.MinFunc(n.Aliases, func(x, y alias) int {
		return cmp.Or(cmp.Compare(y.Times, x.Times), cmp.Compare(x.Name, y.Name))
	}).Name
}

// of is the name of a run's agent: its own, that of the session for a top-level run, the
// one that its call has for it, or its id.
func (n *names) of(r *run) string {
	switch {
	case r.Agent.Name != "":
		return r.Agent.Name
	case r.Parent == "" && r.Call == "" && (n.Agent != "" || len(n.Aliases) > 0):
		return n.agent()
	}
	return cmp.Or(r.Delegate, r.Agent.ID)
}

// countAlias changes how often an alias is used.
func (n *names) countAlias(name string, by int) {
	if name == "" {
		return
	}
	i := slices.IndexFunc(n.Aliases, func(a alias) bool { return a.Name == name })
	switch {
	case i >= 0:
		if n.Aliases[i].Times += by; n.Aliases[i].Times <= 0 {
			n.Aliases = slices.Delete(n.Aliases, i, i+1)
		}
	case by > 0 && len(n.Aliases) < maxAliases:
		n.Aliases = append(n.Aliases, alias{name, by})
	}
}

// setAgent applies a message of no run that names the session's agent.
func (g *group) setAgent(m *msg.Message) {
	if m.Kind != msg.User && m.Agent.Kind == msg.KindAgent && m.Agent.Name != "" && m.Agent.Name != g.Agent {
		g.rename("", func() { g.Agent = strings.Clone(m.Agent.Name) })
	}
}

// setAlias replaces the alias old, of one call or answer of another session, by name.
func (g *group) setAlias(fresh, old, name string) {
	g.rename(fresh, func() {
		g.countAlias(old, -1)
		g.countAlias(name, +1)
	})
}

// rename requests that the runs are decoded again whose agent has another name after the
// change. Of the run fresh nothing was emitted yet.
func (g *group) rename(fresh string, change func()) {
	was := make(map[*run]string, len(g.Runs))
	for _, r := range g.Runs {
		was[r] = g.names.of(r)
	}
	change()
	for r, name := range was {
		if g.names.of(r) == name || r.ID == fresh || r.Start == 0 && !r.Stub {
			continue
		}
		r.Moves++
		r.touch()
		g.replay(r)
	}
}

// name learns the names that a message has, and adds those that it lacks.
func (g *group) name(m *msg.Message) {
	if a := &m.Agent; a.ID != "" {
		switch known := g.Names[a.ID]; {
		case a.Name != "" && a.Name != a.ID:
			if known == "" {
				g.learn(a.ID, a.Name)
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

// learn records the name of an agent. Delegations that were emitted with its id are emitted
// again.
func (g *group) learn(id, name string) {
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
			c.To, c.ToID = name, id
			c.touch()
		}
	}
	for call, d := range g.Done {
		if d.To != id {
			continue
		}
		if d.To = name; d.Call != nil {
			d.Call.Call.To, d.Call.Call.ToID = name, id
		}
		g.setRecord(call, d)
	}
}

// unnamed reports whether the session of a run is no id of the protocol but a substitute:
// the run's own id, or the file in which it was found; a decoder may mark others
// (msg.SessionFrom). Coding agents name the files of their transcripts after the session;
// other files have any name.
func unnamed(m *msg.Message) bool {
	if m.Session == m.Run || m.Session == m.Host.Format || m.Session == "unknown" {
		return true
	}
	switch m.Host.Format {
	case "claude-code", "codex", "legion", "letta":
		return false
	}
	if _, rest, ok := strings.Cut(m.Host.Origin, "://"); ok {
		return namedAfterURL(m.Session, rest)
	}
	file := m.Host.Origin[strings.LastIndexAny(m.Host.Origin, `/\\`)+1:]
	rest, ok := strings.CutPrefix(file, m.Session)
	return ok && (rest == "" || rest[0] == '.')
}

// namedAfterURL reports whether the session is the host or the end of a path, unless the
// path names it as a session, as /sessions/{id} does. rest is the URL without its scheme.
func namedAfterURL(session, rest string) bool {
	rest, _, _ = strings.Cut(rest, "?")
	host, path, _ := strings.Cut(rest, "/")
	path = strings.Trim(path, "/")
	if session == host || session == path {
		return true
	}
	before, ok := strings.CutSuffix(path, "/"+session)
	switch before[strings.LastIndexByte(before, '/')+1:] {
	case "sessions", "conversations", "threads":
		return false
	}
	return ok
}
