package letta

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/pyrepr"
)

// The tools by which one agent writes to others.
const (
	askTool   = "send_message_to_agent_and_wait_for_reply"
	tellTool  = "send_message_to_agent_async"
	tagsTool  = "send_message_to_agents_matching_tags"
	groupTool = "send_message_to_all_agents_in_group"
)

func delegates(tool string) bool {
	return tool == askTool || tool == tellTool || tool == tagsTool || tool == groupTool
}

// hand says what a delegation hands over, and to whom.
func hand(m *msg.Message, args jsonv.Value) {
	m.Delegation.Task = args.Get("message").Text().Own()
	m.Delegation.Async = m.Tool.Name == tellTool
	task := m.Delegation.Task.String()
	switch m.Tool.Name {
	case askTool, tellTool:
		m.Delegation.To = ident.Of(args.Get("other_agent_id"))
		m.Delegation.CorrelationPrompt = sentTo(m.Delegation.To, task)
	case groupTool:
		m.Delegation.To = "group"
		m.Delegation.CorrelationPrompt = sentBy(m.Agent.ID, task)
	case tagsTool:
		m.Delegation.CorrelationPrompt = sentBy(m.Agent.ID, task)
		var tags []string
		for _, field := range [...]string{"match_all", "match_some"} {
			for tag := range args.Get(field).Elems() {
				tags = append(tags, tag.Text().String())
			}
			m.SetAttr(field, string(compact(nil, args.Get(field))))
		}
		m.Delegation.To = ident.Bounded("tags:" + strings.Join(tags, ","))
	}
}

// answered takes the agents' answers out of what a delegation returned:
//
//	{'agent_id': 'agent-1', 'response': ['...']}      one agent
//	[{'agent_id': ..., 'response': [...]}, ...]       those with a tag
//
// which is Python's way to write them, or JSON. One agent's answer is its text; the
// answers of several are JSON. What is neither is the result as it stands. An agent
// that has failed has an error in the place of its response, and the status of the
// call is success all the same. It reports whether it has taken from d.inner only a part.
func (d *stream) answered(m *msg.Message, returned msg.Text) bool {
	m.Content = returned
	if m.IsError {
		return false
	}
	raw := returned.Append(nil)
	if d.inner.Parse(raw) != nil {
		var ok bool
		if raw, ok = pyrepr.JSON(raw); !ok || d.inner.Parse(raw) != nil {
			return false
		}
	}
	switch root := d.inner.Root(); {
	case root.Is(jsonv.Array):
		m.Content = msg.Plain(string(compact(nil, root)))
		failed := 0
		for e := range root.Elems() {
			if e.Get("error").Exists() {
				failed++
			}
		}
		m.IsError = failed > 0 && failed == root.Len()
		if failed > 0 {
			m.SetAttr("failed", strconv.Itoa(failed))
		}
	case root.Get("agent_id").Exists() && root.Get("error").Is(jsonv.String):
		m.IsError = true
		m.Content = root.Get("error").Text().Own()
		m.SetAttr("error_class", ident.Of(root.Get("type")))
		ident.Is(root.Get("agent_id"), m.Delegation.To)
		return true
	case root.Get("response").Is(jsonv.Array):
		if m.Delegation.To == "" {
			m.Delegation.To = ident.Of(root.Get("agent_id"))
		}
		ident.Is(root.Get("agent_id"), m.Delegation.To)
		answer := lines(root.Get("response"))
		if answer == noResponse {
			answer = ""
			m.SetAttr("no_response", "true")
		}
		m.Content = msg.Plain(answer)
		return true
	}
	return false
}

// received names the run that a letter begins, so that the call that sent it finds it:
// under the name of a letter to one agent, and under that of a letter to many.
func (d *stream) received(r *run, in *input, m *msg.Message) {
	m.Delegation.CorrelationPrompt = sentTo(d.place().Agent, in.Text)
	by := sentBy(in.Author.ID, in.Text)
	if r == nil || by == "" {
		return
	}
	m = d.status(r, "letter:"+msg.HashKey(r.ID, in.Text), "letter")
	m.ParentRun = msg.UnknownRun
	m.Delegation.CorrelationPrompt = by
	r.date(m, in)
}

// noResponse stands where an agent has answered nothing.
const noResponse = "<no response>"

// letter is a message that another agent has sent.
type letter struct{ from, text string }

// letterOf takes a letter out of the system message in which the server puts it:
//
//	[Incoming message from agent with ID 'agent-1' - your response will be ...] text
//
// The text may stand in it a second time, in lower case.
func letterOf(s string) (l letter, ok bool) {
	rest, ok := strings.CutPrefix(s, "[Incoming message from ")
	if !ok {
		return l, false
	}
	head, rest, ok := strings.Cut(rest, "] ")
	if !ok {
		return l, false
	}
	if _, id, named := strings.Cut(head, "agent with ID '"); named {
		id, _, _ = strings.Cut(id, "'")
		l.from = ident.Bounded(id)
	}
	l.text = rest
	if half := len(rest) / 2; len(rest)%2 == 1 && rest[half] == '\n' && strings.ToLower(rest[:half]) == rest[half+1:] {
		l.text = rest[:half]
	}
	return l, true
}
