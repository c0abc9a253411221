package agui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/langchain"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// Read decodes an event by its type, or a request, which has none.
func (d *stream) Read() {
	d.typ, d.At = d.Name(d.Root.Get("type")), conversation.TimeOf(d.Root.Get("timestamp"))
	if d.typ == "" && d.requested() {
		return
	}
	if d.Past {
		defer past(d.Out, len(d.Out.Messages))
	}
	switch d.typ {
	case "RUN_STARTED":
		before := d.Run.ID
		d.start()
		m := d.status("start:" + d.Run.ID)
		m.SetAttr("parent_run_id", d.id("parentRunId", "parent_run_id"))
		if input := d.Root.Get("input"); before != d.Run.ID { // the request was not recorded
			d.asked(before, input)
			input.Skip("threadId", "thread_id", "runId", "run_id")
		} else {
			input.MarkRead()
		}
	case "RUN_FINISHED":
		d.finished()
	case "RUN_ERROR":
		d.failed()
	case "TOOL_CALL_RESULT":
		d.result(d.id("toolCallId", "tool_call_id"), d.Root.First("content", "result"), jsonv.Value{}, d.id("messageId", "message_id"))
	case "MESSAGES_SNAPSHOT":
		d.endChunks("")
		d.messages(d.Root.Get("messages"), msg.Summary, "user", true)
	case "USAGE_METADATA":
		d.counts(d.Root)
	case "RAW":
		d.raw(d.Root.Get("event"))
	case "CUSTOM": // adapters of LangGraph and CrewAI report an interrupt so
		d.Waits = d.Waits || d.Root.Get("name").Equal("on_interrupt")
		if d.Root.Get("name").In("usage", "token_usage", "tokenUsage") { // of servers that have no other way
			d.counts(d.Root.Get("value"))
		}
		if d.Root.Get("name").Equal("system:init") { // of Claude's agent
			d.Model = cmp.Or(ident.Peek(d.Root.Path("value", "model")), d.Model)
		}
		d.notice(d.typ, d.Root)
	case "STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "STEP_STARTED", "STEP_FINISHED",
		"THINKING_START", "THINKING_END", "REASONING_START", "REASONING_END", "REASONING_ENCRYPTED_VALUE":
		d.notice(d.typ, d.Root)
	default:
		if !d.piece() {
			d.Unknown(d.typ, d.Root)
		}
	}
}

// raw decodes LangGraph's own events: one ends a response and has its tokens, others have the results that are errors.
func (d *stream) raw(event jsonv.Value) {
	output := event.Path("data", "output")
	failed := func(result jsonv.Value) { // the events of the protocol have its text alone
		if id := ident.Peek(result.Get("tool_call_id")); id != "" && result.Get("status").Equal("error") {
			d.Seen.Add("failed:"+d.unique(id), maxSeen)
		}
	}
	switch name := event.Get("event"); {
	case name.Equal("on_chat_model_end"):
		u := output.Get("usage_metadata")
		d.usage(u, langchain.Counts(u, conversation.Counts{}), conversation.Response{
			ID: ident.Of(output.Get("id")), Model: ident.Of(output.Path("response_metadata", "model_name")),
		})
	case name.Equal("on_tool_end"):
		failed(output)
		for m := range output.Path("update", "messages").Elems() {
			failed(m)
		}
	case name.Equal("on_chain_end"): // a tool that raised has no on_tool_end
		for m := range output.Get("messages").Elems() {
			failed(m)
		}
	}
}

// status adds a message that a user would not see.
func (d *stream) status(key string) *msg.Message {
	return record.Hide(d.add(msg.Status, key), cmp.Or(d.typ, "request"))
}

// notice decodes an event beside the messages. It has no id: equal ones of a run are one.
func (d *stream) notice(typ string, v jsonv.Value) {
	name := ident.Of(v.First("stepName", "step_name", "name", "activityType", "title", "subtype"))
	id := ident.Of(v.First("messageId", "message_id", "entityId", "id"))
	content := v.First("snapshot", "delta", "content", "patch", "value", "encryptedValue")
	m := d.status(typ + ":" + msg.HashKey(d.Run.ID, name, id, string(content.Peek())))
	m.Content = content.Text()
	m.SetAttr("name", name)
	m.SetAttr("message_id", id)
}

