package vercelui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// chunk decodes one chunk.
func (d *stream) chunk(v jsonv.Value) {
	d.typ = d.Name(v.Get("type"))
	if d.Session == "" && d.Run.ID == "" { // without a request
		d.Session = chatOf(d.Origin)
	}
	id := ident.Of(v.Get("id"))
	group, action, _ := strings.Cut(d.typ, "-")
	kind := msg.Assistant
	if group == "reasoning" {
		kind = msg.Reasoning
	}
	switch {
	case v.Get("path").Is(jsonv.Array), d.typ == "step-start", d.typ == "step-finish", d.typ == "message-finish":
		if !d.piece(v) {
			d.unknown(v)
		}
	case (group == "text" || group == "reasoning") && (action == "start" || action == "delta" || action == "end"):
		p := d.open(group+":"+id, kind, id)
		if action == "delta" {
			d.Parts.Append(p, v.Get("delta").Text(), conversation.MaxBytes)
		}
		if action == "end" {
			d.finish(p, msg.Complete)
		}
	case group == "tool":
		d.tool(action, v)
	case group == "file", d.typ == "reasoning-file":
		d.begin("", "file")
		if key := "file:" + msg.HashKey(d.response(), string(v.Get("url").Peek())); d.Seen.Add(key, maxSeen) && v.Get("url").Is(jsonv.String) {
			m := d.add(kind, key)
			f := media.URL(v.Get("url"))
			f.MediaType = cmp.Or(ident.Of(v.Get("mediaType")), f.MediaType)
			m.Role, m.Attachments, m.ResponseID = msg.RoleAssistant, []msg.Attachment{f}, d.response()
		} else {
			d.unknown(v)
		}
	case group == "data", group == "source", d.typ == "custom", d.typ == "annotations", d.typ == "update-state":
		d.notice(v)
	default:
		d.control(v)
	}
}

// chatOf is the id of the chat in the address from which a page that is loaded again takes the rest of an answer:
// GET …/api/chat/<chat>/stream. The stream has the answer from its beginning.
func chatOf(address string) string {
	path, _, _ := strings.Cut(address, "?")
	if path, ok := strings.CutSuffix(path, "/stream"); ok {
		return ident.Bounded(path[strings.LastIndexByte(path, '/')+1:])
	}
	return ""
}

// notice decodes a source, or data of the application.
func (d *stream) notice(v jsonv.Value) {
	content := v.First("data", "url", "operations", "annotations", "kind")
	id := ident.First(v.Get("id"), v.Get("sourceId"))
	if d.Run.ID == "" { // else it is of the last run, also after its finish
		d.begin("", id)
	}
	if d.typ == "data-usage" {
		told(d, content)
	}
	m := d.status(d.typ + ":" + msg.HashKey(d.response(), id, string(content.Peek())))
	if m == nil {
		content.MarkRead()
		return
	}
	m.Content = content.Text()
	m.SetAttr("id", id)
	conversation.Attrs(m, v, "title", "mediaType", "filename")
}

// control decodes the chunks of a message and its steps.
func (d *stream) control(v jsonv.Value) {
	switch d.typ {
	case "start":
		d.Waits = false
		switch id := ident.Of(v.Get("messageId")); {
		case id == "":
		case id == d.Message && d.Run.ID != "": // streams that a server merges begin and end the message once each
			d.Run.Ended = false
		default:
			if d.Message != "" {
				d.Step = 0
			}
			d.Message = id
			if !d.Run.Active() {
				d.begin(id, "")
			}
		}
		d.metadata(v.Get("messageMetadata"))
	case "message-metadata":
		d.metadata(v.Get("messageMetadata"))
	case "start-step":
		d.Step++
		d.Stepped = false
	case "finish-step", "reset-step":
		reset := d.typ == "reset-step"
		for i := 0; i < len(d.Parts.Parts); {
			switch p := d.Parts.Parts[i]; {
			case reset:
				d.Parts.Drop(p)
			case p.Kind == msg.ToolCall: // it may go on
				i++
			default:
				d.finish(p, msg.Complete)
			}
		}
		if d.Stepped = !reset; reset {
			d.status("reset:" + d.response())
			d.Calls.Open = slices.DeleteFunc(d.Calls.Open, func(c *call) bool { return c.Step == d.Step }) // nothing waits for them
			d.Step++
		}
	case "finish":
		d.Stepped = false
		d.metadata(v.Get("messageMetadata"))
		reason := ident.Of(v.Get("finishReason"))
		d.Run.Failed = d.Run.Failed || reason == "error"
		d.end(reason, nil)
	case "abort":
		d.end("cancelled", func(m *msg.Message) { m.IsError, m.Content = true, v.Get("reason").Text() })
	case "error":
		d.failed(v.First("errorText", "error"))
	default:
		d.unknown(v)
	}
}

