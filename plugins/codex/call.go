package codex

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// calls adds the tool calls of a thread, and the answers of the agents that they began. Most have records of the model,
// for the call and for its result, and an event of the end; some have the event alone.
type calls struct {
	turns
	inner jsonv.Doc // of JSON in a string
}

// call decodes a call that the model made:
//
//	function_call     {name, namespace?, arguments: "JSON", call_id}
//	custom_tool_call  {name, input: "text", call_id}
//	local_shell_call  {action: {command, …}, call_id | id}
//	tool_search_call  {arguments: {…}, call_id}
func (d *calls) call(r *record) {
	id, name, arguments := ident.Of(r.p.First("call_id", "id")), ident.Of(r.p.Get("name")), r.p.First("arguments", "input")
	switch r.name {
	case "local_shell_call":
		name, arguments = "local_shell", r.p.Get("action")
	case "tool_search_call":
		name = "tool_search"
	}
	if id == "" || name == "" {
		d.unknown(r, "response_item/"+r.name)
		return
	}
	c := d.NewCall(id, name)
	if c.Within(r.id()); d.Calls.GetOpen(c.ID) != nil || d.hasEnded(c.ID) {
		arguments.MarkRead()
		d.Status("again:"+r.id(), r.name)
		return
	}
	namespace := ident.Of(r.p.Get("namespace"))
	if server, ok := strings.CutPrefix(namespace, "mcp__"); ok && !strings.HasPrefix(name, "mcp__") {
		name = "mcp__" + strings.TrimRight(server, "_") + "__" + name // as older versions write it
	}
	c.Name, c.Server = name, conversation.ToolServer(name)
	m := d.part(r, msg.ToolCall, r.id(), "call:"+c.ID)
	c.Run, m.Tool.Arguments = d.Run, arguments.Text()
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

// end ends calls, if there are any: later records of them are repetitions.
func (d *calls) end(ended ...*codex.Call) {
	for _, c := range ended {
		if c == nil {
			continue
		}
		d.Calls.Remove(c)
		d.Ended.Add(conversation.SumOf(c.ID), maxEnded)
		if c.ProtocolID != "" {
			d.Ended.Add(conversation.SumOf(c.ProtocolID), maxEnded)
		}
	}
}

func (d *calls) hasEnded(id string) bool { return d.Ended.Has(conversation.SumOf(id)) }

// parse returns a value, or the one that a string has as JSON.
func (d *calls) parse(v jsonv.Value) jsonv.Value {
	if v.Is(jsonv.String) && d.inner.Parse([]byte(v.Str())) == nil {
		return d.inner.Root()
	}
	return v
}

// output decodes the result of a call as the model gets it:
//
//	{call_id, output: "text" | "{\"output\":…,\"metadata\":{\"exit_code\":0}}" | [{type, text}] | {…}}
//	{call_id, tools: […]}                                                    tool_search_output
func (d *calls) output(r *record) {
	id, output := ident.Of(r.p.Get("call_id")), r.p.First("output", "tools")
	if id == "" {
		d.unknown(r, "response_item/"+r.name)
		return
	}
	d.close()
	c := d.Calls.Named(id)
	switch {
	case c == nil && d.hasEnded(id):
		output.MarkRead()
		d.Status("again:"+r.id(), "function_call_output")
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
	const most = 320 // bytes in which an output has how the call ended
	start := first(body(output)).Escaped()
	exit, class := ending(msg.Quoted(start[:min(len(start), most)]).String())
	end := c.End
	end.Add(codex.End{Exit: exit})
	var wrapped jsonv.Value // as older versions wrote the output of a command
	if output.HasPrefix(`{\"output\":`) {
		wrapped = d.parse(output)
	}
	if text := wrapped.Get("output"); text.Is(jsonv.String) {
		m.Content = text.Text().Own()
		end.Exit = cmp.Or(wrapped.Path("metadata", "exit_code").Digits(), end.Exit)
	} else {
		m.Content = content(output, m)
	}
	end.On(m)
	if class != "" && !end.Refused && (class == "timeout" || end.Exit == "" || end.Exit == "0") {
		codex.Fail(m, class)
	}
	if c.Waits {
		d.job(m, output)
	}
	if c.Name == "wait_agent" || c.Name == "wait" {
		d.end(d.Answers(d.parse(output).Get("status"))...)
	}
}

// ending reads how a call ended from the beginning of its output: the exit code from the lines before the output of a
// command,
//
//	Exit code: 1 | Process exited with code 1
//	Wall time: 0.2 seconds
//	Output:
//
// and the class of an error that the CLI wrote in the place of an output.
func ending(start string) (exit, class string) {
	head, output, _ := strings.Cut(start, "\nOutput:")
	for line := range strings.SplitSeq(head, "\n") {
		for _, label := range [...]string{"Exit code: ", "Process exited with code "} {
			if code, ok := strings.CutPrefix(line, label); ok && exit == "" {
				if _, err := strconv.Atoi(code); err == nil {
					exit = code
				}
			}
		}
	}
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
		if strings.HasPrefix(start, known.prefix) {
			return exit, known.class
		}
	}
	if strings.HasPrefix(output, "\ncommand timed out") {
		class = "timeout"
	}
	return exit, class
}

// done decodes the end of a call of that tool. Most calls have records of the model, to which it adds how the call
// ended. Calls that a tool made (scripts make several) and the commands of the user have only their end.
func (d *calls) done(r *record, name string, arguments jsonv.Value) {
	p, id := r.p, ident.Of(r.p.First("call_id", "callId", "id"))
	e, output := codex.EndOf(p)
	server := ident.Of(jsonv.Or(p.Get("invocation"), p).Get("server"))
	p.Skip("aggregated_output", "formatted_output", "stdout", "parsed_cmd") // of the output and the command
	c := d.Calls.Named(id)
	if c == nil && name == "exec_command" && !d.hasEnded(id) { // a shell that stays open numbers its commands itself
		ran := command(arguments)
		if c = d.Calls.Oldest(func(c *codex.Call) bool { return c.Digest == ran && ran != "" }); c != nil {
			c.Digest = ""
			d.Ended.Add(conversation.SumOf(id), maxEnded)
		}
	}
	if c != nil {
		id, c.Server = c.ID, cmp.Or(c.Server, server)
		c.End.Add(e)
	}
	var m *msg.Message
	typ := strings.TrimPrefix(r.name, "item_completed/")
	if id == "" || name == "" || c != nil || d.hasEnded(id) {
		m = d.Status(r.id(), typ)
		m.Tool.CallID, m.Tool.Name = id, name
		arguments.MarkRead() // they are in the messages of the call
		output.MarkRead()
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
		m.Content = content(output, m)
		e.On(m)
		d.end(c)
	}
	if took := p.Get("duration"); took.Get("secs").Is(jsonv.Number) && took.Get("secs").Uint() <= 1<<40 {
		m.SetAttr("duration_ms", strconv.FormatUint(took.Get("secs").Uint()*1000+took.Get("nanos").Uint()/1e6, 10))
	}
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

// assessed decodes guardian_assessment: a reviewer, who may be a model, decides
// whether a call may be made.
func (d *calls) assessed(r *record) {
	status := ident.Of(r.p.Get("status"))
	m := d.Status(r.id(), "guardian_assessment")
	c := d.OpenCall(ident.Of(r.p.Get("target_item_id")))
	m.Tool.CallID = c.ID
	m.Signal = msg.WaitEnd
	if status == "in_progress" {
		m.Signal = msg.WaitStart
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
	m.Content = r.p.Get("rationale").Text()
	codex.SetIDs(m, r.p, "status", "risk_level")
	c.Refused = c.Refused || status == "denied"
}

// served decodes a call that the provider ran itself, and that has ended when it is
// recorded. An event has the same call, with its results; some versions have no ids, so that its subject identifies it:
//
//	web_search_call, web_search_end              {id?, status, action: {type, query, …}, results}
//	image_generation_call, image_generation_end  {id, status, revised_prompt, result: base64, saved_path}
func (d *calls) served(r *record, name, id string) {
	typ, action, query := r.name, r.p.Get("action"), r.p.Get("query")
	if r.family == byDone {
		typ = name
	}
	subject := jsonv.Or(action.First("query", "url", "pattern"), query)
	if name == "image_generation" {
		subject = r.p.First("id", "call_id")
	}
	if m := d.again(r, conversation.SumOf(name).Add(subject.Escaped()), typ, action, query); m != nil {
		m.Content = r.p.Get("results").Text()
		codex.SetIDs(m, r.p, "saved_path")
		return
	}
	m := d.part(r, msg.ToolCall, id, "call:"+id)
	c := d.NewCall(id, name)
	c.On(m)
	m.Tool.Arguments = r.p.First("action", "revised_prompt").JSON()
	m = d.Result(c)
	m.Content = r.p.Get("results").Text()
	if image := r.p.Get("result"); len(image.Escaped()) > 0 {
		m.Attachments = append(m.Attachments, media.Base64(image, ""))
		m.Attachments[0].URL = ident.Of(r.p.Get("saved_path"))
	}
	codex.End{Failed: r.p.Get("status").Equal("failed")}.On(m)
}
