package legion

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// The writer's reserved ids.
const (
	userID   = "00000000-0000-0000-0000-000000000000"
	systemID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

// comm decodes a record of comms.jsonl: a message of one minion to another, to a
// channel or to the user. The writer keeps up to three copies (the sender's, the
// receiver's, the channel's); they have one id and belong to the legion, so they
// are one message. The same text is in the sender's session as a delegation
// and in the receiver's as a user message, and no id joins them.
func (r *entry) comm(c jsonv.Value) {
	r.s, r.lane = &session{ID: r.origin.legion}, &lane{}
	if id := r.sc.scalar(r.root.Get("legion_id")); id != "" {
		r.s.ID = id
	}
	r.at.Time = stampOf(c.Get("timestamp")).Or(r.at.Time)
	m := r.add(msg.User, msg.RoleUser)
	m.Key = "comm:" + r.sc.scalar(c.Get("comm_id"))
	m.Content = taskOf(c, "content", "summary")
	m.Hidden = c.Get("visible_to_user").Is(jsonv.False)

	from := r.sc.scalar(c.Get("from_minion_id"))
	m.Agent = msg.Agent{ID: from, Name: r.sc.scalar(c.Get("from_minion_name")), Kind: msg.KindAgent}
	switch {
	case from == systemID || from == "LEGION_SYSTEM":
		m.Kind, m.Role = msg.System, msg.RoleSystem
		m.Agent = msg.Agent{ID: from, Name: systemName}
	case c.Get("from_user").Bool() || from == userID:
		m.Agent = msg.Agent{ID: from, Name: userName, Kind: msg.KindHuman}
	}
	if reply := r.sc.scalar(c.Get("in_reply_to")); reply != "" {
		m.ParentKey = "comm:" + reply
	}
	to := r.sc.scalar(c.First("to_minion_name", "to_channel_name", "to_minion_id", "to_channel_id"))
	if to == "" && c.Get("to_user").Bool() {
		to = userName
	}
	m.SetAttr("type", "comm")
	kind := r.sc.scalar(c.Get("comm_type"))
	if kind == strings.ToUpper(kind) { // in capitals
		kind = strings.ToLower(kind)
	}
	m.SetAttr("comm_type", kind)
	m.SetAttr("from", m.Agent.Name)
	m.SetAttr("to", to)
	r.sc.attrs(m, c, [][]string{{"to_minion_id"}, {"to_channel_id"}, {"summary"}, {"related_task_id"}})
	if p := r.sc.scalar(c.Get("interrupt_priority")); p != "none" && p != "routine" {
		m.SetAttr("interrupt_priority", p)
	}
}

// commEvent decodes a comm that the WebSocket sends.
func (r *entry) commEvent() {
	for _, c := range [...]jsonv.Value{r.root.Get("comm"), r.head.data} {
		if c.Get("comm_id").Exists() {
			r.comm(c)
			return
		}
	}
	r.unknown("comm", r.Frame.Data)
}