func (d *stream) failed(text jsonv.Value) {
	d.begin("", "error")
	m := d.add(msg.Error, "error:"+msg.HashKey(d.response(), string(text.Peek())))
	m.IsError, m.Content = true, text.Text()
	d.Run.Failed = true
}

// metadata decodes the metadata of a message: the tokens and the model, where
// they have the SDK's names.
func (d *stream) metadata(v jsonv.Value) {
	if !v.Exists() {
		return
	}
	if d.Run.ID == "" {
		d.begin("", "metadata")
	}
	model := v.First("model", "modelId")
	u := v.First("totalUsage", "usage")
	d.Count.Model = cmp.Or(ident.Peek(model), d.Count.Model)
	switch c := counts(u); {
	case !u.Get("inputTokens").IsCount():
	case d.Stepped: // of the step that has just ended
		d.Stepped, d.Steps = false, d.Steps.Add(c)
		d.usage(conversation.Response{ID: d.response(), Model: d.Count.Model, Run: d.Run.ID}, c)
	default:
		d.Count.Counts, d.Count.Provenance = c, msg.Provider
	}
	if m := d.status("metadata:" + msg.HashKey(d.response(), string(v.Peek()))); m != nil {
		m.Content, m.Model = v.JSON(), ident.Of(model)
	} else {
		v.MarkRead()
	}
}

// told decodes the tokens as Vercel's template of a chatbot sends them: when the last step has ended, which may be after the finish.
func told(d *stream, u jsonv.Value) {
	if !u.Get("inputTokens").IsCount() || d.Steps != (conversation.Counts{}) || d.Seen.Has("usage:"+d.response()) {
		return
	}
	d.Count.Model = cmp.Or(ident.Peek(u.Get("modelId")), d.Count.Model)
	d.Count.Counts, d.Count.Provenance = counts(u).Max(d.Count.Counts), msg.Provider
	if !d.Run.Active() || d.Waits {
		d.end("", nil)
	}
}

// usage emits the tokens of a response.
func (d *stream) usage(r conversation.Response, c conversation.Counts) {
	r.Count(c, msg.Provider)
	d.Seen.Add("usage:"+r.ID, maxSeen)
	m := r.Usage(d.Out, msg.Complete)
	m.Session, m.Run, m.Agent.Kind = d.session(), d.Run.ID, msg.KindAgent
}

// counts reads LanguageModelUsage, whose input has the cached tokens, unless version 5 has passed on that of a
// provider which counts them apart, and whose output has those of the thoughts.
func counts(u jsonv.Value) (c conversation.Counts) {
	in, out := u.Get("inputTokenDetails"), u.Get("outputTokenDetails")
	c.Input, c.Output = u.Get("inputTokens").Uint(), u.Get("outputTokens").Uint()
	if cached := u.Get("cachedInputTokens").Uint(); cached > c.Input && !in.Exists() {
		c.Input += cached
	}
	c.CacheRead = min(c.Input, max(u.Get("cachedInputTokens").Uint(), in.Get("cacheReadTokens").Uint()))
	c.CacheWrite = min(c.Input-c.CacheRead, in.Get("cacheWriteTokens").Uint())
	c.Input -= c.CacheRead + c.CacheWrite
	c.Reasoning = max(u.Get("reasoningTokens").Uint(), out.Get("reasoningTokens").Uint())
	return c
}

// tool decodes a chunk of a call, its approval or its result.
func (d *stream) tool(action string, v jsonv.Value) {
	id := ident.Of(v.Get("toolCallId"))
	if id == "" && action != "approval-response" {
		d.unknown(v)
		return
	}
	d.begin("", id)
	name := ident.Of(v.Get("toolName"))
	switch action {
	case "input-start", "input-delta", "input-available", "input-error":
		p := d.open("call:"+id, msg.ToolCall, id)
		if p == nil {
			return
		}
		p.Tool = cmp.Or(name, p.Tool)
		d.Parts.Append(p, v.Get("inputTextDelta").Text(), conversation.MaxBytes)
		if action == "input-start" || action == "input-delta" {
			return
		}
		if input := v.Get("input"); input.Exists() { // the whole of it replaces the pieces
			d.Parts.Clear(p)
			d.Parts.Append(p, input.JSON(), conversation.MaxBytes)
		}
		d.finish(p, msg.Complete)
		if action == "input-error" {
			d.result(id, v.Get("errorText"), "invalid_input")
		}
	case "output-available":
		if v.Get("preliminary").Bool() {
			m := d.add(msg.ToolResult, "result:"+d.unique(id))
			m.Role, m.Content, m.Complete = msg.RoleTool, v.Get("output").Text(), msg.Partial
			d.about(m, d.unique(id))
			return
		}
		d.result(id, v.Get("output"), "")
	case "output-error":
		d.result(id, v.Get("errorText"), "tool_error")
	case "output-denied":
		d.result(id, jsonv.Value{}, "denied")
	case "approval-request":
		d.asked(id, ident.Of(v.Get("approvalId")), v.Get("isAutomatic").Bool())
	case "approval-response":
		d.answered(ident.Of(v.Get("approvalId")), v.Get("approved").Bool(), v.Get("reason"))
	default:
		d.unknown(v)
	}
}

