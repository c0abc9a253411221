// Package pi decodes the sessions of Pi and of OpenClaw, which is built on it: their files, one JSON
// object a line, and the lines that pi --mode json prints.
//
// Facts of the format that are easy to get wrong:
//
//   - Entries of a file are a tree: several entries with one parentId are branches. A branch that was
//     left did happen, and counts.
//   - The file of a fork begins with copies of the entries of another session, which have their ids and
//     times: they are older than the file's head. Those that are older than the other session, whose file is named by its time, are
//     copies there as well.
//   - Of the lines of --mode json, turn_end and agent_end repeat messages, message_start and
//     message_update have them while they are written: message_end alone has each message once. The lines
//     tool_execution_* repeat calls and results, but for a call that an extension made and a result
//     whose message does not come.
//   - Input excludes the cached tokens; output has those of reasoning. The requests for a summary have theirs in the entry of the summary.
//   - Call ids of OpenAI's Responses API are compound, call_...|fc_...: the first part is the provider's.
//   - Neither knows sub-agents. An extension of Pi returns their sessions in the details of a result;
//     sessions_spawn of OpenClaw returns the key of the session.
package pi

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// New returns the factory of decoders of the sessions under a name.
func New(name, summary string, leavesOut []byte) decoder.Factory {
	return record.Format[state]{
		Info:      decoder.Info{Name: name, Revision: 10, Summary: summary, Transports: []frame.Kind{frame.Line, frame.Text}},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			r.Origin = sessionOf(r.Origin)
			return &stream{Current: r, state: s}
		},
	}.Factory()
}

