package letta

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
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

// called makes a message the call. The arguments of one that hands work over, if they are JSON, have the task and the agent.
func (c *call) called(m *msg.Message, canon msg.Text, args jsonv.Value) {
	if !c.Task || args.Is(jsonv.Missing) {
		c.Called(m, canon, jsonv.Value{})
		return
	}
	task, way, agent := args.Get("message"), "by", m.Agent.ID
	switch c.Name {
	case groupTool:
		c.To = "group"
	case tagsTool:
		var tags []string
		for _, field := range [...]string{"match_all", "match_some"} {
			for tag := range args.Get(field).Elems() {
				tags = append(tags, tag.Text().String())
			}
			m.SetAttr(field, string(compact(nil, args.Get(field))))
		}
		c.To = ident.Bounded("tags:" + strings.Join(tags, ","))
	default:
		c.To = ident.Of(args.Get("other_agent_id"))
		way, agent = "to", c.To
	}
	m.Delegation.CorrelationPrompt = correlationPrompt(way, agent, task.Text().String())
	c.Called(m, canon, task)
}

// fillAnswer extracts the agents' answers from the result of a delegation:
//
//	{'agent_id': 'agent-1', 'response': ['...']}      one agent
//	[{'agent_id': ..., 'response': [...]}, ...]       those with a tag
//
// as the Python repr or as JSON. One agent's answer is its text; the answers of several are
// JSON. Any other result is kept as the text. An agent that failed has an error in the place
// of its response, while the status of the call is success.
func (w *writer) fillAnswer(m *msg.Message) {
	text := m.Content
	if m.IsError || !pyrepr.Parse(&w.inner, text.Append(nil)) {
		return
	}
	root := w.inner.Root()
	agent, failure, response := root.Get("agent_id"), root.Get("error"), root.Get("response")
	switch {
	case root.Is(jsonv.Array):
		m.Content = msg.Plain(string(compact(nil, root)))
		failed := 0
		for e := range root.Elems() {
			if e.Get("error").Exists() {
				failed++
			}
		}
		m.IsError = failed > 0 && failed == root.Len()
		m.SetAttr("failed", conversation.NonZero(failed))
	case agent.Exists() && failure.Is(jsonv.String):
		m.IsError, m.Content = true, failure.Text()
		m.SetAttr("error_class", ident.Of(root.Get("type")))
	case response.Is(jsonv.Array):
		m.Delegation.To = cmp.Or(m.Delegation.To, ident.Peek(agent))
		content, _ := contentOf(response)
		answer := content.String()
		if answer == "<no response>" { // the server's words for an empty answer
			answer = ""
			m.SetAttr("no_response", "true")
		}
		m.Content = msg.Plain(answer)
	default:
		return
	}
	if m.IsError {
		m.Tool.ErrorType = errorType(text)
	}
	ident.Is(agent, m.Delegation.To)
	w.KeepUnread(&w.inner, len(w.Out.Messages)-1)
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
		if n == most || r.ID == "" || id == "" || w.find(id).ID != "" { // a known run began before
			continue
		}
		n++
		tool := msg.Tool{CallID: sleeptime + ":" + id, Name: sleeptime, Internal: true}
		m := msg.Message{Kind: msg.Delegation, Key: "call:" + tool.CallID, Tool: tool, Hidden: true, Complete: w.level}
		m.Delegation = msg.Delegate{To: sleeptime, ChildRun: id, Link: msg.ByNativeID, Async: true}
		w.put(r, m).Delegation.CorrelationID = correlationID(id)
		m.Kind, m.Key, m.ParentKey = msg.DelegationResult, "result:"+tool.CallID, m.Key
		w.put(r, m)
	}
}