// start begins a run. A stream may have several.
func (d *stream) start() {
	d.Session = cmp.Or(d.id("threadId", "thread_id"), d.Session)
	if id := d.id("runId", "run_id"); id != d.Run.ID {
		d.Run.Begin(id)
		d.Calls, d.Parts, d.Thought = conversation.Calls[*conversation.Call]{}, conversation.Deltas{}, 0
		d.Asked, d.Counted, d.Waits = nil, false, false
	}
}

// finished decodes the end of a run. An interrupt waits for the user, who answers it by the
// next run.
func (d *stream) finished() {
	d.finishAll()
	d.Root.First("threadId", "thread_id").Equal(d.Session)
	d.total()
	m := d.status("stop:" + d.Run.ID)
	m.Content = d.Root.Get("result").Text()
	outcome := d.Root.Get("outcome")
	m.SetAttr("interrupts", conversation.ShortJSON(outcome.Get("interrupts")))
	switch d.Root.First("runId", "run_id").Equal(d.Run.ID); { // LangGraph's is another id
	case !d.Run.Active():
	case outcome.Get("type").Equal("interrupt"), d.Waits: // its run goes on in the one that has the answer
		m.Signal = msg.RunPause
	default:
		m.Kind, m.FinishReason = msg.Stop, cmp.Or(ident.Of(outcome.Get("type")), "stop")
		if result := d.Root.Get("result"); result.First("isError", "is_error").Bool() && result.First("num_turns", "numTurns").IsCount() { // of Claude's agent
			m.IsError, m.FinishReason = true, "error"
		}
		d.Run.End(m)
	}
}

// failed decodes the error that ends a run.
func (d *stream) failed() {
	d.finishAll()
	d.total()
	message := d.Root.First("message", "error") // adapters of ADK and AG2 write the latter
	d.Root.First("runId", "run_id").Equal(d.Run.ID)
	d.Root.First("threadId", "thread_id").Equal(d.Session)
	m := d.add(msg.Error, "error:"+msg.HashKey(d.Run.ID, string(message.Peek())))
	m.IsError, m.Content, m.Tool.ErrorType = true, message.Text(), ident.Of(d.Root.Get("code"))
	if d.Run.Active() {
		m.FinishReason = "error"
		d.Run.End(m)
	}
}

// endChunks finishes the message of chunks, unless the event is of that part: no event of its
// own ends it.
func (d *stream) endChunks(name string) {
	if d.Chunk != "" && d.Chunk != name {
		d.finish(d.Parts.Part(d.Chunk))
		d.Chunk = ""
	}
}

// piece decodes the beginning, a piece or the end of a text, a thought or a call.
func (d *stream) piece() bool {
	end := max(strings.LastIndexByte(d.typ, '_'), 0)
	kind, group, action := msg.Assistant, d.typ[:end], strings.TrimPrefix(d.typ[end:], "_")
	switch group {
	case "TOOL_CALL":
		kind = msg.ToolCall
	case "TEXT_MESSAGE":
		kind = kindOf(d.Root.Get("role"))
	case "REASONING_MESSAGE", "THINKING_TEXT_MESSAGE", "THINKING":
		kind = msg.Reasoning
	default:
		return false
	}
	id, callID := d.id("messageId", "message_id"), d.id("toolCallId", "tool_call_id")
	name := group + ":" + id
	if kind == msg.ToolCall {
		name = group + ":" + callID
	}
	if action == "CHUNK" && name == group+":" && strings.HasPrefix(d.Chunk, name) { // only the first chunk must have the id
		name = d.Chunk
	}
	p := d.Parts.Part(name)
	switch action {
	case "START", "CONTENT", "ARGS", "CHUNK":
	case "END":
		d.finish(p)
		return true
	default:
		return false
	}
	d.endChunks(name)
	if p == nil {
		if p = d.Parts.Open(name, kind); p == nil || kind == msg.ToolCall && callID == "" {
			d.Parts.Drop(p)
			return false
		}
		p.Key, p.CallID = d.keyOf(kind, id), d.unique(callID)
		if id == "" && kind != msg.ToolCall {
			p.Key = conversation.Ordinal(d.Run.ID+"/"+kind.String(), &d.Thought)
		}
	}
	p.Tool = cmp.Or(d.id("toolCallName", "tool_call_name"), p.Tool)
	if parent := d.id("parentMessageId", "parent_message_id"); kind == msg.ToolCall && parent != "" {
		p.Key = d.unique(parent)
	}
	if delta := d.Root.Get("delta"); delta.Is(jsonv.String) { // anything else is kept as unread
		d.Parts.Append(p, delta.Text(), conversation.MaxBytes)
	}
	for c := range d.Root.Path("rawEvent", "data", "chunk", "tool_call_chunks").Elems() {
		if action == "START" && callID != "" && c.Get("id").Equal(callID) {
			d.Parts.Append(p, c.Get("args").Text(), conversation.MaxBytes)
		}
	}
	if action == "CHUNK" {
		d.Chunk = name
	}
	return true
}

