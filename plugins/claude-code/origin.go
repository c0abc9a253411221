package claudecode

import (
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/ident"
)

// origin has the facts in a file's path, which its lines may lack:
//
//	<project>/<session>.jsonl
//	<project>/agent-<agent>.jsonl                       about version 2.0
//	<project>/<session>/subagents/agent-<agent>.jsonl   with agent-<agent>.meta.json
//	<project>/<session>/subagents/workflows/<workflow>/agent-<agent>.jsonl, journal.jsonl
//	teams/<team>/config.json, teams/<team>/inboxes/<member>.json, tasks/<team or session>/<number>.json
type origin struct {
	session  string // empty when the path has none; the member, of an inbox
	team     string // or the session whose tasks they are
	agent    string // of a sub-agent's file
	workflow string // the run of a workflow script to which the file belongs
}

func parseOrigin(path string) origin {
	p := ident.PathOf(path)
	o := origin{session: p.Before("subagents"), team: p.After("teams", "tasks")}
	if o.session != "" {
		o.workflow = p.After("workflows")
	}
	name := p.Name(".jsonl", ".meta.json", ".json")
	if agent, ok := strings.CutPrefix(name, "agent-"); ok {
		o.agent = agent
	} else if o.session == "" {
		o.session = name
	}
	return o
}

// helper returns the name of a helper that Claude Code runs for itself, which is part of
// the id: acompact-946d2b compacts the context.
func helper(agent string) string {
	i := strings.LastIndexByte(agent, '-')
	if i < 2 || agent[0] != 'a' {
		return ""
	}
	return agent[1:i]
}
