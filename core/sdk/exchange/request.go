package exchange

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Item is one message of the conversation, as a request repeats it.
type Item struct {
	Who  Who
	Text msg.Text
	// Of a result: the call, and whether it failed.
	CallID      string
	Failed      bool
	Attachments []msg.Attachment
	// From is the JSON of the item. Repeated items are marked as read there.
	From jsonv.Value
}

// Who is the author of an item.
type Who uint8

// Beside is a text that a client adds to a tool's result: no prompt.
const (
	Model Who = iota
	Instructions
	Prompt
	Result
	Beside
	Other // unknown
)

// Instruct adds instructions, unless they are empty.
func Instruct(items []Item, text msg.Text, from jsonv.Value) []Item {
	if text.IsZero() {
		return items
	}
	return append(items, Item{Who: Instructions, Text: text, From: from})
}

// Messages adds the messages that a request repeats: those of the model, by their role, and the client's as that
// function reads them.
func Messages(items []Item, list jsonv.Value, model string, client func([]Item, jsonv.Value) []Item) []Item {
	for m := range list.Elems() {
		if m.Get("role").Equal(model) {
			items = append(items, Item{Who: Model, From: m})
		} else {
			items = client(items, m)
		}
	}
	return items
}

// Turn adds a message of the client: results of calls, and its own words, which are beside the results if there are any,
// else a prompt. One without either is of another kind.
func Turn(items []Item, from jsonv.Value, results []Item, text msg.Text, files []msg.Attachment) []Item {
	own := Item{Who: Prompt, Text: text, Attachments: files, From: from}
	for _, r := range results {
		own.Who, r.Who, r.From = Beside, Result, from
		items = append(items, r)
	}
	if text.IsZero() && len(files) == 0 {
		if own.Who = Other; len(results) > 0 {
			return items
		}
	}
	return append(items, own)
}

// ModelIn is the model that the path of a request names below a word, in place of its body: an Azure deployment,
// or a model of Vertex AI, whose method follows it.
//
//	/openai/deployments/MODEL/chat/completions  /v1/projects/…/publishers/anthropic/models/MODEL:streamRawPredict
func ModelIn(path, word string) string {
	model, _, _ := strings.Cut(ident.Below(path, "/"+word+"/"), ":")
	if plain, err := url.PathUnescape(model); err == nil {
		model = strings.ToValidUTF8(plain, "\uFFFD")
	}
	return ident.Bounded(model)
}

// PassOver handles a request that is not for the model: to count tokens, to list models.
func (e *Exchange) PassOver(v jsonv.Value) {
	*e = e.fresh()
	v.Skip("model", "messages", "system", "instructions", "input", "tools")
}

// Ask is a request to a model.
type Ask struct {
	Session string // as the client calls it; empty if it does not
	Prompt  string // the client's id of the prompt; empty if it names none
	From    string // the field that Session was read from, if that is no id of a conversation
	Model   string
	Items   []Item // in order
	Tools   Tools
	params  []msg.Attr
}

// maxParam bounds a parameter of a request, in bytes.
const maxParam = 4096

// Param adds a parameter of the request under its name in msg, one of msg.Param*.
// A missing value, null and an object are no parameter.
func (a *Ask) Param(name string, v jsonv.Value) {
	text := ""
	switch v.Kind() {
	case jsonv.String:
		text = v.Str()
	case jsonv.Number, jsonv.True, jsonv.False, jsonv.Array:
		text = string(v.Raw())
	}
	if text != "" && len(text) <= maxParam {
		a.params = append(a.params, msg.Attr{Key: name, Value: text})
	}
}

// Params is Param for members of an object: pairs of a name in msg and that of the member.
func (a *Ask) Params(v jsonv.Value, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		a.Param(pairs[i], v.Get(pairs[i+1]))
	}
}

// Is adds a parameter whose value the decoder computed.
func (a *Ask) Is(name, value string) {
	if value != "" {
		a.params = append(a.params, msg.Attr{Key: name, Value: value})
	}
}

// Stops adds the stop sequences: one, or a list.
func (a *Ask) Stops(v jsonv.Value) {
	if v.Is(jsonv.String) {
		a.Is(msg.ParamStopSequences, "["+string(v.Raw())+"]")
		return
	}
	a.Param(msg.ParamStopSequences, v)
}

// Output adds the requested output type, by OpenAI's name of the format.
func (a *Ask) Output(v jsonv.Value) {
	switch v.Str() {
	case "text":
		a.Is(msg.ParamOutputType, "text")
	case "json_object", "json_schema":
		a.Is(msg.ParamOutputType, "json")
	}
}

