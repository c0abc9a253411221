package otlp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// parts reads messages: a list of them, one, or a text. Both shapes that are in use are known:
// {role, parts: [{type, content}]} of the conventions and {role, content: [{type, text}]} of providers
// and libraries, with tool_calls or without.
// finish is the reason for which the first one ended, left has the unknown ones.
func parts(v Value, role msg.Role) (list []Part, finish, left string) {
	var doc jsonv.Doc
	root := v.parsed(&doc)
	switch {
	case root.Is(jsonv.Array):
		for m := range root.Elems() {
			list = appendMessage(list, m, role)
			finish = cmp.Or(finish, ident.Of(m.Get("finish_reason")))
		}
	case root.Is(jsonv.Object) && root.Get("messages").Is(jsonv.Array):
		for m := range root.Get("messages").Elems() {
			list = appendMessage(list, m, role)
		}
	case root.Is(jsonv.Object) && root.First("role", "parts", "content").Exists():
		list = appendMessage(list, root, role)
		finish = ident.Of(root.Get("finish_reason"))
	default:
		list = appendText(list, kindOf(role), v.Text())
		root = jsonv.Value{}
	}
	if len(list) > maxParts {
		list = list[len(list)-maxParts:]
	}
	if root.Exists() && (v.json != "" || v.leaf.Is(jsonv.String)) { // a document of its own
		v.leaf.MarkRead()
		left = unread(&doc)
	}
	return list, finish, left
}

func kindOf(role msg.Role) msg.Kind {
	switch role {
	case msg.RoleUser:
		return msg.User
	case msg.RoleSystem:
		return msg.System
	case msg.RoleTool:
		return msg.ToolResult
	}
	return msg.Assistant
}

func appendText(list []Part, kind msg.Kind, text string) []Part {
	if text == "" || len(list) > 4*maxParts {
		return list
	}
	return append(list, Part{Kind: kind, Text: text})
}

func appendMessage(list []Part, m jsonv.Value, role msg.Role) []Part {
	if m.Is(jsonv.String) {
		return appendText(list, kindOf(role), m.Str())
	}
	if r, err := msg.ParseRole(ident.Peek(m.Get("role"))); err == nil && r != msg.NoRole {
		m.Get("role").MarkRead()
		role = r
	} else if m.Get("role").Equal("model") {
		role = msg.RoleAssistant
	}
	if inner := m.Get("message"); inner.Is(jsonv.Object) { // gen_ai.choice
		return appendMessage(list, inner, role)
	}
	if !m.Get("role").Exists() && m.Get("type").Is(jsonv.String) { // a part without a message
		return appendPart(list, m, role)
	}
	content := m.First("parts", "content")
	before := len(list)
	switch {
	case content.Is(jsonv.Array):
		for p := range content.Elems() {
			list = appendPart(list, p, role)
		}
	case content.Is(jsonv.Object):
		list = appendPart(list, content, role)
	case content.Exists():
		list = appendText(list, kindOf(role), content.Text().String())
	}
	if id := ident.First(m.Get("tool_call_id"), m.Get("id")); role == msg.RoleTool && id != "" {
		for i := before; i < len(list); i++ {
			if list[i].Call == "" {
				list[i].Call, list[i].Tool = id, ident.Of(m.Get("name"))
			}
		}
	}
	for c := range m.First("tool_calls", "toolCalls").Elems() {
		f := c.Get("function")
		name, args := f.Get("name"), f.Get("arguments")
		if !f.Exists() {
			name, args = c.First("name", "toolName"), c.First("arguments", "args", "input")
		}
		list = append(list, Part{Kind: msg.ToolCall, Call: ident.First(c.Get("id"), c.Get("toolCallId")), Tool: ident.Of(name), Text: args.Text().String()})
	}
	return list
}

// knownTypes are types of parts that are longer than a word.
var knownTypes = map[string]bool{"tool_call_response": true, "function_call_output": true, "server_tool_call": true, "server_tool_call_response": true}

