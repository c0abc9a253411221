// Package geminicli decodes the chats that Gemini CLI records and prints, and the transcripts of its
// fork Qwen Code.
//
// Facts of the formats that are easy to get wrong:
//
//   - A chat of Gemini CLI is one document, session-*.json, which is rewritten after each
//     change, or since 2026 lines, session-*.jsonl: the first names the session, a message that
//     is written again replaces the earlier one, $set changes the head, and $set.messages is
//     the whole chat once more, where old results may be masked.
//   - A response is written before its calls are executed, and again with the calls when all of
//     them have ended. So a response is known to be the last of its run only by the
//     next prompt.
//   - Tokens: input includes the cached ones, output excludes the thoughts.
//   - The time of a call is that of its result.
//   - A user message may have context that the CLI adds: it has displayContent then, the words
//     that were typed. Commands (/help) and <session_context> are user messages as well.
//   - A sub-agent has a file of its own, chats/<session>/<agent>.jsonl, whose sessionId is the
//     agent's. The call names the agent; nothing in the file names the call.
//   - Qwen Code writes Claude Code's envelope (uuid, parentUuid, sessionId) around Gemini's
//     contents. Its sub-agents are in subagents/<session>/agent-<id>.jsonl, beside a
//     meta.json that names the call. With other providers the output includes the thoughts.
//   - The result of a sub-agent of Qwen Code that works in the background, which is the default of
//     0.21 and later, is that it was launched; its answer is in a notification, a user record.
//   - Up to version 0.15 a sub-agent of Qwen Code that is waited for has no file, and that of one in the
//     background no tokens: only the telemetry in the transcript has them.
package geminicli

import (
	"cmp"
	_ "embed"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:          "gemini-cli",
			Revision:      6,
			Summary:       "Chats of Gemini CLI, also as it prints them, and of Qwen Code, with their sub-agents.",
			Transports:    []frame.Kind{frame.Line, frame.Body},
			MetadataFiles: []string{"agent-*.meta.json", "session-*.json"},
			Documents:     []string{"session-*.json"},
		},
		LeavesOut: leavesOut,
		State:     2,
		Open: func(r *record.Current, s *state) record.Reader {
			return &chat{Current: r, state: s, file: ident.OfFile(r.Origin, ".json")}
		},
	}.Factory()
}

const maxSeen = 4096 // messages that are recognized when they are written again

// chat decodes one file.
type chat struct {
	*record.Current
	*state
	file     string // its name, which has the session where no record does
	copiedOf string // the session of which the record is a copy
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session string                    `json:",omitempty"`
	Dir     string                    `json:",omitempty"` // the first of its workspace
	Agent   msg.Agent                 `json:",omitzero"`
	Run     conversation.Run          `json:",omitzero"`
	Last    conversation.Time         `json:",omitzero"`  // of the last message of the run
	Rests   bool                      `json:",omitempty"` // the last response asks for no tool
	Calls   conversation.Calls[*call] `json:",omitzero"`
	Seen    bounded.Set[string]       `json:",omitzero"`
	Talk    talk                      `json:",omitzero"`
}

// call is a call of a tool.
type call struct {
	conversation.Delegation
	Run string `json:",omitempty"` // the run that made it, once its work goes on in the background
}

func made(id, name string) *call {
	return &call{Delegation: conversation.Delegation{Call: conversation.Call{ID: id, Name: name, Server: server(name)}}}
}

// Read decodes one line, or a whole document.
func (d *chat) Read() {
	d.copiedOf = ""
	switch {
	case d.Root.Get("uuid").Is(jsonv.String):
		qwen{d}.record(d.Root)
	case d.Root.Get("agentType").Is(jsonv.String):
		qwen{d}.metadata(d.Root)
	case d.Root.Get("$rewindTo").Is(jsonv.String):
		d.rewind(d.Root.Get("$rewindTo"))
	case d.Root.Get("$set").Is(jsonv.Object):
		d.head(d.Root.Get("$set"))
	case d.Root.Get("id").Is(jsonv.String):
		d.message(d.Root)
	case d.Root.Get("sessionId").Is(jsonv.String):
		d.head(d.Root)
	case d.Root.Get("timestamp").Exists() && d.Root.Get("type").In("init", "message", "tool_use", "tool_result", "error", "result"):
		printed{chat: d}.read(d.Root)
	default:
		d.Unknown(ident.Of(d.Root.Get("type")), d.Root)
	}
}

// In returns the session and the run.
func (d *chat) In() (session, run string) { return d.session(), d.Run.ID }

