package letta

import (
	"slices"
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
	return slices.Contains([]string{askTool, asyncTool, tagsTool, groupTool}, tool)
}

// fillDelegation makes a call a delegation, and sets its task and delegate from the arguments
// if they are valid.
func fillDelegation(m *msg.Message, args jsonv.Value, valid bool) {
	m.Kind = msg.Delegation
	if !valid {
		return
	}
	m.Delegation.Task = args.Get("message").Text().Own()
	m.Delegation.Async = m.Tool.Name == asyncTool
	task := m.Delegation.Task.String()
	m.Delegation.CorrelationPrompt = correlationPrompt("by", m.Agent.ID, task)
	switch m.Tool.Name {
	case askTool, asyncTool:
		m.Delegation.To = ident.Of(args.Get("other_agent_id"))
		m.Delegation.CorrelationPrompt = correlationPrompt("to", m.Delegation.To, task)
	case groupTool:
		m.Delegation.To = "group"
	case tagsTool:
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
// used only a part of w.inner.
func (w *writer) fillAnswer(m *msg.Message) bool {
	if m.IsError || !pyrepr.Parse(&w.inner, m.Content.Append(nil)) {
		return false
	}
	root := w.inner.Root()
	if root.Is(jsonv.Array) {
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
		return false
	}
	agent, failure, response := root.Get("agent_id"), root.Get("error"), root.Get("response")
	switch {
	case agent.Exists() && failure.Is(jsonv.String):
		m.IsError, m.Content = true, failure.Text().Own()
		m.SetAttr("error_class", ident.Of(root.Get("type")))
	case response.Is(jsonv.Array):
		if m.Delegation.To == "" {
			m.Delegation.To = ident.Of(agent)
		}
		answer := lines(response)
		if answer == "<no response>" { // the server's words for an empty answer
			answer = ""
			m.SetAttr("no_response", "true")
		}
		m.Content = msg.Plain(answer)
	default:
		return false
	}
	ident.Is(agent, m.Delegation.To)
	return true
}

// agentMessage is a message from another agent.
type agentMessage struct{ agent, text string }

// agentMessageOf extracts an agent's message from the system message in which the server
// wraps it, or returns nil:
//
//	[Incoming message from agent with ID 'agent-1' - your response will be ...] text
//
// The text may follow a second time, in lower case.
func agentMessageOf(s string) *agentMessage {
	rest, ok := strings.CutPrefix(s, "[Incoming message from ")
	head, text, closed := strings.Cut(rest, "] ")
	if !ok || !closed {
		return nil
	}
	_, id, _ := strings.Cut(head, "agent with ID '")
	id, _, _ = strings.Cut(id, "'")
	if half := len(text) / 2; len(text)%2 == 1 && text[half] == '\n' && strings.ToLower(text[:half]) == text[half+1:] {
		text = text[:half]
	}
	return &agentMessage{ident.Bounded(id), text}
}

// correlationPrompt is the correlation prompt of a call that sends a message to another agent,
// and of the run that the message begins there: no id on the wire links them. The way is "to"
// with the receiver for a message to one agent, and "by" with the sender for one to many, whose
// call does not have the receivers. It is empty when the agent or the text is unknown.
func correlationPrompt(way, agent, text string) string {
	const most = 64 << 10 // bytes of a text that is hashed
	if text = strings.TrimSpace(text); agent == "" || text == "" || len(text) > most {
		return ""
	}
	return "letta:letter:" + msg.HashKey(way, agent, text)
}

// setCorrelationID sets the correlation id of a run, by which the count of another run refers
// to it.
func (r *run) setCorrelationID(m *msg.Message) {
	r.Named, m.Delegation.CorrelationID = true, correlationID(r.ID)
}

func correlationID(run string) string { return "letta:run:" + run }

// sleeptimeRuns emits a delegation for each other run in a count: a run of a sleeptime agent,
// to which the server has handed the conversation at its end and for whose result no agent
// waits. The count has the ids of these runs and nothing else.
func (w *writer) sleeptimeRuns(r *run, ids jsonv.Value) {
	const most, sleeptime = 64, "sleeptime"
	n := 0
	for v := range ids.Elems() {
		id := ident.Of(v)
		if id == "" || w.find(id) != nil { // a known run began before
			continue
		}
		if n++; n > most {
			return
		}
		call := sleeptime + ":" + id
		for _, kind := range [...]msg.Kind{msg.Delegation, msg.DelegationResult} {
			m := w.message(r, kind, "call:"+call)
			m.Hidden = true
			m.Tool.CallID, m.Tool.Name, m.Tool.Internal = call, sleeptime, true
			m.Delegation = msg.Delegate{To: sleeptime, ChildRun: id, Link: msg.ByNativeID, Async: true}
			if kind == msg.Delegation {
				m.Delegation.CorrelationID = correlationID(id)
			} else {
				m.Key, m.ParentKey = "result:"+call, m.Key
			}
		}
	}
}
