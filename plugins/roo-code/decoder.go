// Package roocode decodes the tasks of Roo Code, of Cline before version 4, and of programs made of them, such as Kilo Code before it was made
// of OpenCode: documents that are written again as a whole at each step.
//
//	tasks/TASK/ui_messages.json    the messages that a person sees: [{ts, type, ask or say: kind, text, images, partial}]
//	tasks/TASK/history_item.json   of Roo Code, the task: {id, parentTaskId, rootTaskId, task, workspace, mode, status, totalCost}
//	state/taskHistory.json         of Cline, a list of them
//
// Facts of the format that are easy to get wrong:
//
//   - A message is written again while it grows, and keeps its ts, in milliseconds, which is when it began: the ts and the kind name it.
//   - text is JSON of its own for the kinds api_req_started, tool, use_mcp_server, followup, plan_mode_respond and some more.
//   - api_req_started is one request to the model, with its tokens and cost, which come after the messages of the response.
//     In Cline, and in Roo Code before its member apiProtocol, tokensIn has no cached tokens, but for Cline's providers openai and openai-codex.
//     With the protocol openai it has them, with anthropic since version 3.30: there it is not less than they are.
//   - No result of a call has an id. Cline, and Roo Code before 3.28.18, have the prompt of the model, with the results, in request of the next api_req_started.
//   - Cline numbers its messages by those of the model (conversationHistoryIndex) and asks only where a person is to allow a call.
//     Roo Code asks for every call, and answers by itself if it may.
//   - The message resume_task is there as long as a task that was interrupted is looked at, and is taken out when it goes on.
package roocode

import (
	"cmp"
	_ "embed"
	"regexp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[struct{}]{
		Info: decoder.Info{
			Name:       "roo-code",
			Revision:   1,
			Summary:    "Tasks of Roo Code, of Cline before version 4, and of programs made of them.",
			Transports: []frame.Kind{frame.Body},
			Documents:  []string{"*.json"},
		},
		LeavesOut: leavesOut,
		Takes:     func(_ *frame.Frame, root jsonv.Value) bool { return root.Is(jsonv.Array) },
		Open:      func(r *record.Current, _ *struct{}) record.Reader { return &stream{Current: r} },
	}.Factory()
}

// stream decodes one document.
type stream struct {
	*record.Current
	inner jsonv.Doc // of a text that is JSON

	task   string
	run    conversation.Run
	seen   map[string]int // messages of a kind and a ts
	cline  bool           // it asks a person alone
	last   string         // key of the message before
	before conversation.Time
	tail   bool   // the message is the last one
	asked  bool   // the run waits for a person
	about  string // of the wait
	resp   *conversation.Response
	over   bool     // the response is
	cost   string   // of it
	why    string   // it broke off
	fault  msg.Text // of that
	calls  []*call  // without results
	n      int      // calls of the response
}

// call is a tool call, or a question.
type call struct {
	conversation.Delegation
	kind   string
	ended  conversation.Time
	found  conversation.Content // its result
	failed bool
	human  bool // it waits for a person
	nth    int  // of its response
	item   int  // of a call that has several sub-agents, from 1
}

// Read decodes a document.
func (d *stream) Read() {
	*d = stream{Current: d.Current, inner: d.inner, task: ident.Bounded(ident.PathOf(d.Origin).After("tasks")), seen: make(map[string]int)}
	switch v := d.Root; {
	case isItem(v):
		d.item(v)
	case v.Is(jsonv.Array):
		d.list(v)
	default:
		d.Unknown("document", v)
	}
}

// In returns the task.
func (d *stream) In() (session, run string) {
	if d.task == "" {
		return d.Current.In()
	}
	return d.task, d.run.ID
}

// isItem reports whether a value describes a task.
func isItem(v jsonv.Value) bool {
	return v.Get("task").Is(jsonv.String) && v.Get("id").Is(jsonv.String)
}