// appendPart appends a part of a message.
func appendPart(list []Part, p jsonv.Value, role msg.Role) []Part {
	if p.Is(jsonv.String) {
		return appendText(list, kindOf(role), p.Str())
	}
	typ := strings.ReplaceAll(p.Get("type").PeekStr(), "-", "_")
	id := ident.First(p.Get("id"), p.Get("toolCallId"), p.Get("tool_use_id"), p.Get("call_id"))
	name := ident.First(p.Get("name"), p.Get("toolName"))
	if knownTypes[typ] {
		p.Get("type").MarkRead()
	}
	if block, is := appendBlock(list, p, role); is {
		return block
	}
	switch {
	case typ == "tool_call" || typ == "tool_use" || typ == "function_call" || typ == "server_tool_call":
		args := p.First("arguments", "args", "input", "server_tool_call")
		return append(list, Part{Kind: msg.ToolCall, Call: id, Tool: name, Text: args.Text().String()})
	case typ == "tool_call_response" || typ == "tool_result" || typ == "function_call_output" || typ == "server_tool_call_response":
		out := p.First("response", "result", "output", "content")
		return append(list, Part{Kind: msg.ToolResult, Call: id, Tool: name, Text: out.Text().String(), Failed: p.First("is_error", "isError").Bool()})
	case role == msg.RoleUser && (typ == "uri" || typ == "attachment"): // a file that is elsewhere, and ours without a place
		p.Get("type").MarkRead()
		media, uri := p.First("mime_type", "mimeType"), p.Get("uri")
		if p.Get("modality").MarkRead(); media.Exists() || uri.Exists() {
			return append(list, Part{Kind: msg.User, Media: ident.Of(media), URI: uri.Str()})
		}
	case typ == "reasoning" || typ == "thinking":
		return appendText(list, msg.Reasoning, p.First("content", "text", "thinking").Text().String())
	case typ == "" || strings.HasSuffix(typ, "text"):
		if text := p.First("content", "text"); text.Exists() {
			return appendText(list, kindOf(role), text.Text().String())
		}
	}
	return appendText(list, kindOf(role), p.JSON().String()) // an image, a file: as it is
}

// appendBlock appends a part as Bedrock's Converse API has it, whose only member names its kind: {text}, {toolUse}, {toolResult},
// {reasoningContent}.
func appendBlock(list []Part, p jsonv.Value, role msg.Role) (to []Part, is bool) {
	if use := p.Get("toolUse"); use.Is(jsonv.Object) {
		return append(list, Part{Kind: msg.ToolCall, Call: ident.Of(use.Get("toolUseId")), Tool: ident.Of(use.Get("name")), Text: use.Get("input").Text().String()}), true
	}
	if thought := p.Path("reasoningContent", "reasoningText", "text"); thought.Is(jsonv.String) {
		return appendText(list, msg.Reasoning, thought.Str()), true
	}
	res := p.Get("toolResult")
	if !res.Is(jsonv.Object) {
		return list, false
	}
	part := Part{Kind: msg.ToolResult, Call: ident.Of(res.Get("toolUseId")), Failed: res.Get("status").Equal("error")}
	res.Get("status").Equal("success")
	part.Text = textOf(res.Get("content"))
	return append(list, part), true
}

// textOf is the text of a list of blocks that are texts, or the JSON of any other value.
func textOf(v jsonv.Value) string {
	var texts []string
	for b := range v.Elems() {
		if !b.Get("text").Is(jsonv.String) || b.Len() != 1 {
			return v.JSON().String()
		}
		texts = append(texts, b.Get("text").PeekStr())
	}
	if len(texts) == 0 {
		return v.Text().String()
	}
	v.MarkRead()
	return strings.Join(texts, "\n")
}

// indexed collects messages that are flattened into the names of attributes:
// llm.input_messages.0.message.role, gen_ai.prompt.0.content.
type indexed struct{ messages map[int]*flat }

type flat struct {
	role, content, name, call, finish string
	contents                          map[int]*content
	calls                             map[int]*Part
}

// content is a part of a message: a text, a thought, the address of a file, or a call in its place among them.
type content struct {
	typ, text string
	call      Part
}

// maxIndex bounds the numbers in the names.
const maxIndex = 4096

var nested = strings.NewReplacer("message_content.", "", "message.", "", "tool_call.", "", "function.", "")

// add takes an attribute, whose name behind the prefix is rest; false if it is none of a message.
func (x *indexed) add(rest string, v Value) bool {
	n, rest, ok := index(rest)
	rest = strings.TrimPrefix(rest, "message.")
	if !strings.HasPrefix(rest, "contents.") {
		rest = nested.Replace(rest)
	}
	if !ok || !v.Exists() || v.leaf.Is(jsonv.Object) {
		return false
	}
	if x.messages == nil {
		x.messages = make(map[int]*flat)
	}
	m := x.messages[n]
	if m == nil {
		m = &flat{contents: make(map[int]*content), calls: make(map[int]*Part)}
		x.messages[n] = m
	}
	switch {
	case rest == "role":
		if r, err := msg.ParseRole(strings.ToLower(v.leaf.PeekStr())); (err != nil || r == msg.NoRole) && !v.leaf.Equal("model") {
			return false
		}
		m.role = v.Text()
	case rest == "content":
		m.content = v.Text()
	case rest == "name":
		m.name = v.Text()
	case rest == "tool_call_id":
		m.call = ident.Bounded(v.Text())
	case rest == "finish_reason":
		m.finish = ident.Bounded(v.Text())
	case strings.HasPrefix(rest, "contents."):
		return m.add(rest[len("contents."):], v)
	case strings.HasPrefix(rest, "tool_calls."):
		k, what, ok := index(rest[len("tool_calls."):])
		if !ok {
			return false
		}
		c := m.calls[k]
		if c == nil {
			c = &Part{Kind: msg.ToolCall}
			m.calls[k] = c
		}
		return c.add(what, v)
	default:
		return false
	}
	return true
}