// Request handles a request and emits its new items.
func (e *Exchange) Request(out *decoder.Output, a Ask) {
	*e = e.fresh()
	session, model, items := cmp.Or(e.Caller.Session, a.Session), a.Model, a.Items
	e.Model = model
	var first, system, last msg.Text
	prompts, fresh := 0, 0
	for i, it := range items {
		switch it.Who {
		case Model:
			fresh = i + 1
		case Instructions:
			if system.IsZero() && prompts == 0 { // later ones are new in the midst of the conversation
				system = it.Text
			}
		case Prompt:
			if prompts == 0 {
				first = it.Text
			}
			last = it.Text
			prompts++
		}
	}
	thread := msg.HashKey(system.String(), first.String())
	from := a.From
	if e.Caller.Session != "" {
		from = ""
	}
	if e.Session = session; session == "" {
		e.Session, from = "conversation:"+named(e.Source, thread), "content"
	}
	e.Run = "run:" + msg.HashKey(e.Session, thread, strconv.Itoa(prompts), last.String())
	if prompt := cmp.Or(a.Prompt, e.Caller.Turn); session != "" && prompt != "" {
		e.Run = prompt
	}
	if e.Caller.Agent != "" {
		e.Run = e.Caller.Agent
	}
	prompted := false
	for _, it := range items[fresh:] {
		prompted = prompted || it.Who == Prompt
	}
	if prompted && e.Caller.Agent != "" {
		e.agent(out, last.String())
	}
	began := false // the conversation, behind its first instructions, which each run has
	for i, it := range items {
		began = began || it.Who != Instructions
		told := it.Who == Instructions && (began && i >= fresh || !began && prompted)
		if it.Who == Instructions && !told || i < fresh {
			it.From.MarkRead()
		}
		switch {
		case told && !it.Text.IsZero():
			m := e.Message(out, msg.System, "system:"+msg.HashKey(e.Run, it.Text.String()))
			m.Role, m.Content, m.Hidden = msg.RoleSystem, it.Text, true
		case i < fresh:
		case it.Who == Prompt:
			at := len(out.Messages)
			m := e.Message(out, msg.User, "prompt:"+msg.HashKey(e.Run, it.Text.String()))
			m.Role, m.Content, m.Attachments, m.Signal = msg.RoleUser, it.Text, it.Attachments, msg.RunStart
			if m.Agent = (msg.Agent{Kind: msg.KindHuman}); e.Caller.Agent != "" { // the agent above it has written it
				m.Agent.Kind, m.Signal = msg.KindAgent, msg.NoSignal
			}
			e.Last = m.Key
			if text := it.Text.String(); noticed(e, out, text) && isNotice(text) {
				m = &out.Messages[at]
				m.Kind, m.Hidden, m.Agent.Kind = msg.System, true, msg.KindAgent
			}
		case it.Who == Beside:
			m := e.Message(out, msg.User, "beside:"+msg.HashKey(e.Run, it.Text.String()))
			m.Role, m.Content, m.Attachments, m.Hidden = msg.RoleUser, it.Text, it.Attachments, true
			noticed(e, out, it.Text.String())
		case it.Who == Result && it.CallID != "" && isLaunch(it):
			m := e.Status(out, "ack:"+it.CallID, "async_launched")
			m.Content, m.ParentKey, m.Tool.CallID, m.Delegation.Async = it.Text, "call:"+it.CallID, it.CallID, true
			m.Signal = msg.Link
			e.spawned(m, it.Text.String())
			e.Last = "result:" + it.CallID
		case it.Who == Result && it.CallID != "":
			m := e.Message(out, msg.ToolResult, "result:"+it.CallID)
			m.Role, m.Content, m.Attachments, m.ParentKey = msg.RoleTool, it.Text, it.Attachments, "call:"+it.CallID
			m.Tool.CallID = it.CallID
			conversation.Failed(m, it.Failed)
			e.spawned(m, it.Text.String())
			e.Last = m.Key
		case it.Who == Result:
			e.Unknown(out, "result", it.From.Raw())
		}
	}
	if tools := a.Tools.json(); prompted && tools != nil {
		m := e.Status(out, "tools:"+msg.HashKey(e.Run, string(tools)), msg.TypeTools)
		m.Content = msg.Raw(tools)
	}
	m := e.Status(out, "request:"+msg.HashKey(e.Run, e.Last), "request")
	m.Signal, m.Model, m.Provider = msg.ModelStart, model, e.Provider
	m.SetAttr(msg.SessionFrom, from)
	m.Attrs = append(m.Attrs, a.params...)
	headerAttrs(m, e.headers)
}

// named makes the hash of a conversation's beginning a name of the source's own.
func named(source, thread string) string {
	if source == "" {
		return thread
	}
	return msg.HashKey(source, thread)
}

// delegate recognizes the calls by which coding agents hand work to another agent.
func (e *Exchange) delegate(m *msg.Message) {
	words := [...]string{"subagent_type", "prompt"}
	switch {
	case m.Tool.Name == "Task", m.Tool.Name == "Agent":
	case m.Tool.Name == "spawn_agent" && e.Caller.Session != "":
		words = [...]string{"agent_type", "message"}
	default:
		return
	}
	raw, quoted := m.Tool.Arguments.Alias()
	if raw == nil && e.Caller.Session != "" || quoted {
		raw = []byte(m.Tool.Arguments.String())
	}
	var doc jsonv.Doc
	if doc.Parse(raw) != nil {
		return
	}
	to, task := doc.Root().Get(words[0]), doc.Root().Get(words[1])
	if m.Tool.Name == "spawn_agent" && !to.Exists() {
		to = doc.Root().Get("role")
	} else if !to.Is(jsonv.String) {
		return
	}
	if !task.Is(jsonv.String) {
		return
	}
	m.Kind = msg.Delegation
	m.Delegation.To, m.Delegation.Task = cmp.Or(ident.Of(to), "agent"), msg.Plain(task.Str())
	m.Delegation.CorrelationPrompt = e.Caller.asked(e.Caller.Agent, task.Str())
}
