package codex

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// call decodes a call that the model made:
//
//	function_call     {name, namespace?, arguments: "JSON", call_id}
//	custom_tool_call  {name, input: "text", call_id}
//	local_shell_call  {action: {command, …}, call_id | id}
//	tool_search_call  {arguments: {…}, call_id}
func (d *thread) call(r *record, typ string) {
	id, name := ident.Of(r.p.First("call_id", "id")), ident.Of(r.p.Get("name"))
	arguments := r.p.First("arguments", "input")
	switch typ {
	case "local_shell_call":
		name, arguments = "local_shell", r.p.Get("action")
	case "tool_search_call":
		name = "tool_search"
	}
	if id == "" || name == "" {
		d.unknown(r, "response_item/"+typ)
		return
	}
	if d.Calls.GetOpen(id) != nil || d.hasEnded(id) {
		d.repeated(r, "again:"+r.id(), typ, arguments)
		return
	}
	d.wake(r)
	namespace := ident.Of(r.p.Get("namespace"))
	c := d.NewCall(id, name)
	c.Name, c.Server = qualified(namespace, name)
	task := d.delegate(c, arguments)
	kind := msg.ToolCall
	if c.Delegation {
		kind = msg.Delegation
	}
	m := d.part(r, kind, r.id(), "call:"+c.ID)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, c.Server
	m.Tool.Arguments = arguments.Text()
	if c.Server == "" {
		m.SetAttr("namespace", namespace)
	}
	if c.Delegation {
		m.Delegation.To, m.Delegation.Async = c.To, true
		if encrypted(task) {
			m.SetAttr("task_encrypted", "true")
		} else {
			m.Delegation.Task = msg.Plain(task)
		}
	}
	d.Calls.Add(c)
	if c.Human = c.Name == "request_user_input"; c.Human {
		d.wait(c, msg.WaitStart, "wait:")
	}
}

// maxEnded is the number of ended calls that are recognized when a record repeats them.
const maxEnded = 256

// end ends a call: later records of it are repetitions.
func (d *thread) end(c *codex.Call) {
	d.Calls.Remove(c)
	d.Ended.Add(hash(hashBasis, c.ID), maxEnded)
}

func (d *thread) hasEnded(id string) bool { return d.Ended.Has(hash(hashBasis, id)) }

// wait adds the start or the end of the time for which a call waits for a person.
func (d *thread) wait(c *codex.Call, signal msg.Signal, prefix string) {
	m := d.About(c, msg.Status, prefix+c.ID)
	m.Hidden, m.Signal = true, signal
	m.SetAttr("type", "human_wait")
}

// qualified is the name of a tool as all versions write it, with the MCP server in it:
// mcp__<server>__<tool>. Newer ones put the server into a namespace.
func qualified(namespace, name string) (full, server string) {
	full = name
	if rest, ok := strings.CutPrefix(namespace, "mcp__"); ok && !strings.HasPrefix(name, "mcp__") {
		full = "mcp__" + strings.TrimRight(rest, "_") + "__" + name
	}
	return full, conversation.ToolServer(full)
}

// output decodes the result of a call as the model gets it:
//
//	{call_id, output: "text" | "{\"output\":…,\"metadata\":{\"exit_code\":0}}" | [{type, text}] | {…}}
//	{call_id, tools: […]}                                                    tool_search_output
func (d *thread) output(r *record) {
	id := ident.Of(r.p.Get("call_id"))
	if id == "" {
		d.unknown(r, "response_item/"+r.p.Get("type").Str())
		return
	}
	d.close()
	output := r.p.First("output", "tools")
	c := d.Calls.GetOpen(id)
	switch {
	case c == nil && d.hasEnded(id):
		d.repeated(r, "again:"+r.id(), "function_call_output", output)
		return
	case c == nil:
		d.wake(r)
		c = d.NewCall(id, "")
	case c.Spawn:
		d.spawned(c, output)
		return
	}
	d.end(c)
	if c.Human {
		d.wait(c, msg.WaitEnd, "waited:")
	}
	m := d.Result(c)
	text, exit, ok := d.wrapped(output)
	if !ok {
		text = content(output, m)
	}
	m.Content = text
	start := opening(output)
	if exit == "" {
		exit = exitCode(start)
	}
	if exit == "" {
		exit = c.Exit
	}
	m.SetAttr("exit_code", exit)
	fail(m, c, start, exit)
	if c.Name == "wait_agent" || c.Name == "wait" {
		d.answers(d.parse(output).Get("status"))
	}
}

// opening is the beginning of an output.
func opening(output jsonv.Value) string {
	const most = 320
	if output.Is(jsonv.Object) {
		output = output.First("text", "content", "output")
	}
	for p := range parts(output) {
		b := p.text.Escaped()
		return msg.Quoted(b[:min(len(b), most)]).String()
	}
	return ""
}

