package codex

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// calls adds the tool calls of a thread. Most have records of the model, for the call and for
// its result, and an event of the end; some have the event alone.
type calls struct {
	*turns
	ended *bounded.Set[uint64]
	inner jsonv.Doc // of JSON in a string
}

// call decodes a call that the model made:
//
//	function_call     {name, namespace?, arguments: "JSON", call_id}
//	custom_tool_call  {name, input: "text", call_id}
//	local_shell_call  {action: {command, …}, call_id | id}
//	tool_search_call  {arguments: {…}, call_id}
func (d *calls) call(r *record, typ string) {
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
	if server, ok := strings.CutPrefix(namespace, "mcp__"); ok && !strings.HasPrefix(name, "mcp__") {
		name = "mcp__" + strings.TrimRight(server, "_") + "__" + name // as older versions write it
	}
	c := d.NewCall(id, name)
	c.Server = conversation.ToolServer(name)
	m := d.part(r, msg.ToolCall, r.id(), "call:"+c.ID)
	m.Tool.Arguments = arguments.Text()
	if c.Server == "" {
		m.SetAttr("namespace", namespace)
	}
	if d.delegate(c, arguments, m); name == "exec_command" {
		c.Digest = command(d.parse(arguments).Get("cmd"))
	}
	c.On(m)
	d.Calls.Add(c)
	if c.Human = c.Name == "request_user_input"; c.Human {
		d.Wait(c, msg.WaitStart)
	}
}

// maxEnded is the number of ended calls that are recognized when a record repeats them.
const maxEnded = 256

// end ends a call: later records of it are repetitions.
func (d *calls) end(c *codex.Call) {
	d.Calls.Remove(c)
	d.ended.Add(hash(hashBasis, c.ID), maxEnded)
}

func (d *calls) hasEnded(id string) bool { return d.ended.Has(hash(hashBasis, id)) }

// parse parses JSON that may be in a string, and returns null for a string that has none.
func (d *calls) parse(v jsonv.Value) jsonv.Value {
	if !v.Is(jsonv.String) {
		return v
	}
	if d.inner.Parse([]byte(v.Str())) != nil {
		return jsonv.Value{}
	}
	return d.inner.Root()
}

