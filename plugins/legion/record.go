package legion

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// head has the members that any record may have. It is read in one pass, as most of a
// decoder's work is looking for members that are not there.
type head struct {
	typ, stored, id, session, timestamp, content, metadata, data, parent, comm jsonv.Value
}

var headNames = jsonv.NamesOf("type", "_type", "message_id", "session_id", "timestamp", "content", "metadata", "data", "parent_tool_use_id", "comm_id")

func headOf(v jsonv.Value) (h head) {
	headNames.Read(v, &h.typ, &h.stored, &h.id, &h.session, &h.timestamp, &h.content, &h.metadata, &h.data, &h.parent, &h.comm)
	return h
}

// message has the members of a message of either side: of metadata in generation 1, of data
// in generation 2.
type message struct {
	model, id, turn, parent, uuid, usage, fault, content, session jsonv.Value
	toolUses, toolResults, thoughts, thought, toolResult, sdk     jsonv.Value
}

var messageNames = jsonv.NamesOf("model", "message_id", "turn_id", "parent_tool_use_id", "uuid", "usage", "error", "content", "session_id",
	"tool_uses", "tool_results", "thinking_blocks", "thinking_content", "tool_use_result", "raw_sdk_message")

func (a *message) read(v jsonv.Value) {
	messageNames.Read(v, &a.model, &a.id, &a.turn, &a.parent, &a.uuid, &a.usage, &a.fault, &a.content, &a.session,
		&a.toolUses, &a.toolResults, &a.thoughts, &a.thought, &a.toolResult, &a.sdk)
}

// stamp is a time and its text in the record.
type stamp struct {
	conversation.Time
	raw []byte // as written, for keys
}

func stampOf(v jsonv.Value) (t stamp) {
	if t.raw = v.Chars(); v.Is(jsonv.Number) {
		t.raw = v.Peek()
	}
	t.Time = conversation.TimeOf(v)
	return t
}

// or returns the time of a part, which may have one of its own.
func (t stamp) or(at jsonv.Value) conversation.Time { return conversation.TimeOf(at).Or(t.Time) }

// entry is one record on its way into messages.
type entry struct {
	*stream
	sc   *scratch
	root jsonv.Value // without an envelope
	head head        // of root
	msg  message     // of fields
	// fields are the members that depend on the type: metadata of generation 1, data of the
	// others.
	fields  jsonv.Value
	content jsonv.Value

	typ  string // in the words of generation 1
	id   []byte // its own id; empty on older lines
	at   stamp
	s    *session
	lane *lane // the run that it belongs to

	response string // of the model, that the record is a part of
	prompt   bool   // its first text may be a prompt
	launched bool   // a result in it reports that a sub-agent works in the background

	texts, thoughts int // parts of each kind so far
}

// read decodes one object, in an envelope or not.
func (d *stream) read(sc *scratch) {
	r := entry{stream: d, sc: sc, root: d.Root, head: headOf(d.Root)}
	var envelope head
	if r.head.data.Is(jsonv.Object) && r.head.typ.Equal("message") {
		envelope, r.root = r.head, r.head.data
		r.head = headOf(r.root)
	}
	r.id = read(r.head.id)
	r.at = stampOf(r.head.timestamp)
	r.at.Time = r.at.Or(stampOf(envelope.timestamp).Time) // raw is kept: the file's line has no envelope
	if r.head.comm.Exists() {
		r.comm(r.root)
	} else {
		r.s = d.session(&r.head, envelope.session)
		r.lane = &r.s.Top
		r.decode()
	}
	d.here = r.s.ID
}

// types has the records of the later generations in the words of generation 1.
var types = map[string]string{
	"AssistantMessage": "assistant", "UserMessage": "user", "ToolCallUpdate": "tool_call", "ResultMessage": "result",
	"PermissionRequestMessage": "permission_request", "PermissionResponseMessage": "permission_response",
	"SystemMessage": "system", "HookEventMessage": "system", "TaskStartedMessage": "system", "TaskProgressMessage": "system",
	"TaskUpdatedMessage": "system", "TaskNotificationMessage": "system",
}

