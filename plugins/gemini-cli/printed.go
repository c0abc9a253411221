package geminicli

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// maxPieces is how many bytes of an answer are kept until it is whole.
const maxPieces = 256 << 10

// talk is the state of the lines that --output-format stream-json prints.
type talk struct {
	// Chain is a hash of all contents since the line init, from which keys are made: the lines have no ids.
	Chain string            `json:",omitempty"`
	Model string            `json:",omitempty"`
	Text  []byte            `json:",omitempty"` // pieces of an answer, as JSON
	At    conversation.Time `json:",omitzero"`  // of the last piece
	Asked string            `json:",omitempty"` // key of the response that asks for tools

	Init  conversation.Sum   `json:",omitempty"` // of the run
	Lines conversation.Lines `json:",omitzero"`
}

// printed decodes the lines that gemini --output-format stream-json prints:
//
//	init         {session_id, model}
//	message      {role: user | assistant, content, delta}
//	tool_use     {tool_id, tool_name, parameters}
//	tool_result  {tool_id, status, output, error: {type, message}}
//	error        {severity, message}
//	result       {status, stats: {models: {NAME: {input_tokens, cached, output_tokens, total_tokens}}}}
//
// A run is named by its session and the time of its init: where it is there twice, in one file or in two, its
// keys are the same. Within a run a line of the same time and content is the same line.
type printed struct {
	*chat
	at conversation.Time
}

func (p printed) read(v jsonv.Value) {
	p.at = conversation.TimeOf(v.Get("timestamp"))
	typ := v.Get("type").PeekStr()
	line := conversation.SumOfMembers(v, "type", "timestamp", "session_id", "role", "tool_id", "content", "parameters", "output", "message")
	if typ == "init" {
		p.opens(v, line)
	} else if p.Talk.Chain == "" {
		p.Talk.Chain = msg.HashKey(p.session(), string(v.Get("timestamp").Peek()))
	}
	piece := typ == "message" && v.Get("role").Equal("assistant")
	if p.Talk.Lines.Repeat(line, p.at, piece, len(p.Talk.Text) > 0) && typ != "init" {
		v.MarkRead()
		return
	}
	if content := v.Get("content"); piece {
		if raw := content.Escaped(); content.Is(jsonv.String) && len(p.Talk.Text)+len(raw) <= maxPieces {
			content.MarkRead()
			p.Talk.Text, p.Talk.At = append(p.Talk.Text, raw...), p.at
			return
		}
		p.Unknown(typ, v, p.Talk.Chain)
		return
	}
	p.tell()
	switch typ {
	case "init":
		m := record.Hide(p.say(msg.Status, p.Talk.key(typ), ""), typ)
		m.Run, m.Model = "", p.Talk.Model
	case "message":
		key := p.Talk.key("user")
		p.begin(key)
		p.Talk.goesOn(key, string(v.Get("content").Peek()))
		p.prompt(key, p.at, v.Get("content").Text(), nil)
		p.Talk.Asked = ""
	case "tool_use":
		p.call(v)
	case "tool_result":
		p.result(v)
	case "error":
		m := p.say(msg.Error, p.Talk.key(typ), string(v.Get("message").Peek()))
		m.Content, m.IsError, m.Tool.ErrorType = v.Get("message").Text(), true, cmp.Or(ident.Of(v.Get("severity")), "error")
		if m.Tool.ErrorType == "warning" {
			m.Kind, m.IsError, m.Tool.ErrorType = msg.Status, false, ""
			record.Hide(m, "warning")
		}
	default:
		p.over(v)
	}
}

// opens begins the lines of a process, which may have been read before: all of them are read again then, into the same
// messages.
func (p printed) opens(v jsonv.Value, line conversation.Sum) {
	if line == p.Talk.Init { // open messages are read again, too
		p.Talk.Text, p.Run, p.Rests = nil, conversation.Run{}, false
	}
	p.tell()
	if p.Talk.Lines.Seen.Has(line) {
		p.Talk.Lines = conversation.Lines{}
	}
	p.Session, p.Talk.Model, p.Talk.Init = cmp.Or(ident.Of(v.Get("session_id")), p.Session), ident.Of(v.Get("model")), line
	p.Talk.Chain, p.Talk.Asked, p.Talk.Lines.Newest = msg.HashKey(p.session(), string(v.Get("timestamp").Peek())), "", 0
}