// wrapped takes the output of a command and its exit code out of the JSON that older
// versions wrote.
func (d *thread) wrapped(output jsonv.Value) (text msg.Text, exit string, ok bool) {
	if !output.HasPrefix(`{\"output\":`) {
		return msg.Text{}, "", false
	}
	v := d.parse(output)
	inner := v.Get("output")
	if !inner.Is(jsonv.String) {
		return msg.Text{}, "", false
	}
	return inner.Text().Own(), v.Path("metadata", "exit_code").Digits(), true
}

// exitCode reads the exit code of a command from the lines before its output:
//
//	Exit code: 1 | Process exited with code 1
//	Wall time: 0.2 seconds
//	Output:
func exitCode(s string) string {
	s, _, _ = strings.Cut(s, "\nOutput:")
	for _, label := range [...]string{"Exit code: ", "Process exited with code "} {
		if i := strings.Index(s, label); i == 0 || i > 0 && s[i-1] == '\n' {
			code, _, _ := strings.Cut(s[i+len(label):], "\n")
			if _, err := strconv.Atoi(code); err == nil {
				return code
			}
		}
	}
	return ""
}

// fail makes the result of a call an error if the call failed.
func fail(m *msg.Message, c *codex.Call, start, exit string) {
	failed := exit != "" && exit != "0"
	class := errorType(start)
	switch {
	case c.Refused:
		codex.Fail(m, "denied")
	case failed && class != "timeout", class == "" && c.Failed:
		codex.Fail(m, "tool_error")
	case class != "":
		codex.Fail(m, class)
	}
}

// errorType is the class of an error that the CLI wrote in the place of an output; empty
// for any other text.
func errorType(s string) string {
	for _, known := range [...]struct{ prefix, class string }{
		{"command timed out", "timeout"},
		{"aborted by user", "interrupted"},
		{"unsupported call:", "not_found"},
		{"unsupported custom tool call:", "not_found"},
		{"failed to parse function arguments", "validation"},
		{"exec command rejected", "denied"},
		{"patch rejected", "denied"},
		{"rejected by user", "denied"},
		{"apply_patch verification failed", "tool_error"},
		{"exec_command failed", "tool_error"},
		{"tool call error:", "tool_error"},
	} {
		if strings.HasPrefix(s, known.prefix) {
			return known.class
		}
	}
	if _, out, ok := strings.Cut(s, "\nOutput:\n"); ok && strings.HasPrefix(out, "command timed out") {
		return "timeout"
	}
	return ""
}

// ending is the end of a call as an event has it.
type ending struct {
	id, name, server string
	arguments        jsonv.Value
	output           jsonv.Value
	exit             string
	failed, refused  bool
}

// callEvent decodes an event of the end of a call. p is the payload, or an item of one. Most
// calls have records of the model, to which the event adds how the call ended. Calls that
// a tool made (scripts make several) and the commands of the user have only their event.
func (d *thread) callEvent(r *record, typ string, p jsonv.Value) {
	e := endingOf(typ, p)
	for _, name := range [...]string{"aggregated_output", "formatted_output", "stdout", "parsed_cmd"} {
		p.Get(name).MarkRead() // forms of the output and the command
	}
	c := d.Calls.GetOpen(e.id)
	if c != nil {
		if e.exit != "" {
			c.Exit = e.exit
		}
		c.Failed, c.Refused = c.Failed || e.failed, c.Refused || e.refused
		if c.Server == "" {
			c.Server = e.server
		}
	}
	var m *msg.Message
	if e.id == "" || e.name == "" || c != nil || d.hasEnded(e.id) {
		m = d.Status(r.id(), typ)
		m.Tool.CallID, m.Tool.Name = e.id, e.name
		e.arguments.MarkRead() // they are in the messages of the call
		e.output.MarkRead()
	} else {
		d.wake(r)
		c = d.NewCall(e.id, e.name)
		c.Server, c.Failed, c.Refused = e.server, e.failed, e.refused
		m = d.About(c, msg.ToolCall, "call:"+c.ID)
		m.ParentKey, m.Role = "", msg.RoleAssistant
		m.Tool.Arguments = e.arguments.JSON()
		if p.Get("source").Equal("user_shell") { // the user's own command
			m.Role = msg.RoleUser
		}
		setIDs(m, p, "source")
		m.SetAttr("told_by", typ)
		m = d.Result(c)
		m.Content = content(e.output, m)
		fail(m, c, "", e.exit)
		d.end(c)
	}
	m.SetAttr("exit_code", e.exit)
	m.SetAttr("duration_ms", elapsed(p.Get("duration")))
	d.files(e.id, p)
}

