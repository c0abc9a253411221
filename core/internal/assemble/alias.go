package assemble

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxAliases is how many names of its agent a session remembers.
const maxAliases = 16

// alias is a name that other sessions have for a session's agent, and how many of their
// calls and answers say so at present.
type alias struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

// agent is the name of the agent whose session it is: what the session says of itself,
// else what most others call it, of two as common the smaller one.
func (g *group) agent() string {
	if g.Agent != "" || len(g.Aliases) == 0 {
		return g.Agent
	}
	return slices.MinFunc(g.Aliases, func(x, y alias) int {
		return cmp.Or(cmp.Compare(y.Times, x.Times), cmp.Compare(x.Name, y.Name))
	}).Name
}

// nameOf is the name of a run's agent: its own, that of the session for a top-level
// run, the one that its call has for it, or its id.
func (g *group) nameOf(r *run) string {
	switch {
	case r.Agent.Name != "":
		return r.Agent.Name
	case r.Parent == "" && r.Call == "" && (g.Agent != "" || len(g.Aliases) > 0):
		return g.agent()
	}
	return cmp.Or(r.To, r.Agent.ID)
}

// named takes what a message of no run says of the session's agent.
func (g *group) named(out Emitter, m *msg.Message) {
	if m.Kind != msg.User && m.Agent.Kind == msg.KindAgent && m.Agent.Name != "" && m.Agent.Name != g.Agent {
		g.rename(out, "", func() { g.Agent = strings.Clone(m.Agent.Name) })
	}
}

// alias takes back that others call the session's agent old, and notes that they call
// it name.
func (g *group) alias(out Emitter, fresh, old, name string) {
	g.rename(out, fresh, func() {
		g.count(old, -1)
		g.count(name, +1)
	})
}

func (g *group) count(name string, by int) {
	if name == "" {
		return
	}
	i := slices.IndexFunc(g.Aliases, func(a alias) bool { return a.Name == name })
	switch {
	case i >= 0:
		if g.Aliases[i].Times += by; g.Aliases[i].Times <= 0 {
			g.Aliases = slices.Delete(g.Aliases, i, i+1)
		}
	case by > 0 && len(g.Aliases) < maxAliases:
		g.Aliases = append(g.Aliases, alias{name, by})
	}
}

// rename has the runs decoded again whose agent has another name after the change. Of
// the run fresh nothing was given yet.
func (g *group) rename(out Emitter, fresh string, change func()) {
	was := make(map[*run]string, len(g.Runs))
	for _, r := range g.Runs {
		was[r] = g.nameOf(r)
	}
	change()
	for r, name := range was {
		if g.nameOf(r) == name || r.ID == fresh || r.Start == 0 && !r.Forgotten {
			continue
		}
		r.Moved++
		r.changed, r.Given = true, false
		out.ReplayChildren(r.Stream, RunRef{g.key.tenant, g.key.format, g.key.session, r.ID})
	}
}

// nameEachOther tells the sessions of the callers and of the runs how they are called
// by each other, where it is sure who belongs to whom.
func (a *Assembler) nameEachOther(t *meeting, callers, children []*group, calls []int, confidence []uint8, fresh string) {
	byCall := make([]string, len(t.Calls))
	for i := range t.Runs {
		r, name := &t.Runs[i], ""
		if at := calls[i]; at >= 0 && (confidence[i] == 0 || confidence[i] >= sureOfPrompt) {
			name, byCall[at] = t.Calls[at].To, r.From
		}
		if name != r.Named {
			children[i].alias(a.out, fresh, r.Named, name)
			children[i].dirty, r.Named = true, name
		}
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Named != byCall[i] {
			callers[i].alias(a.out, "", c.Named, byCall[i])
			callers[i].dirty, c.Named = true, byCall[i]
		}
	}
}