// result emits the result of a call, once.
func (d *stream) result(id string, content jsonv.Value, class string) {
	d.finish(d.Parts.Part("call:"+id), msg.Summary)
	unique := d.unique(id)
	if !d.Seen.Add("result:"+unique, maxSeen) {
		content.MarkRead()
		return
	}
	m := d.add(msg.ToolResult, "result:"+unique)
	m.Role, m.Content, m.ParentKey = msg.RoleTool, content.Text(), "call:"+unique
	d.about(m, unique)
	m.IsError, m.Tool.ErrorType = class != "", class
	if c := d.Calls.Get(unique); c != nil {
		m.Tool.Name = c.Name
		d.Calls.End(c)
	}
}

// asked decodes that a call waits for an approval.
func (d *stream) asked(id, approval string, automatic bool) {
	d.finish(d.Parts.Part("call:"+id), msg.Summary) // its input is whole
	if c := d.Calls.Get(d.unique(id)); c != nil {
		c.Approval = approval
	}
	m := d.status("approval:" + approval)
	if m == nil {
		return
	}
	d.about(m, d.unique(id))
	if m.SetAttr("approval_id", approval); !automatic {
		record.Signal(m, msg.WaitStart)
	}
}

// answered decodes an approval or a refusal.
func (d *stream) answered(approval string, approved bool, reason jsonv.Value) {
	m := d.status("approved:" + approval)
	if m == nil {
		reason.MarkRead()
		return
	}
	for c := range d.Calls.All() {
		if c.Approval == approval {
			d.about(m, c.ID)
		}
	}
	record.Signal(m, msg.WaitEnd)
	m.Content = reason.Text()
	m.SetAttr("approval_id", approval)
	m.SetAttr("approved", strconv.FormatBool(approved))
}

// piece decodes a chunk of assistant-ui's dialect, whose parts are numbered.
func (d *stream) piece(v jsonv.Value) bool {
	n, part := "", v.Get("part")
	for e := range v.Get("path").Elems() {
		n = string(e.Peek())
	}
	p := d.Parts.Part("part:" + n)
	switch d.typ {
	case "step-start":
		if id := ident.Of(v.Get("messageId")); id != "" {
			d.begin("", id)
			d.Message = id
		}
		d.Step++
		return true
	case "step-finish", "message-finish":
		if u := v.Get("usage"); u.Get("inputTokens").IsCount() && d.typ == "step-finish" {
			d.usage(conversation.Response{ID: d.response()}, counts(u))
		}
		if reason := ident.Of(v.Get("finishReason")); !v.Get("isContinued").Bool() {
			d.end(reason, nil)
		}
		return true
	case "part-start":
		n = strconv.Itoa(d.Pieces)
		d.Pieces++
		switch typ := part.Get("type"); {
		case typ.Equal("text"):
			d.open("part:"+n, msg.Assistant, n)
		case typ.Equal("reasoning"):
			d.open("part:"+n, msg.Reasoning, n)
		case typ.Equal("tool-call"):
			id := ident.Of(part.Get("toolCallId"))
			if id == "" {
				return false
			}
			if p = d.open("part:"+n, msg.ToolCall, id); p != nil {
				p.Tool = ident.Of(part.Get("toolName"))
			}
		default:
			if m := d.status("part:" + msg.HashKey(d.response(), n, string(part.Peek()))); m != nil {
				m.Content = part.JSON()
			}
		}
		return true
	case "text-delta":
		if p == nil {
			return false
		}
		d.Parts.Append(p, v.Get("textDelta").Text(), conversation.MaxBytes)
	case "part-finish", "tool-call-args-text-finish":
		if d.typ == "part-finish" || p != nil && p.Kind == msg.ToolCall {
			d.finish(p, msg.Complete)
		}
	case "result":
		if p == nil || p.Kind != msg.ToolCall {
			return false
		}
		class := ""
		if v.Get("isError").Bool() {
			class = "tool_error"
		}
		id := p.CallID
		if len(id) > len(d.Run.ID) {
			id = strings.TrimPrefix(id, d.Run.ID+"/")
		}
		d.finish(p, msg.Complete)
		d.result(id, v.Get("result"), class)
	case "error":
		d.failed(v.Get("error"))
	case "data", "annotations", "update-state":
		d.notice(v)
	default:
		return false
	}
	return true
}
