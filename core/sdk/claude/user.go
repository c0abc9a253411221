package claude

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// interruptText is the beginning of the record by which the CLI reports that the user stopped
// the agent.
const interruptText = "[Request interrupted by user"

// NoticeTag opens the notice of a background task.
const NoticeTag = "<task-notification>"

// olderNotice has the tags of notices up to version 2.0, and those that replaced them.
var olderNotice = strings.NewReplacer("<agent-notification>", NoticeTag, "</agent-notification>", "</task-notification>", "agent-id>", "task-id>")

// NoticeText returns the text of a notice with the tags that newer versions write.
func NoticeText(text jsonv.Value) string {
	if text.HasPrefix("<agent-notification>") {
		return olderNotice.Replace(text.Str())
	}
	return text.Str()
}

// IsNotice reports whether a text is, or wraps, the notice of a background task.
func IsNotice(text jsonv.Value) bool {
	return text.HasPrefix(NoticeTag) || text.HasPrefix("<agent-notification>") || text.HasPrefix("[SYSTEM NOTIFICATION") && strings.Contains(text.Str(), NoticeTag)
}

// User decodes a user record.
func (ln *Line) User() {
	content := ln.Root.Path("message", "content")
	if !content.Exists() {
		return
	}
	results := 0
	for b := range content.Elems() {
		if b.Get("type").Equal("tool_result") {
			results++
		}
	}
	if results > 0 {
		ln.results(content, results == 1)
		return
	}
	ln.input(content, Opening(content))
}

// results decodes a record with results of tools, and its other blocks.
func (ln *Line) results(content jsonv.Value, single bool) {
	var extra jsonv.Value
	if single {
		extra = ln.Root.First("toolUseResult", "tool_use_result")
	}
	asides := 0
	for b := range content.Elems() {
		if b.Get("type").Equal("tool_result") {
			ln.result(b, extra)
			continue
		}
		if text := b.Get("text"); text.HasPrefix(interruptText) {
			ln.Form.Interrupted(ln, text)
			continue
		}
		setBlock(ln.aside(&asides), b)
	}
}

// input decodes a record without results; text is its first text.
func (ln *Line) input(content, text jsonv.Value) {
	origin := ln.Root.Path("origin", "kind")
	switch {
	case ln.Root.Get("isCompactSummary").Bool():
		m := ln.Status(ln.ID(), "compact_summary")
		m.Content, m.Attachments = anthropic.Content(content)
	case text.HasPrefix(interruptText):
		ln.Form.Interrupted(ln, text)
	case origin.Equal("task-notification"), !origin.Exists() && IsNotice(text):
		woken(ln)
		ln.Form.Notice(ln, text)
	case text.HasPrefix("<command-name>"), text.HasPrefix("<bash-input>"), text.HasPrefix("<bash-std"), text.HasPrefix("<local-command-"):
		m := ln.Status(ln.ID(), "local_command")
		m.Content, m.Attachments = anthropic.Content(content)
	case FromAgent(origin, text):
		ln.Relayed(content, text, ln.Root.Get("origin"))
	case origin.In("auto-continuation", "observer-activity"): // the CLI goes on by itself
		woken(ln)
		ln.Injected(content)
	case ln.Root.Get("isMeta").Bool(), ln.Root.Get("isSynthetic").Bool():
		if ln.Run == "" && ln.Lane.Fired {
			ln.Begin(cmp.Or(ln.PromptID(), ln.ID()))
			ln.Lane.Fired = false
		}
		ln.Injected(content)
	case ln.Lane.Child:
		ln.Wake(false)
		ln.EmitInput(content, ln.Lane.task(ln, text))
	default:
		// A stream has a prompt that was queued during a turn when the turn takes it up; the next turn begins behind the result.
		queued := !ln.Chained && ln.Run != "" && (ln.Lane.Response != nil || ln.Lane.Turn != conversation.Counts{})
		if id := ln.PromptID(); !queued && (id == "" || id != ln.Run) {
			ln.Begin(cmp.Or(id, ln.ID()))
		}
		ln.EmitInput(content, msg.Agent{Kind: msg.KindHuman})
	}
}

// woken begins a run with a record that no person wrote, unless it belongs to the active one. The id of another prompt means that it does not:
// in print mode no record ends a turn.
func woken(ln *Line) {
	if id := ln.PromptID(); id != "" && id != ln.Run && !ln.Lane.Child {
		ln.Begin(id)
		return
	}
	ln.Wake(false)
}

// Injected emits a text that the CLI put into the context.
func (ln *Line) Injected(content jsonv.Value) {
	m := ln.Emit(msg.System, ln.ID())
	m.Role, m.Hidden = msg.RoleUser, true
	m.Content, m.Attachments = anthropic.Content(content)
	m.SetAttr("source_tool_use_id", ident.Of(ln.Root.Get("sourceToolUseID"))) // a skill that it belongs to
}

// Opening returns the first text of a content.
func Opening(content jsonv.Value) jsonv.Value {
	for b := range content.Elems() {
		if b.Get("type").Equal("text") {
			return b.Get("text")
		}
	}
	return content
}