// item decodes the description of a task, which changes.
func (d *stream) item(v jsonv.Value) {
	d.task = ident.Of(v.Get("id"))
	d.At = conversation.TimeOf(v.Get("ts"))
	m := record.Hide(d.Add(msg.Status, "session"), "session")
	m.Complete, m.Title = msg.Summary, conversation.Excerpt(v.Get("task"))
	m.Client.Project = ident.First(v.Get("workspace"), v.Get("cwdOnTaskInitialization"))
	conversation.Attrs(m, v, "status", "mode", "apiConfigName", "modelId", "parent_task=parentTaskId", "root_task=rootTaskId")
	conversation.AttrsAs(m, v, conversation.ShortJSON, "child_tasks=childIds")
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "cost=totalCost")
}

// list decodes the messages of a task, or the descriptions of tasks.
func (d *stream) list(v jsonv.Value) {
	var before jsonv.Value
	for x := range v.Elems() {
		if isItem(x) {
			d.item(x)
			continue
		}
		d.cline = d.cline || x.Get("conversationHistoryIndex").Exists()
		d.message(before)
		before = x
	}
	d.tail = true
	d.message(before)
	d.broken()
	d.usage()
}

// kindOf returns the kind of a message, and whether it asks.
func kindOf(v jsonv.Value) (kind string, ask bool) {
	if kind = ident.Peek(v.Get("ask")); kind != "" && v.Get("type").Equal("ask") {
		v.Get("ask").MarkRead()
		return kind, true
	}
	if kind = ident.Peek(v.Get("say")); kind != "" && v.Get("type").Equal("say") {
		v.Get("say").MarkRead()
		return kind, false
	}
	return "", false
}

// message decodes a message.
func (d *stream) message(v jsonv.Value) {
	if !v.Exists() {
		return
	}
	kind, ask := kindOf(v)
	d.At = conversation.TimeOf(v.Get("ts"))
	text := v.Get("text")
	if kind == "" || d.At.Nanos == 0 || text.Exists() && !text.Is(jsonv.String) {
		d.Unknown("message", v)
		return
	}
	from := len(d.Out.Messages)
	if kind == "user_feedback" || kind == "api_req_started" || kind == "resume_task" || kind == "api_req_failed" {
		d.broken()
	}
	d.goesOn(kind)
	switch kind {
	case "task", "user_feedback":
		d.person(v, kind)
	case "text":
		if d.run.ID == "" {
			d.person(v, kind)
			break
		}
		d.said(v, msg.Assistant, kind, text.Text())
	case "act_mode_respond":
		d.said(v, msg.Assistant, kind, text.Text())
	case "reasoning":
		d.said(v, msg.Reasoning, kind, text.Text())
	case "plan_mode_respond":
		in := d.inner.Inner(text)
		if !v.Get("partial").Bool() || !d.tail {
			d.said(v, msg.Assistant, kind, jsonv.Or(in.Get("response"), in).Text())
			d.stop("stop", false)
		}
	case "completion_result":
		text.MarkRead()
		if s := strings.TrimSuffix(text.Str(), "HAS_CHANGES"); s != "" && !ask {
			d.said(v, msg.Assistant, kind, msg.Plain(s))
		}
		if !ask && !v.Get("partial").Bool() {
			d.stop("stop", false)
		}
	case "api_req_started":
		d.request(text)
	case "api_req_finished": // of the first versions: the tokens of the request before
		if in := d.inner.Inner(text); d.resp != nil {
			d.tokens(in)
		}
	case "tool", "command", "use_mcp_server", "browser_action_launch", "browser_action", "followup", "new_task", "use_subagents":
		d.called(v, kind, ask)
	case "command_output", "mcp_server_response", "browser_action_result", "codebase_search_result", "subtask_result":
		d.output(v, kind)
	case "subagent":
		d.agents(d.inner.Inner(text))
	case "subagent_usage":
		in := d.inner.Inner(text)
		root, _ := d.In()
		s := conversation.Session{ID: root, Root: root}
		m := s.Share(d.Out, "/"+d.key(kind), d.counts(in), "", "", d.At)
		m.Run = d.run.ID
		m.SetAttr("cost", in.Get("cost").Digits())
		in.Get("source").Equal("subagents")
	case "error", "diff_error", "clineignore_error", "rooignore_error", "command_permission_denied":
		d.failure(kind, text)
	case "api_req_failed", "mistake_limit_reached", "auto_approval_max_req_reached":
		m := d.status(kind, text)
		m.Complete, m.Signal, m.IsError = msg.Complete, msg.RunPause, kind != "auto_approval_max_req_reached"
		d.asked, d.about = true, m.Key
	case "resume_task", "resume_completed_task":
		d.resumes(kind)
	case "condense_context", "sliding_window_truncation", "summarize_task":
		m := d.status(kind, jsonv.Or(v.Path("contextCondense", "summary"), text))
		if in := v.First("contextCondense", "contextTruncation"); !v.Get("partial").Bool() || in.Exists() {
			record.Signal(m, msg.Compaction)
			conversation.AttrsAs(m, in, jsonv.Value.Digits, "cost", "prevContextTokens", "newContextTokens", "messagesRemoved")
		}
	default:
		if !shown[kind] {
			d.Unknown(kind, v)
			break
		}
		d.status(kind, text)
	}
	d.KeepUnread(&d.inner, from)
	d.before = d.At
}

