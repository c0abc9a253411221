package interchange

import (
	"slices"
)

// Chat is a line for supervised fine-tuning: the messages of one agent as the Chat
// Completions API has them.
type Chat struct {
	Messages []ChatMessage `json:"messages"`
}

// ChatMessage is a message of a Chat.
type ChatMessage struct {
	Role       string     `json:"role"` // system, user, assistant, tool
	Content    string     `json:"content"`
	ToolCalls  []ChatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// ChatCall is a call; its arguments are a JSON object in a string.
type ChatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// SFT returns the chats of a trajectory: its own, divided where the context was compacted, and
// those of the trajectories embedded in it. Chats without an answer, calls without a result, and
// reasoning are left out; the results of a call follow it at once.
func SFT(t *Trajectory) (out []Chat) {
	if t == nil {
		return nil
	}
	var chat Chat
	end := func() {
		if slices.ContainsFunc(chat.Messages, func(m ChatMessage) bool { return m.Role == "assistant" }) {
			out = append(out, chat)
		}
		chat = Chat{}
	}
	for _, s := range t.Steps {
		if s.Extra["compaction"] == true {
			end()
		}
		chat.Messages = append(chat.Messages, s.chat()...)
	}
	end()
	for _, c := range t.Subagents {
		out = append(out, SFT(c)...)
	}
	return out
}

// chat returns a step as messages; none for an error, and for a step that a user would not see.
func (s *Step) chat() []ChatMessage {
	if s.Extra["hidden"] == true && s.Extra["compaction"] != true || s.Extra["kind"] == "error" {
		return nil
	}
	m := ChatMessage{Role: s.Source, Content: s.Message.text()}
	if s.Source == "agent" {
		m.Role = "assistant"
	}
	var results []ChatMessage
	for _, c := range s.ToolCalls {
		content, ok := s.resultOf(c.ID)
		if !ok {
			continue
		}
		call := ChatCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, string(c.Arguments)
		m.ToolCalls = append(m.ToolCalls, call)
		results = append(results, ChatMessage{Role: "tool", ToolCallID: c.ID, Content: content})
	}
	if m.Content == "" && len(m.ToolCalls) == 0 {
		return nil
	}
	return append([]ChatMessage{m}, results...)
}

// text joins the parts.
func (m Message) text() (out string) {
	for i, t := range m {
		if i > 0 {
			out += "\n"
		}
		out += t
	}
	return out
}

// resultOf returns the last result of a call.
func (s *Step) resultOf(id string) (content string, ok bool) {
	if s.Observation == nil {
		return "", false
	}
	for _, r := range s.Observation.Results {
		if r.CallID != nil && *r.CallID == id && r.Content != nil {
			content, ok = *r.Content, true
		}
	}
	return content, ok
}
