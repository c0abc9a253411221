package geminicli

import (
	"cmp"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// record decodes a record of Qwen Code.
//
//	{"uuid":"…","parentUuid":"…","sessionId":"…","timestamp":"…","type":"assistant","message":{"role":"model","parts":[…]}}
func (d *chat) record(v jsonv.Value) {
	id, typ, at := ident.Of(v.Get("uuid")), v.Get("type"), conversation.TimeOf(v.Get("timestamp"))
	session := ident.Of(v.Get("sessionId"))
	d.Session = cmp.Or(session, d.Session)
	if from := v.Get("forkedFrom"); from.Is(jsonv.Object) {
		origin := ident.Of(from.Get("sessionId"))
		if m := d.status("fork:"+msg.HashKey(session, origin), "fork", at); m != nil {
			m.SetAttr("forked_from", origin)
		}
		d.copiedOf = origin
		ident.Is(from.Get("messageUuid"), id)
	}
	if agent := ident.Peek(v.Get("agentId")); agent != "" {
		d.child(agent, ident.Peek(v.Get("agentName")))
		ident.Is(v.Get("agentId"), d.Agent.ID)
		ident.Is(v.Get("agentName"), d.Agent.Name)
	}
	d.Agent = cmp.Or(d.Agent, agentOf("qwen-code"))
	parts := v.Path("message", "parts")
	switch {
	case id == "" || !typ.In("user", "assistant", "tool_result", "system"):
		d.Unknown(cmp.Or(ident.Of(typ), "record"), v)
	case !d.isNew(id):
		v.Skip("message", "systemPayload", "subtype", "promptId", "toolCallResult", "usageMetadata")
	case typ.Equal("assistant"):
		d.assistant(id, v, parts, at)
	case typ.Equal("system"):
		d.system(id, v, at)
	case typ.Equal("tool_result"):
		d.toolResult(v, parts, at)
	default:
		d.input(id, v, parts, at)
	}
}

// input decodes a user record: a prompt, or a message of the CLI in its place.
func (d *chat) input(id string, v, parts jsonv.Value, at conversation.Time) {
	d.results(parts, jsonv.Value{}, at)
	text, files := gemini.Content(parts)
	if text.IsZero() && len(files) == 0 {
		return
	}
	subtype := ident.Of(v.Get("subtype"))
	if subtype == "" {
		d.begin(id)
	}
	d.Run.Wake(id)
	m := d.prompt(id, at, text, files)
	if subtype != "" && subtype != "mid_turn_user_message" {
		m.Agent, m.Hidden = msg.Agent{}, true
	}
	if m.Signal == msg.RunStart {
		m.Client = msg.Client{Project: ident.Of(v.Get("cwd")), Branch: ident.Of(v.Get("gitBranch")), Version: ident.Of(v.Get("version"))}
	}
	m.SetAttr("subtype", cmp.Or(subtype, ident.Of(v.Get("externalInputKind"))))
	m.SetAttr("prompt_id", ident.Of(v.Get("promptId")))
	payload := v.Get("systemPayload")
	if shown := payload.Get("displayText"); !shown.Equal(text.String()) {
		m.SetAttr("display_text", conversation.Excerpt(shown))
	}
	m.SetAttr("task", conversation.ShortJSON(payload.Get("backgroundTask")))
}

// assistant decodes a response. A sub-agent's has a record for its text and one for each call.
func (d *chat) assistant(id string, v, parts jsonv.Value, at conversation.Time) {
	r := &conversation.Response{ID: id, Run: d.Run.ID, At: at, Model: ident.Of(v.Get("model"))}
	if run := ident.Of(v.Get("agentRunId")); run != "" {
		r.ID = run + "/" + ident.PeekOrNumber(v.Get("agentRound"))
	}
	calls := 0
	for p := range parts.Elems() {
		text := p.Get("text")
		switch c := p.Get("functionCall"); {
		case c.Is(jsonv.Object):
			d.toolCall(r, c, ident.Of(c.Get("id")))
			calls++
		case text.Is(jsonv.String):
			kind, key, n := msg.Assistant, id, &r.Texts
			if p.Get("thought").Bool() {
				kind, key, n = msg.Reasoning, id+"/thinking", &r.Thoughts
			}
			key = conversation.Ordinal(key, n)
			if t := text.Text(); !t.IsZero() {
				r.Said(d.add(kind, key, at), t)
			}
		default:
			m := d.add(msg.Assistant, conversation.Ordinal(id, &r.Texts), at)
			if f, ok := gemini.File(p); ok {
				m.Attachments = []msg.Attachment{f}
			} else {
				m.Content = p.JSON()
			}
			m.Role = msg.RoleAssistant
			r.Mark(m)
		}
	}
	if u := v.Get("usageMetadata"); u.Is(jsonv.Object) {
		d.usage(r, gemini.UsageOf(u).Counts(), false)
	}
	if calls == 0 && !d.Run.Child {
		d.end("end:"+id, at, "stop")
	}
}

// toolResult decodes the result of a call.
func (d *chat) toolResult(v, parts jsonv.Value, at conversation.Time) {
	extra := v.Get("toolCallResult")
	m := d.results(parts, extra.Get("callId"), at)
	if m == nil {
		m = d.Unknown("tool_result", v)
	}
	if m.Kind == msg.Unknown {
		return
	}
	ident.Is(extra.Get("callId"), m.Tool.CallID)
	m.Tool.Duration = extra.Get("durationMs").Int() * int64(time.Millisecond)
	text, files := gemini.Content(parts)
	m.Attachments = append(m.Attachments, files...)
	m.SetAttr("beside", text.String())
	fails(m, extra.Get("status"), extra.Get("errorType"))
}

// system decodes a record beside the conversation.
func (d *chat) system(id string, v jsonv.Value, at conversation.Time) {
	subtype := cmp.Or(ident.Of(v.Get("subtype")), "system")
	if subtype == "rewind" {
		d.end("end:"+d.Run.ID, d.Last, "rewound")
	}
	m := record.Hide(d.beside(msg.Status, id, at), subtype)
	m.Content, m.Run = v.Get("systemPayload").Text(), d.Run.Going()
	if m.Run != "" && subtype == "chat_compression" {
		m.Signal = msg.Compaction
	}
}

// metadata decodes agent-<id>.meta.json, which names the call that began a sub-agent. It is
// written again when the agent ends: the fields that change then are no part of the link.
func (d *chat) metadata(v jsonv.Value) {
	agent, call := ident.Of(v.Get("agentId")), ident.Of(v.Get("toolUseId"))
	d.Session = ident.Of(v.Get("parentSessionId"))
	if m := d.status("link:"+agent, "agent_meta", conversation.TimeOf(v.Get("createdAt"))); m != nil {
		m.Content = v.Get("description").Text()
		m.Delegation.To, m.Delegation.ChildRun, m.ParentRun = ident.Of(v.Get("agentType")), agent, ident.Of(v.Get("parentAgentId"))
		if call != "" && agent != "" {
			m.Signal, m.Tool.CallID, m.Delegation.Link = msg.Link, call, msg.ByMetaFile
		}
		m.SetAttr("flags", conversation.ShortJSON(v.Get("persistedCliFlags")))
	} else {
		v.Skip("description", "agentType", "parentAgentId", "persistedCliFlags")
	}
	if fault := v.Get("lastError"); fault.Exists() {
		fault.MarkRead()
		if m := d.status("failed:"+msg.HashKey(agent, string(fault.Peek())), "agent_failed", conversation.TimeOf(v.Get("lastUpdatedAt"))); m != nil {
			m.Content, m.IsError = fault.Text(), true
		}
	}
}
