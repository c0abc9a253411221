package agui

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// decode decodes an event by its type, or a request, which has none.
func (r *record) decode() {
	r.typ = ident.Of(r.root.Get("type"))
	if r.typ == "" && r.root.Get("messages").Is(jsonv.Array) {
		r.request()
		return
	}
	group, action := r.typ, ""
	if i := strings.LastIndexByte(r.typ, '_'); i > 0 {
		group, action = r.typ[:i], r.typ[i+1:]
	}
	switch r.typ {
	case "RUN_STARTED":
		r.start()
		m := r.status("start:" + r.Run.ID)
		m.SetAttr("parent_run_id", r.id("parentRunId", "parent_run_id"))
	case "RUN_FINISHED":
		r.finished()
	case "RUN_ERROR":
		r.failed()
	case "TOOL_CALL_RESULT":
		r.endChunks("")
		r.result(r.id("toolCallId", "tool_call_id"), r.root.First("content", "result"), r.id("messageId", "message_id"))
	case "MESSAGES_SNAPSHOT":
		r.endChunks("")
		r.messages(r.root.Get("messages"), msg.Summary, "user", true)
	case "USAGE_METADATA":
		r.usage(r.root, "", "input_tokens", "output_tokens", "", "")
	case "RAW":
		r.raw(r.root.Get("event"))
	case "STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "STEP_STARTED", "STEP_FINISHED", "CUSTOM",
		"THINKING_START", "THINKING_END", "REASONING_START", "REASONING_END", "REASONING_ENCRYPTED_VALUE":
		r.notice()
	default:
		if !r.piece(group, action) {
			r.unknown()
		}
	}
}

// unknown keeps a record of an unknown type.
func (r *record) unknown() {
	m := r.out.Unknown(cmp.Or(r.typ, "none"), r.root.Raw())
	m.Session, m.Run, m.Key = r.session(), r.Run.ID, "unknown:"+msg.HashKey(string(r.root.Peek()))
	r.at.Set(m)
}