// fails makes a result that of a call which was stopped, or failed by its status.
func fails(m *msg.Message, status, class jsonv.Value) {
	switch {
	case status.Equal("cancelled"):
		m.IsError, m.Tool.ErrorType = true, "interrupted"
	case status.Equal("error"):
		m.IsError, m.Tool.ErrorType = true, cmp.Or(ident.Of(class), "tool_error")
	}
}

// Flush emits the end of a run whose last response asks for no tool.
func (d *chat) Flush() {
	if t := &d.Talk; len(t.Text) > 0 {
		m := d.beside(msg.Assistant, t.key("assistant"), t.At)
		t.response(m.Key, t.At).Said(m, msg.Quoted(slices.Clone(t.Text)))
		m.Complete = msg.Partial
		return
	}
	if d.Rests && d.Run.Active() {
		run := d.Run
		m := d.beside(msg.Stop, "end:"+run.ID, d.Last)
		m.Complete = msg.Partial
		run.Finish(m, "stop", false)
	}
}

// folder is the session that began a sub-agent, by the path of the sub-agent's file:
//
//	chats/session-<time>-<8 digits>.jsonl  chats/<session>/<agent>.jsonl         Gemini CLI
//	chats/<session>.jsonl                  subagents/<session>/agent-<id>.jsonl  Qwen Code
func folder(path string) string {
	p := ident.PathOf(path)
	if dir := p.Dir(); dir == p.After("chats", "subagents") {
		return dir
	}
	return ""
}

func (d *chat) session() string { return cmp.Or(d.copiedOf, d.Session, d.file, "unknown") }

// add adds a message of the run.
func (d *chat) add(kind msg.Kind, key string, at conversation.Time) *msg.Message {
	m := d.beside(kind, key, at)
	d.Run.Mark(m)
	if kind != msg.Status {
		d.Last = at.Or(d.Last)
	}
	return m
}

// beside adds a message that does not begin the run.
func (d *chat) beside(kind msg.Kind, key string, at conversation.Time) *msg.Message {
	m := d.Add(kind, key)
	if m.Run, m.Agent = d.Run.ID, d.Agent; d.copiedOf != "" {
		m.Complete = msg.Summary // the original replaces it
	}
	at.Set(m)
	return m
}

// isNew reports whether a message is written for the first time.
func (d *chat) isNew(key string) bool { return d.Seen.Add(d.copiedOf+key, maxSeen) }

// status adds a message beside the conversation, once; nil when it was added before.
func (d *chat) status(key, typ string, at conversation.Time) *msg.Message {
	if !d.isNew(key) {
		return nil
	}
	m := record.Hide(d.beside(msg.Status, key, at), typ)
	m.Run = ""
	return m
}

// prompt adds a user's message.
func (d *chat) prompt(key string, at conversation.Time, text msg.Text, files []msg.Attachment) *msg.Message {
	m := d.add(msg.User, key, at)
	m.Role, m.Agent, m.Content, m.Attachments = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, text, files
	if d.Run.Child {
		m.Agent.Kind = msg.KindAgent
	}
	d.Rests = false
	return m
}

// begin ends the run before a prompt and begins another one.
func (d *chat) begin(id string) {
	d.end("end:"+d.Run.ID, d.Last, "")
	d.Run.Begin(id)
}

// end ends the run.
func (d *chat) end(key string, at conversation.Time, reason string) {
	if !d.Run.Active() || !d.Run.Started || d.Run.Child && reason == "" {
		return
	}
	if reason == "" && d.Rests {
		reason = "stop"
	}
	d.Run.Finish(d.add(msg.Stop, key, at), reason, false)
}

// agentOf is the agent of a program, which all messages are of unless they are a sub-agent's.
func agentOf(program string) msg.Agent { return msg.Agent{Name: program, Kind: msg.KindAgent} }

// child makes the file that of a sub-agent.
func (d *chat) child(id, name string) {
	if d.Run.Child {
		return
	}
	d.Run = conversation.Run{ID: id, Child: true}
	d.Agent = msg.Agent{ID: id, Name: name, Kind: msg.KindAgent}
}

// usage emits the tokens of a response, once. ended: the model's answer is whole, and its calls, which are
// recorded when they are over, may run.
func (d *chat) usage(r *conversation.Response, c conversation.Counts, ended bool) {
	if !d.isNew("usage:" + r.ID) {
		return
	}
	r.Count(c, msg.TranscriptFinal)
	m := r.Usage(d.Out, msg.Complete)
	if m.Session, m.Agent = d.session(), d.Agent; ended {
		m.Signal = msg.ModelEnd
	}
	if d.copiedOf != "" {
		m.Complete = msg.Summary
	}
}
