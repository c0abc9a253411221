package a2a

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// content is the content of the parts of a message or of an artifact.
type content struct {
	text     []byte
	files    []msg.Attachment
	thoughts []msg.Text
	calls    []jsonv.Value // data of ADK: {id, name, args}
	results  []jsonv.Value // {id, name, response}
}

// read reads the parts; texts are joined by sep. Up to 0.3 a part has a kind, or a type; from 1.0 its member names it.
func (c *content) read(v jsonv.Value, sep string) {
	for p := range v.First("parts", "content").Elems() {
		p.First("kind", "type").In("text", "file", "data")
		file, adk := p.Get("file"), ofADK(p.Get("metadata"), "type")
		switch text, data := p.Get("text"), p.Get("data"); {
		case text.Is(jsonv.String) && ofADK(p.Get("metadata"), "thought").Bool():
			c.thoughts = append(c.thoughts, text.Text())
		case text.Is(jsonv.String):
			c.add(text.Text(), sep)
		case file.Is(jsonv.Object):
			c.file(file, file.First("bytes", "fileWithBytes"), file.First("uri", "fileWithUri"))
		case p.Get("raw").Is(jsonv.String) || p.Get("url").Is(jsonv.String):
			c.file(p, p.Get("raw"), p.Get("url"))
		case data.Get("name").Is(jsonv.String) && adk.Equal("function_call"):
			c.calls = append(c.calls, data)
		case data.Get("id").Is(jsonv.String) && adk.Equal("function_response"):
			c.results = append(c.results, data)
		case data.Kind() != jsonv.Missing:
			c.add(data.JSON(), "\n")
		default:
			c.add(p.JSON(), "\n")
		}
	}
}

func (c *content) add(t msg.Text, sep string) {
	if len(c.text) > 0 {
		c.text = append(c.text, sep...)
	}
	c.text = t.Append(c.text)
}

func (c *content) file(v, data, uri jsonv.Value) {
	f := media.Of(data, uri, ident.Of(v.First("mimeType", "mediaType")))
	f.Name = ident.Of(v.First("name", "filename"))
	c.files = append(c.files, f)
}

// calls emits the tool calls of the remote agent and their results.
func (d *connection) calls(t *task, b *content, in string) {
	for _, v := range b.calls {
		id, name := ident.Of(v.Get("id")), ident.Of(v.Get("name"))
		if id == "" {
			id = "call:" + msg.HashKey(t.ID, in, name, string(v.Get("args").Peek()))
		}
		if !t.Calls.Add(id, maxSeen) { // it is repeated
			v.MarkRead()
			continue
		}
		m := d.add(t, msg.ToolCall, "call:"+id)
		m.Tool.CallID, m.Tool.Name, m.Tool.Arguments = id, name, v.Get("args").JSON()
		m.SetAttr("message_id", in)
		if m.Tool.Arguments.IsZero() {
			m.Tool.Arguments = msg.Plain("{}")
		}
	}
	for _, v := range b.results {
		id, name := ident.Of(v.Get("id")), ident.Of(v.Get("name"))
		if !t.Calls.Add("result:"+id, maxSeen) {
			v.MarkRead()
			continue
		}
		m := d.add(t, msg.ToolResult, "result:"+id)
		m.Role, m.Tool.CallID, m.Tool.Name = msg.RoleTool, id, name
		m.SetAttr("message_id", in)
		r := v.Get("response")
		if text := r.Get("result"); text.Is(jsonv.String) && r.Len() == 1 {
			m.Content = text.Text()
		} else {
			m.Content = r.JSON()
		}
		conversation.Failed(m, r.Get("error").Exists() || strings.HasPrefix(r.Get("status").PeekStr(), "error"))
	}
}

// ofADK is a member of metadata that ADK, or kagent above it, writes.
func ofADK(metadata jsonv.Value, name string) jsonv.Value {
	return metadata.First("adk_"+name, "kagent_"+name)
}

// usage emits the tokens of a response of the model, which ADK writes into the metadata of its event, and of the task after it.
func (d *connection) usage(t *task, metadata jsonv.Value) {
	u := ofADK(metadata, "usage_metadata")
	if !u.Is(jsonv.Object) || ofADK(metadata, "partial").Bool() {
		return
	}
	id := ident.Of(ofADK(metadata, "event_id"))
	if id == "" {
		id = msg.HashKey(t.ID, string(ofADK(metadata, "invocation_id").Peek()), string(u.Peek()))
	}
	if !t.Calls.Add("usage:"+id, maxSeen) {
		return
	}
	m := d.add(t, msg.Usage, "usage:"+id)
	m.Hidden, m.ResponseID = true, id
	m.Usage = gemini.UsageOf(u).Counts().Tokens(msg.TranscriptFinal)
}
