package acp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/mcp"
)

// message decodes a request, a notification or a response.
func (d *connection) message() {
	method, p := ident.Of(d.m.Get("method")), d.m.Get("params")
	d.enter(ident.First(p.Get("sessionId"), d.m.Path("result", "sessionId")))
	if d.m.Lost != "" {
		d.status("lost:"+d.key(""), "lost").SetAttr("lost_bytes", d.m.Lost)
	}
	key, typ, isNote := d.m.Note(d.At)
	switch {
	case isNote:
		d.status(key, typ).Content = d.m.Value.Text()
	case method != "":
		d.request(method, p)
	case d.m.Get("result").Kind() != jsonv.Missing || d.m.Get("error").Exists():
		d.response()
	default:
		d.Unknown("none", d.Root)
	}
}

// key names a message without an id of its own by its content.
func (d *connection) key(what string) string {
	p := d.m.Get("params")
	return msg.HashKey(d.s.ID, d.s.Run.ID, what, d.m.ID(), strconv.FormatInt(d.At.Nanos, 10), string(p.First("update", "cwd", "path", "modelId", "modeId", "terminalId", "content").Peek()))
}

// request decodes a request or a notification.
func (d *connection) request(method string, p jsonv.Value) {
	q := jsonrpc.Request{ID: d.m.ID(), From: jsonrpc.Client, Method: method, Session: d.s.ID}
	switch method {
	case "session/prompt":
		q.Run = d.prompt(p.Get("prompt"))
	case "session/update":
		d.update(p.Get("update"))
	case "session/request_permission":
		q.From = jsonrpc.Server
		d.asks(p, &q)
	case "session/cancel":
		d.status("cancel:"+d.key(method), method)
	default:
		if method == "initialize" {
			d.Requests = nil // of a process before this one
		}
		switch group, _, _ := strings.Cut(method, "/"); group {
		case "fs", "terminal", "elicitation":
			q.From = jsonrpc.Server
		case "session", "initialize", "authenticate", "logout", "auth", "providers", "nes", "document":
		default:
			if q.From = d.m.From; group != "mcp" && group != "$" && !strings.HasPrefix(method, "_") { // no extension
				d.Unknown(method, d.Root)
				return
			}
		}
		if method == "session/set_model" || method == "session/set_config_option" && p.Get("configId").Equal("model") {
			q.Note = cmp.Or(ident.Peek(p.Get("modelId")), ident.Peek(p.Get("value")))
		}
		if method == "terminal/output" {
			q.Call = ident.Peek(p.Get("terminalId"))
		}
		m := d.status("request:"+d.key(method), method)
		q.Dir = ident.Of(p.Get("cwd"))
		m.Client.Project = q.Dir
		conversation.Attrs(m, p, "path", "modelId", "modeId", "configId", "value", "terminalId", "command", "methodId", "connectionId", "method", "mode", "url", "elicitationId")
		m.SetAttr("schema", conversation.ShortJSON(p.Get("requestedSchema")))
		info := p.Get("clientInfo")
		conversation.AttrsAs(m, info, ident.Of, "client=name", "client_version=version")
		m.Content = p.First("content", "message").Text()
		d.s.waits(m, method == elicitation, msg.WaitStart)
	}
	if q.ID != "" {
		q.Run = cmp.Or(q.Run, d.s.Run.ID)
		d.Requests.Add(q)
	}
}

// prompt decodes the request that begins a turn, at once or after those before it, and returns its run.
func (d *connection) prompt(blocks jsonv.Value) string {
	run := conversation.Run{ID: "turn:" + msg.HashKey(d.s.ID, d.m.ID(), string(blocks.Peek()), strconv.FormatInt(d.At.Nanos, 10))}
	d.s.Loaded = false
	atWork := d.s.Run.Active() && d.s.Parts+len(d.s.Calls.Open) > 0 && d.Requests.Open(d.s.ID, "session/prompt")
	if !atWork {
		d.complete()
	}
	m := d.Add(msg.User, "prompt:"+run.ID)
	run.Mark(m)
	if d.s.Waiting = bounded.Push(d.s.Waiting, run, maxWaiting); !atWork {
		d.s.next()
	}
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	m.Client.Project, m.Client.Version = d.s.Dir, d.Release
	mcp.Content(blocks).Fill(m)
	return run.ID
}

// next begins the turn that waits.
func (s *session) next() {
	if len(s.Waiting) > 0 {
		s.Run, s.Waiting = s.Waiting[0], s.Waiting[1:]
		s.Parts, s.Responses, s.Prompted = 0, 0, true
	}
}

