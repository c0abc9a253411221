package claudecode

import "strings"

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
	// A path need not be text, but an id that is taken from it must be.
	path = strings.ToValidUTF8(path, "\uFFFD")
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return origin{}
	}
	var o origin
	name := parts[len(parts)-1]
	for _, end := range [...]string{".jsonl", ".meta.json", ".json"} {
		if i := strings.Index(name, end); i > 0 { // the rest is a rotation's number or .gz
			name = name[:i]
			break
		}
	}
	dirs := parts[:len(parts)-1]
	for i, dir := range dirs {
		switch {
		case (dir == "teams" || dir == "tasks") && i+1 < len(dirs):
			o.team = dirs[i+1]
		case dir == "subagents" && i > 0:
			o.session = dirs[i-1]
		case dir == "workflows" && i+1 < len(dirs) && o.session != "":
			o.workflow = dirs[i+1]
		}
	}
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