// sessionOf returns the session that the name of a file has: <time>_<session>.jsonl.
func sessionOf(origin string) string {
	name := path.Base(strings.ReplaceAll(origin, `\`, "/"))
	name, _, _ = strings.Cut(name, ".jsonl")
	if i := strings.LastIndexByte(name, '_'); i >= 0 {
		name = name[i+1:]
	}
	return ident.Bounded(strings.Trim(name, "/."))
}

// beganAt is when a session began, by the name of its file, 2026-03-15T22-40-18-123Z_<session>.jsonl; 0 if that has no time.
func beganAt(file string) int64 {
	at, err := time.Parse("2006-01-02T15-04-05.000Z", dashed(path.Base(strings.ReplaceAll(file, `\`, "/"))))
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

// dashed is the time in the name of a file, with a point before its milliseconds.
func dashed(name string) string {
	name, _, _ = strings.Cut(name, "_")
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		name = name[:i] + "." + name[i+1:]
	}
	return name
}

const maxSeen = 4096

// stream decodes one session.
type stream struct {
	*record.Current
	*state

	id string // of the record
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session  string `json:",omitempty"`
	Model    string `json:",omitempty"`
	Provider string `json:",omitempty"`
	Begun    bool   `json:",omitempty"` // it has a prompt
	Failures int    `json:",omitempty"` // responses in a row that failed
	Run      conversation.Run
	Calls    conversation.Calls[*call] `json:",omitzero"`
	Seen     bounded.Set[string]       `json:",omitzero"` // entries

	From   string            `json:",omitempty"` // the session whose entries are copied here, until the first that is no copy
	Forked conversation.Time `json:",omitzero"`
	Before int64             `json:",omitempty"` // when From began, Unix ns: entries before it were copied there, too
}

// call is a tool call.
type call struct {
	conversation.Call
	Run  string `json:",omitempty"`
	Task bool   `json:",omitempty"`
	Held *held  `json:",omitempty"` // its result as tool_execution_end has it
}

// held is a result whose message may still come.
type held struct {
	Text   string `json:",omitempty"`
	Failed bool   `json:",omitempty"`
}

// maxHeld is how many bytes of a result are held.
const maxHeld = 256 << 10

// In returns the session.
func (d *stream) In() (session, run string) { return d.session(), "" }

func (d *stream) session() string { return cmp.Or(d.From, d.Session, d.Origin, "unknown") }

// Read decodes one entry of a file or one line of --mode json.
func (d *stream) Read() {
	typ := d.Root.Get("type")
	d.At, d.id = conversation.TimeOf(d.Root.Get("timestamp")), ident.Of(d.Root.Get("id"))
	if d.From != "" && (d.At.Nanos >= d.Forked.Nanos || typ.In("agent_start", "turn_start", "message_start", "message_end")) {
		d.From, d.Begun = "", false
	}
	first := len(d.Out.Messages)
	if !d.record(conversation.Cut(typ.PeekStr(), ident.Max), d.Root) {
		d.Unknown(ident.Of(typ), d.Root)
	}
	for i := range d.Out.Messages[first:] {
		if d.From != "" && !typ.Equal("session") {
			d.Out.Messages[first+i].Complete = msg.Summary // the original replaces it
		}
	}
}

// record decodes a record by its type; false if the type is not known.
func (d *stream) record(typ string, v jsonv.Value) bool {
	message := v.Get("message")
	known := v.Get("type").In("session", "message", "message_end", "model_change", "thinking_level_change", "compaction", "branch_summary",
		"custom", "custom_message", "label", "session_info", "agent_start", "agent_end", "agent_settled", "turn_start", "turn_end", "message_start", "message_update",
		"tool_execution_start", "tool_execution_update", "tool_execution_end", "queue_update", "compaction_start", "compaction_end", "auto_compaction_start", "auto_compaction_end",
		"auto_retry_start", "auto_retry_end", "extension_error", "leaf", "mode_change", "context_edit", "entry_appended")
	if !known {
		return false
	}
	if d.id != "" && typ != "session" && !d.Seen.Add(d.id, maxSeen) {
		v.MarkRead() // written again
		return true
	}
	if d.From != "" && d.At.Nanos != 0 && d.At.Nanos < d.Before && typ != "session" { // a copy there, too: of a session whose own file has it
		if typ == "model_change" {
			d.Model, d.Provider = cmp.Or(ident.Of(v.Get("modelId")), d.Model), cmp.Or(ident.Of(v.Get("provider")), d.Provider)
		}
		v.MarkRead()
		return true
	}
	switch typ {
	case "message", "message_end":
		if !message.Is(jsonv.Object) {
			return false
		}
		if !message.Get("role").Equal("toolResult") {
			d.release()
		}
		d.message(message)
	case "session":
		d.Session = cmp.Or(d.Session, d.id)
		d.Model, d.Provider = cmp.Or(ident.Of(v.Get("modelId")), d.Model), cmp.Or(ident.Of(v.Get("provider")), d.Provider) // of version 1
		m := d.status("session:"+d.session(), typ)
		m.SetAttr("version", v.Get("version").Digits())
		m.Client.Project = ident.Peek(v.Get("cwd"))
		conversation.Attrs(m, v, "id", "cwd", "parentSession", "branchedFrom")
		if from := v.First("parentSession", "branchedFrom").PeekStr(); from != "" {
			d.From, d.Forked, d.Before = sessionOf(from), d.At, beganAt(from)
		}
	case "model_change":
		d.Model, d.Provider = cmp.Or(ident.Of(v.Get("modelId")), d.Model), cmp.Or(ident.Of(v.Get("provider")), d.Provider)
		conversation.Attrs(d.status(d.key(v), typ), v, "modelId", "provider")
	case "compaction", "branch_summary", "custom_message":
		m := d.add(msg.System, d.key(v))
		m.Role, m.Hidden = msg.RoleSystem, true
		m.Content = text(v.First("summary", "content"), &m.Attachments)
		if typ == "compaction" && m.Signal == msg.NoSignal {
			m.Signal = msg.Compaction
		}
		m.SetAttr("type", typ)
		m.SetAttr("tokensBefore", v.Get("tokensBefore").Digits())
		conversation.Attrs(m, v, "customType", "fromId", "firstKeptEntryId")
		d.beside(d.key(v), d.Model, v.Get("usage"))
	case "agent_end", "agent_settled":
		d.release()
		v.Get("messages").MarkRead()
		if d.Run.Active() && !v.Get("willRetry").Bool() {
			d.stop(conversation.Outcome(d.Failures > 0), "stop:"+d.Run.ID)
		}
	case "agent_start", "turn_start", "turn_end", "message_start", "message_update", "tool_execution_start", "tool_execution_update", "tool_execution_end", "entry_appended":
		switch typ {
		case "tool_execution_start":
			d.executed(v)
		case "tool_execution_end":
			d.hold(v)
		}
		for _, name := range [...]string{"entry", "message", "toolResults", "assistantMessageEvent", "usage", "toolCallId", "toolName", "args", "partialResult", "result"} {
			v.Get(name).MarkRead() // message_end has the message
		}
	default:
		at := len(d.Out.Messages)
		m := d.status(d.key(v), typ)
		conversation.Attrs(m, v, "thinkingLevel", "customType", "label", "name", "mode", "targetId", "errorMessage", "reason", "event")
		m.Content = v.First("error", "finalError").Text()
		if result := v.Get("result"); result.Is(jsonv.Object) { // of compaction_end
			m.Content = result.Get("summary").Text()
			m.SetAttr("tokensBefore", result.Get("tokensBefore").Digits())
			conversation.Attrs(m, result, "firstKeptEntryId")
			if m.Signal == msg.NoSignal {
				m.Signal = msg.Compaction
			}
			d.beside(d.key(v), d.Model, result.Get("usage"))
			m = &d.Out.Messages[at]
		}
		if data := v.Get("data"); data.Exists() {
			m.Content = data.JSON()
		}
	}
	return true
}

// key is the id of an entry; one without an id is named by the members that are read of it.
func (d *stream) key(v jsonv.Value) string {
	if d.id != "" {
		return d.id
	}
	facts := []string{d.session(), d.Run.ID}
	for _, name := range [...]string{"type", "timestamp", "reason", "errorMessage", "attempt", "customType", "data", "summary", "content", "modelId", "thinkingLevel", "label", "name", "mode"} {
		facts = append(facts, string(v.Get(name).Peek()))
	}
	return "entry:" + msg.HashKey(facts...)
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if d.Run.Active() {
		d.Run.Mark(m)
	}
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(key, typ string) *msg.Message {
	return record.Hide(d.add(msg.Status, key), typ)
}

// stop ends the run.
func (d *stream) stop(reason, key string) {
	m := d.add(msg.Stop, key)
	d.Run.Finish(m, reason, reason == "error" || reason == "aborted")
}

// text joins the texts of a content, which is a text or a list of blocks, and collects its images.
func text(v jsonv.Value, files *[]msg.Attachment) msg.Text {
	if !v.Is(jsonv.Array) {
		return v.Text()
	}
	var texts conversation.Texts
	for b := range v.Elems() {
		switch {
		case b.Get("type").Equal("text") && b.Get("text").Is(jsonv.String):
			texts.Add(b.Get("text").Text())
		case b.Get("type").Equal("image") && b.Get("data").Is(jsonv.String):
			*files = append(*files, media.Base64(b.Get("data"), ident.Of(b.Get("mimeType"))))
		}
	}
	return texts.Joined()
}

// message decodes a message by its role.
func (d *stream) message(v jsonv.Value) {
	if at := conversation.TimeOf(v.Get("timestamp")); v.Get("role").Equal("assistant") {
		d.At = d.At.Or(at) // at has its beginning: the entry is written when it is complete
	} else {
		d.At = at.Or(d.At)
	}
	key := cmp.Or(d.id, "message:"+msg.HashKey(d.session(), string(v.Get("timestamp").Peek()), string(v.Get("role").Peek()), string(v.Get("responseId").Peek()),
		string(v.Get("toolCallId").Peek()), string(v.Get("content").Peek())))
	if d.id == "" && !d.Seen.Add(key, maxSeen) {
		v.MarkRead()
		return
	}
	switch role := v.Get("role"); {
	case role.Equal("user"):
		if d.Failures > 0 && d.Run.Active() { // it was not asked again
			d.stop("error", "stop:"+d.Run.ID)
		}
		d.Failures = 0
		d.Run.Begin(key)
		m := d.add(msg.User, key)
		if m.Role, m.Agent.Kind = msg.RoleUser, msg.KindHuman; !d.Begun { // an agent may have begun the session
			d.Begun = true
			m.Delegation.CorrelationID = correlationID(d.session())
		}
		m.Content = text(v.Get("content"), &m.Attachments)
	case role.Equal("assistant"):
		if d.Failures > 0 { // nobody asked since: it is another try
			d.Run.Ended = false
		}
		d.Run.Wake(key)
		d.answer(v, key)
	case role.Equal("toolResult"):
		d.Run.Wake(key)
		d.result(v, key)
	default:
		m := d.status(key, cmp.Or(ident.Of(role), "none"))
		m.Content = v.First("output", "summary").Text()
		if c := v.Get("content"); c.Exists() {
			m.Content = text(c, &m.Attachments)
		}
		conversation.Attrs(m, v, "command", "customType", "fromId", "fullOutputPath")
		m.SetAttr("exitCode", v.Get("exitCode").Digits())
		m.IsError = v.Get("cancelled").Bool()
	}
}

// answer decodes a response of the model.
func (d *stream) answer(v jsonv.Value, key string) {
	d.Model, d.Provider = cmp.Or(ident.Of(v.Get("model")), d.Model), cmp.Or(ident.Of(v.Get("provider")), d.Provider)
	stop := v.Get("stopReason").PeekStr()
	r := conversation.Response{ID: cmp.Or(ident.Of(v.Get("responseId")), key), Model: d.Model, Provider: d.Provider, Run: d.Run.ID, At: d.At, Stop: ident.Of(v.Get("stopReason"))}
	calls, n := false, 0
	first := len(d.Out.Messages)
	for b := range v.Get("content").Elems() {
		part := conversation.Ordinal(key, &n)
		switch typ := b.Get("type"); {
		case typ.Equal("text") && b.Get("text").Is(jsonv.String), typ.Equal("thinking") && b.Get("thinking").Is(jsonv.String):
			m := d.add(msg.Assistant, part)
			if m.Content = b.Get("text").Text(); typ.Equal("thinking") {
				m.Kind, m.Content = msg.Reasoning, b.Get("thinking").Text()
			}
			m.Role = msg.RoleAssistant
			r.Mark(m)
			r.Last = m.Key
		case typ.Equal("toolCall"):
			calls = true
			d.call(b, part, &r)
		default:
			d.Unknown(ident.Of(typ), b).Key = "unknown:" + part
		}
	}
	fault, goesOn := v.Get("errorMessage"), false
	if d.Failures++; stop != "error" {
		d.Failures = 0
	}
	if fault.Exists() {
		m := d.add(msg.Error, key+"/error")
		if goesOn = stop == "error" && d.Failures <= maxRetries && retried(fault.PeekStr()); goesOn && m.Signal == msg.NoSignal {
			m.Signal = msg.Retry
		}
		m.IsError, m.Content, m.Tool.ErrorType = true, fault.Text(), cmp.Or(conversation.Cut(stop, ident.Max), "error")
		if m.Tool.ErrorType = ident.Bounded(m.Tool.ErrorType); stop == "aborted" {
			m.Kind, m.IsError, m.Hidden = msg.Status, false, true
		}
	}
	d.usage(&r, key, v.Get("usage"))
	if len(d.Out.Messages) == first {
		d.status(key, "assistant")
	}
	m := &d.Out.Messages[first]
	conversation.Attrs(m, v, "api", "rawStopReason", "responseModel")
	if !goesOn && (!calls || slices.Contains([]string{"stop", "length", "aborted"}, stop)) {
		d.stop(cmp.Or(r.Stop, "stop"), "stop:"+key)
	}
}

// usage emits the tokens of a response, or of the requests that made a summary: {input, output, cacheRead, cacheWrite,
// reasoning, cost: {total}}.
func (d *stream) usage(r *conversation.Response, key string, u jsonv.Value) *msg.Message {
	if !u.Is(jsonv.Object) {
		return nil
	}
	r.Count(conversation.Counts{
		Input: u.Get("input").Uint(), Output: u.Get("output").Uint(), CacheRead: u.Get("cacheRead").Uint(), CacheWrite: u.Get("cacheWrite").Uint(),
		Reasoning: u.Get("reasoning").Uint(),
	}, msg.Provider)
	m := r.Usage(d.Out, msg.Complete)
	m.Key, m.Session, m.Agent.Kind = "usage:"+key, d.session(), msg.KindAgent
	cost := u.Path("cost", "total").Digits()
	m.SetAttr("cost", cost)
	m.Usage.Stated = msg.Dollars(cost)
	return m
}

// beside emits the tokens of requests that are of no response: for a summary, by the model of the session, or of a tool.
func (d *stream) beside(key, model string, u jsonv.Value) {
	if m := d.usage(&conversation.Response{ID: key, Model: model, Run: d.Run.ID, At: d.At}, key, u); m != nil {
		m.ResponseID = ""
	}
}

// maxRetries is how often Pi asks again by default.
const maxRetries = 3

// again are the words of errors after which Pi asks again; unless they are of an account.
var again = regexp.MustCompile(`(?i)overloaded|server_busy|servers are currently busy|experiencing high demand|at capacity|rate.?limit|too many requests|\b(429|50[0234]|52[049])\b|` +
	`service.?(is.?)?(temporarily.?)?unavailable|server.?error|internal.?error|provider.?returned.?(an.?)?error|upstream.?connect|upstream.?request.?failed|upstream_stream_read_error|(forward|retrying) upstream|stream was interrupted|http/?2 |network.?error|` +
	`connection.?(error|refused|lost|closed|reset)|websocket|socket hang up|socket connection was closed|other side closed|fetch failed|request to \S+ failed|getaddrinfo|` +
	`\b(ECONN\w+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN)\b|reset before headers|timed? out|timeout|terminated|ended without|stream ended before|stream disconnected before`)

// retried reports whether Pi asks again after an error in those words. Its sessions have the error of each
// response, and no record of the retry or of the end of them.
func retried(fault string) bool {
	account := strings.Contains(strings.ToLower(fault), "quota") || strings.Contains(strings.ToLower(fault), "usage limit")
	return !account && again.MatchString(fault)
}

// call decodes a call: {id, name, arguments}.
func (d *stream) call(v jsonv.Value, part string, r *conversation.Response) {
	id, item, _ := strings.Cut(ident.Of(v.Get("id")), "|")
	c := &call{Call: conversation.Call{ID: cmp.Or(id, part), Name: cmp.Or(ident.Of(v.Get("name")), "unknown")}, Run: d.Run.ID}
	c.Task = slices.Contains([]string{"sessions_spawn", "subagent", "task"}, c.Name)
	d.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+c.ID)
	if c.Task {
		m.Kind = msg.Delegation
		m.Delegation.Task, m.Delegation.To = v.Get("arguments").First("task", "prompt").Text(), ident.First(v.Path("arguments", "agentId"), v.Path("arguments", "agent"))
	}
	m.Role, m.Tool.Arguments = msg.RoleAssistant, v.Get("arguments").JSON()
	c.on(m)
	r.Mark(m)
	m.ParentKey, r.Last = r.Last, m.Key
	m.SetAttr("item_id", item)
}

// executed decodes tool_execution_start: {toolCallId, toolName, args}. A response has the call, unless an
// extension made it.
func (d *stream) executed(v jsonv.Value) {
	id := callID(v.Get("toolCallId"))
	if id == "" || d.Calls.Get(id) != nil {
		return
	}
	d.Run.Wake("call:" + id)
	c := &call{Call: conversation.Call{ID: id, Name: cmp.Or(ident.Of(v.Get("toolName")), "unknown")}, Run: d.Run.ID}
	d.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+id)
	m.Role, m.Tool.Arguments = msg.RoleAssistant, v.Get("args").JSON()
	c.on(m)
}

// hold keeps the result of tool_execution_end, {toolCallId, toolName, result: {content}, isError}, which the
// message that follows has once more, with its time.
func (d *stream) hold(v jsonv.Value) {
	c := d.Calls.GetOpen(callID(v.Get("toolCallId")))
	if c == nil {
		return
	}
	var files []msg.Attachment // of which the message has the hashes
	words := text(v.Path("result", "content"), &files).String()
	c.Held = &held{Text: words[:min(len(words), maxHeld)], Failed: v.Get("isError").Bool()}
}

// release emits the results that are held: no message came for them.
func (d *stream) release() {
	for _, c := range slices.Clone(d.Calls.Open) {
		if c.Held == nil {
			continue
		}
		d.Calls.End(c)
		m := d.add(msg.ToolResult, "result:"+c.ID)
		m.Role, m.Run, m.ParentKey, m.Content = msg.RoleTool, cmp.Or(c.Run, m.Run), "call:"+c.ID, msg.Plain(c.Held.Text)
		c.on(m)
		conversation.Failed(m, c.Held.Failed)
	}
}

// callID is the provider's part of the id of a call.
func callID(v jsonv.Value) string {
	id, _, _ := strings.Cut(ident.Of(v), "|")
	return id
}

// on writes the call into a message.
func (c *call) on(m *msg.Message) {
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, conversation.ToolServer(c.Name)
}

// result decodes the result of a call.
func (d *stream) result(v jsonv.Value, key string) {
	id := callID(v.Get("toolCallId"))
	c := d.Calls.Get(id)
	if c == nil {
		c = &call{Call: conversation.Call{ID: cmp.Or(id, key), Name: ident.Of(v.Get("toolName"))}, Run: d.Run.ID}
	}
	v.Get("toolName").Equal(c.Name)
	d.Calls.End(c)
	m := d.add(msg.ToolResult, "result:"+c.ID)
	m.Role, m.ParentKey = msg.RoleTool, "call:"+c.ID
	if c.Run != "" && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	c.on(m)
	m.Content = text(v.Get("content"), &m.Attachments)
	conversation.Failed(m, v.Get("isError").Bool())
	m.SetAttr("entry", d.id)
	details, child := v.Get("details"), ""
	if c.Task {
		m.Kind = msg.DelegationResult
		conversation.Attrs(m, details, "status", "childSessionKey", "runId", "sessionPath", "taskId")
		if child = ident.Of(details.Get("sessionId")); child != "" {
			m.Delegation.CorrelationID = correlationID(child)
			m.SetAttr("child_session", child)
		}
	}
	if child == "" { // else the agent's own session has them
		d.beside("tool:"+c.ID, "", v.Get("usage"))
	}
}

// correlationID is the correlation id of the first run of a session.
func correlationID(session string) string { return "pi:session:" + session }