// shown are the kinds of messages that a person sees beside the conversation.
var shown = conversation.Rules(map[string]bool{
	"api_req_retried api_req_retry_delayed api_req_rate_limit_wait api_req_deleted deleted_api_reqs error_retry shell_integration_warning " +
		"shell_integration_warning_with_suggestion mcp_server_request_started mcp_notification user_feedback_diff user_edit_todos image checkpoint_saved " +
		"checkpoint_created load_mcp_documentation generate_explanation info task_progress hook_status hook_output_stream conditional_rules_applied " +
		"too_many_tools_warning condense_context_error condense report_bug": true,
})

// key names a message by its kind and its time.
func (d *stream) key(kind string) string {
	key := kind + ":" + strconv.FormatInt(d.At.Nanos/1e6, 10)
	n := d.seen[key]
	d.seen[key]++
	return conversation.Ordinal(key, &n)
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if d.run.ID == "" { // a list without its beginning
		root, _ := d.In()
		d.run.Begin(root)
	}
	d.run.Mark(m)
	return m
}

// status adds a message that is only shown.
func (d *stream) status(kind string, text jsonv.Value) *msg.Message {
	m := record.Hide(d.add(msg.Status, d.key(kind)), kind)
	m.Content, m.Complete = text.Text(), msg.Summary // it may be written again
	return m
}

// goesOn notes that a wait is over, and ends the calls that a message of this kind ends.
func (d *stream) goesOn(kind string) {
	if d.asked {
		record.Hide(d.add(msg.Status, "resumed:"+d.about), "resumed").Signal = msg.RunResume
		d.asked = false
	}
	switch kind {
	case "tool", "command", "use_mcp_server", "browser_action_launch", "browser_action", "followup", "new_task", "completion_result", "resume_task", "resume_completed_task", "api_req_started":
		for _, c := range d.calls {
			c.ended = c.ended.Or(d.At)
		}
	}
	for _, c := range d.calls {
		if c.human {
			c.human = false
			record.Hide(c.About(d.add(msg.Status, "waited:"+c.ID)), "approval").Signal = msg.WaitEnd
		}
	}
}

// person decodes a prompt, or the answer to a question. The first prompt may be of the task that began this one.
func (d *stream) person(v jsonv.Value, kind string) {
	text, key := v.Get("text").Text(), d.key("prompt")
	var files []msg.Attachment
	for x := range v.Get("images").Elems() {
		files = append(files, media.URL(x))
	}
	for x := range v.Get("files").Elems() {
		files = append(files, media.File(x.Str()))
	}
	for _, c := range d.calls {
		if c.kind == "followup" && c.ended.Nanos == 0 {
			c.ended = d.At
			c.found = conversation.Content{Files: files}
			c.found.Add(text)
			d.results()
			return
		}
	}
	root, _ := d.In()
	switch {
	case d.run.ID == "":
		d.run.Begin(root)
	case d.run.Ended:
		d.over = true
		d.usage()
		d.run.Begin(root + "/" + key)
	}
	m := d.add(msg.User, key)
	m.Role, m.Content, m.Attachments, m.Agent = msg.RoleUser, text, files, msg.Agent{Kind: msg.KindHuman}
	if m.Signal == msg.RunStart && m.Run == root {
		m.Delegation.CorrelationPrompt = asked(text.String())
	}
	d.last = key
}

