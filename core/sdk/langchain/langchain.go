// Package langchain reads the messages of LangChain, as LangGraph streams and stores them: plain, as its
// serializer writes them ({lc, id, kwargs}), and as a client sends them (role and content). Values enter,
// texts and counts leave; nothing is remembered.
package langchain

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// Message returns the members of a message and its type: human, ai, tool, system or remove; "" if v is none.
func Message(v jsonv.Value) (m jsonv.Value, typ string) {
	typ = v.First("type", "role").PeekStr()
	if v.Get("lc").Exists() && v.Get("kwargs").Is(jsonv.Object) {
		for name := range v.Get("id").Elems() {
			typ = name.PeekStr()
		}
		v = v.Get("kwargs")
	}
	switch strings.TrimSuffix(strings.TrimSuffix(typ, "Chunk"), "Message") {
	case "human", "Human", "user":
		typ = "human"
	case "ai", "AI", "assistant":
		typ = "ai"
	case "tool", "Tool":
		typ = "tool"
	case "system", "System", "developer":
		typ = "system"
	case "remove", "Remove":
		return v, "remove"
	default:
		return v, ""
	}
	if v.Get("content").Kind() == jsonv.Missing {
		return v, ""
	}
	return v, typ
}

// List reports whether v is a list of messages.
func List(v jsonv.Value) bool {
	for e := range v.Elems() {
		_, typ := Message(e)
		return typ != ""
	}
	return false
}

// ID names a message: by its id, else by its content.
func ID(m jsonv.Value) string {
	if id := ident.Peek(m.Get("id")); id != "" {
		return id
	}
	return msg.HashKey(string(m.Get("content").Peek()), string(m.Get("tool_calls").Peek()), string(m.Get("tool_call_id").Peek()))
}

// Content is the content of a message without its calls.
type Content struct {
	Text, Thought []byte
	Files         []msg.Attachment
}

// ContentOf reads the content of a message, a string or blocks. Blocks of calls are left to tool_calls.
func ContentOf(m jsonv.Value) (c Content) {
	v := m.Get("content")
	if v.Is(jsonv.String) {
		c.Text = v.Text().Append(nil)
	}
	for b := range v.Elems() {
		c.block(b)
	}
	if t := m.Path("additional_kwargs", "reasoning_content"); t.Is(jsonv.String) && len(c.Thought) == 0 {
		c.Thought = t.Text().Append(nil)
	}
	m.Path("additional_kwargs", "tool_calls").MarkRead()
	return c
}

func (c *Content) block(b jsonv.Value) {
	if b.Is(jsonv.String) {
		c.Text = b.Text().Append(c.Text)
		return
	}
	switch typ := b.Get("type"); {
	case typ.In("text", "text_delta", "output_text"):
		c.Text = b.Get("text").Text().Append(c.Text)
	case typ.In("thinking", "reasoning"):
		if t := b.First("thinking", "reasoning", "text"); t.Is(jsonv.String) {
			c.Thought = t.Text().Append(c.Thought)
		}
	case typ.In("image_url"):
		u := b.Get("image_url")
		if u.Is(jsonv.Object) {
			u = u.Get("url")
		}
		c.Files = append(c.Files, media.URL(u))
	case typ.In("image", "file", "audio") && b.First("data", "base64").Is(jsonv.String):
		c.Files = append(c.Files, media.Base64(b.First("data", "base64"), ident.Of(b.First("mime_type", "media_type"))))
	case typ.In("tool_use", "tool_call", "input_json_delta", "tool_call_chunk", "function_call"):
		b.MarkRead()
	}
}

// Result writes the content of a message of a tool into the result of its call.
func Result(r *msg.Message, m jsonv.Value) {
	c := ContentOf(m)
	r.Content, r.Attachments = msg.Plain(string(c.Text)), c.Files
	r.SetAttr("message_id", ident.Of(m.Get("id")))
	m.Get("status").In("success")
	r.SetAttr("artifact", conversation.ShortJSON(m.Get("artifact")))
}

// Prompts reads what people wrote among the messages of an input, which may be one text.
func Prompts(v jsonv.Value) (list []Content) {
	if v.Is(jsonv.String) {
		return []Content{{Text: v.Text().Append(nil)}}
	}
	for m := range v.Elems() {
		if m, typ := Message(m); typ == "human" {
			list = append(list, ContentOf(m))
		}
	}
	return list
}

// Counts reads usage_metadata, whose input has the cached tokens. Details that it leaves out are those
// of an earlier count of the same reply.
func Counts(u jsonv.Value, before conversation.Counts) conversation.Counts {
	c := before
	c.Output = u.Get("output_tokens").Uint()
	if in := u.Get("input_token_details"); in.Is(jsonv.Object) {
		c.CacheRead, c.CacheWrite1h = in.Get("cache_read").Uint(), in.Get("ephemeral_1h_input_tokens").Uint()
		c.CacheWrite = max(in.Get("cache_creation").Uint(), in.Get("ephemeral_5m_input_tokens").Uint()+c.CacheWrite1h) // Anthropic's replace the sum by 0
	}
	if out := u.Get("output_token_details"); out.Is(jsonv.Object) {
		c.Reasoning = out.Get("reasoning").Uint()
	}
	input := u.Get("input_tokens").Uint()
	c.Input = input - min(input, c.CacheRead+c.CacheWrite)
	return c
}
