package a2a

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// message decodes a request, a response, an event of it, or a notification that a server pushes.
func (d *connection) message() {
	method, result, fault := ident.Of(d.m.Get("method")), d.m.Get("result"), d.m.Get("error")
	if d.m.Lost != "" {
		d.status(nil, "lost:"+d.key(""), "lost").SetAttr("lost_bytes", d.m.Lost)
	}
	key, typ, isNote := d.m.Note(d.At)
	switch {
	case isNote:
		d.status(nil, key, typ).Content = d.m.Value.Text()
	case method != "":
		d.request(method, d.m.Get("params"))
	case fault.Exists():
		d.failed(d.hop(d.m), fault)
	case result.Kind() != jsonv.Missing:
		d.result(d.hop(d.m), result)
	case d.m.Get("status").Is(jsonv.Number) && d.m.First("title", "detail").Is(jsonv.String): // an error over plain HTTP
		d.failed(d.hop(d.m), d.m.Value)
	case d.path != "" && d.m.Get("message").Is(jsonv.Object) && d.m.Path("message", "role").Exists(): // plain HTTP
		d.request(d.path[strings.LastIndexByte(d.path, '/')+1:], d.m.Value)
	default: // plain HTTP, or a push
		d.result(d.hop(d.m), d.m.Value)
	}
}

// key names a message without an id of its own by its content.
func (d *connection) key(what string) string {
	p := d.m.Get("params")
	return msg.HashKey(what, strconv.Itoa(int(d.m.From)), d.m.ID(), strconv.FormatInt(d.At.Nanos, 10), string(p.First("id", "taskId", "name").Peek()))
}

// methodOf is the method of a path, without the id of its task: tasks:cancel of POST /v1/tasks/7:cancel.
func methodOf(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if _, verb, ok := strings.Cut(last, ":"); ok {
		return "tasks:" + verb
	}
	return last
}

// hop returns the open hop that a message answers, or nil.
func (s *state) hop(m jsonrpc.Message) *hop {
	id := m.ID()
	return s.Hops.Newest(func(h *hop) bool {
		return h.RPC == id && (m.From == jsonrpc.Unknown || h.From == jsonrpc.Unknown || h.From != m.From)
	})
}

// request decodes a request.
func (d *connection) request(method string, p jsonv.Value) {
	switch method {
	case "message/send", "message/stream", "SendMessage", "SendStreamingMessage", "message:send", "message:stream", "tasks/send", "tasks/sendSubscribe":
		d.send(method, p)
		return
	}
	d.Requests.Add(jsonrpc.Request{ID: d.m.ID(), From: d.m.From, Method: method})
	m := d.status(nil, "request:"+d.key(method), method)
	m.SetAttr("task_id", ident.Of(p.First("id", "taskId", "name")))
	m.SetAttr("push_url", conversation.Excerpt(p.Path("pushNotificationConfig", "url")))
}

// send decodes a message that is sent: {message, configuration, metadata}.
func (d *connection) send(method string, p jsonv.Value) {
	v, c := p.Get("message"), p.Get("configuration")
	h := &hop{RPC: d.m.ID(), From: d.m.From, At: d.At}
	h.ID, h.Name = ident.Of(v.Get("messageId")), method
	h.Stream = strings.Contains(strings.ToLower(method), "stream") || method == "tasks/sendSubscribe"
	h.Context, h.Task = ident.First(v.Get("contextId"), p.Get("sessionId")), ident.First(v.Get("taskId"), p.Get("id"))
	h.Async = c.Get("blocking").Is(jsonv.False) || c.Get("returnImmediately").Bool()
	var b content
	b.read(v, "\n")
	h.Text, h.Files = conversation.Cut(string(b.text), maxText), b.files
	if h.ID == "" {
		h.ID = "rpc:" + msg.HashKey(h.RPC, h.Context, h.Task, h.Text, strconv.FormatInt(d.At.Nanos, 10))
	}
	var m msg.Message
	m.SetAttr("rpc_id", ident.OrNumber(d.m.Get("id")))
	m.SetAttr("task_id", h.Task)
	m.SetAttr("reference_task_ids", conversation.ShortJSON(v.Get("referenceTaskIds")))
	m.SetAttr("accepted_output_modes", conversation.ShortJSON(c.Get("acceptedOutputModes")))
	m.SetAttr("push_url", conversation.Excerpt(c.First("pushNotificationConfig", "taskPushNotificationConfig").Get("url")))
	for _, meta := range [...]jsonv.Value{v.Get("metadata"), p.Get("metadata")} {
		m.SetAttr("traceparent", ident.Of(meta.Get("traceparent")))
		m.SetAttr("metadata", conversation.ShortJSON(meta))
	}
	h.Attrs = m.Attrs
	if d.Hops.Get(h.ID) != nil { // it is sent again
		return
	}
	h.Run.Begin("hop:" + h.ID)
	if _, evicted := d.Hops.Add(h); evicted != nil {
		d.delegate(evicted)
	}
	if h.Context != "" {
		d.delegate(h)
	} else { // the first response names the conversation, and may never come
		m := d.status(nil, "request:"+h.ID, method)
		m.Content, m.Attachments = msg.Plain(h.Text), slices.Clone(h.Files)
		m.SetAttr("message_id", h.ID)
		m.SetAttr("rpc_id", h.RPC)
	}
	if h.Task != "" && h.Context != "" {
		d.resumes(h, d.task(h.Task, h.Context))
	}
}

