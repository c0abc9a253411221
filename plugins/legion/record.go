package legion

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// members are those that a record may have, the envelope around it, its metadata and its data. They are read in one pass, as most
// of a decoder's work is looking for members that are not there.
type members struct {
	kind, stored, id, session, timestamp, content, metadata, data, parent, comm jsonv.Value
	model, turn, uuid, usage, fault                                             jsonv.Value // of a message of either side, as those that follow
	toolUses, toolResults, thoughts, thought, toolResult, sdk                   jsonv.Value
}

var names = jsonv.NamesOf("type", "_type", "message_id", "session_id", "timestamp", "content", "metadata", "data", "parent_tool_use_id", "comm_id",
	"model", "turn_id", "uuid", "usage", "error",
	"tool_uses", "tool_results", "thinking_blocks", "thinking_content", "tool_use_result", "raw_sdk_message")

func (m *members) read(v jsonv.Value) {
	names.Read(v, &m.kind, &m.stored, &m.id, &m.session, &m.timestamp, &m.content, &m.metadata, &m.data, &m.parent, &m.comm,
		&m.model, &m.turn, &m.uuid, &m.usage, &m.fault,
		&m.toolUses, &m.toolResults, &m.thoughts, &m.thought, &m.toolResult, &m.sdk)
}

// entry is one record on its way into messages, whichever generation wrote it.
type entry struct {
	*stream
	root   jsonv.Value // without an envelope
	head   members     // of root
	stored bool        // by generation 2 or 3
	typ    string      // in the words of generation 1
	// fields are the members that depend on the type: metadata of generation 1, data of the
	// others.
	fields  jsonv.Value
	msg     members // of fields
	content jsonv.Value

	id      string // its own; empty on older lines
	written []byte // its time as it is written, for keys
	lane    *lane  // the run that it belongs to

	response string // of the model, that the record is a part of
	prompt   bool   // its first text may be a prompt
	launched bool   // a result in it reports that a sub-agent works in the background

	texts, thoughts int // parts of each kind so far
}

// read decodes one object, in an envelope or not.
func (d *stream) read() {
	r := entry{stream: d, root: d.Root}
	r.head.read(d.Root)
	var session, timestamp jsonv.Value // of an envelope
	if r.head.data.Is(jsonv.Object) && r.head.kind.Equal("message") {
		session, timestamp, r.root = r.head.session, r.head.timestamp, r.head.data
		r.head = members{}
		r.head.read(r.root)
	}
	r.id = r.StrOf(r.head.id)
	if r.written = r.head.timestamp.Chars(); r.head.timestamp.Is(jsonv.Number) {
		r.written = r.head.timestamp.Peek()
	}
	d.At = conversation.TimeOf(r.head.timestamp).Or(conversation.TimeOf(timestamp))
	comm := r.root
	if r.head.kind.Equal("comm") { // of the WebSocket
		comm = r.root.First("comm", "data")
		r.head.comm = comm.Get("comm_id")
	}
	if r.head.comm.Exists() {
		d.comm(comm, r.root.Get("legion_id"))
	} else {
		d.enterSession(&r.head, session)
		r.decode()
	}
}

// types has the records of the later generations in the words of generation 1.
var types = conversation.Rules(map[string]string{
	"AssistantMessage": "assistant", "UserMessage": "user", "ToolCallUpdate": "tool_call", "ResultMessage": "result",
	"PermissionRequestMessage": "permission_request", "PermissionResponseMessage": "permission_response",
	"SystemMessage HookEventMessage TaskStartedMessage TaskProgressMessage TaskUpdatedMessage TaskNotificationMessage": "system",
})

