package letta

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxNames is of how many agents the names are remembered.
const maxNames = 64

// agentName is the name that a message has given an agent.
type agentName struct{ ID, Name string }

// agent returns the agent with that id, by its display name where a message has given
// one, else by its id: what agents are grouped by is never empty while anything is known.
func (d *stream) agent(id, name string) msg.Agent {
	at := slices.IndexFunc(d.Names, func(n agentName) bool { return n.ID == id })
	switch {
	case name != "" && at >= 0:
		d.Names[at].Name = name
	case name != "" && id != "":
		if len(d.Names) == maxNames {
			d.Names = slices.Delete(d.Names, 0, 1)
		}
		d.Names = append(d.Names, agentName{id, name})
	case name == "" && at >= 0:
		name = d.Names[at].Name
	case name == "":
		name = id
	}
	return msg.Agent{ID: id, Name: name, Kind: msg.KindAgent}
}