// resumes goes on with a task, whose run began before.
func (d *connection) resumes(h *hop, t *task) {
	t.Run.Started, t.Run.Linked = true, true
	if h.Prompted {
		return
	}
	d.prompt(h, t)
	if t.State == "input-required" || t.State == "auth-required" || t.State == "" {
		m := d.status(t, "resume:"+h.ID, "resume")
		m.Signal = msg.RunResume
		h.At.Or(d.At).Set(m)
	}
}

// delegate emits the hop as a delegation of the sender.
func (d *connection) delegate(h *hop) {
	if h.Delegated {
		return
	}
	h.Delegated = true
	m := d.of(h, msg.Delegation, "call:"+h.ID)
	m.Delegation.Task, m.Delegation.Async = msg.Plain(h.Text), h.Async
	m.Tool.Arguments = msg.Plain("{}")
	m.Attrs = append(m.Attrs, h.Attrs...)
	h.At.Or(d.At).Set(m)
}

// of adds a message of the sender.
func (d *connection) of(h *hop, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Session, m.Agent.Name = d.session(h.Context), "client"
	m.Tool.CallID, m.Tool.Name = h.ID, h.Name
	m.Delegation.To = d.Server
	h.Run.Mark(m)
	return m
}

// prompt emits the message of a hop as the input of the task.
func (d *connection) prompt(h *hop, t *task) {
	if h.Prompted {
		return
	}
	h.Prompted, t.Texts, t.Last = true, nil, ""
	if !t.Seen.Add(h.ID, maxSeen) {
		return
	}
	m := d.add(t, msg.User, "message:"+h.ID)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Name: "client", Kind: msg.KindAgent}
	m.Content, m.Attachments = msg.Plain(h.Text), slices.Clone(h.Files)
	h.At.Or(d.At).Set(m)
}

// accepts links the hop to the task that it causes, or goes on with.
func (d *connection) accepts(h *hop, t *task) {
	if h == nil {
		return
	}
	h.Context = cmp.Or(h.Context, t.Context)
	d.delegate(h)
	switch {
	case h.Task == t.ID:
		d.resumes(h, t)
	case h.Task == "":
		t.Run.Caused(h.Run.ID, h.ID, msg.ByNativeID, 100)
	}
	d.prompt(h, t)
	h.Task = t.ID
}

// answered emits the result of a hop. class is that of a failure.
func (d *connection) answered(h *hop, t *task, text, class string) *msg.Message {
	d.delegate(h)
	m := d.of(h, msg.DelegationResult, "result:"+h.ID)
	m.Role, m.Content = msg.RoleTool, msg.Plain(text)
	if t != nil {
		m.Delegation.ChildRun, m.Delegation.Link = t.Run.ID, msg.ByNativeID
		m.SetAttr("task_id", t.ID)
		m.SetAttr("state", t.State)
	}
	m.IsError, m.Tool.ErrorType = class != "", class
	return m
}

// ended ends a hop. class is that of a failure.
func (d *connection) ended(h *hop, class string) {
	d.Hops.End(h)
	m := d.of(h, msg.Stop, "stop:"+h.ID)
	m.Tool, m.Delegation = msg.Tool{}, msg.Delegate{}
	m.Hidden, m.FinishReason = true, "stop"
	switch class {
	case "":
	case cancelled:
		m.FinishReason = cancelled
	default:
		m.FinishReason, m.IsError = "error", true
	}
	h.Run.End(m)
	h.Text, h.Files, h.Attrs = "", nil, nil
}