// response decodes a result or an error.
func (d *connection) response() {
	result, fault := d.m.Get("result"), d.m.Get("error")
	permission, stop := result.Get("outcome").Exists(), result.Get("stopReason")
	q, ok := d.Requests.Take(d.m, func(q jsonrpc.Request) bool {
		return fault.Exists() || (q.Method == "session/request_permission") == permission && (!stop.Exists() || q.Method == "session/prompt")
	})
	if ok && q.Session != nameOf(d.Origin) && !result.Get("sessionId").Exists() {
		d.enter(q.Session)
	}
	switch {
	case permission:
		d.answered(q, result.Get("outcome"))
		return
	case stop.Exists():
		if d.s.current(q) {
			d.usage(result)
		}
		d.stop(q, ident.Of(stop))
		return
	case q.Method == "session/prompt" && fault.Exists():
		jsonrpc.Failed(d.over(q, msg.Error, "error:", "error", true), fault)
		return
	case q.Method == "session/load", q.Method == "session/resume":
		d.complete()
	}
	m := d.status("response:"+d.key(q.Method+string(fault.Peek())+string(result.First("sessionId", "protocolVersion").Peek())), cmp.Or(q.Method, "response"))
	d.s.waits(m, q.Method == elicitation, msg.WaitEnd)
	m.SetAttr("action", ident.Of(result.Get("action")))
	if jsonrpc.Failed(m, fault) {
		return
	}
	d.s.Loaded = d.s.Loaded || q.Method == "session/load"
	if q.Method == "terminal/output" {
		d.s.screen(q.Call).show(result.Get("output").PeekStr())
	}
	if q.Note != "" { // the model that was set
		d.s.Model = q.Note
	}
	info := result.Get("agentInfo")
	if name := ident.First(info.Get("title"), info.Get("name")); name != "" {
		d.Agent = name
		m.Agent.Name = name
	}
	m.SetAttr("agent", ident.Of(info.Get("name")))
	if version := ident.Of(info.Get("version")); version != "" {
		d.Release = version
	}
	if q.Dir != "" {
		d.s.Dir = q.Dir
	}
	m.Client.Project, m.Client.Version = d.s.Dir, d.Release
	d.s.model(result)
	m.SetAttr("model", d.s.Model)
	if m.Content = result.Get("content").Text(); m.Content.IsZero() && result.Len() > 0 { // else of a file
		m.Content = result.JSON()
	}
}

// stop ends the turn.
func (d *connection) stop(q jsonrpc.Request, reason string) {
	if d.s.current(q) && !d.s.Run.Active() {
		d.complete()
		d.status("stop:"+d.key(reason), "stop").FinishReason = reason
		return
	}
	d.over(q, msg.Stop, "stop:", reason, reason == "cancelled" || reason == "refusal").Hidden = true
}

// current reports whether a request is that of the turn, and not of one that waits.
func (s *session) current(q jsonrpc.Request) bool { return q.Run == "" || q.Run == s.Run.ID }

// over ends the turn of a request, and begins the next.
func (d *connection) over(q jsonrpc.Request, kind msg.Kind, prefix, reason string, failed bool) *msg.Message {
	run := &conversation.Run{ID: q.Run}
	if d.s.current(q) {
		d.complete()
		d.deny()
		run = &d.s.Run
	}
	d.s.Waiting = slices.DeleteFunc(d.s.Waiting, func(r conversation.Run) bool { return r.ID == run.ID })
	m := d.Add(kind, prefix+run.ID)
	m.Agent.Name, m.Run = d.Agent, run.ID
	run.Finish(m, reason, failed)
	m.Hidden = false
	if !d.s.Run.Active() {
		d.s.next()
	}
	return m
}

// deny ends the calls of the turn that were not permitted, of which some agents send nothing more.
func (d *connection) deny() {
	for _, c := range slices.Clone(d.s.Calls.Open) {
		if c.Denied || c.Left {
			d.emit(c, msg.Complete)
			m := d.result(c)
			m.IsError, m.Tool.ErrorType = true, c.refusal()
			d.end(c, true)
		}
	}
}

// refusal is why a call was not made: a person rejected it, or the turn was cancelled before the answer.
func (c *call) refusal() string {
	if c.Denied {
		return "denied"
	}
	return "cancelled"
}

