package claudecode

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// result decodes a tool_result block. extra is the line's toolUseResult: the
// tool's own account of what it did, an object, an array, or a string that tells
// of an error; missing where the line has several results.
func (d *transcript) result(ln *line, b, extra jsonv.Value) {
	id := ident(b.Get("tool_use_id"))
	if id == "" {
		d.unknown(ln, "user/tool_result", b)
		return
	}
	c := d.find(id)
	child := ident(extra.Get("agentId"))
	failed := b.Get("is_error").Bool()
	if delegated := c != nil && c.Delegation || c == nil && child != ""; delegated {
		if !failed && goesOn(extra) {
			d.launched(ln, b, extra, c)
			return
		}
		d.answered(ln, b, extra, d.take(id))
		return
	}
	if c != nil && c.Human {
		d.wait(ln, c, msg.WaitEnd, "waited")
	}
	if task := ident(extra.Get("backgroundTaskId")); task != "" && c != nil {
		// The call is over, what it started is not: a notice will tell of it.
		c.Task = task
	} else {
		d.take(id)
	}
	m := d.about(ln, c, id, msg.ToolResult, "result:"+id)
	outcome(m, b, extra)
	m.Content = d.content(b.Get("content"), m)
	if c != nil && c.Name == "Bash" { // perhaps a script that runs an agent
		spawn.Script(m, b.Get("content").Peek())
	}
	m.SetAttr("background_task_id", extra.Get("backgroundTaskId").Str())
	m.SetAttr("persisted_output_path", extra.Get("persistedOutputPath").Str())
}

// outcome says how a call ended.
func outcome(m *msg.Message, b, extra jsonv.Value) {
	m.Role = msg.RoleTool
	interrupted := extra.Get("interrupted").Bool()
	if m.IsError = b.Get("is_error").Bool() || interrupted; !m.IsError {
		return
	}
	m.Tool.ErrorType = "interrupted"
	if !interrupted {
		m.Tool.ErrorType = errorType(head(b.Get("content")))
	}
}

// errorType classifies what a tool's error says.
func errorType(s string) string {
	s = strings.TrimPrefix(s, "<tool_use_error>")
	for _, known := range [...]struct{ part, class string }{
		{"The user doesn't want to", "denied"},
		{"Permission prompt was aborted", "denied"},
		{"Permission to use", "denied"},
		{"Claude requested permissions", "denied"},
		{interruptText, "interrupted"},
		{"Sibling tool call errored", "cancelled"},
		{"Cancelled:", "cancelled"},
		{"InputValidationError", "validation"},
		{"No such tool available", "not_found"},
		{"timed out", "timeout"},
	} {
		if strings.Contains(s, known.part) {
			return known.class
		}
	}
	return "tool_error"
}

// head is the beginning of a result, without a copy of the rest.
func head(content jsonv.Value) string {
	const most = 240
	if content.Is(jsonv.Array) {
		for b := range content.Elems() {
			if b.Get("type").Equal("text") {
				content = b.Get("text")
				break
			}
		}
	}
	raw := content.Peek()
	if !content.Is(jsonv.String) || len(raw) < 2 {
		return ""
	}
	raw = raw[1 : len(raw)-1]
	return msg.Quoted(raw[:min(len(raw), most)]).String()
}

// content returns the text of a content that is a string or a list of blocks.
// Images and documents become attachments of the message; a block of another
// kind stands in the text as its JSON.
func (d *transcript) content(v jsonv.Value, m *msg.Message) msg.Text {
	if !v.Is(jsonv.Array) {
		return v.Text()
	}
	var one msg.Text
	var joined []byte
	texts := 0
	for b := range v.Elems() {
		var t msg.Text
		typ := b.Get("type")
		switch {
		case typ.Equal("text"):
			t = b.Get("text").Text()
		case typ.Equal("image"), typ.Equal("document"):
			if a, ok := attach(b); ok {
				m.Attachments = append(m.Attachments, a)
				continue
			}
			t = b.JSON()
		case typ.Equal("tool_reference"):
			t = b.Get("tool_name").Text()
		default:
			t = b.Text()
		}
		switch texts++; texts {
		case 1:
			one = t
		case 2:
			joined = t.Append(append(one.Append(nil), '\n'))
		default:
			joined = t.Append(append(joined, '\n'))
		}
	}
	if texts > 1 {
		return msg.Plain(string(joined))
	}
	return one
}

// totals adds what the result of a delegation says of the child's work. The
// counts are of the child's last response and count nowhere.
func totals(m *msg.Message, extra jsonv.Value) {
	for _, field := range [...]struct{ name, key string }{
		{"totalDurationMs", "child_duration_ms"}, {"totalToolUseCount", "child_tool_uses"},
	} {
		if v := extra.Get(field.name); v.Is(jsonv.Number) {
			m.SetAttr(field.key, strconv.FormatInt(v.Int(), 10))
		}
	}
}