// add takes an attribute of the content that rest begins with.
func (m *flat) add(rest string, v Value) bool {
	k, what, ok := index(rest)
	if !ok {
		return false
	}
	c := m.contents[k]
	if c == nil {
		c = &content{call: Part{Kind: msg.ToolCall}}
		m.contents[k] = c
	}
	if call, is := strings.CutPrefix(what, "tool_call."); is {
		return c.call.add(strings.TrimPrefix(call, "function."), v)
	}
	switch strings.TrimPrefix(what, "message_content.") {
	case "type":
		if !v.leaf.In("text", "image", "audio", "reasoning", "tool_use") {
			return false
		}
		c.typ = v.leaf.PeekStr()
	case "text", "image.image.url", "audio.audio.url", "audio.audio.transcript":
		c.text += v.Text()
	default: // the seal of a thought, for the provider alone
		return false
	}
	return true
}

// add takes an attribute of a call.
func (p *Part) add(name string, v Value) bool {
	switch name {
	case "id":
		p.Call = ident.Bounded(v.Text())
	case "name":
		p.Tool = ident.Bounded(v.Text())
	case "arguments":
		p.Text = v.Text()
	default:
		return false
	}
	return true
}

// index splits "3.rest".
func index(s string) (n int, rest string, ok bool) {
	head, rest, _ := strings.Cut(s, ".")
	n, err := strconv.Atoi(head)
	return n, rest, err == nil && n >= 0 && n < maxIndex
}

// has reports whether a call is one of the message's own list.
func (m *flat) has(call string) bool {
	for _, c := range m.calls {
		if c.Call == call {
			return true
		}
	}
	return false
}

// finish is the reason for which the first message ended.
func (x *indexed) finish() (reason string) {
	for _, n := range numbers(x.messages) {
		reason = cmp.Or(reason, x.messages[n].finish)
	}
	return reason
}

// parts are the messages in the order of their numbers.
func (x *indexed) parts(role msg.Role) (list []Part) {
	for _, n := range numbers(x.messages) {
		m, of := x.messages[n], role
		if r, err := msg.ParseRole(strings.ToLower(m.role)); err == nil && r != msg.NoRole {
			of = r
		}
		before := len(list)
		list = appendText(list, kindOf(of), m.content)
		for _, k := range numbers(m.contents) {
			switch c := m.contents[k]; {
			case c.call.Tool != "":
				if !m.has(c.call.Call) {
					list = append(list, c.call)
				}
			case c.typ == "reasoning":
				list = appendText(list, msg.Reasoning, c.text)
			default:
				list = appendText(list, kindOf(of), c.text)
			}
		}
		if of == msg.RoleTool {
			for i := before; i < len(list); i++ {
				list[i].Call, list[i].Tool = m.call, m.name
			}
		}
		for _, k := range numbers(m.calls) {
			list = append(list, *m.calls[k])
		}
	}
	return list
}

func numbers[T any](m map[int]T) []int {
	list := make([]int, 0, len(m))
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// fresh are the parts of a request that are new to the model: those after its own last message, and the
// instructions.
func fresh(in []Part) (system string, list []Part) {
	last := -1
	for i, p := range in {
		switch p.Kind {
		case msg.System:
			system = cmp.Or(system, p.Text)
		case msg.Assistant, msg.Reasoning, msg.ToolCall:
			last = i
		}
	}
	for _, p := range in[last+1:] {
		if p.Kind != msg.System {
			list = append(list, p)
		}
	}
	return system, list
}

// beginning is the request of the first response of a run that was observed. If it has no new prompt, the run began before: its
// prompt is the last one, and the calls are those whose results are new.
func beginning(in []Part) []Part {
	_, after := fresh(in)
	for _, p := range after {
		if p.Kind == msg.User {
			return in
		}
	}
	old := in[:len(in)-len(after)]
	prompt := slices.IndexFunc(old, func(p Part) bool { return p.Kind == msg.User })
	for i, p := range old {
		if p.Kind == msg.User {
			prompt = i
		}
	}
	if len(after) == 0 || prompt < 0 {
		return in
	}
	out := []Part{}
	for _, p := range old {
		if p.Kind == msg.System {
			out = append(out, p)
		}
	}
	out = append(out, old[prompt])
	for _, p := range old[prompt:] {
		if p.Kind == msg.ToolCall && slices.ContainsFunc(after, func(r Part) bool { return r.Kind == msg.ToolResult && r.Call == p.Call }) {
			p.Kind = earlier
			out = append(out, p)
		}
	}
	return append(out, after...)
}

// earlier is the kind of a call in a request, of a response that was not observed.
const earlier = msg.Delegation