// status adds a message that a user would not see.
func (r *record) status(key string) *msg.Message {
	m := r.add(msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", cmp.Or(r.typ, "request"))
	return m
}

// notice decodes an event beside the messages. It has no id: equal ones of a run are one.
func (r *record) notice() {
	name := cmp.Or(r.id("stepName", "step_name"), ident.Of(r.root.First("name", "activityType", "title", "subtype")))
	id := cmp.Or(r.id("messageId", "message_id"), ident.Of(r.root.Get("entityId")))
	content := r.root.First("snapshot", "delta", "content", "patch", "value", "encryptedValue")
	m := r.status(r.typ + ":" + msg.HashKey(r.Run.ID, name, id, string(content.Peek())))
	m.Content = content.Text()
	m.SetAttr("name", name)
	m.SetAttr("message_id", id)
}

// start begins a run. A stream may have several.
func (r *record) start() {
	r.Session = cmp.Or(r.id("threadId", "thread_id"), r.Session)
	if id := r.id("runId", "run_id"); id != r.Run.ID {
		r.Run.Begin(id)
		r.Calls, r.Parts, r.Thought = conversation.Calls[*conversation.Call]{}, conversation.Deltas{}, 0
	}
}

// finished decodes the end of a run. An interrupt waits for the user, who answers it by the
// next run.
func (r *record) finished() {
	r.finishAll()
	r.root.First("threadId", "thread_id").Equal(r.Session)
	for u := range r.root.Get("usage").Elems() {
		r.usage(u, ident.Of(u.Get("provider")), "inputTokens", "outputTokens", "cachedInputTokens", "reasoningTokens")
	}
	m := r.status("stop:" + cmp.Or(r.Run.ID, r.id("runId", "run_id")))
	m.Content = r.root.Get("result").Text()
	m.SetAttr("finished_run_id", r.id("runId", "run_id")) // LangGraph's is another
	outcome := r.root.Get("outcome")
	m.SetAttr("interrupts", conversation.ShortJSON(outcome.Get("interrupts")))
	if r.Run.Active() {
		m.Kind, m.FinishReason = msg.Stop, cmp.Or(ident.Of(outcome.Get("type")), "stop")
		r.Run.End(m)
	}
}

// failed decodes the error that ends a run.
func (r *record) failed() {
	r.finishAll()
	message := r.root.Get("message")
	m := r.add(msg.Error, "error:"+msg.HashKey(r.Run.ID, string(message.Peek())))
	m.IsError, m.Content, m.Tool.ErrorType = true, message.Text(), ident.Of(r.root.Get("code"))
	if r.Run.Active() {
		m.FinishReason = "error"
		r.Run.End(m)
	}
}

// endChunks finishes the message of chunks, unless the event is of that part: no event of its
// own ends it.
func (r *record) endChunks(name string) {
	if r.Chunk != "" && r.Chunk != name {
		r.finish(r.Parts.Part(r.Chunk))
		r.Chunk = ""
	}
}

// piece decodes the beginning, a piece or the end of a text, a thought or a call.
func (r *record) piece(group, action string) bool {
	kind := msg.Assistant
	switch group {
	case "TOOL_CALL":
		kind = msg.ToolCall
	case "TEXT_MESSAGE":
		kind = kindOf(r.root.Get("role"))
	case "REASONING_MESSAGE", "THINKING_TEXT_MESSAGE", "THINKING":
		kind = msg.Reasoning
	default:
		return false
	}
	id, callID := r.root.First("messageId", "message_id"), r.root.First("toolCallId", "tool_call_id")
	name := "message:" + ident.Peek(id)
	if kind == msg.ToolCall {
		if name = "call:" + ident.Peek(callID); name == "call:" {
			return false
		}
	}
	p := r.Parts.Part(name)
	switch action {
	case "START", "CONTENT", "ARGS", "CHUNK":
	case "END":
		if p != nil {
			ident.Of(id)
			ident.Of(callID)
		}
		r.finish(p)
		return true
	default:
		return false
	}
	r.endChunks(name)
	if p == nil {
		if p = r.Parts.Open(name, kind); p == nil {
			return false
		}
		p.Key, p.CallID = r.unique(ident.Peek(id)), r.unique(ident.Peek(callID))
		if p.Key == "" && kind != msg.ToolCall {
			p.Key = conversation.Ordinal(r.Run.ID+"/"+kind.String(), &r.Thought)
		}
	}
	ident.Of(id)
	ident.Of(callID)
	p.Tool = cmp.Or(r.id("toolCallName", "tool_call_name"), p.Tool)
	if parent := r.id("parentMessageId", "parent_message_id"); kind == msg.ToolCall && parent != "" {
		p.Key = r.unique(parent)
	}
	r.Parts.Append(p, r.root.Get("delta").Text(), conversation.MaxBytes)
	if action == "CHUNK" {
		r.Chunk = name
	}
	return true
}

// finishAll finishes the parts that no event has ended.
func (r *record) finishAll() {
	for len(r.Parts.Parts) > 0 {
		r.finish(r.Parts.Parts[0])
	}
}

// finish emits a part that is complete, unless it is empty or repeats another.
func (r *record) finish(p *conversation.Part) {
	if p == nil || !r.Parts.Drop(p) || p.Empty() {
		return
	}
	r.emit(p, msg.Complete)
}

func (r *record) emit(p *conversation.Part, complete msg.Completeness) *msg.Message {
	if p.Kind == msg.ToolCall {
		if added, _ := r.Calls.Add(&conversation.Call{ID: p.CallID, Name: p.Tool}); !added {
			return nil
		}
	} else {
		text := "text:" + msg.HashKey(p.Kind.String(), string(p.Text))
		if isNew := r.Seen.Add(text, maxSeen); !isNew && complete == msg.Summary {
			return nil
		} else if !r.Seen.Add(p.Key, maxSeen) { // the message goes on, or is sent again
			if !isNew {
				return nil
			}
			p.Key += "/" + text[len("text:"):][:8]
		}
	}
	m := r.add(p.Kind, p.Key)
	first := m.Signal
	r.fill(m, p)
	m.Signal, m.Complete = first, complete
	if p.Kind == msg.ToolCall && p.Tool == "" {
		m.Complete = msg.Partial
	}
	if p.Cut {
		m.SetAttr("truncated", "true")
	}
	return m
}

// result emits the result of a call, once.
func (r *record) result(id string, content jsonv.Value, messageID string) {
	id = r.unique(id)
	key := "result:" + cmp.Or(id, messageID)
	if id == "" && messageID == "" {
		r.unknown()
		return
	}
	r.finish(r.Parts.Part("call:" + id))
	if !r.Seen.Add(key, maxSeen) {
		content.MarkRead()
		return
	}
	m := r.add(msg.ToolResult, key)
	m.Role, m.Content, m.Tool.CallID = msg.RoleTool, content.Text(), cmp.Or(id, messageID)
	m.Tool.ProtocolID = strings.TrimPrefix(m.Tool.CallID, r.Run.ID+"/")
	m.SetAttr("message_id", messageID)
	if c := r.Calls.Get(id); c != nil {
		m.Tool.Name = c.Name
		r.Calls.End(c)
	}
}

// raw reads the tokens of a response in the event of LangGraph that ends it.
func (r *record) raw(event jsonv.Value) {
	output := event.Path("data", "output")
	if u := output.Get("usage_metadata"); event.Get("event").Equal("on_chat_model_end") && u.Is(jsonv.Object) {
		response := conversation.Response{ID: ident.Of(output.Get("id")), Model: ident.Of(output.Path("response_metadata", "model_name"))}
		r.count(response, u, "input_tokens", "output_tokens", u.Path("input_token_details", "cache_read").Uint(), u.Path("output_token_details", "reasoning").Uint())
	}
}

// usage reads the tokens of a run, by model.
func (r *record) usage(u jsonv.Value, provider, in, out, cached, reasoning string) {
	model := ident.Of(u.Get("model"))
	id := msg.HashKey(r.Run.ID, provider, model, string(u.Get(in).Peek()), string(u.Get(out).Peek()))
	r.count(conversation.Response{ID: id, Model: model, Provider: provider}, u, in, out, u.Get(cached).Uint(), u.Get(reasoning).Uint())
}

func (r *record) count(response conversation.Response, u jsonv.Value, in, out string, cached, reasoning uint64) {
	if !r.Seen.Add("usage:"+response.ID, maxSeen) {
		return
	}
	response.Run, response.At = r.Run.ID, r.at
	input := u.Get(in).Uint()
	cached = min(cached, input) // the sum has them
	response.Count(conversation.Counts{Input: input - cached, Output: u.Get(out).Uint(), CacheRead: cached, Reasoning: reasoning}, msg.Provider)
	m := response.Usage(r.out, msg.Complete)
	m.Session, m.Agent.Kind = r.session(), msg.KindAgent
}