// asked is the name under which a task and the call that began it meet.
func asked(text string) string { return "roo-code:asked:" + msg.HashKey(strings.TrimSpace(text)) }

// part adds a part of the response.
func (d *stream) part(kind msg.Kind, key string) *msg.Message {
	m := d.add(kind, key)
	m.ParentKey, d.last = d.last, key
	if d.resp != nil {
		d.resp.Mark(m)
		d.resp.Last = key
	}
	return m
}

// said decodes an answer or a thought.
func (d *stream) said(v jsonv.Value, as msg.Kind, kind string, text msg.Text) {
	d.model(v.Get("modelInfo"))
	m := d.part(as, d.key(kind))
	m.Content = text
	if m.Role = msg.RoleAssistant; v.Get("partial").Bool() && d.tail {
		m.Complete = msg.Partial
	}
	for x := range v.Get("images").Elems() {
		m.Attachments = append(m.Attachments, media.URL(x))
	}
}

// model reads which model answers, which Cline writes beside each message.
func (d *stream) model(v jsonv.Value) {
	if d.resp != nil && v.Exists() {
		d.resp.Model, d.resp.Provider = ident.Of(v.Get("modelId")), ident.Of(v.Get("providerId"))
	}
}

// request decodes a request to the model, with the results that it has.
func (d *stream) request(text jsonv.Value) {
	in := d.inner.Inner(text)
	if !in.Is(jsonv.Object) {
		d.status("api_req_started", text)
		return
	}
	d.over = true
	sent := in.Get("request").PeekStr()
	in.Get("request").MarkRead()
	d.answers(sent)
	d.results()
	d.usage()
	if d.run.Ended { // it goes on without a word of a person
		d.run.Ended = false
	}
	root, _ := d.In()
	d.resp, d.over, d.n = &conversation.Response{ID: msg.HashKey(root, d.key("api_req_started")), Run: d.run.ID, At: d.At}, false, 0
	if m := modelOf.FindStringSubmatch(sent); m != nil {
		d.resp.Model = conversation.Cut(m[1], ident.Max)
	}
	d.tokens(in)
	d.why, d.fault = ident.Of(in.Get("cancelReason")), in.Get("streamingFailedMessage").Text()
}

// broken ends a response that broke off, after the last that there is of it.
func (d *stream) broken() {
	why, at := d.why, d.At
	if d.why = ""; why == "" {
		return
	}
	d.At, d.over = d.before, true
	if why == "user_cancelled" {
		d.stop("cancelled", true)
	} else {
		m := d.part(msg.Error, "error:"+d.resp.ID)
		m.IsError, m.Content = true, d.fault
		m.SetAttr("reason", why)
	}
	d.At = at
}

// modelOf finds the model where Roo Code names it: in the description of the environment.
var modelOf = regexp.MustCompile(`\n<model>([^<\n]+)</model>`)

// resultOf finds the results of calls in a request.
var resultOf = regexp.MustCompile(`(?m)^\[[a-z_]+(?: for '[^\n]*)?\] Result:\n*`)

// answers reads the results of the response before in the next request, which has all of them, in their order.
func (d *stream) answers(sent string) {
	sent, _, _ = strings.Cut(sent, "<environment_details>")
	found := resultOf.FindAllStringIndex(sent, -1)
	if len(found) != d.n {
		return
	}
	for _, c := range d.calls {
		end := len(sent)
		if c.nth+1 < len(found) {
			end = found[c.nth+1][0]
		}
		text := strings.TrimSuffix(strings.TrimSpace(sent[found[c.nth][1]:end]), "\n\nLoading...")
		switch {
		case strings.HasPrefix(text, "The user denied this operation"):
			c.failed = true
		case strings.HasPrefix(text, "The tool execution failed"):
			c.failed = true
		}
		if c.found.N == 0 {
			c.found.Add(msg.Plain(strings.TrimSpace(text)))
		}
	}
}