// failed decodes an error.
func (d *connection) failed(h *hop, fault jsonv.Value) {
	class := cmp.Or(fault.Get("code").Digits(), fault.Get("status").Digits(), "error")
	text := fault.First("message", "detail", "title").Text()
	if h != nil {
		m := d.answered(h, nil, text.String(), class)
		conversation.Attrs(m, fault, "status", "type", "title")
		m.SetAttr("data", conversation.ShortJSON(fault.First("data", "details")))
		d.ended(h, class)
		return
	}
	q, _ := d.Requests.Take(d.m, func(jsonrpc.Request) bool { return true })
	m := d.status(nil, "response:"+d.key(q.Method+string(fault.Peek())), cmp.Or(q.Method, "response"))
	m.IsError, m.Content, m.Tool.ErrorType = true, text, class
	conversation.Attrs(m, fault, "status", "type", "title")
	m.SetAttr("data", conversation.ShortJSON(fault.First("data", "details")))
}

// result decodes a result, or an event of one, by its kind.
func (d *connection) result(h *hop, v jsonv.Value) {
	for _, name := range [...]string{"task", "message", "statusUpdate", "artifactUpdate"} {
		if inner := v.Get(name); inner.Is(jsonv.Object) { // since 1.0
			d.update(h, name, inner)
			return
		}
	}
	switch {
	case v.Get("kind").In("task"), v.Get("id").Is(jsonv.String) && v.Get("status").Is(jsonv.Object) && !v.Get("final").Exists():
		d.update(h, "task", v)
	case v.Get("kind").In("message"), v.Get("role").Is(jsonv.String) && v.First("parts", "content").Exists():
		d.update(h, "message", v)
	case v.Get("kind").In("status-update"), v.Get("status").Is(jsonv.Object):
		d.update(h, "statusUpdate", v)
	case v.Get("kind").In("artifact-update"), v.Get("artifact").Is(jsonv.Object):
		d.update(h, "artifactUpdate", v)
	case v.Get("name").Is(jsonv.String) && (v.Get("skills").Exists() || v.Get("capabilities").Exists()):
		d.card(v)
	case v.Get("tasks").Is(jsonv.Array):
		for t := range v.Get("tasks").Elems() {
			d.update(nil, "task", t)
		}
	default:
		if d.path != "" { // another request over plain HTTP
			method := methodOf(d.path)
			m := d.status(nil, "request:"+msg.HashKey(d.path, string(v.Get("url").Peek())), method)
			m.SetAttr("path", d.path)
			m.SetAttr("push_url", conversation.Excerpt(v.Get("url")))
			return
		}
		q, ok := d.Requests.Take(d.m, func(jsonrpc.Request) bool { return true })
		if !ok && (d.m.ID() == "" || d.m.Get("result").Kind() == jsonv.Missing) {
			m := d.Unknown(ident.Peek(v.Get("kind")), d.Root)
			m.Session, m.Run = d.session(""), ""
			return
		}
		m := d.status(nil, "response:"+d.key(q.Method+string(v.Peek())), cmp.Or(q.Method, "response"))
		m.Content = v.JSON()
	}
}

// card decodes the description of an agent.
func (d *connection) card(v jsonv.Value) {
	d.Requests.Take(d.m, func(jsonrpc.Request) bool { return true })
	d.Server = cmp.Or(ident.Of(v.Get("name")), d.Server)
	m := d.status(nil, "card:"+msg.HashKey(string(v.Get("url").Peek()), d.Server, string(v.Get("version").Peek())), "agent_card")
	m.Content = v.Get("skills").JSON()
	conversation.Attrs(m, v, "version", "protocolVersion", "url", "description", "preferredTransport", "documentationUrl", "iconUrl")
	conversation.AttrsAs(m, v, conversation.ShortJSON, "capabilities", "provider", "supportedInterfaces", "additionalInterfaces", "defaultInputModes", "defaultOutputModes", "securitySchemes", "security", "securityRequirements", "signatures")
}

