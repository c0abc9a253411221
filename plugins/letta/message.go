package letta

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// frameKind is the kind of a frame, the same for all names that versions have for it.
type frameKind uint8

const (
	isUnknown frameKind = iota
	isReasoning
	isHidden
	isText
	isCall
	isApprovalRequest
	isResult
	isInput // user_message, system_message
	isApproval
	isSummary
	isEvent
	isPing
	isStop
	isUsage
	isError
)

// typeOf returns the kind of v. Frames of the oldest servers have no type; the field that
// holds the message decides.
func typeOf(v jsonv.Value, event string) frameKind {
	t := v.Get("message_type")
	if !t.Exists() {
		switch {
		case event == "error":
			return isError
		case v.Get("internal_monologue").Exists():
			return isReasoning
		case v.Get("function_call").Exists():
			return isCall
		case v.Get("function_return").Exists():
			return isResult
		case v.Get("assistant_message").Exists():
			return isText
		}
		return isUnknown
	}
	if is := typeNamed(t); is != isUnknown {
		t.MarkRead()
		return is
	}
	if event == "error" {
		return isError
	}
	return isUnknown
}

// typeNamed returns the kind of a message type.
func typeNamed(typ jsonv.Value) frameKind {
	if !typ.Is(jsonv.String) {
		return isUnknown
	}
	switch raw := typ.Peek(); string(raw[1 : len(raw)-1]) {
	case "reasoning_message", "internal_monologue":
		return isReasoning
	case "hidden_reasoning_message":
		return isHidden
	case "assistant_message":
		return isText
	case "tool_call_message", "function_call":
		return isCall
	case "approval_request_message":
		return isApprovalRequest
	case "tool_return_message", "function_return":
		return isResult
	case "user_message", "system_message":
		return isInput
	case "approval_response_message":
		return isApproval
	case "summary_message", "summary":
		return isSummary
	case "event_message", "event":
		return isEvent
	case "ping":
		return isPing
	case "stop_reason":
		return isStop
	case "usage_statistics":
		return isUsage
	case "error_message":
		return isError
	}
	return isUnknown
}

// envelope marks the ids that keys are made of as read.
func envelope(v jsonv.Value) {
	for k, m := range v.Members() {
		switch string(k.Bytes()) {
		case "id", "otid", "step_id":
			if m.Is(jsonv.String) {
				m.MarkRead()
			}
		}
	}
}

// message decodes one frame of a stream, or one element of a list.
func (d *stream) message(v jsonv.Value, event string) {
	envelope(v)
	switch t := typeOf(v, event); t {
	case isPing:
		d.ping(v)
	case isStop:
		d.stop(v)
	case isUsage:
		d.usage(v)
	case isError:
		d.failure(v)
	case isUnknown:
		d.unknown(v, event)
	case isInput:
		d.asSummary(d.storedInput, v)
	case isApproval:
		d.asSummary(d.storedApproval, v)
	default:
		r := d.runOf(v)
		if r.isRepeated(v.Get("seq_id")) {
			v.MarkRead()
			return
		}
		d.content(r, v, t)
	}
}

// content decodes the content of a run.
func (d *stream) content(r *run, v jsonv.Value, t frameKind) {
	switch t {
	case isReasoning:
		d.piece(r, v, thinking, v.First("reasoning", "internal_monologue"))
	case isHidden:
		d.piece(r, v, hidden, jsonv.Value{})
	case isText:
		d.piece(r, v, text, v.First("content", "assistant_message", "message"))
	case isCall, isApprovalRequest:
		d.calls(r, v, t == isApprovalRequest)
	case isResult:
		d.results(r, v)
	case isSummary, isEvent:
		d.compaction(r, v, t)
	}
}

// addMessage adds a message of a run; r is nil for a message outside of all runs. Its default
// time is that of the run's last dated frame: the server sends undated records right after
// dated ones.
func (d *stream) addMessage(r *run, kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key, m.Complete = kind, key, d.level
	if r != nil {
		m.Run = r.ID
		m.Time, m.Precision = r.Last, msg.Inferred
	}
	m.Session = d.session(m.Run)
	m.Agent = d.agent(d.scope().Agent, "")
	return m
}

// status adds a hidden status.
func (d *stream) status(r *run, key, typ string) *msg.Message {
	m := d.addMessage(r, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps a frame or an element of a list of unknown type; event is the name of the
// frame.
func (d *stream) unknown(v jsonv.Value, event string) {
	typ := ident.Of(v.First("message_type", "type"))
	if typ == "" {
		typ = event
	}
	if typ == "" {
		typ = "none"
	}
	d.keepRaw(v, typ)
}

// keepRaw keeps v raw.
func (d *stream) keepRaw(v jsonv.Value, typ string) {
	raw := v.Raw()
	m := d.out.Unknown(typ, raw)
	m.Key = "unknown:" + msg.HashKey(string(raw))
	m.Run = d.Run
	m.Session = d.session(d.Run)
	if r := d.find(d.Run); r != nil {
		m.Time = r.undatedTime(m.Key)
	}
	d.stamp(m, v)
}

// compaction decodes the summary of a context, or an event.
func (d *stream) compaction(r *run, v jsonv.Value, t frameKind) {
	d.closeBlocks(r)
	typ, content := "compact_summary", v.First("summary", "content")
	if t == isEvent {
		typ, content = "event", v.Get("event_data")
		if name := ident.Of(v.Get("event_type")); name != "" {
			typ = name
		}
	}
	key := ident.Of(v.Get("id"))
	if key == "" {
		key = msg.HashKey(r.ID, typ, string(v.Get("date").Peek()), string(content.Peek()))
	}
	m := d.status(r, key, typ)
	m.Content = content.Text()
	if t == isSummary {
		m.Signal = msg.Compaction
	}
	d.stamp(m, v)
}

// stamp sets the message's time to the date of v, if any.
func (d *stream) stamp(m *msg.Message, v jsonv.Value) {
	t, p := d.date.read(v.Get("date"))
	at(m, t, p)
}

// at sets the message's time, if it is known.
func at(m *msg.Message, t int64, p msg.Precision) {
	if t != 0 {
		m.Time, m.Precision = t, p
	}
}