// usage decodes the tokens of a turn: usage, or in _meta those that Gemini CLI has for each model.
func (d *connection) usage(result jsonv.Value) {
	if !d.s.Run.Active() || d.s.Responses > 0 { // its responses had theirs
		return
	}
	id := d.s.Run.ID
	if u := result.Get("usage"); u.Is(jsonv.Object) {
		d.tokens(id, d.s.Model).Usage = tokensOf(u)
		return
	}
	n := 0
	for u := range result.Path("_meta", "quota", "model_usage").Elems() {
		count := u.Get("token_count")
		d.tokens(conversation.Ordinal(id, &n), ident.Of(u.Get("model"))).Usage = msg.Tokens{
			Input: count.Get("input_tokens").Uint(), Output: count.Get("output_tokens").Uint(), Provenance: msg.TranscriptFinal,
		}
	}
}

// tokens adds the usage of a response, or of a turn.
func (d *connection) tokens(id, model string) *msg.Message {
	m := d.add(msg.Usage, "usage:"+id)
	m.Hidden, m.Model, m.ResponseID = true, model, id
	return m
}

// tokensOf reads a usage. In most agents the input excludes the cached tokens and the output those of thoughts, so
// that the total is the sum of all; where the total is less, they are included.
func tokensOf(u jsonv.Value) msg.Tokens {
	t := msg.Tokens{
		Input: u.Get("inputTokens").Uint(), Output: u.Get("outputTokens").Uint(), Reasoning: u.Get("thoughtTokens").Uint(),
		CacheRead: u.Get("cachedReadTokens").Uint(), CacheWrite: u.Get("cachedWriteTokens").Uint(), Provenance: msg.TranscriptFinal,
	}
	total, cached := u.Get("totalTokens").Uint(), t.CacheRead+t.CacheWrite
	if total == 0 || t.Total() <= total {
		return t
	}
	over := t.Total() - total
	if (over == cached || over == cached+t.Reasoning) && t.Input >= cached {
		t.Input, over = t.Input-cached, over-cached
	}
	if over > 0 && t.Output >= t.Reasoning {
		t.Output -= t.Reasoning
	}
	return t
}

// asks decodes the request for a permission.
func (d *connection) asks(p jsonv.Value, q *jsonrpc.Request) {
	asked := p.Get("toolCall")
	if subject := p.Get("subject"); subject.Exists() {
		asked = subject.Get("toolCall")
	}
	if !asked.Exists() {
		m := d.status("wait:"+d.key(q.ID), q.Method)
		d.s.waits(m, true, msg.WaitStart)
		conversation.Attrs(m, p, "title", "description")
		conversation.AttrsAs(m, p, conversation.ShortJSON, "subject", "options")
		return
	}
	c := d.tool(asked)
	if c == nil {
		return
	}
	d.shown(c, asked.Get("content"))
	d.emit(c, msg.Partial)
	q.Call = c.ID
	var rejections []string
	for o := range p.Get("options").Elems() {
		if o.Get("kind").In("reject_once", "reject_always") {
			rejections = append(rejections, ident.Of(o.Get("optionId")))
		}
	}
	q.Note = strings.Join(rejections, "\n")
	d.wait("wait:", q, c, msg.WaitStart).SetAttr("options", conversation.ShortJSON(p.Get("options")))
}

// elicitation asks a person for data.
const elicitation = "elicitation/create"

// waits marks a wait of the turn for a person, if it is one.
func (s *session) waits(m *msg.Message, is bool, signal msg.Signal) {
	if is && s.Run.Active() {
		m.Signal = signal
	}
}

func (d *connection) wait(prefix string, q *jsonrpc.Request, c *call, signal msg.Signal) *msg.Message {
	m := d.status(prefix+c.ID+":"+msg.HashKey(q.ID), "session/request_permission")
	m.Run, m.Signal, m.Tool.CallID, m.Tool.Name = c.Run, signal, c.ID, c.Name
	return m
}

// answered decodes the answer of a person: {outcome: selected, optionId} or {outcome: cancelled}.
func (d *connection) answered(q jsonrpc.Request, outcome jsonv.Value) {
	option := ident.Of(outcome.Get("optionId"))
	c := d.s.Calls.Get(q.Call)
	if c == nil {
		m := d.status("response:"+d.key(option), "session/request_permission")
		d.s.waits(m, q.Method != "", msg.WaitEnd)
		m.SetAttr("option", option)
		return
	}
	for _, rejection := range strings.Split(q.Note, "\n") {
		c.Denied = c.Denied || option != "" && option == rejection
	}
	c.Left = outcome.Get("outcome").Equal("cancelled")
	d.wait("waited:", &q, c, msg.WaitEnd).SetAttr("option", option)
}