// key names the next part of that kind.
func (t *talk) key(kind string) string { return kind + ":" + msg.HashKey(t.Chain, kind) }

// goesOn adds a content to the chain of keys.
func (t *talk) goesOn(key, content string) { t.Chain = msg.HashKey(t.Chain, key, content) }

// response is the one that begins with the part of that key.
func (t *talk) response(key string, at conversation.Time) *conversation.Response {
	return &conversation.Response{ID: key, Model: t.Model, At: at}
}

// say adds a message, and its content to the chain of keys.
func (p printed) say(kind msg.Kind, key, content string) *msg.Message {
	p.Talk.goesOn(key, content)
	return p.add(kind, key, p.at)
}

// tell emits an answer, whose pieces have come.
func (p printed) tell() {
	if len(p.Talk.Text) == 0 {
		return
	}
	raw, key := p.Talk.Text, p.Talk.key("assistant")
	p.Talk.Text, p.Talk.Asked = nil, key
	p.Run.Wake(key)
	p.at = p.Talk.At
	p.Talk.response(key, p.at).Said(p.say(msg.Assistant, key, string(raw)), msg.Quoted(raw))
	p.Rests = true
}

// call decodes a call of a tool.
func (p printed) call(v jsonv.Value) {
	key := p.Talk.key("call")
	id, args := cmp.Or(ident.Of(v.Get("tool_id")), key), v.Get("parameters")
	p.Talk.Asked = cmp.Or(p.Talk.Asked, key)
	p.Run.Wake(p.Talk.Asked)
	p.Talk.goesOn("call:"+id, string(args.Peek()))
	p.called(p.Talk.response(p.Talk.Asked, p.at), id, cmp.Or(ident.Of(v.Get("tool_name")), "unknown"), args, "")
	p.Rests = false
}

// result decodes the result of a call.
func (p printed) result(v jsonv.Value) {
	id, fault := cmp.Or(ident.Of(v.Get("tool_id")), p.Talk.key("result")), v.Get("error")
	p.Talk.goesOn(id, string(v.Get("output").Peek()))
	p.Talk.Asked = ""
	m := p.resultOf(id, "", p.at)
	if m.Content = v.Get("output").Text(); fault.Exists() || v.Get("status").Equal("error") {
		m.IsError, m.Tool.ErrorType = true, cmp.Or(ident.Of(fault.Get("type")), "tool_error")
		if what := fault.Get("message"); what.Exists() && m.Content.IsZero() {
			m.Content = what.Text()
		}
	}
	ending(m)
}

// over ends the run, with the tokens of each model. Those of thoughts are the difference to the total.
func (p printed) over(v jsonv.Value) {
	stats, n := v.Get("stats"), 0
	key := p.Talk.key("end")
	for name, u := range stats.Get("models").Members() {
		in, out, cached, total := u.Get("input_tokens").Uint(), u.Get("output_tokens").Uint(), u.Get("cached").Uint(), u.Get("total_tokens").Uint()
		c := conversation.Counts{Input: in - min(in, cached), Output: max(out, total-min(total, in)), CacheRead: min(in, cached)}
		c.Reasoning = c.Output - out
		r := conversation.Response{ID: conversation.Ordinal(key, &n), Model: ident.Bounded(name.String()), Run: p.Run.ID, At: p.at}
		r.Count(c, msg.Provider)
		m := r.Usage(p.Out, msg.Complete)
		m.Session, m.Agent, m.ResponseID = p.session(), p.Agent, ""
	}
	p.Run.Wake(key)
	m := p.say(msg.Stop, key, "")
	m.Content, m.Tool.ErrorType = v.Path("error", "message").Text(), ident.Of(v.Path("error", "type"))
	m.SetAttr("duration_ms", stats.Get("duration_ms").Digits())
	p.Run.Finish(m, cmp.Or(ident.Of(v.Get("status")), "success"), v.Get("status").Equal("error"))
}