// update decodes an update of a task, or a message that is an answer without a task.
func (d *connection) update(h *hop, kind string, v jsonv.Value) {
	if h == nil {
		d.Requests.Take(d.m, func(q jsonrpc.Request) bool { return !strings.Contains(strings.ToLower(q.Method), "subscribe") })
	}
	id := ident.First(v.Get("taskId"), v.Get("id"))
	named := v.First("contextId", "sessionId")
	context := ident.Peek(named)
	if h != nil {
		context = cmp.Or(context, h.Context)
		if kind == "message" && id == "" {
			id = "reply:" + h.ID
		}
		id = cmp.Or(id, h.Task)
	}
	if id == "" {
		id = "reply:" + cmp.Or(ident.Of(v.Get("messageId")), msg.HashKey(string(v.Peek())))
	}
	t := d.task(id, cmp.Or(context, "task:"+id))
	ident.Is(named, t.Context)
	d.accepts(h, t)
	class, before := "", len(d.Out.Messages)
	for _, holder := range [...]jsonv.Value{v, v.Get("artifact"), v.Path("status", "message")} {
		d.usage(t, holder.Get("metadata"))
	}
	switch kind {
	case "task":
		for m := range v.Get("history").Elems() {
			d.text(t, m)
		}
		for a := range v.Get("artifacts").Elems() {
			d.artifact(t, a, false)
		}
		class = d.transition(t, v.Get("status"))
	case "artifactUpdate":
		d.artifact(t, v.Get("artifact"), v.Get("append").Bool())
	case "statusUpdate":
		class = d.transition(t, v.Get("status"))
	case "message":
		d.text(t, v)
		d.end(t, "completed")
	}
	if kind != "message" {
		d.metadata(t, before, "metadata", v.Get("metadata"))
		d.metadata(t, before, "artifact_metadata", v.Path("artifact", "metadata"))
	}
	over := rests(t.State) || v.Get("final").Bool()
	if h == nil && over {
		h = d.Hops.Oldest(func(h *hop) bool { return h.Accepted && h.Task == t.ID })
	}
	switch {
	case h == nil:
	case over:
		d.answered(h, t, t.answer(), class)
		d.ended(h, class)
	default:
		h.Accepted = h.Accepted || !h.Stream
	}
}

// metadata keeps what an update has beside the protocol: with its first message, or alone.
func (d *connection) metadata(t *task, first int, name string, v jsonv.Value) {
	if v.Len() == 0 {
		return
	}
	if text := conversation.ShortJSON(v); text != "" && first < len(d.Out.Messages) {
		d.Out.Messages[first].SetAttr(name, text)
		return
	}
	d.status(t, name+":"+msg.HashKey(t.ID, string(v.Peek())), name).Content = v.JSON()
}

// rests reports whether nothing follows a state until another message is sent.
func rests(state string) bool {
	return ends(state) || state == "input-required" || state == "auth-required"
}

func ends(state string) bool {
	return state == "completed" || state == "failed" || state == "canceled" || state == "rejected"
}

// transition decodes a status: {state, message, timestamp}. It returns the class of a failure.
func (d *connection) transition(t *task, v jsonv.Value) (class string) {
	state := stateOf(v.Get("state"))
	t.At = conversation.TimeOf(v.Get("timestamp")).Or(d.At)
	if t.At.Nanos != 0 {
		d.At = t.At
	}
	d.text(t, v.Get("message"))
	changed := state != t.State
	if state != "" {
		t.State = state
	}
	if ends(state) && state != "completed" {
		class = reasonOf(state)
	}
	switch {
	case ends(state):
		d.end(t, state)
	case changed && state != "":
		m := d.status(t, "state:"+msg.HashKey(t.ID, state, strconv.FormatInt(d.At.Nanos, 10)), "state")
		m.SetAttr("state", state)
		if rests(state) {
			m.Signal = msg.RunPause
		}
	}
	return class
}

// stateOf is the name of a state, as versions up to 0.3 write it.
func stateOf(v jsonv.Value) string {
	name, proto := strings.CutPrefix(ident.Of(v), "TASK_STATE_")
	if proto {
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	}
	return strings.Replace(name, "cancelled", "canceled", 1)
}

// end emits the artifacts and the end of a task.
func (d *connection) end(t *task, state string) {
	t.State = state
	d.artifacts(t, msg.Complete)
	if !t.Run.Active() {
		return
	}
	m, reason := d.add(t, msg.Stop, "stop:"+t.ID), reasonOf(state)
	t.Run.Finish(m, reason, reason != "completed" && reason != cancelled)
}

// cancelled is the reason of an end that a person asked for, which is no failure.
const cancelled = "cancelled"

// reasonOf is the reason of the end of a task.
func reasonOf(state string) string {
	if state == "canceled" {
		return cancelled
	}
	return state
}