// decode decodes a record of a session, by its type.
func (r *entry) decode() {
	name, stored := r.head.typ, r.head.stored.Is(jsonv.String)
	if r.fields = r.head.metadata; stored {
		name, r.fields = r.head.stored, r.head.data
	}
	r.msg.read(r.fields)
	if r.content = r.head.content; stored {
		r.content = r.msg.content
	}
	if !stored && !r.msg.parent.Exists() {
		r.msg.parent = r.head.parent
	}
	if stored && len(r.id) == 0 {
		r.id = r.msg.uuid.Chars()
	}
	known(r.msg.uuid)
	known(r.msg.session)
	r.lane = r.laneOf(r.msg.parent)

	typ := read(name)
	if stored {
		r.typ = types[string(typ)]
	} else {
		r.typ = r.sc.intern(typ)
	}
	switch r.typ {
	case "assistant":
		r.assistant()
	case "user":
		r.user()
	case "system":
		r.system()
	case "result":
		r.result()
	case "tool_call":
		r.toolCall()
	case "thinking", "tool_use":
		r.piece()
	case "tool_result", "tool_error":
		r.toolResult()
	case "permission_request", "permission_response":
		r.permission()
	case "error", "exception", "warning":
		r.error()
	case "comm":
		r.commEvent()
	case "ping", "pong":
		r.status("", msg.Text{})
	case "state_change", "status_update", "processing", "session_start", "session_end", "channel_created",
		"project_updated", "sessions_list", "connection_established", "interrupt_response":
		text := r.content.Text()
		if text.IsZero() {
			text = r.head.data.Text()
		}
		r.status("", text)
	default:
		r.unknown(string(typ), r.Frame.Data)
	}
}

// add adds a message of the record's run.
func (r *entry) add(k msg.Kind, role msg.Role) *msg.Message {
	m := r.Out.Add()
	m.Session = r.s.ID
	m.Kind, m.Role = k, role
	r.at.Set(m)
	m.Complete = msg.Complete
	r.lane.mark(m)
	return m
}

// key names the part of the record with that text: after the record's id, or by
// a hash of the record's facts. n counts the parts of one kind.
func (r *entry) key(part string, n int, text msg.Text) string {
	sc := r.sc
	if len(r.id) > 0 {
		sc.key = append(append(sc.key[:0], r.id...), part...)
	} else {
		sc.key = append(sc.key[:0], sc.hashKey(r.typ, part, r.at.raw, text)...)
	}
	if n > 0 {
		sc.key = strconv.AppendInt(append(sc.key, '/'), int64(n), 10)
	}
	return sc.str(sc.key)
}

// unknown keeps the record, or a part of it, as it is.
func (r *entry) unknown(typ string, raw []byte) {
	if typ == "" {
		typ = "untyped"
	}
	m := r.Out.Unknown(typ, raw)
	m.Session, m.Key = r.s.ID, "unknown:"+msg.HashKey(string(raw))
	if len(raw) < len(r.Frame.Data) { // a part may come again in another record
		m.Key = "unknown:" + msg.HashKey(string(raw), string(r.at.raw))
	} else {
		r.Root.MarkRead()
	}
	r.at.Set(m)
	r.lane.mark(m)
}

// about adds a message about the run or the session itself.
func (r *entry) about(k msg.Kind, role msg.Role, typ, sub string, text msg.Text) *msg.Message {
	m := r.add(k, role)
	m.Key, m.Content = r.key("", 0, text), text
	m.Attrs = make([]msg.Attr, 0, 6)
	m.SetAttr("type", typ)
	m.SetAttr("subtype", sub)
	return m
}

// status adds a hidden one.
func (r *entry) status(sub string, text msg.Text) *msg.Message {
	m := r.about(msg.Status, msg.NoRole, r.typ, sub, text)
	m.Hidden = true
	return m
}

// error decodes an error, or a warning, which is an error that ended nothing.
func (r *entry) error() {
	text, again := r.content.Text(), r.root.First("error_message", "message", "error")
	if text.IsZero() {
		text = again.Text()
	} else {
		again.Equal(r.content.PeekStr())
	}
	kind := msg.Error
	if r.typ == "warning" {
		kind = msg.System
	}
	m := r.about(kind, msg.RoleSystem, r.typ, "", text)
	m.IsError = kind == msg.Error
	if t := r.sc.name(r.fields.Get("error_type")); t != r.typ {
		m.Tool.ErrorType = t
	}
	m.SetAttr("error_code", r.sc.scalar(r.fields.Get("error_code")))
}