// tokens reads the tokens of the response.
func (d *stream) tokens(in jsonv.Value) {
	if in.Get("tokensIn").IsCount() || in.Get("tokensOut").IsCount() {
		d.resp.Count(d.counts(in), msg.Provider)
	}
	d.cost = cmp.Or(in.Get("cost").Digits(), d.cost)
}

// counts reads tokens.
func (d *stream) counts(in jsonv.Value) conversation.Counts {
	c := conversation.Counts{Input: in.Get("tokensIn").Uint(), Output: in.Get("tokensOut").Uint(), CacheRead: in.Get("cacheReads").Uint(), CacheWrite: in.Get("cacheWrites").Uint()}
	protocol := in.Get("apiProtocol")
	if cached := c.CacheRead + c.CacheWrite; protocol.Equal("openai") || protocol.Equal("anthropic") && c.Input >= cached {
		c.Input -= min(c.Input, cached)
	}
	return c
}

// usage emits the tokens of the response, which are whole when another one has begun.
func (d *stream) usage() {
	if d.resp == nil {
		return
	}
	if c := &d.resp.Counts; d.resp.Provider == "openai" || d.resp.Provider == "openai-codex" {
		c.Input -= min(c.Input, c.CacheRead+c.CacheWrite)
	}
	complete := msg.Summary // it may grow
	if d.over {
		complete = msg.Complete
	}
	if m := d.resp.Usage(d.Out, complete); m != nil {
		m.Session, _ = d.In()
		m.Agent.Kind = msg.KindAgent
		m.SetAttr("cost", d.cost)
	}
	d.resp, d.cost = nil, ""
}

// called decodes a call, or a question to a person.
func (d *stream) called(v jsonv.Value, kind string, ask bool) {
	if v.Get("partial").Bool() && d.tail {
		v.MarkRead() // it is there again when it is whole
		return
	}
	d.model(v.Get("modelInfo"))
	text, in := v.Get("text"), d.inner.Inner(v.Get("text"))
	tool := ident.Of(in.Get("tool"))
	switch {
	case kind == "use_subagents":
		for i, x := range indexed(in.Get("prompts")) {
			c := d.calling("use_subagents:"+strconv.FormatInt(d.At.Nanos/1e6, 10)+"/"+strconv.Itoa(i), kind, kind)
			c.Task = true
			c.item = i + 1
			c.Called(d.part(msg.Delegation, "call:"+c.ID), object("prompt", x), x)
		}
		return
	case tool == "finishTask", tool == "summarizeTask": // whether the result is good
		d.status(tool, in.Get("content"))
		return
	}
	name, arguments := kind, text.PeekText()
	if in.Is(jsonv.Object) {
		arguments = in.JSON()
	}
	var server string
	switch kind {
	case "tool":
		if name = tool; name == "" {
			name = kind
		}
	case "command":
		name, arguments = "execute_command", object("command", text)
	case "use_mcp_server":
		server, name, arguments = ident.Of(in.Get("serverName")), ident.First(in.Get("toolName"), in.Get("type")), jsonv.Or(in.Get("arguments"), in.Get("uri")).Text()
		in.Get("type").MarkRead()
	case "browser_action_launch":
		name, arguments = "browser_action", object("url", text)
	case "followup": // the answer that a person selects is written into it afterwards
		name, arguments = "ask_followup_question", object("question", jsonv.Or(in.Get("question"), in))
		in.Skip("selected", "options", "suggest")
	case "new_task":
		arguments = object("context", jsonv.Or(in.Get("context"), in))
	}
	text.MarkRead()
	c := d.calling(d.key(kind), kind, name)
	c.Server = server
	c.Task = tool == "newTask"
	m := d.part(msg.ToolCall, "call:"+c.ID)
	if c.Called(m, arguments, in.Get("content")); c.Task {
		c.To = ident.Of(in.Get("mode"))
		c.On(m)
		m.Delegation.CorrelationPrompt = asked(strings.ReplaceAll(in.Get("content").PeekStr(), `\\@`, `\@`))
	}
	if c.human = kind == "followup" || ask && d.cline; c.human {
		record.Hide(c.About(d.add(msg.Status, "wait:"+c.ID)), "approval").Signal = msg.WaitStart
	}
}

