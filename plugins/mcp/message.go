package mcp

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/mcp"
)

// message decodes a request, a notification or a response.
func (d *connection) message(root jsonv.Value) {
	d.m = jsonrpc.Of(d.Frame, root)
	d.At = d.m.At
	if batch := d.m.Value; batch.Is(jsonv.Array) && batch.Len() > 0 { // in a recording
		for v := range batch.Elems() {
			d.m.Value = v
			d.one(root)
		}
		return
	}
	d.one(root)
}

func (d *connection) one(root jsonv.Value) {
	method, p := ident.Of(d.m.Get("method")), d.m.Get("params")
	if d.m.Lost != "" {
		d.status(nil, "lost:"+d.key(""), "lost").SetAttr("lost_bytes", d.m.Lost)
	}
	key, typ, isNote := d.m.Note(d.At)
	switch {
	case isNote:
		d.status(nil, key, typ).Content = d.m.Value.Text()
	case method != "":
		d.Client = cmp.Or(ident.Peek(p.Path("_meta", "io.modelcontextprotocol/clientInfo", "name")), d.Client)
		d.request(method, p)
	case d.m.Get("result").Kind() != jsonv.Missing || d.m.Get("error").Exists():
		d.response()
	default:
		d.Unknown("none", root)
	}
}

// key names a message without an id of its own by its content.
func (d *connection) key(what string) string {
	p := d.m.Get("params")
	return msg.HashKey(what, strconv.Itoa(int(d.m.From)), d.m.ID(), strconv.FormatInt(d.At.Nanos, 10),
		string(p.First("uri", "name", "data", "level", "requestId", "message").Peek()), string(p.First("progress", "cursor").Peek()))
}

// request decodes a request or a notification.
func (d *connection) request(method string, p jsonv.Value) {
	q := jsonrpc.Request{ID: d.m.ID(), From: jsonrpc.Client, Method: method}
	var c *call // that it makes, or to which it belongs
	switch method {
	case "tools/call":
		c = d.call(p)
	case "notifications/progress":
		d.progress(p)
	case "notifications/cancelled":
		d.cancelled(p)
	case "elicitation/create":
		q.From, c = jsonrpc.Server, d.only(p)
		m := d.status(c, "wait:"+d.key(method), method)
		m.Content = p.Get("message").Text()
		conversation.Attrs(m, p, "mode", "url", "elicitationId")
		m.SetAttr("schema", conversation.ShortJSON(p.Get("requestedSchema")))
		if c != nil { // a person is asked
			m.Signal = msg.WaitStart
			m.SetAttr(msg.AttrWaitsFor, msg.ForPerson)
		}
	case "sampling/createMessage":
		q.From, c = jsonrpc.Server, d.only(p)
		m := d.status(c, "sampling:"+d.key(method), method)
		m.Content = p.Get("messages").JSON()
		conversation.Attrs(m, p, "system_prompt=systemPrompt")
	default:
		if method == "roots/list" || d.m.From == jsonrpc.Server {
			q.From = jsonrpc.Server
		}
		d.Client = cmp.Or(ident.Peek(p.Path("clientInfo", "name")), d.Client)
		c = d.task(p.Get("taskId"))
		m := d.status(c, "request:"+d.key(method), method)
		conversation.AttrsAs(m, p, ident.Of, "client=clientInfo.name", "client_version=clientInfo.version", "protocol_version=protocolVersion")
		conversation.Attrs(m, p, "uri", "name", "level", "logger", "cursor")
		m.Content = p.First("data", "arguments").Text()
		if meta(m, p.Get("_meta")); c != nil {
			if given := p.Get("inputResponses"); given.Exists() && c.Asked {
				c.Asked, m.Signal, m.Content = false, msg.WaitEnd, given.JSON()
			}
			d.stands(c, m, p)
		}
	}
	if c != nil {
		q.Call = c.ID
	}
	if q.ID != "" {
		d.Requests.Add(q)
	}
}

// meta reads _meta, which has the trace context and ids of the agent.
func meta(m *msg.Message, v jsonv.Value) {
	m.SetAttr("traceparent", ident.Of(v.Get("traceparent")))
	conversation.Attrs(m, v, "tracestate")
	for k, v := range v.Members() {
		name := k.String()
		if len(name) <= ident.Max && !slices.Contains([]string{"traceparent", "tracestate", "progressToken"}, name) {
			m.SetAttr("_meta."+name, conversation.ShortJSON(v))
		}
	}
}

