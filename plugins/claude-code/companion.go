package claudecode

import (
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// companion decodes agent-<id>.meta.json, which names the call that caused the
// sub-agent:
//
//	{"agentType":"Explore","description":"…","toolUseId":"toolu_…","spawnDepth":1,"parentAgentId":"…"}
//
// The agents of a workflow have an agentType and nothing else: their parent is
// the workflow's run, which their path names. The message belongs to no run,
// because it has no time of its own and must not begin one.
func (d *transcript) companion(root jsonv.Value, out *decoder.Output) {
	ln := line{root: root, out: out}
	d.flat(&ln)
	call, typ := ident(root.Get("toolUseId")), root.Get("agentType")
	if d.file.agent == "" || call == "" && !typ.Is(jsonv.String) {
		name := "companion"
		if t := root.Get("type").Str(); t != "" {
			name = t
		}
		d.unknown(&ln, name, root)
		return
	}
	m := d.status(&ln, "link:"+d.file.agent, "agent_meta")
	m.Content = root.Get("description").Text()
	m.Delegation.To, m.Delegation.ChildRun = ident(typ), d.file.agent
	m.ParentRun = ident(root.Get("parentAgentId"))
	switch {
	case call != "":
		m.Signal, m.Tool.CallID, m.Delegation.Link = msg.Link, call, msg.ByMetaFile
	case d.file.workflow != "":
		m.ParentRun, m.Delegation.Link = d.file.workflow, msg.ByParent
	}
	if depth := root.Get("spawnDepth"); depth.Is(jsonv.Number) {
		m.SetAttr("spawn_depth", string(depth.Raw()))
	}
}