// EmitInput emits the input of a run: a message for each text, picture or document. Text that an
// editor or the CLI put beside the words is a hidden message.
func (ln *Line) EmitInput(content jsonv.Value, author msg.Agent) {
	if content.Is(jsonv.String) {
		m := ln.prompt(ln.ID(), author)
		m.Content = content.Text()
		setCommand(m, content)
		return
	}
	prompts, asides := 0, 0
	for b := range content.Elems() {
		if !b.Exists() {
			continue
		}
		text := b.Get("text")
		if text.HasPrefix("<system-reminder>") || text.HasPrefix("<ide_") {
			setBlock(ln.aside(&asides), b)
			continue
		}
		m := ln.prompt(conversation.Ordinal(ln.ID(), &prompts), author)
		setBlock(m, b)
		setCommand(m, text)
	}
}

func (ln *Line) prompt(key string, author msg.Agent) *msg.Message {
	m := ln.Emit(msg.User, key)
	m.Role, m.Agent = msg.RoleUser, author
	return m
}

// aside adds a message for text beside the words of a user record.
func (ln *Line) aside(n *int) *msg.Message {
	m := ln.Emit(msg.System, conversation.Ordinal(ln.ID()+"/aside", n))
	m.Role, m.Hidden = msg.RoleUser, true
	return m
}

// setBlock makes one block of a user record the content of a message.
func setBlock(m *msg.Message, b jsonv.Value) {
	if f, ok := anthropic.File(b); ok {
		m.Attachments = append(m.Attachments, f)
		return
	}
	if b.Get("type").Equal("text") {
		m.Content = b.Get("text").Text()
		return
	}
	m.Content = b.Text()
}

// setCommand writes a prompt that is a command of the user's own as it was typed: /name and
// its arguments. The echo of a command that the CLI answers itself begins with the name and
// is no prompt.
func setCommand(m *msg.Message, text jsonv.Value) {
	if !text.HasPrefix("<command-message>") {
		return
	}
	s := text.Str()
	name := Tag(s, "command-name")
	if name == "" {
		return
	}
	m.SetAttr("command", name)
	m.SetAttr("command_message", Tag(s, "command-message"))
	m.Content = msg.Plain(strings.TrimSpace(name + " " + Tag(s, "command-args")))
}

// FromAgent reports whether another agent wrote the record.
func FromAgent(origin, text jsonv.Value) bool {
	return origin.In("coordinator", "peer", "teammate", "channel", "observer") ||
		text.HasPrefix("<teammate-message") || text.HasPrefix("<cross-session-message") || text.HasPrefix("Another Claude session sent a message")
}

// Relayed emits a message of another agent (SendMessage). The CLI does not name the call that
// sent it.
func (ln *Line) Relayed(content, text, origin jsonv.Value) {
	woken(ln)
	author := msg.Agent{ID: origin.Get("from").Str(), Name: origin.Get("name").Str(), Kind: msg.KindAgent}
	if author == (msg.Agent{Kind: msg.KindAgent}) {
		author.Name = attribute(text.Str(), "teammate_id")
	}
	kind := origin.Get("kind").Str()
	if kind == "" {
		kind = "peer"
	}
	before := len(ln.Out.Messages)
	ln.EmitInput(content, author)
	for i := before; i < len(ln.Out.Messages); i++ {
		ln.Out.Messages[i].SetAttr("origin", kind)
	}
}

// attribute returns the value of an attribute of the first element in s.
func attribute(s, name string) string {
	_, s, _ = strings.Cut(s, " "+name+`="`)
	s, _, ok := strings.Cut(s, `"`)
	if !ok {
		return ""
	}
	return s
}

// task links a sub-agent to the call that handed over its first prompt, if that call is in
// the same stream, and returns the author of the prompt. Later prompts are of any agent that
// leads it.
func (l *Lane) task(ln *Line, text jsonv.Value) (author msg.Agent) {
	author = msg.Agent{Kind: msg.KindAgent}
	if l.Prompted {
		return author
	}
	l.Prompted = true
	if l.Call == "" && l.Link != msg.ByParent {
		c := ln.CallOfChild(l.ID)
		if c == nil {
			var confidence uint8
			if c, confidence = ln.callOfPrompt(l.Session, text.Str()); c != nil {
				c.Child, c.Link, c.Confidence = l.ID, msg.ByPrompt, confidence
			}
		}
		l.CausedBy(c)
	}
	if c := ln.Calls.Get(l.Call); c != nil {
		return c.Agent
	}
	return author
}