// task is the call that is done as that task, or nil.
func (d *connection) task(id jsonv.Value) *call {
	return d.Calls.Find(func(c *call) bool { return c.Task != "" && c.Task == ident.Peek(id) })
}

// interrupted is the class of the error of a call that was cancelled, and the reason of the end of its run.
const interrupted = "interrupted"

// faults are the classes of the errors of tasks, by their states.
var faults = map[string]string{"cancelled": interrupted, "failed": "tool_error"}

// stands decodes the state of the task of a call into a message, which is whole then: the end of the call may follow it.
// Since 2026-07-28 the state has the end of the call, or asks for input. A task that has no result is over when it fails
// or is cancelled.
func (d *connection) stands(c *call, m *msg.Message, task jsonv.Value) {
	state, requests := ident.Of(task.Get("status")), task.Get("inputRequests")
	switch {
	case requests.Exists() && c.Asked:
		requests.MarkRead() // they are listed until they are answered
	case requests.Exists():
		c.Asked = true
		asks(m, requests)
	case c.Asked && state != "" && state != "input_required":
		c.Asked, m.Signal = false, msg.WaitEnd
	}
	m.SetAttr("task_id", ident.Of(task.Get("taskId")))
	m.SetAttr("state", state)
	conversation.Attrs(m, task, "state_message=statusMessage", "createdAt", "lastUpdatedAt")
	switch result, fault, class := task.Get("result"), task.Get("error"), faults[state]; {
	case result.Is(jsonv.Object) || fault.Is(jsonv.Object):
		d.result(c, result, fault)
	case class != "":
		d.fails(c, class)
	}
}

// asks makes a message one that waits for input of the client.
func asks(m *msg.Message, requests jsonv.Value) {
	m.Signal = msg.WaitStart
	waits := msg.ForOutside // a model, or a server that is busy
	for _, r := range requests.Members() {
		if r.Get("method").Equal("elicitation/create") {
			waits = msg.ForPerson
		}
	}
	m.SetAttr(msg.AttrWaitsFor, waits)
	m.Content = requests.JSON()
}

// fails ends a call of which no result has come. One that comes after that counts more.
func (d *connection) fails(c *call, class string) {
	if d.Calls.GetOpen(c.ID) == nil {
		return
	}
	r := d.of(c, msg.ToolResult, "result:"+c.ID)
	r.Role, r.Complete, r.IsError, r.Tool.ErrorType = msg.RoleTool, msg.Summary, true, class
	d.end(c, r)
}

// only is the call of a request of the server: that of its task, else the one open call. It is not known which of
// several.
func (d *connection) only(p jsonv.Value) *call {
	if c := d.task(p.Path("_meta", "io.modelcontextprotocol/related-task", "taskId")); c != nil {
		return c
	}
	if len(d.Calls.Open) == 1 {
		return d.Calls.Open[0]
	}
	return nil
}

// call decodes tools/call: {name, arguments, _meta}. A call that waits for input and is sent again is
// the same call.
func (d *connection) call(p jsonv.Value) *call {
	name, arguments, m := ident.Of(p.Get("name")), p.Get("arguments"), p.Get("_meta")
	id := ident.Peek(m.Get("claudecode/toolUseId"))
	same := msg.HashKey(name, string(arguments.Peek()))
	c := d.Calls.Oldest(func(c *call) bool { return c.Waiting && (c.ID == id || c.Same == same) })
	if c != nil {
		c.Waiting = false
		s := d.status(c, "waited:"+c.ID+":"+d.key(""), "tools/call")
		s.Signal = msg.WaitEnd
		s.Content = p.Get("inputResponses").JSON()
		s.SetAttr("request_state", conversation.Excerpt(p.Get("requestState")))
		arguments.MarkRead() // the call has them
		return c
	}
	if id == "" {
		id = "rpc:" + d.m.ID() + "/" + same[:8] // over HTTP the id alone is one of each connection
	}
	if d.Calls.Get(id) != nil { // an id of a connection that was opened again
		id += "/" + d.key(same)
	}
	c = &call{Call: conversation.Call{ID: id, Name: name}, Same: same, Token: ident.PeekOrNumber(m.Get("progressToken"))}
	c.Run.Begin("call:" + id)
	d.Calls.Add(c)
	t := d.of(c, msg.ToolCall, "call:"+id)
	if t.Tool.Arguments = arguments.JSON(); !arguments.Exists() {
		t.Tool.Arguments = msg.Plain("{}")
	}
	if name == "" {
		t.Complete = msg.Partial
	}
	t.Delegation.CorrelationID = ident.Of(m.Get("claudecode/toolUseId"))
	t.SetAttr("client", d.Client)
	t.SetAttr("rpc_id", d.m.Get("id").Digits())
	t.SetAttr("progress_token", ident.OrNumber(m.Get("progressToken")))
	meta(t, m)
	return c
}

