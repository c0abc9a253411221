package geminicli

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// qwen decodes a transcript of Qwen Code.
type qwen struct{ *chat }

// record decodes one record.
//
//	{"uuid":"…","parentUuid":"…","sessionId":"…","timestamp":"…","type":"assistant","message":{"role":"model","parts":[…]}}
func (d qwen) record(v jsonv.Value) {
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
func (d qwen) input(id string, v, parts jsonv.Value, at conversation.Time) {
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
	if subtype == "notification" {
		d.notified(text.String(), at)
	}
}

// launched decodes the result of a call whose sub-agent works in the background: it has begun. A notification has its answer.
func (d qwen) launched(c *call, fr jsonv.Value, at conversation.Time) *msg.Message {
	if !d.isNew("ack:" + c.ID) {
		fr.MarkRead()
		return nil
	}
	c.Async, c.Run = true, d.Run.ID
	m := record.Hide(c.About(d.add(msg.Status, "ack:"+c.ID, at)), "async_launched")
	ident.Is(fr.Get("name"), m.Tool.Name)
	m.Content, m.Attachments, _ = gemini.Result(fr)
	return m
}

// notified decodes the answer of a sub-agent that worked in the background.
//
//	<task-notification><task-id>AGENT</task-id><tool-use-id>CALL</tool-use-id><status>completed</status>…<result>…</result>…
func (d qwen) notified(text string, at conversation.Time) {
	status, c := claude.Tag(text, "status"), d.Calls.GetOpen(claude.Tag(text, "tool-use-id"))
	if c == nil || !c.Async || status == "running" || !d.isNew("result:"+c.ID) {
		return
	}
	d.Calls.End(c)
	c.Child = claude.Tag(text, "task-id")
	m := c.Result(d.add(msg.ToolResult, "result:"+c.ID, at))
	m.Run, m.Content = cmp.Or(c.Run, m.Run), msg.Plain(cmp.Or(claude.Tag(text, "result"), claude.Tag(text, "summary")))
	m.Tool.ErrorType = claude.TaskError(status)
	m.IsError = m.Tool.ErrorType != ""
	m.SetAttr("task_status", status)
}

// telemetry decodes a response of a sub-agent whose tokens are nowhere else. They are those of the turn.
//
//	{"event.name":"qwen-code.api_response","response_id":"…","model":"…","input_token_count":…,"prompt_id":"SESSION#AGENT#ROUND"}
func (d qwen) telemetry(version, event jsonv.Value, at conversation.Time) {
	of, sub := strings.CutPrefix(event.Get("prompt_id").Str(), d.Session+"#")
	id := ident.Of(event.Get("response_id"))
	if !sub || of == "" || of[0] == '#' || id == "" || counts(version.Str()) || !event.Get("event.name").Equal("qwen-code.api_response") {
		return
	}
	r := &conversation.Response{ID: id, Run: d.Run.ID, At: at, Model: ident.Of(event.Get("model"))}
	d.usage(r, gemini.Usage{
		Prompt: event.Get("input_token_count").Uint(), Cached: event.Get("cached_content_token_count").Uint(), Output: event.Get("output_token_count").Uint(),
		Thoughts: event.Get("thoughts_token_count").Uint(), Total: event.Get("total_token_count").Uint(),
	}.Counts(), false)
}

// assistant decodes a response. A sub-agent's has a record for its text and one for each call.
func (d qwen) assistant(id string, v, parts jsonv.Value, at conversation.Time) {
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
func (d qwen) toolResult(v, parts jsonv.Value, at conversation.Time) {
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
func (d qwen) system(id string, v jsonv.Value, at conversation.Time) {
	subtype := cmp.Or(ident.Of(v.Get("subtype")), "system")
	if subtype == "rewind" {
		d.end("end:"+d.Run.ID, d.Last, "rewound")
	}
	m := record.Hide(d.beside(msg.Status, id, at), subtype)
	m.Content, m.Run = v.Get("systemPayload").Text(), d.Run.Going()
	if m.Run != "" && subtype == "chat_compression" {
		m.Signal = msg.Compaction
	}
	if subtype == "ui_telemetry" {
		d.telemetry(v.Get("version"), v.Path("systemPayload", "uiEvent"), at)
	}
}

// counts reports whether that version of Qwen Code writes the tokens of sub-agents into files of their own: 0.21 does, 0.15 does not.
// Of those in between it is not known, and nothing counts twice.
func counts(version string) bool {
	minor, first := strings.CutPrefix(version, "0.")
	minor, _, _ = strings.Cut(minor, ".")
	n, err := strconv.Atoi(minor)
	return !first || err != nil || n > 15
}

// metadata decodes agent-<id>.meta.json, which names the call that began a sub-agent. It is
// written again when the agent ends: the fields that change then are no part of the link.
func (d qwen) metadata(v jsonv.Value) {
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
