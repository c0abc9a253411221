package letta

import (
	"net/url"
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/ident"
)

// scope is the default session and agent of messages that name neither.
type scope struct {
	Session string `json:",omitempty"`
	Agent   string `json:",omitempty"`
}

// override replaces the fields of p by those that q has.
func (p scope) override(q scope) scope {
	if q.Session != "" {
		p.Session = q.Session
	}
	if q.Agent != "" {
		p.Agent = q.Agent
	}
	return p
}

// sessionScope is the scope of a session id. The default conversation of an agent has the
// agent's id.
func sessionScope(session string) scope {
	p := scope{Session: session}
	if strings.HasPrefix(session, "agent-") {
		p.Agent = session
	}
	return p
}

// scopeOf reads the path of an address, or of a file that is named after an agent
// or a conversation:
//
//	/v1/agents/{agent}/messages/stream
//	/v1/conversations/{conversation}/messages?agent_id={agent}
//	captures/agent-0c3e.jsonl
//
// A conversation is more specific than an agent, which may have many.
func scopeOf(address string) scope {
	path, query, _ := strings.Cut(address, "?")
	var agent, conversation, before string
	for part := range strings.FieldsFuncSeq(strings.ToValidUTF8(path, "\uFFFD"), func(c rune) bool { return c == '/' || c == '\\' }) {
		stem, _, _ := strings.Cut(part, ".")
		switch {
		case before == "agents":
			agent = ident.Bounded(part)
		case (before == "conversations" || before == "groups") && part != "default":
			conversation = ident.Bounded(part)
		case strings.HasPrefix(part, "agent-"):
			agent = ident.Bounded(stem)
		case strings.HasPrefix(part, "conv-"):
			conversation = ident.Bounded(stem)
		}
		before = part
	}
	if values, err := url.ParseQuery(query); err == nil {
		for _, f := range [...]struct {
			to   *string
			name string
		}{{&agent, "agent_id"}, {&conversation, "conversation_id"}} {
			if v := values.Get(f.name); v != "" && *f.to == "" {
				*f.to = ident.Bounded(strings.ToValidUTF8(v, "\uFFFD"))
			}
		}
	}
	p := sessionScope(agent)
	if conversation != "" && conversation != "default" {
		p.Session = conversation
		if strings.HasPrefix(conversation, "agent-") && p.Agent == "" {
			p.Agent = conversation
		}
	}
	if p.Agent == "" {
		p.Agent = agent
	}
	return p
}

// runIn returns the run that a path names.
func runIn(path string) string {
	_, id, _ := strings.Cut(path, "/runs/")
	id, _, _ = strings.Cut(id, "?")
	id, _, _ = strings.Cut(id, "/")
	return id
}

// scope returns the scope of the frame's messages.
func (d *stream) scope() scope { return d.origin.override(d.Place) }

// session returns the session of a run's messages. Without a scope it is the run, which is
// the same in all forms.
func (d *stream) session(run string) string {
	if p := d.scope(); p.Session != "" {
		return p.Session
	}
	if run != "" {
		return run
	}
	if d.Run != "" {
		return d.Run
	}
	return "unknown"
}
