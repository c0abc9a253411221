package geminiapi

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// interactionRequest decodes a request to the Interactions API.
//
//	{model | agent, input: text | [content | step | {role, content}], previous_interaction_id, …}
func interactionRequest(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	system := v.Get("system_instruction")
	items := exchange.Instruct(nil, system.Text(), system)
	list := v.Get("input")
	if list.Is(jsonv.Array) {
		beside := exchange.Item{Who: exchange.Prompt, From: list}
		var own conversation.Content
		for s := range list.Elems() {
			typ := s.Get("type")
			switch {
			case s.Get("role").Equal("model"), typ.In("model_output", "thought", "function_call"), suffixed(typ, "_call"):
				items = append(items, exchange.Item{Who: exchange.Model, From: s})
			case typ.Equal("user_input"), s.Get("role").Equal("user"):
				items = input(items, s.Get("content"), s)
			case typ.Equal("function_result"):
				items = input(items, s, s)
			case suffixed(typ, "_result"): // of a tool that the provider executed
				items = append(items, exchange.Item{Who: exchange.Model, From: s})
			default:
				content(s, &own)
			}
		}
		if beside.Text, beside.Attachments = own.Joined(), own.Files; !beside.Text.IsZero() || len(own.Files) > 0 {
			items = append(items, beside)
		}
	} else {
		items = input(items, list, list)
	}
	ask := exchange.Ask{Session: ident.Of(v.Get("previous_interaction_id")), Model: ident.First(v.Get("model"), v.Get("agent")), Items: items}
	if ask.Session != "" { // the host knows where that interaction was
		ask.From, ask.Prompt = "previous_interaction_id", ask.Session
	}
	for _, it := range items {
		if ask.Session != "" && it.Who == exchange.Prompt {
			ask.Prompt = "run:" + msg.HashKey(ask.Session, it.Text.String())
		}
	}
	if v.Get("stream").Bool() {
		ask.Is(msg.ParamStream, "true")
	}
	gemini.Params(&ask, v.Get("generation_config"))
	for t := range v.Get("tools").Elems() {
		ask.Tools.Add(ident.Of(t.Get("type")), ident.Of(t.Get("name")), t.Get("description"), t.Get("parameters"))
	}
	x.Request(out, ask)
}

func suffixed(typ jsonv.Value, end string) bool { return strings.HasSuffix(ident.Peek(typ), end) }

// input adds the input of a user: results, and a prompt.
func input(items []exchange.Item, v, from jsonv.Value) []exchange.Item {
	prompt := exchange.Item{Who: exchange.Prompt, From: from}
	var own conversation.Content
	for c := range jsonv.Each(v) {
		if !c.Get("type").Equal("function_result") {
			content(c, &own)
			continue
		}
		it := exchange.Item{Who: exchange.Result, From: from, CallID: ident.Of(c.Get("call_id")), Failed: c.Get("is_error").Bool()}
		r := contentOf(c.Get("result"))
		it.Text, it.Attachments = r.Joined(), r.Files
		items = append(items, it)
	}
	if prompt.Text, prompt.Attachments = own.Joined(), own.Files; !prompt.Text.IsZero() || len(own.Files) > 0 {
		items = append(items, prompt)
	}
	return items
}

// content adds a content: text, a file, or JSON.
func content(c jsonv.Value, to *conversation.Content) {
	switch {
	case c.Is(jsonv.String):
		to.Add(c.Text())
	case c.Get("text").Is(jsonv.String):
		to.Add(c.Get("text").Text())
	case c.First("data", "uri").Is(jsonv.String):
		to.Attach(media.Of(c.Get("data"), c.Get("uri"), ident.Of(c.Get("mime_type"))))
	default:
		to.Add(c.JSON())
	}
}

func contentOf(v jsonv.Value) (of conversation.Content) {
	if !v.Is(jsonv.Array) {
		of.Add(v.Text())
	}
	for c := range v.Elems() {
		content(c, &of)
	}
	return of
}

// interactionEvent decodes an event of an interaction. Before the steps there were contents.
func interactionEvent(x *exchange.Exchange, typ, v jsonv.Value, out *decoder.Output) {
	index := string(v.Get("index").Peek())
	switch {
	case x.Retrieved != "" && !typ.In("interaction.completed", "interaction.complete"): // which has all of it
		v.Skip("interaction_id", "delta", "step", "content")
		v.Get("interaction").Skip("id", "model", "agent")
	case typ.In("interaction.created", "interaction.start", "interaction.in_progress"):
		i := v.Get("interaction")
		if i.Exists() {
			x.Answer(out, i.Get("id"), i.First("model", "agent"))
		}
		v.Get("interaction_id").Equal(x.ID)
	case typ.In("interaction.status_update", "interaction.requires_action"):
		v.Get("interaction_id").Equal(x.ID)
	case typ.In("interaction.completed", "interaction.complete"):
		interaction(x, v.Get("interaction"), out)
	case x.ID == "":
		x.Unknown(out, ident.Of(typ), v.Raw())
	case typ.In("step.start", "content.start"):
		start(x, index, v.First("step", "content"), out)
	case typ.In("step.delta", "content.delta"):
		delta(x, index, v.Get("delta"), out)
	case typ.In("step.stop", "content.stop"):
		x.Close(out, x.Part(index))
	default:
		x.Unknown(out, ident.Of(typ), v.Raw())
	}
}