// progress decodes {progressToken, progress, total, message}.
func (d *connection) progress(p jsonv.Value) {
	token := ident.PeekOrNumber(p.Get("progressToken"))
	c := d.Calls.Oldest(func(c *call) bool { return c.Token != "" && c.Token == token })
	m := d.status(c, "progress:"+d.key(token), "notifications/progress")
	m.Content = p.Get("message").Text()
	conversation.AttrsAs(m, p, jsonv.Value.Digits, "progress", "total")
	m.SetAttr("progress_token", ident.OrNumber(p.Get("progressToken")))
}

// cancelled decodes {requestId, reason}. A response, which may follow, counts more.
func (d *connection) cancelled(p jsonv.Value) {
	id := ident.Bounded(string(p.Get("requestId").Peek()))
	var c *call
	for _, q := range d.Requests {
		if q.ID == id && q.Call != "" && (d.m.From == jsonrpc.Unknown || q.From == d.m.From) {
			c = d.Calls.GetOpen(q.Call)
		}
	}
	m := d.status(c, "cancelled:"+d.key(""), "notifications/cancelled")
	m.Content = p.Get("reason").Text()
	m.SetAttr("request_id", ident.OrNumber(p.Get("requestId")))
	if c != nil {
		c.Cancelled = true
		d.fails(c, interrupted)
	}
}

// end ends a call, of which that is the result, and its run.
func (d *connection) end(c *call, result *msg.Message) {
	reason, failed := conversation.Outcome(result.IsError), result.IsError
	if result.Tool.ErrorType == interrupted {
		reason = interrupted
	}
	d.Calls.End(c)
	if c.Run.Active() {
		c.Run.Finish(d.add(c, msg.Stop, "stop:"+c.ID), reason, failed)
	}
}

// response decodes a result or an error.
func (d *connection) response() {
	result, fault := d.m.Get("result"), d.m.Get("error")
	q, known := d.Requests.Take(d.m, func(jsonrpc.Request) bool { return true })
	if !known && fault.Exists() && d.refused(fault) {
		return
	}
	c := d.Calls.Get(q.Call)
	switch {
	case q.Method == "tools/call" && c != nil, q.Method == "tasks/result" && c != nil && !fault.Exists():
		d.result(c, result, fault)
		return
	case c != nil && result.Get("taskId").Exists():
		d.stands(c, d.status(c, "response:"+d.key(q.Method), q.Method), result)
		return
	case q.Method == "elicitation/create":
		m := d.status(c, "waited:"+d.key(q.Method), q.Method)
		m.Content = result.Get("content").Text()
		m.SetAttr("action", ident.Of(result.Get("action")))
		jsonrpc.Failed(m, fault)
		if c != nil {
			m.Signal = msg.WaitEnd
		}
		return
	case q.Method == "sampling/createMessage" && result.Exists():
		m := d.add(c, msg.Assistant, "sampled:"+d.key(q.Method))
		m.Role, m.Agent, m.ResponseID = msg.RoleAssistant, msg.Agent{Name: d.Client, Kind: msg.KindAgent}, m.Key
		m.Model, m.FinishReason = ident.Of(result.Get("model")), ident.Of(result.Get("stopReason"))
		mcp.Content(result.Get("content")).Fill(m)
		return
	}
	info := result.Get("serverInfo")
	d.Server = cmp.Or(ident.Of(info.Get("name")), d.Server)
	m := d.status(c, "response:"+d.key(q.Method+string(fault.Peek())+string(info.Peek())), cmp.Or(q.Method, "response"))
	m.SetAttr("server", d.Server)
	conversation.AttrsAs(m, info, ident.Of, "server_version=version")
	conversation.AttrsAs(m, result, ident.Of, "protocol_version=protocolVersion")
	conversation.Attrs(m, result, "instructions")
	m.Content = result.First("tools", "resources", "resourceTemplates", "prompts", "contents", "messages", "completion", "roots").JSON()
	if m.Content.IsZero() { // of a call whose request was not seen
		answer(m, result)
		meta(m, result.Get("_meta"))
		m.IsError = result.Get("isError").Bool()
	}
	jsonrpc.Failed(m, fault)
}

