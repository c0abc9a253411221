package letta

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxNames limits the agents whose names are in the state.
const maxNames = 64

// agentName is the display name of an agent in an earlier message.
type agentName struct{ ID, Name string }

// agent returns the agent with that id. Its name is the display name of this or an earlier
// message, else its id: dashboards group by the name, so it is empty only without an id.
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