// keyOf is the key of a message. A thought may have the id of the text that follows it.
func (d *stream) keyOf(kind msg.Kind, id string) string {
	if kind == msg.Reasoning {
		return "thought:" + d.unique(id)
	}
	return d.unique(id)
}

// finishAll finishes the parts that no event has ended.
func (d *stream) finishAll() {
	for len(d.Parts.Parts) > 0 {
		d.finish(d.Parts.Parts[0])
	}
}

// finish emits a part that is complete, unless it is empty or repeats another.
func (d *stream) finish(p *conversation.Part) {
	if d.Parts.Drop(p) && !p.Empty() {
		d.emit(p, msg.Complete)
	}
}

func (d *stream) emit(p *conversation.Part, complete msg.Completeness) *msg.Message {
	if p.Kind == msg.ToolCall {
		if added, _ := d.Calls.Add(&conversation.Call{ID: p.CallID, Name: p.Tool}); !added {
			return d.again(p)
		}
		d.Asked = bounded.Push(d.Asked, asked{strings.TrimPrefix(p.CallID, d.Run.ID+"/"), sumOf(p)}, maxSeen)
	} else {
		text := "text:" + msg.HashKey(p.Kind.String(), strings.TrimSpace(string(p.Text)))
		if isNew := d.Seen.Add(text, maxSeen); !isNew && complete == msg.Summary {
			return nil
		} else if !d.Seen.Add(p.Key, maxSeen) { // the message goes on, or is sent again
			if !isNew {
				return nil
			}
			if rest, ok := d.Said.Rest(p.Text); ok && p.Key == d.SaidBy {
				p.Text = rest
			}
			p.Key += "/" + text[len("text:"):][:8]
		} else if p.Kind == msg.Assistant {
			d.SaidBy, d.Said = p.Key, conversation.Written{}
			d.Said.Add(p.Text)
		}
	}
	m := d.add(p.Kind, p.Key)
	d.fill(m, p)
	if m.Complete = complete; p.Kind == msg.ToolCall && p.Tool == "" {
		m.Complete = msg.Partial
	}
	if p.Cut {
		m.SetAttr("truncated", "true")
	}
	return m
}

// again emits, hidden, the arguments of a call that is sent again with others: the call was emitted before.
func (d *stream) again(p *conversation.Part) *msg.Message {
	sum := sumOf(p)
	if len(p.Text) == 0 || slices.ContainsFunc(d.Asked, func(a asked) bool { return a.Sum == sum }) {
		return nil
	}
	m := record.Hide(d.add(msg.Status, "again:"+p.CallID+"/"+msg.HashKey(string(p.Text))), "call_again")
	m.Content = msg.Plain(string(p.Text))
	return m
}