// refused decodes an error of a server over HTTP that names no request: it is that of the calls in the request which it answers.
func (d *connection) refused(fault jsonv.Value) (of bool) {
	if d.Frame.Kind != frame.Body {
		return false
	}
	for _, q := range d.Requests {
		if c := d.Calls.GetOpen(q.Call); c != nil && q.Method == "tools/call" && !c.Waiting && c.Task == "" {
			d.result(c, jsonv.Value{}, fault)
			of = true
		}
	}
	d.Requests = slices.DeleteFunc(d.Requests, func(q jsonrpc.Request) bool { return of && q.From == jsonrpc.Client })
	return of
}

// result decodes the response of a call.
func (d *connection) result(c *call, result, fault jsonv.Value) {
	if result.Get("resultType").Equal("input_required") {
		c.Waiting = true
		m := d.status(c, "wait:"+c.ID+":"+d.key(""), "input_required")
		m.SetAttr("request_state", conversation.Excerpt(result.Get("requestState")))
		asks(m, result.Get("inputRequests"))
		return
	}
	task := result.Get("task")
	if result.Get("resultType").Equal("task") { // since 2026-07-28
		task = result
	}
	if task.Get("taskId").Is(jsonv.String) { // it goes on
		c.Task = ident.Of(task.Get("taskId"))
		d.stands(c, d.status(c, "task:"+c.ID, "task"), task)
		return
	}
	m := d.of(c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	answer(m, result)
	meta(m, result.Get("_meta"))
	conversation.Failed(m, result.Get("isError").Bool())
	jsonrpc.Failed(m, fault)
	if fault.Is(jsonv.String) { // of the server's authorization: {"error":"invalid_token","error_description":"…"}
		m.Tool.ErrorType, m.Content = ident.Of(fault), jsonv.Or(d.m.Get("error_description"), fault).Text()
	}
	d.end(c, m)
}

// answer reads the content of a call's result, and its structured form where that is more.
func answer(m *msg.Message, result jsonv.Value) {
	mcp.Content(result.Get("content")).Fill(m)
	switch structured := result.Get("structuredContent"); {
	case m.Content.IsZero():
		m.Content = structured.JSON()
	case structured.Exists() && repeats(structured, result.Get("content")):
		structured.MarkRead() // a copy
	case structured.Exists():
		m.Content = msg.Plain(m.Content.String() + "\n" + string(structured.Raw()))
	}
}

// repeats reports whether the texts of a content are a structured content once more, as the specification asks of servers: its
// JSON in a text or, where the SDKs have wrapped a value that is no object in {"result": …}, that, or a text for each of its items.
func repeats(structured, content jsonv.Value) bool {
	var texts []string
	for b := range content.Elems() {
		texts = append(texts, b.Get("text").PeekText().String())
	}
	inner := structured.Get("result")
	switch {
	case !inner.Exists() || structured.Len() != 1:
		return len(texts) == 1 && says(texts[0], structured)
	case len(texts) == 1 && (says(texts[0], inner) || says(texts[0], structured)):
		return true
	case inner.Len() != len(texts):
		return false
	}
	i := 0
	for v := range inner.Elems() {
		if !says(texts[i], v) {
			return false
		}
		i++
	}
	return i == len(texts)
}

// says reports whether a text is a value: a string, or its JSON however it is spaced.
func says(text string, v jsonv.Value) bool {
	if v.Is(jsonv.String) && v.PeekStr() == text {
		return true
	}
	var a, b any
	return json.Unmarshal([]byte(text), &a) == nil && json.Unmarshal(v.Peek(), &b) == nil && reflect.DeepEqual(a, b)
}
