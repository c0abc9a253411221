package letta

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/ident"
)

// scope is the session and the agent of messages that name neither.
type scope struct {
	Session string `json:",omitempty"`
	Agent   string `json:",omitempty"`
}

// newScope returns the scope of a conversation, which is more specific than its agent: the
// default conversation of an agent has the agent's id.
func newScope(conversation, agent string) scope {
	if conversation == "default" {
		conversation = ""
	}
	p := scope{Session: cmp.Or(conversation, agent), Agent: agent}
	if strings.HasPrefix(p.Session, "agent-") {
		p.Agent = cmp.Or(agent, p.Session)
	}
	return p
}

// override replaces the fields of p by those that q has.
func (p scope) override(q scope) scope {
	return scope{Session: cmp.Or(q.Session, p.Session), Agent: cmp.Or(q.Agent, p.Agent)}
}

// scopeOf reads the path of an address, or of a file that is named after an agent
// or a conversation:
//
//	/v1/agents/{agent}/messages/stream
//	/v1/conversations/{conversation}/messages?agent_id={agent}
//	captures/agent-0c3e.jsonl
func scopeOf(address string) scope {
	path, query, _ := strings.Cut(strings.ToValidUTF8(address, "\uFFFD"), "?")
	var agent, conversation, before string
	for part := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		stem, _, _ := strings.Cut(part, ".")
		switch {
		case before == "agents":
			agent = part
		case before == "conversations", before == "groups":
			conversation = part
		case strings.HasPrefix(part, "agent-"):
			agent = stem
		case strings.HasPrefix(part, "conv-"):
			conversation = stem
		}
		before = part
	}
	if conversation == "default" {
		conversation = ""
	}
	values, _ := url.ParseQuery(query) // the pairs that it can read
	return newScope(ident.Bounded(cmp.Or(conversation, values.Get("conversation_id"))), ident.Bounded(cmp.Or(agent, values.Get("agent_id"))))
}

// runIn returns the run that a path names.
func runIn(path string) string {
	_, id, _ := strings.Cut(path, "/runs/")
	id, _, _ = strings.Cut(id, "?")
	id, _, _ = strings.Cut(id, "/")
	return id
}