// decode decodes a record of a session, by its type.
func (r *entry) decode() {
	name := r.head.stored
	if r.stored = name.Is(jsonv.String); r.stored {
		r.fields = r.head.data
	} else {
		name, r.fields, r.content = r.head.kind, r.head.metadata, r.head.content
	}
	if r.msg.read(r.fields); r.stored {
		r.content = r.msg.content
	}
	typ, uuid := r.Name(name), r.StrOf(r.msg.uuid)
	if r.typ = typ; r.stored {
		r.typ, r.id = types[typ], cmp.Or(r.id, uuid)
	}
	r.msg.session.MarkRead()
	r.enter(jsonv.Or(r.msg.parent, r.head.parent))

	switch r.typ {
	case "assistant":
		r.assistant()
	case "user":
		r.user()
	case "thinking", "tool_use", "tool_result", "tool_error":
		r.piece()
	case "tool_call":
		r.toolCall()
	case "permission_request", "permission_response":
		r.permission()
	case "system":
		r.system()
	case "result":
		r.result()
	case "error", "exception", "warning":
		r.error()
	case "ping", "pong":
		r.status("", msg.Text{})
	case "state_change", "status_update", "processing", "session_start", "session_end", "channel_created",
		"project_updated", "sessions_list", "connection_established", "interrupt_response":
		r.status("", jsonv.FirstText(r.content, r.head.data))
	default:
		r.unknown(typ, r.Root)
	}
}

// text returns the text of the record, unless it is a phrase that the writer puts where there is none.
func (r *entry) text(sub string) msg.Text {
	text, phrase := r.content.Text(), false
	switch b := r.content.Escaped(); r.typ {
	case "assistant":
		phrase = string(b) == "Assistant response"
	case "user": // "Tool results: 2 results"
		b, begins := bytes.CutPrefix(b, []byte("Tool results: "))
		n, ends := bytes.CutSuffix(b, []byte(" results"))
		phrase = begins && ends && len(n) > 0 && len(bytes.Trim(n, "0123456789")) == 0 &&
			(r.fields.Get("has_tool_results").Bool() || hasResult(r.msg.toolResults))
	case "result":
		phrase = string(b) == "Conversation "+sub
	case "system": // "System message", "System init: <id>"
		b, begins := bytes.CutPrefix(b, []byte("System "))
		id, named := bytes.CutPrefix(b, []byte(sub+": "))
		phrase = begins && (string(b) == "message" || named && bytes.IndexByte(id, ' ') < 0)
	}
	if phrase {
		return msg.Text{}
	}
	return text
}

// add adds a message of the record's run.
func (r *entry) add(k msg.Kind, role msg.Role) *msg.Message {
	m := r.Out.Add()
	m.Session = r.s.ID
	m.Kind, m.Role = k, role
	r.At.Set(m)
	m.Complete = msg.Complete
	r.lane.mark(m)
	return m
}

// key names the part of the record with that text: after the record's id, or by a hash of the record's facts.
func (r *entry) key(part string, text msg.Text) string {
	if r.id != "" {
		return r.Join(r.id, part)
	}
	return r.Str(r.Hash(text, r.typ+part, string(r.written)))
}

// unknown keeps the record, or a part of it, as it is.
func (r *entry) unknown(typ string, v jsonv.Value) {
	m := r.Unknown(cmp.Or(typ, "untyped"), v)
	if v != r.Root { // a part may come again in another record
		m.Key = "unknown:" + msg.HashKey(string(v.Peek()), string(r.written))
	}
	r.lane.mark(m)
}

// status adds a hidden message about the run or the session itself.
func (r *entry) status(sub string, text msg.Text) *msg.Message {
	m := r.add(msg.Status, msg.NoRole)
	m.Key, m.Content, m.Hidden = r.key("", text), text, true
	m.Attrs = make([]msg.Attr, 0, 6)
	typ, _, _ := strings.Cut(r.typ, "/")
	m.SetAttr("type", typ)
	m.SetAttr("subtype", sub)
	return m
}

// error decodes an error, or a warning, which is an error that ended nothing.
func (r *entry) error() {
	again := r.root.First("error_message", "message", "error")
	m := r.status("", jsonv.FirstText(r.content, again))
	again.Equal(r.content.PeekStr())
	m.Kind, m.Role, m.Hidden, m.IsError = msg.Error, msg.RoleSystem, false, true
	if r.typ == "warning" {
		m.Kind, m.IsError = msg.System, false
	}
	if t := r.Name(r.fields.Get("error_type")); t != r.typ {
		m.Tool.ErrorType = t
	}
	m.SetAttr("error_code", r.Scalar(r.fields.Get("error_code")))
}