// start begins a step, which may be whole.
func start(x *exchange.Exchange, index string, s jsonv.Value, out *decoder.Output) {
	typ := s.Get("type")
	switch {
	case typ.Equal("model_output"), typ.Equal("text"):
		for c := range s.Get("content").Elems() {
			block(x, index, msg.Assistant, c, out)
		}
		if s.Get("text").Is(jsonv.String) {
			x.Piece(out, index, msg.Assistant, s.Get("text").Text())
		}
	case typ.Equal("thought"):
		for c := range s.Get("summary").Elems() {
			block(x, index, msg.Reasoning, c, out)
		}
	case typ.Equal("function_call"), suffixed(typ, "_call"):
		x.First(out)
		tool := ident.Of(s.Get("name"))
		typ.Equal("mcp_server_tool_call")
		if tool == "" {
			tool = strings.TrimSuffix(ident.Of(typ), "_call")
		}
		if typ.Equal("function_call") {
			x.Waits = true
		}
		id := cmp.Or(ident.Of(s.Get("id")), x.ID+"/"+index)
		if p := x.Open(index, msg.ToolCall, id); p != nil {
			p.Tool, p.Server = tool, ident.Of(s.Get("server_name"))
			arguments(x, p, s.Get("arguments"))
		}
	case suffixed(typ, "_result"):
		if p := x.Open(index, msg.Assistant, ""); p != nil { // empty: it only has the call
			p.CallID, p.Tool = ident.Of(s.Get("call_id")), strings.TrimSuffix(ident.Of(typ), "_result")
			x.Texts--
			answered(x, p, s, out)
		}
	default:
		x.Unknown(out, "step/"+ident.Of(typ), s.Raw())
	}
}

// block adds a content of a step.
func block(x *exchange.Exchange, index string, kind msg.Kind, c jsonv.Value, out *decoder.Output) {
	c.Get("type").Equal("text")
	if c.Get("text").Is(jsonv.String) {
		if t := c.Get("text").Text(); !t.IsZero() {
			x.Piece(out, index, kind, t)
		}
		return
	}
	var of conversation.Content
	content(c, &of)
	x.Close(out, x.Part(index))
	x.First(out)
	of.Fill(x.Say(out, kind, ""))
}

// arguments adds those of a call: an object that is whole, or a piece of its text.
func arguments(x *exchange.Exchange, p *exchange.Part, v jsonv.Value) {
	switch {
	case v.Is(jsonv.String):
		x.Append(p, v.Text(), conversation.MaxBytes)
	case v.Is(jsonv.Object) && v.Len() > 0 && len(p.Text) == 0:
		x.Append(p, v.JSON(), conversation.MaxBytes)
	}
}

// answered emits the result of a call that the provider executed, once it is there.
func answered(x *exchange.Exchange, p *exchange.Part, v jsonv.Value, out *decoder.Output) {
	r := v.Get("result")
	if !r.Exists() || p.CallID == "" {
		return
	}
	m := x.Ran(out, p.CallID, p.Tool)
	contentOf(r).Fill(m)
	conversation.Failed(m, v.Get("is_error").Bool())
	x.Drop(p)
}

// delta adds a piece of a step.
func delta(x *exchange.Exchange, index string, d jsonv.Value, out *decoder.Output) {
	typ, p := d.Get("type"), x.Part(index)
	switch {
	case typ.In("thought_signature", "text_annotation_delta"):
	case typ.Equal("thought_summary"):
		block(x, index, msg.Reasoning, d.Get("content"), out)
	case typ.Equal("text") || d.Get("text").Is(jsonv.String):
		x.Piece(out, index, msg.Assistant, d.Get("text").Text())
	case typ.In("image", "audio", "video", "document"):
		block(x, index, msg.Assistant, d, out)
	case p != nil && p.Kind == msg.ToolCall && d.Get("arguments").Exists():
		typ.In("arguments_delta", p.Tool+"_call")
		arguments(x, p, d.Get("arguments"))
	case p != nil && p.CallID != "" && d.Get("result").Exists():
		typ.Equal(p.Tool + "_result")
		answered(x, p, d, out)
	case p == nil && (typ.Equal("function_call") || suffixed(typ, "_call") || suffixed(typ, "_result")):
		start(x, index, d, out)
	default:
		x.Unknown(out, "delta/"+ident.Of(typ), d.Raw())
	}
}

// interaction decodes an interaction that has ended, or that is one body.
func interaction(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	x.Answer(out, v.Get("id"), v.First("model", "agent"))
	if !x.Begun { // nothing of it was streamed
		for _, name := range [...]string{"steps", "outputs"} {
			for s := range v.Get(name).Elems() {
				if !s.Get("type").Equal("user_input") {
					start(x, "whole", s, out)
					x.Close(out, x.Part("whole"))
				}
			}
		}
	}
	u := v.Get("usage")
	if u.Is(jsonv.Object) {
		x.Count(gemini.Usage{
			Prompt: u.Get("total_input_tokens").Uint(), Cached: u.Get("total_cached_tokens").Uint(), Output: u.Get("total_output_tokens").Uint(),
			Thoughts: u.Get("total_thought_tokens").Uint(), ToolUse: u.Get("total_tool_use_tokens").Uint(), Total: u.Get("total_tokens").Uint(),
		}.Counts())
	}
	status := v.Get("status")
	if status.Equal("in_progress") { // it is polled again
		if x.Retrieved == "" && !x.Begun {
			m := x.Status(out, "begun:"+x.ID, "response_begun")
			m.Model, m.Provider, m.ResponseID, m.Signal = x.Model, x.Provider, x.ID, msg.RunPause
			m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
		}
		return
	}
	if x.Stop = ident.Of(status); x.Stop == "failed" && x.Fault == "" {
		x.Fail(out, x.Stop, msg.Text{})
	}
	x.End(out)
}
