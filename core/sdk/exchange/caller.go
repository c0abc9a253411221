package exchange

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Caller is who made a request, by the headers with which coding agents identify it. The main agent of a session has no
// id; a sub-agent has one, and the id of the agent above it unless that is the main one.
//
//	Claude Code  x-claude-code-session-id, -agent-id, -agent-type, -parent-agent-id
//	Codex        session-id (of the whole tree), thread-id, x-codex-parent-thread-id, x-openai-subagent; all of them, and the
//	             turn, in x-codex-turn-metadata; in a message of a WebSocket as client_metadata, where some are session_id, thread_id, turn_id
//	OpenCode     x-opencode-session(-id) or x-session-id, x-(opencode-)parent-session-id: a sub-agent has a session of its own
type Caller struct {
	Session string `json:",omitempty"`
	Agent   string `json:",omitempty"`
	Type    string `json:",omitempty"`
	Above   string `json:",omitempty"`
	// Turn is the turn of the main agent.
	Turn string `json:",omitempty"`
	// Request is the provider's id of the request, of the response's head.
	Request string `json:",omitempty"`
}

// headers reads the headers of a request, and returns them all.
func (c *Caller) headers(object string) map[string]string {
	var h map[string]string
	if object != "" && json.Unmarshal([]byte(object), &h) != nil {
		h = nil
	}
	c.read(h)
	return h
}

// answered reads the provider's id of a request whose headers came before it.
func (c *Caller) answered(object string) {
	var h map[string]string
	if object != "" && json.Unmarshal([]byte(object), &h) == nil && h["request-id"] != "" {
		c.Request = ident.Bounded(h["request-id"])
	}
}

// read finds the caller by its headers.
func (c *Caller) read(h map[string]string) {
	*c = Caller{}
	var turn struct {
		Session string `json:"session_id"`
		Thread  string `json:"thread_id"`
		Parent  string `json:"parent_thread_id"`
		Turn    string `json:"turn_id"`
		Kind    string `json:"subagent_kind"`
	}
	if text := h["x-codex-turn-metadata"]; text != "" && json.Unmarshal([]byte(text), &turn) != nil {
		turn.Session = ""
	}
	session := cmp.Or(h["session-id"], turn.Session)
	if h["thread_id"] != "" {
		session = cmp.Or(session, h["session_id"])
	}
	switch {
	case h["x-claude-code-session-id"] != "":
		*c = Caller{Session: h["x-claude-code-session-id"], Agent: h["x-claude-code-agent-id"], Type: h["x-claude-code-agent-type"], Above: h["x-claude-code-parent-agent-id"]}
	case session != "":
		thread := cmp.Or(h["thread-id"], turn.Thread, h["thread_id"], h["x-client-request-id"])
		if c.Session = session; thread != session && thread != "" {
			c.Agent, c.Type = thread, cmp.Or(h["x-openai-subagent"], turn.Kind)
			if parent := cmp.Or(h["x-codex-parent-thread-id"], turn.Parent); parent != session {
				c.Above = parent
			}
		} else {
			c.Turn = cmp.Or(turn.Turn, h["turn_id"])
		}
	default:
		own := cmp.Or(h["x-opencode-session-id"], h["x-opencode-session"], h["x-session-id"], h["x-session-affinity"])
		parent := cmp.Or(h["x-opencode-parent-session-id"], h["x-parent-session-id"])
		if c.Session = own; parent != "" && own != "" {
			c.Session, c.Agent = parent, own
		}
	}
	c.Request = h["request-id"]
	for _, id := range [...]*string{&c.Session, &c.Agent, &c.Type, &c.Above, &c.Turn, &c.Request} {
		*id = ident.Bounded(*id)
	}
}

// Identify reads the headers of a request that has them in its body.
func Identify(e *Exchange, object jsonv.Value) {
	e.headers = make(map[string]string)
	for k, v := range object.Members() {
		if v.Is(jsonv.String) {
			e.headers[string(k.Bytes())] = v.Str()
		}
	}
	e.Caller.read(e.headers)
}

// asked is the name that a call and the run that it causes share: the agent that calls, and its words.
func (c *Caller) asked(agent, prompt string) string {
	for { // Claude Code puts reminders beside a prompt
		before, rest, ok := strings.Cut(prompt, "<system-reminder>")
		_, after, closed := strings.Cut(rest, "</system-reminder>")
		if !ok || !closed {
			break
		}
		prompt = before + after
	}
	if prompt = strings.TrimSpace(prompt); c.Session == "" || prompt == "" {
		return ""
	}
	return "exchange:asked:" + msg.HashKey(c.Session, agent, prompt)
}

// named is the name that a result and the run that it is of share: the id of the agent.
func (c *Caller) named(agent string) string {
	if c.Session == "" || agent == "" {
		return ""
	}
	return "exchange:agent:" + msg.HashKey(c.Session, agent)
}

// agent begins the run of a sub-agent with a prompt.
func (e *Exchange) agent(out *decoder.Output, prompt string) {
	c := &e.Caller
	m := e.Status(out, "agent:"+c.Agent, "agent")
	m.Signal = msg.RunStart
	m.SetAttr("agent_above", c.Above)
	m.Delegation.CorrelationID, m.Delegation.CorrelationPrompt = c.named(c.Agent), c.asked(c.Above, prompt)
}

// spawned finds the id of the agent in the result of the call that ran it.
func (e *Exchange) spawned(m *msg.Message, text string) {
	if e.Caller.Session == "" {
		return
	}
	var doc jsonv.Doc
	id := ""
	if strings.HasPrefix(text, "{") && doc.Parse([]byte(text)) == nil {
		id = ident.Of(doc.Root().Get("agent_id"))
	} else if _, after, ok := strings.Cut(text, "agentId: "); ok {
		id, _, _ = strings.Cut(after, " ")
		id, _, _ = strings.Cut(id, "\n")
	}
	if id = ident.Bounded(id); id != "" {
		m.Delegation.CorrelationID = e.Caller.named(id)
	}
}

// headerAttrs makes the headers attributes of a request.
func headerAttrs(m *msg.Message, headers map[string]string) {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m.SetAttr("header."+name, headers[name])
	}
}