// output decodes the result of a call as the model gets it:
//
//	{call_id, output: "text" | "{\"output\":…,\"metadata\":{\"exit_code\":0}}" | [{type, text}] | {…}}
//	{call_id, tools: […]}                                                    tool_search_output
func (d *calls) output(r *record) {
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
		d.Wait(c, msg.WaitEnd)
	}
	m := d.Result(c)
	text, exit, ok := d.wrapped(output)
	if !ok {
		text = content(output, m)
	}
	m.Content = text
	start := opening(output)
	end := codex.End{Exit: cmp.Or(exit, exitCode(start), c.Exit), Failed: c.Failed, Refused: c.Refused}
	end.On(m)
	if class := errorType(start); class != "" && !end.Refused && (class == "timeout" || end.Exit == "" || end.Exit == "0") {
		codex.Fail(m, class)
	}
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
func (d *calls) wrapped(output jsonv.Value) (text msg.Text, exit string, ok bool) {
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

// event decodes an event of the end of a call. p is the payload, or the item in it. Most
// calls have records of the model, to which the event adds how the call ended. Calls that
// a tool made (scripts make several) and the commands of the user have only their event.
func (d *calls) event(r *record, typ string, p jsonv.Value) {
	id, e := ident.Of(p.First("call_id", "callId", "id")), codex.EndOf(p)
	name, server, arguments := called(typ, p)
	for _, form := range [...]string{"aggregated_output", "formatted_output", "stdout", "parsed_cmd"} {
		p.Get(form).MarkRead() // of the output and the command
	}
	c := d.Calls.GetOpen(id)
	if c == nil && name == "exec_command" && !d.hasEnded(id) { // a shell that stays open numbers its commands itself
		ran := command(arguments)
		if c = d.Calls.Oldest(func(c *codex.Call) bool { return c.Digest == ran && ran != "" }); c != nil {
			c.Digest = ""
			d.ended.Add(hash(hashBasis, id), maxEnded)
			id = c.ID
		}
	}
	if c != nil {
		c.Exit = cmp.Or(e.Exit, c.Exit)
		c.Failed, c.Refused = c.Failed || e.Failed, c.Refused || e.Refused
		c.Server = cmp.Or(c.Server, server)
	}
	var m *msg.Message
	if id == "" || name == "" || c != nil || d.hasEnded(id) {
		m = d.Status(r.id(), typ)
		m.Tool.CallID, m.Tool.Name = id, name
		arguments.MarkRead() // they are in the messages of the call
		e.Output.MarkRead()
		m.SetAttr("exit_code", e.Exit)
	} else {
		d.wake(r)
		c = d.NewCall(id, name)
		c.Server = server
		m = d.Add(msg.ToolCall, "call:"+c.ID)
		c.On(m)
		m.Tool.Arguments = arguments.JSON()
		if p.Get("source").Equal("user_shell") { // the user's own command
			m.Role = msg.RoleUser
		}
		codex.SetIDs(m, p, "source")
		m.SetAttr("told_by", typ)
		m = d.Result(c)
		m.Content = content(e.Output, m)
		e.On(m)
		d.end(c)
	}
	m.SetAttr("duration_ms", elapsed(p.Get("duration")))
	if !e.Failed && !e.Refused {
		d.Files(id, p.Get("changes"))
	}
}

// command is a digest of a command: of the words, or of the script that a shell is called with.
func command(v jsonv.Value) string {
	script := v
	for word := range v.Elems() {
		script = word
	}
	if !script.Is(jsonv.String) {
		return ""
	}
	return msg.HashKey(script.PeekStr())
}

// called returns the tool, its server and the arguments of a call that has ended.
func called(typ string, p jsonv.Value) (name, server string, arguments jsonv.Value) {
	switch typ {
	case "exec_command_end", "CommandExecution":
		return "exec_command", "", p.Get("command")
	case "mcp_tool_call_end", "McpToolCall":
		if call := p.Get("invocation"); call.Exists() {
			p = call
		}
		if name, server = codex.Tool(p); strings.HasSuffix(name, "__") {
			name = ""
		}
		return name, server, p.Get("arguments")
	case "patch_apply_end", "FileChange":
		return "apply_patch", "", p.Get("changes")
	case "dynamic_tool_call_response", "DynamicToolCall":
		return ident.Of(p.Get("tool")), "", p.Get("arguments")
	default: // view_image_tool_call, ImageView
		return "view_image", "", p.Get("path")
	}
}

// elapsed is a duration, {secs, nanos}, in whole milliseconds.
func elapsed(v jsonv.Value) string {
	secs := v.Get("secs")
	if !secs.Is(jsonv.Number) || secs.Uint() > 1<<40 {
		return ""
	}
	return strconv.FormatUint(secs.Uint()*1000+v.Get("nanos").Uint()/1e6, 10)
}

// assessed decodes guardian_assessment: a reviewer, who may be a model, decides
// whether a call may be made.
func (d *calls) assessed(r *record) {
	status := ident.Of(r.p.Get("status"))
	m := d.Status(r.id(), "guardian_assessment")
	m.Tool.CallID = ident.Of(r.p.Get("target_item_id"))
	m.Signal = msg.WaitEnd
	if status == "in_progress" {
		m.Signal = msg.WaitStart
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
	m.Content = r.p.Get("rationale").Text()
	m.SetAttr("status", status)
	m.SetAttr("risk_level", ident.Of(r.p.Get("risk_level")))
	if c := d.Calls.GetOpen(m.Tool.CallID); c != nil && status == "denied" {
		c.Refused = true
	}
}

// served decodes a call that the provider ran itself, and that has ended when it is
// recorded. An event has the same call, with its results:
//
//	web_search_call, web_search_end              {id?, status, action: {type, query, …}, results}
//	image_generation_call, image_generation_end  {id, status, revised_prompt, result: base64, saved_path}
func (d *calls) served(r *record, p jsonv.Value, typ, id string) {
	name := strings.TrimSuffix(strings.TrimSuffix(typ, "_call"), "_end")
	if r.family == byItem {
		if !d.again(r, subject(p, name), typ, p.Get("action")) {
			d.serve(r, p, name, id)
		}
	} else if id != "" && !d.texts.repeats(subject(p, name), r.family) {
		d.serve(r, p, name, id)
	} else {
		m := d.Status(r.id(), typ)
		m.Content = results(p)
		codex.SetIDs(m, p, "saved_path")
		p.Get("action").MarkRead() // the call has it
		p.Get("query").MarkRead()
	}
}

// results returns the results of a search.
func results(p jsonv.Value) (t msg.Text) {
	if list := p.Get("results"); list.Is(jsonv.Array) {
		t = list.JSON()
	}
	return t
}

// subject is a hash of the subject of a call of the provider, by which its item and its
// event are matched: some versions have no ids.
func subject(p jsonv.Value, name string) uint64 {
	h, action := hash(hashBasis, name), p.Get("action")
	if name == "image_generation" {
		return hash(h, p.First("id", "call_id").Escaped())
	}
	for _, v := range [...]jsonv.Value{action.Get("query"), action.Get("url"), action.Get("pattern"), p.Get("query")} {
		if b := v.Escaped(); len(b) > 0 {
			return hash(h, b)
		}
	}
	if typ := action.Get("type").Escaped(); len(typ) > 0 && !action.Get("type").Equal("other") {
		return hash(h, typ)
	}
	return h // the event of a call whose item has no action has the action {"type": "other"}
}

// serve adds a call of the provider and its result.
func (d *calls) serve(r *record, p jsonv.Value, name, id string) {
	m := d.part(r, msg.ToolCall, id, "call:"+id)
	m.Tool.CallID, m.Tool.Name = id, name
	m.Tool.Arguments = p.First("action", "revised_prompt").JSON()
	m = d.Result(d.NewCall(id, name))
	m.Content = results(p)
	if image := p.Get("result"); len(image.Escaped()) > 0 {
		m.Attachments = append(m.Attachments, media.Base64(image, ""))
		m.Attachments[0].URL = ident.Of(p.Get("saved_path"))
	}
	codex.End{Failed: p.Get("status").Equal("failed")}.On(m)
}