func endingOf(typ string, p jsonv.Value) ending {
	status, success := p.Get("status"), p.Get("success")
	e := ending{id: ident.Of(p.First("call_id", "callId", "id")), failed: status.Equal("failed") || success.Is(jsonv.False), refused: status.Equal("declined")}
	switch typ {
	case "exec_command_end", "CommandExecution":
		e.name, e.arguments = "exec_command", p.Get("command")
		e.output = p.First("aggregated_output", "formatted_output", "stdout")
		e.exit = p.Get("exit_code").Digits()
	case "mcp_tool_call_end", "McpToolCall":
		call := p
		if inner := p.Get("invocation"); inner.Exists() {
			call = inner
		}
		e.server, e.arguments = ident.Of(call.Get("server")), call.Get("arguments")
		if tool := ident.Of(call.Get("tool")); tool != "" {
			e.name = "mcp__" + e.server + "__" + tool
		}
		e.output = p.Get("result")
		if ok := e.output.Get("Ok"); ok.Exists() {
			e.output = ok
		}
		for _, fault := range [...]jsonv.Value{e.output.Get("Err"), p.Path("error", "message")} {
			if fault.Exists() {
				e.failed, e.output = true, fault
				break
			}
		}
		e.failed = e.failed || e.output.First("isError", "is_error").Bool()
	case "patch_apply_end", "FileChange":
		e.name, e.arguments, e.output = "apply_patch", p.Get("changes"), p.Get("stdout")
		if stderr := p.Get("stderr"); e.failed && len(stderr.Escaped()) > 0 {
			e.output = stderr
		}
	case "dynamic_tool_call_response":
		e.name, e.arguments, e.output = ident.Of(p.Get("tool")), p.Get("arguments"), p.First("error", "content_items")
	case "view_image_tool_call":
		e.name, e.arguments = "view_image", p.Get("path")
	}
	return e
}

// elapsed is a duration, {secs, nanos}, in whole milliseconds.
func elapsed(v jsonv.Value) string {
	secs := v.Get("secs")
	if !secs.Is(jsonv.Number) || secs.Uint() > 1<<40 {
		return ""
	}
	return strconv.FormatUint(secs.Uint()*1000+v.Get("nanos").Uint()/1e6, 10)
}

// files adds the files that a patch changed:
//
//	"changes": {"<path>": {type: add | delete | update, content | unified_diff, move_path}}
func (d *thread) files(id string, p jsonv.Value) {
	if p.Get("success").Is(jsonv.False) || p.Get("status").In("failed", "declined") {
		return
	}
	for path, change := range p.Get("changes").Members() {
		if path := path.String(); path != "" && change.Is(jsonv.Object) {
			m := d.File(id, path, change.First("unified_diff", "content"), change.Get("type"))
			setIDs(m, change, "move_path")
		}
	}
}

// served decodes a call that the provider ran itself, and that has ended when it is
// recorded. An event has the same call, with its results:
//
//	web_search_call        {id?, status, action: {type, query, …}}
//	image_generation_call  {id, status, revised_prompt, result: base64}
func (d *thread) served(r *record, typ string) {
	name := strings.TrimSuffix(typ, "_call")
	if d.repeats(subject(r.p, name), byItem) {
		d.repeated(r, "item:"+r.id(), typ, r.p.Get("action"))
		return
	}
	d.serve(r, name, r.id())
}

// serveEnd decodes the event of a call that the provider ran itself.
func (d *thread) serveEnd(r *record, typ string) {
	name := strings.TrimSuffix(typ, "_end")
	id := ident.Of(r.p.Get("call_id"))
	if id == "" || d.repeats(subject(r.p, name), byEvent) {
		m := d.Status(r.id(), typ)
		if results := r.p.Get("results"); results.Is(jsonv.Array) {
			m.Content = results.JSON()
		}
		setIDs(m, r.p, "saved_path")
		return
	}
	d.serve(r, name, id)
}

// subject is a hash of the subject of a call of the provider, by which its item and its
// event are matched: some versions have no ids.
func subject(p jsonv.Value, name string) uint64 {
	h := hash(hashBasis, name)
	if name == "image_generation" {
		return hash(h, p.First("id", "call_id").Escaped())
	}
	action := p.Get("action")
	for _, v := range [...]jsonv.Value{action, p} {
		for _, field := range [...]string{"query", "url", "pattern"} {
			if b := v.Get(field).Escaped(); len(b) > 0 {
				return hash(h, b)
			}
		}
		for q := range v.Get("queries").Elems() {
			return hash(h, q.Escaped())
		}
	}
	return hash(h, action.Peek())
}

// serve adds a call of the provider and its result.
func (d *thread) serve(r *record, name, id string) {
	m := d.part(r, msg.ToolCall, id, "call:"+id)
	m.Tool.CallID, m.Tool.Name = id, name
	m.Tool.Arguments = r.p.First("action", "revised_prompt").JSON()
	m = d.Result(d.NewCall(id, name))
	if results := r.p.Get("results"); results.Is(jsonv.Array) {
		m.Content = results.JSON()
	}
	if image := r.p.Get("result"); len(image.Escaped()) > 0 {
		a := media.Base64(image, "")
		a.URL = ident.Of(r.p.Get("saved_path"))
		m.Attachments = append(m.Attachments, a)
	}
	if r.p.Get("status").Equal("failed") {
		codex.Fail(m, "tool_error")
	}
}