// result emits the result of a call, once. In a list of messages it has an error where it is one.
func (d *stream) result(id string, content, fault jsonv.Value, messageID string) {
	if id == "" {
		d.Unknown(d.typ, d.Root)
		return
	}
	d.finish(d.Parts.Part("TOOL_CALL:" + id))
	call := ident.Within(cmp.Or(d.asks, d.Run.ID), id)
	if !d.Seen.Add("result:"+call, maxSeen) {
		content.MarkRead()
		return
	}
	m := d.add(msg.ToolResult, "result:"+call)
	m.Role, m.Content, m.Tool.CallID, m.Tool.ProtocolID = msg.RoleTool, content.Text(), call, id
	m.SetAttr("message_id", messageID)
	words := fault.Text()
	if conversation.Failed(m, !words.IsZero() || d.Seen.Has("failed:"+call)); m.Content.IsZero() {
		m.Content = words
	} else if word := words.String(); word != "error" { // LangGraph's for any
		m.SetAttr("error", conversation.Cut(word, conversation.MaxAttr))
	}
	if c := d.Calls.Get(call); c != nil {
		m.Tool.Name = c.Name
		d.Calls.End(c)
	}
}

// total reads the tokens of the run by each model, unless its responses have them, or those in the result of Claude's agent.
func (d *stream) total() {
	list, result := d.Root.Get("usage"), d.Root.Get("result")
	if d.Counted {
		list.MarkRead()
		return
	}
	if u := result.Get("usage"); result.First("num_turns", "numTurns").IsCount() {
		d.usage(u, anthropic.Usage(u), conversation.Response{ID: msg.HashKey(d.Run.ID, "result"), Model: d.Model})
	}
	for u := range list.Elems() {
		d.counts(u)
	}
}

// counts reads tokens, which have no response: they are those of the run by that model.
func (d *stream) counts(u jsonv.Value) {
	in := u.First("inputTokens", "input_tokens", "promptTokens", "prompt_tokens", "input_token_count")
	out := u.First("outputTokens", "output_tokens", "completionTokens", "completion_tokens", "output_token_count")
	if !in.IsCount() && !out.IsCount() {
		return
	}
	r := conversation.Response{Model: ident.Of(u.Get("model")), Provider: ident.Of(u.Get("provider"))}
	r.ID = msg.HashKey(d.Run.ID, r.Provider, r.Model, string(in.Peek()), string(out.Peek()))
	c := conversation.Counts{Input: in.Uint(), Output: out.Uint()}
	c.Reasoning = max(u.Get("reasoningTokens").Uint(), u.Path("output_token_details", "reasoning").Uint())
	c.CacheRead = min(c.Input, max(u.Get("cachedInputTokens").Uint(), u.Path("input_token_details", "cache_read").Uint()))
	c.Input -= c.CacheRead
	frameworkCounts(u, &c)
	d.usage(u, c, r)
}

// frameworkCounts reads the counts beside input and output as Microsoft's Agent Framework names them. It passes on what each
// provider counts: the cached tokens are in the input, but for Anthropic (without a total), Bedrock (whose total has them beside
// it), and Claude's agent, where they are taken for that if they are more than the input; Gemini's thoughts are beside the output.
func frameworkCounts(u jsonv.Value, c *conversation.Counts) {
	wrote, total := u.Get("cache_creation_input_token_count"), u.Get("total_token_count").Uint()
	read, written, thoughts := u.Get("cache_read_input_token_count").Uint(), wrote.Uint(), u.Get("reasoning_output_token_count").Uint()
	cached, sum := read+written, c.Input+c.Output
	if thoughts > 0 && total == sum+thoughts {
		c.Output, sum = c.Output+thoughts, total
	}
	if beside := cached > c.Input || wrote.IsCount() && total == 0 || total >= sum+cached; !beside {
		c.Input -= cached
	}
	c.Reasoning, c.CacheRead, c.CacheWrite = max(c.Reasoning, thoughts), c.CacheRead+read, c.CacheWrite+written
}

// usage emits the tokens of a response, once. The output has those of reasoning.
func (d *stream) usage(u jsonv.Value, c conversation.Counts, r conversation.Response) {
	if !u.Is(jsonv.Object) || !d.Seen.Add("usage:"+r.ID, maxSeen) {
		return
	}
	d.Counted = true
	r.Run, r.At = d.Run.ID, d.At
	r.Count(c, msg.Provider)
	m := r.Usage(d.Out, msg.Complete)
	m.Session, _ = d.In()
	m.Agent.Kind = msg.KindAgent
}