// text decodes a message of a state, of the history, or the answer itself.
func (d *connection) text(t *task, v jsonv.Value) {
	if !v.Is(jsonv.Object) {
		return
	}
	var b content
	b.read(v, "\n")
	user := v.Get("role").In("user", "ROLE_USER")
	ident.Is(v.Get("taskId"), t.ID)
	ident.Is(v.Get("contextId"), t.Context)
	id := ident.Of(v.Get("messageId"))
	if id == "" {
		id = msg.HashKey(t.ID, t.State, string(b.text), strconv.FormatInt(d.At.Nanos, 10))
	}
	if !t.Seen.Add(id, maxSeen) { // the history repeats it
		v.MarkRead()
		return
	}
	if !user && len(b.text) > 0 && (bytes.Equal(b.text, t.Texts) || string(b.text) == t.artifactText()) { // the last state repeats the answer
		b.text = nil
	}
	n := 0
	for _, thought := range b.thoughts {
		m := d.add(t, msg.Reasoning, conversation.Ordinal("thought:"+id, &n))
		m.Role, m.Content = msg.RoleAssistant, thought
	}
	d.calls(t, &b, id)
	if len(b.text) == 0 && len(b.files) == 0 {
		return
	}
	m := d.add(t, msg.Assistant, "message:"+id)
	m.Role, m.Content, m.Attachments = msg.RoleAssistant, msg.Plain(string(b.text)), b.files
	if user {
		m.Kind, m.Role, m.Agent = msg.User, msg.RoleUser, msg.Agent{Name: "client", Kind: msg.KindAgent}
	} else if t.Last = string(b.text); len(t.Texts)+len(b.text) < maxText {
		if len(t.Texts) > 0 {
			t.Texts = append(t.Texts, '\n')
		}
		t.Texts = append(t.Texts, b.text...)
	}
	m.SetAttr("metadata", conversation.ShortJSON(v.Get("metadata")))
}

// artifact decodes an artifact, or a chunk of one.
func (d *connection) artifact(t *task, v jsonv.Value, more bool) {
	id := ident.Of(v.Get("artifactId"))
	p := t.Artifacts.Part(id)
	if p != nil && !more { // it is whole, or begins again
		t.Artifacts.Clear(p)
	}
	if p == nil {
		if p = t.Artifacts.Open(id, msg.Assistant); p == nil {
			return
		}
		if p.Key = "artifact:" + t.ID + "/" + id; more {
			p.Key += "/tail" // its beginning was in another stream
		}
	}
	if name := ident.Of(v.Get("name")); name != "" {
		p.Tool = name
	}
	var b content
	b.read(v, "")
	t.Artifacts.Append(p, msg.Plain(string(b.text)), maxText)
	d.calls(t, &b, id)
	for _, f := range b.files {
		m := d.add(t, msg.File, "file:"+msg.HashKey(t.ID, id, f.Name, f.SHA256, f.URL))
		m.Attachments = []msg.Attachment{f}
		m.SetAttr("artifact", p.Tool)
		m.SetAttr("artifact_id", id)
	}
	p.Server = cmp.Or(conversation.Excerpt(v.Get("description")), p.Server)
}

// artifacts emits the artifacts of a task.
func (d *connection) artifacts(t *task, complete msg.Completeness) {
	for _, p := range t.Artifacts.Parts {
		if p.Empty() || p.Closed {
			continue
		}
		m := d.Out.Add()
		m.Kind, m.Key, m.Complete, m.Session, m.Run = msg.Assistant, p.Key, complete, t.Context, t.Run.ID
		m.Agent, m.Role = msg.Agent{Name: d.Server, Kind: msg.KindAgent}, msg.RoleAssistant
		m.Content = msg.Plain(string(p.Text))
		t.At.Or(d.At).Set(m)
		m.SetAttr("artifact", p.Tool)
		m.SetAttr("description", p.Server)
		if p.Cut {
			m.SetAttr("truncated", "true")
		}
		p.Closed = complete == msg.Complete
	}
}

// artifactText is the text of the artifacts.
func (t *task) artifactText() string {
	var texts []string
	for _, p := range t.Artifacts.Parts {
		if len(p.Text) > 0 {
			texts = append(texts, string(p.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// answer is the result of the task: its artifacts, else its messages; of a failure and of a question
// the last message.
func (t *task) answer() string {
	if rests(t.State) && t.State != "completed" && t.Last != "" {
		return t.Last
	}
	return cmp.Or(t.artifactText(), string(t.Texts))
}
