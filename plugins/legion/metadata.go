package legion

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// metadata decodes state.json, which the writer keeps beside messages.jsonl:
//
//	{"session_id":"…","name":"heron","created_at":"2026-03-02T09:00:00+00:00","is_minion":true,…}
//
// It is rewritten with every change of the session's state and holds tokens and
// prompts; only who the minion is and since when is taken from it. The message belongs
// to no run: it names the minion of the session.
func (d *stream) metadata(sc *scratch) {
	root := d.Root
	root.MarkRead()
	if !root.Get("session_id").Is(jsonv.String) {
		m := d.Out.Unknown("companion", root.Raw())
		m.Session, m.Key = d.origin.session, "unknown:"+msg.HashKey(string(root.Raw()))
		return
	}
	name := sc.scalar(root.Get("name"))
	if name == "" || root.Get("is_minion").Is(jsonv.False) { // then the name is a title
		return
	}
	m := d.Out.Add()
	m.Session = cmp.Or(sc.scalar(root.Get("session_id")), d.origin.session)
	m.Key, m.Kind, m.Hidden, m.Complete = "minion:"+m.Session, msg.Status, true, msg.Complete
	m.Agent = msg.Agent{ID: m.Session, Name: name, Kind: msg.KindAgent}
	stampOf(root.Get("created_at")).Set(m)
	m.SetAttr("type", "minion")
	m.SetAttr("parent_minion_id", sc.scalar(root.Get("parent_overseer_id")))
}
