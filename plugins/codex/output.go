package codex

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// output decodes the result of a call as the model gets it:
//
//	{call_id, output: "text" | "{\"output\":…,\"metadata\":{\"exit_code\":0}}" | [{type, text}] | {…}}
//	{call_id, tools: […]}                                                    tool_search_output
func (d *thread) output(r *record) {
	id := ident(r.p.Get("call_id"))
	if id == "" {
		d.unknown(r, "response_item/"+r.p.Get("type").Str())
		return
	}
	d.close()
	output := r.p.First("output", "tools")
	c := d.find(id)
	switch {
	case c == nil && d.over(id):
		output.MarkRead()
		d.status(r, "again:"+r.id(), "function_call_output")
		return
	case c == nil:
		d.wake(r)
		c = &call{ID: id, Run: d.Run}
	case c.Spawn:
		d.spawned(r, c, output)
		return
	}
	d.take(c)
	if c.Human {
		d.wait(r, c, msg.WaitEnd, "waited:")
	}
	kind := msg.ToolResult
	if c.Delegation {
		kind = msg.DelegationResult
	}
	m := d.about(r, c, kind, "result:"+id)
	m.Role = msg.RoleTool
	if c.Delegation {
		m.Delegation.To, m.Delegation.Async = c.To, true
	}
	text, exit, ok := d.wrapped(output)
	if ok {
		m.Content = text
	} else {
		m.Content = d.content(output, m)
	}
	start := opening(output)
	if exit == "" {
		exit = exitCode(start)
	}
	if exit == "" {
		exit = c.Exit
	}
	m.SetAttr("exit_code", exit)
	c.outcome(m, start, exit)
	if c.Name == "wait_agent" || c.Name == "wait" {
		d.waited(r, output)
	}
}

// opening is the beginning of an output.
func opening(output jsonv.Value) string {
	if output.Is(jsonv.Object) {
		output = output.First("text", "content", "output")
	}
	for p := range parts(output) {
		return head(p.text)
	}
	return ""
}

// wrapped takes the text out of the JSON in which older versions gave what a
// command wrote, and its exit code.
func (d *thread) wrapped(output jsonv.Value) (text msg.Text, exit string, ok bool) {
	if !begins(output, `{\"output\":`) || d.inner.Parse([]byte(output.Str())) != nil {
		return msg.Text{}, "", false
	}
	v := d.inner.Root()
	inner := v.Get("output")
	if !inner.Is(jsonv.String) {
		return msg.Text{}, "", false
	}
	return inner.Text().Own(), number(v.Path("metadata", "exit_code")), true
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

// outcome says how the call ended.
func (c *call) outcome(m *msg.Message, start, exit string) {
	failed := exit != "" && exit != "0"
	class := errorType(start)
	switch {
	case c.Refused:
		class = "denied"
	case !failed && !c.Failed && class == "":
		return
	case failed && class != "timeout":
		class = "tool_error"
	case class == "":
		class = "tool_error"
	}
	m.IsError, m.Tool.ErrorType = true, class
}

// errorType classifies what the CLI itself puts in the place of an output; empty
// when the text is none of that.
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
