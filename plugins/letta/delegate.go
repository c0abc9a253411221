package letta

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/pyrepr"
)

// The tools by which one agent sends messages to others.
const (
	askTool   = "send_message_to_agent_and_wait_for_reply"
	asyncTool = "send_message_to_agent_async"
	tagsTool  = "send_message_to_agents_matching_tags"
	groupTool = "send_message_to_all_agents_in_group"
)

func delegates(tool string) bool {
	return tool == askTool || tool == asyncTool || tool == tagsTool || tool == groupTool
}

// fillDelegation sets the task and the delegate of a delegation.
func fillDelegation(m *msg.Message, args jsonv.Value) {
	m.Delegation.Task = args.Get("message").Text().Own()
	m.Delegation.Async = m.Tool.Name == asyncTool
	task := m.Delegation.Task.String()
	switch m.Tool.Name {
	case askTool, asyncTool:
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

// fillAnswer extracts the agents' answers from the result of a delegation:
//
//	{'agent_id': 'agent-1', 'response': ['...']}      one agent
//	[{'agent_id': ..., 'response': [...]}, ...]       those with a tag
//
// as the Python repr or as JSON. One agent's answer is its text; the answers of several are
// JSON. Any other result is kept as the text. An agent that failed has an error in the place
// of its response, while the status of the call is success. fillAnswer reports whether it
// used only a part of d.inner.
func (d *stream) fillAnswer(m *msg.Message, returned msg.Text) bool {
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

// correlateMessage sets the correlation prompts of the run that a message from another agent
// begins, so that the sender's call is linked to it: one prompt for a message to one agent,
// and one for a message to many.
func (d *stream) correlateMessage(r *run, in *input, m *msg.Message) {
	m.Delegation.CorrelationPrompt = sentTo(d.scope().Agent, in.Text)
	by := sentBy(in.Author.ID, in.Text)
	if r == nil || by == "" {
		return
	}
	m = d.status(r, "letter:"+msg.HashKey(r.ID, in.Text), "letter")
	m.ParentRun = msg.UnknownRun
	m.Delegation.CorrelationPrompt = by
	r.setTime(m, in)
}

// noResponse is the server's text for an empty answer.
const noResponse = "<no response>"

// agentMessage is a message from another agent.
type agentMessage struct{ from, text string }

// agentMessageOf extracts an agent's message from the system message in which the server
// wraps it:
//
//	[Incoming message from agent with ID 'agent-1' - your response will be ...] text
//
// The text may follow a second time, in lower case.
func agentMessageOf(s string) (l agentMessage, ok bool) {
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