// indexed yields the elements of a list with their numbers.
func indexed(v jsonv.Value) (out []jsonv.Value) {
	for x := range v.Elems() {
		out = append(out, x)
	}
	return out
}

// object is an object of a text.
func object(name string, text jsonv.Value) msg.Text {
	return msg.Plain(string(append(jsonv.AppendQuote([]byte(`{"`+name+`":`), text.PeekStr()), '}')))
}

// calling adds an open call.
func (d *stream) calling(id, kind, name string) *call {
	c := &call{kind: kind, nth: d.n}
	d.n++
	c.ID, c.Name = id, name
	d.calls = append(d.calls, c)
	return c
}

// output decodes a part of the result of the last call.
func (d *stream) output(v jsonv.Value, kind string) {
	text := v.Get("text")
	if len(d.calls) == 0 {
		d.status(kind, text)
		return
	}
	c := d.calls[len(d.calls)-1]
	switch d.model(v.Get("modelInfo")); kind {
	case "browser_action_result":
		in := d.inner.Inner(text)
		if shot := in.Get("screenshot"); shot.Exists() {
			c.found.Attach(media.URL(shot))
		}
		text = jsonv.Or(in.Get("logs"), in)
		in.Skip("currentUrl", "currentMousePosition")
		c.found.Add(text.Text())
	case "subtask_result":
		c.ended = d.At
		fallthrough
	default:
		if len(text.Escaped()) > 0 {
			c.found.Add(text.Text())
		}
	}
	for x := range v.Get("images").Elems() {
		c.found.Attach(media.URL(x))
	}
}

// agents decodes how far the sub-agents of a call are.
func (d *stream) agents(in jsonv.Value) {
	for x := range in.Get("items").Elems() {
		i := int(x.Get("index").Int())
		for _, c := range d.calls {
			if c.item != i || !x.Get("status").In("completed", "failed") {
				continue
			}
			c.found = conversation.Content{}
			c.found.Add(jsonv.FirstText(x.Get("result"), x.Get("error")))
			c.failed = x.Get("status").Equal("failed")
		}
		x.MarkRead()
	}
	in.MarkRead()
}

// failure decodes an error: of the last call, or of the work.
func (d *stream) failure(kind string, text jsonv.Value) {
	if n := len(d.calls); n > 0 && d.calls[n-1].ended.Nanos == 0 {
		c := d.calls[n-1]
		c.failed, c.ended = true, d.At
		c.found.Add(text.Text())
		return
	}
	m := d.add(msg.Error, d.key(kind))
	m.IsError, m.Content = true, text.Text()
	m.SetAttr("type", kind)
}

// results emits the results of the calls.
func (d *stream) results() {
	at := d.At
	for _, c := range d.calls {
		d.At = c.ended.Or(at)
		m := c.Result(d.add(msg.ToolResult, "result:"+c.ID))
		if c.found.Fill(m); c.failed {
			m.IsError = true
			m.Tool.ErrorType = conversation.ErrorClass(conversation.Cut(m.Content.String(), ident.Max), "denied", "denied", "interrupted", "interrupted", "", "tool_error")
		}
	}
	d.At, d.calls = at, nil
}

// resumes decodes that a task is opened again: a call or a run that was not over was interrupted.
func (d *stream) resumes(kind string) {
	d.over, d.At = true, d.before
	for _, c := range d.calls {
		if c.ended = d.At; c.found.N == 0 {
			c.failed = true
			c.found.Add(msg.Plain("interrupted"))
		}
	}
	d.results()
	if kind == "resume_task" {
		d.stop("interrupted", true)
	}
}

// stop ends the run.
func (d *stream) stop(reason string, failed bool) {
	if d.run.Started && !d.run.Ended {
		d.results()
		d.run.Finish(d.add(msg.Stop, "stop:"+d.last), reason, failed)
	}
}