// result decodes a tool_result block. extra is the record's toolUseResult: the tool's own
// account, an object, an array, or a string about an error; missing where the record has
// several results.
func (ln *Line) result(b, extra jsonv.Value) {
	id := ident.Of(b.Get("tool_use_id"))
	if id == "" {
		ln.Unknown("user/tool_result", b)
		return
	}
	c := ln.Calls.Get(id)
	child := ident.Of(extra.First("agentId", "agent_id"))
	if c != nil && child != "" && forked(extra) {
		c.Delegation, c.To = true, cmp.Or(c.To, ident.Of(extra.Get("commandName")))
	}
	if c != nil && c.Delegation || c == nil && child != "" {
		if !b.Get("is_error").Bool() && ln.Lane.inBackground(b, extra) {
			ln.launched(id, b, extra, c)
			return
		}
		ln.Calls.Take(id)
		ln.answered(id, child, b, extra, c)
		return
	}
	if c != nil && c.Human {
		c.wait(ln, msg.WaitEnd, "waited")
	}
	ln.fetched(extra.Get("task"))
	task := ident.Of(extra.Get("backgroundTaskId"))
	if task != "" && c != nil {
		c.Task = task // the call has ended, its command has not: a notice will report that
	} else {
		ln.Calls.Take(id)
	}
	m := ln.About(c, id, msg.ToolResult, "result:"+id)
	outcome(m, ln.Root, b, extra)
	m.Content, m.Attachments = anthropic.Content(b.Get("content"))
	if c != nil && c.Name == "Bash" { // perhaps a script that runs an agent
		spawn.Script(m, b.Get("content").Peek())
	}
	m.SetAttr("background_task_id", task)
	m.SetAttr("persisted_output_path", ident.Of(extra.Get("persistedOutputPath")))
}

// forked reports whether a skill has run as a sub-agent (context: fork), which only the result of its call states:
//
//	{"success":true,"commandName":"review","status":"forked","agentId":"a17…","result":"…"}
func forked(extra jsonv.Value) bool { return extra.Get("status").Equal("forked") }

// fetched ends the delegation whose answer the agent has fetched, with the tool TaskOutput: no
// notice may follow.
func (ln *Line) fetched(task jsonv.Value) {
	status := task.Get("status").Str()
	if !task.Get("task_type").Equal("local_agent") || !Ended(status) {
		return
	}
	if c := ln.CallOfTask("", ident.Of(task.Get("task_id"))); c != nil && c.Delegation {
		ln.Notified(c, status).Content = task.First("result", "output").Text()
	}
}

// outcome records how a call ended. Newer versions write why one was not made; in older ones it follows from the words of the result, unless a person chose them.
func outcome(m *msg.Message, record, b, extra jsonv.Value) {
	m.Role = msg.RoleTool
	interrupted := extra.Get("interrupted").Bool()
	if m.IsError = b.Get("is_error").Bool() || interrupted; !m.IsError {
		return
	}
	content := b.Get("content")
	switch kind := notMade(record, b.Get("tool_use_id")); {
	case interrupted, kind.Equal("interrupted"), kind.Equal("user-rejected") && bytes.Contains(content.Peek(), []byte(stoppedText)):
		m.Tool.ErrorType = "interrupted"
	case kind.Equal("cancelled"):
		m.Tool.ErrorType = "cancelled"
	case kind.In("user-rejected", "permission-rule", "automode-blocked", "automode-unavailable", "automode-parsing-error"):
		m.Tool.ErrorType = "denied"
	default:
		m.Tool.ErrorType = ErrorType(head(content))
	}
}

// stoppedText is in a result that begins like that of a call that a person refused.
const stoppedText = "Correction to the text above: this call was stopped while running"

// notMade returns why a call was not made, by the record of its result: toolDenialKind in a transcript, in a stream
// tool_result_meta, a list of {id, non_execution_kind}.
func notMade(record, call jsonv.Value) (kind jsonv.Value) {
	for meta := range record.Get("tool_result_meta").Elems() {
		if meta.Get("id").PeekStr() == call.PeekStr() {
			kind = meta.Get("non_execution_kind")
		}
	}
	if !kind.Exists() {
		kind = record.Get("toolDenialKind")
	}
	return kind
}

// MaxOpening is how many bytes of a result class its error.
const MaxOpening = 240

// ErrorType returns the class of a tool's error, by the beginning of its result. That a call was not made, or was stopped, is known
// by the CLI's first words: a command may print the same ones.
func ErrorType(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "<tool_use_error>"), "Error: ")
	for _, known := range [...]struct{ start, class string }{
		{"The user doesn't want to", "denied"},
		{"User denied permission", "denied"}, // in Claude Code WebUI
		{"Permission prompt was aborted", "denied"},
		{"Permission to use", "denied"},
		{"Permission for this action has been denied", "denied"}, // by the classifier of the mode auto
		{"Claude requested permissions", "denied"},
		{interruptText, "interrupted"},
		{"Sibling tool call errored", "cancelled"},
		{"Cancelled:", "cancelled"},
	} {
		if strings.HasPrefix(s, known.start) {
			return known.class
		}
	}
	for _, known := range [...]struct{ part, class string }{
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

// head returns the beginning of a result, without a copy of the rest.
func head(content jsonv.Value) string {
	raw := Opening(content).Escaped()
	return msg.Quoted(raw[:min(len(raw), MaxOpening)]).String()
}
