// Package spawn recognizes calls by which an agent runs the command line of another
// agent, and names under which the call and the run that it causes find each other
// (msg.Delegate.CorrelationID, CorrelationPrompt). A decoder of the caller's format and
// one of the run's compute the same names, independently of each other.
//
// The one agent that is known is Codex, in three forms:
//
//   - codex exec PROMPT in a shell. Its header, on stderr, has "session id: …", and
//     with --json its first event is {"type":"thread.started","thread_id":"…"}. Many
//     send stderr away, so that only the prompt and the place are known.
//   - the MCP tools codex and codex-reply of codex mcp-server. The result has a threadId
//     since early 2026; before, nothing.
//   - a script that does the first of these: it is known by its output alone.
//
// Systems whose agents write to each other have a name for each text that was sent (Sent).
package spawn

import (
	"bytes"
	"path"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Codex is the name by which callers know the agent.
const Codex = "codex"

// Spawn is a call that runs another agent.
type Spawn struct {
	Agent string
	Task  string // the prompt; empty when it is not in the command

	CorrelationID     string // when a thread is taken up again that has a name already
	CorrelationPrompt string
}

// On sets the fields of the call's message that describe the spawn.
func (s Spawn) On(m *msg.Message) {
	m.Kind = msg.Delegation
	m.Delegation.To, m.Delegation.Task = s.Agent, msg.Plain(s.Task)
	m.Delegation.CorrelationID, m.Delegation.CorrelationPrompt = s.CorrelationID, s.CorrelationPrompt
}

// ID is the name under which a run of the agent's thread of that id is found.
func ID(agent, id string) string {
	if id == "" {
		return ""
	}
	return agent + ":" + id
}

// Prompt is the name under which a run is found that was asked that in that directory.
func Prompt(agent, dir, prompt string) string {
	const most = 64 << 10 // a name is made of every prompt
	if prompt = strings.TrimSpace(prompt); prompt == "" || len(prompt) > most || !path.IsAbs(dir) {
		return ""
	}
	return agent + ":asked:" + msg.HashKey(agent, path.Clean(dir), prompt)
}

// Sent is the name under which a run is found that begins with a text of another agent of
// that system sent: the text is all that both sides know.
func Sent(system, text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return system + ":sent:" + msg.HashKey(system, text)
}

// Call recognizes a call of Claude Code, whose shell is the tool Bash. input are its
// arguments, dir is where it is made.
func Call(tool, dir string, input jsonv.Value) (Spawn, bool) {
	if tool == "Bash" {
		if !bytes.Contains(input.Raw(), []byte(Codex)) { // most are none, and need no copy
			return Spawn{}, false
		}
		return Shell(input.Get("command").Str(), dir)
	}
	return Tool(tool, dir, func(name string) string { return input.Get(name).Str() })
}

// Tool recognizes the MCP tools of Codex. name is the tool's, as its server calls it or
// with the server's name before it (mcp__<server>__<tool>), argument returns an argument
// that is a string, and dir is where the caller is.
func Tool(name, dir string, argument func(name string) string) (Spawn, bool) {
	name = name[strings.LastIndex(name, "__")+1:]
	switch strings.TrimPrefix(name, "_") {
	case "codex", "codex-reply":
	default:
		return Spawn{}, false
	}
	s := Spawn{Agent: Codex, Task: argument("prompt")}
	if s.Task == "" {
		return Spawn{}, false
	}
	for _, known := range [...]string{"threadId", "conversationId"} {
		if s.CorrelationID == "" {
			s.CorrelationID = ID(Codex, argument(known))
		}
	}
	s.CorrelationPrompt = Prompt(Codex, join(dir, argument("cwd")), s.Task)
	return s, true
}

// join is the directory of a program that changes from dir to another one.
func join(dir, to string) string {
	if path.IsAbs(to) {
		return to
	}
	return path.Join(dir, to)
}

// Output finds, in the output of a call, the name of the thread that it ran; empty when
// there is none. The text may be quoted as in JSON.
func Output(text []byte) (meetID string) {
	const most = 1 << 20 // the name is at the beginning
	text = text[:min(len(text), most)]
	for _, mark := range [...]string{"session id: ", "thread.started", "threadId"} {
		for rest := text; ; {
			_, after, found := bytes.Cut(rest, []byte(mark))
			if !found {
				break
			}
			if id := uuid(after); id != "" {
				return ID(Codex, id)
			}
			rest = after
		}
	}
	return ""
}

// Script puts into the message of a result whether the call has run the agent after all,
// by its output.
func Script(m *msg.Message, output []byte) {
	if id := Output(output); id != "" {
		m.Delegation.To, m.Delegation.CorrelationID = Codex, id
	}
}

// uuid is the UUID at the beginning of b, or a few characters after it.
func uuid(b []byte) string {
	const length, near = 36, 32
	for i := 0; i <= near && i+length <= len(b); i++ {
		if id := b[i : i+length]; isUUID(id) {
			return string(id)
		}
	}
	return ""
}

func isUUID(b []byte) bool {
	for i, c := range b {
		switch hyphen := i == 8 || i == 13 || i == 18 || i == 23; {
		case hyphen && c == '-':
		case !hyphen && ('0' <= c && c <= '9' || 'a' <= c && c <= 'f'):
		default:
			return false
		}
	}
	return true
}
