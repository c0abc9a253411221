package claudestream

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// user decodes a user line. Most are results of tools; of the others only those
// that are none of the CLI's own messages are prompts.
func (d *stream) user(ln *line) {
	content := ln.root.Path("message", "content")
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
		d.results(ln, content, results == 1)
		return
	}
	text := content
	for b := range content.Elems() {
		if b.Get("type").Equal("text") {
			text = b.Get("text")
			break
		}
	}
	d.said(ln, content, text)
}

// results decodes a line that brings results, and what else it holds.
func (d *stream) results(ln *line, content jsonv.Value, single bool) {
	var extra jsonv.Value
	if single {
		extra = first(ln.root, "tool_use_result", "toolUseResult")
	}
	asides := 0
	for b := range content.Elems() {
		if b.Get("type").Equal("tool_result") {
			d.result(ln, b, extra)
			continue
		}
		if text := b.Get("text"); begins(text, interruptText) {
			d.interrupted(ln, text)
			continue
		}
		d.say(d.aside(ln, &asides), b)
	}
}

// said decodes a line of somebody's words; text is the first of them.
func (d *stream) said(ln *line, content, text jsonv.Value) {
	l := ln.lane
	switch {
	case ln.root.Get("isCompactSummary").Bool():
		m := d.status(ln, ln.id(), "compact_summary")
		m.Content = d.content(content, m)
	case begins(text, interruptText):
		d.interrupted(ln, text)
	case begins(text, "<command-name>"), begins(text, "<bash-input>"), begins(text, "<bash-std"), begins(text, "<local-command-"):
		m := d.status(ln, ln.id(), "local_command")
		m.Content = d.content(content, m)
	case begins(text, "<task-notification>"):
		d.wake(ln)
		m := d.status(ln, ln.id(), "task-notification")
		m.Content = text.Text()
		m.SetAttr("task_id", tag(text.Str(), "task-id"))
	case ln.root.Get("isMeta").Bool(), ln.root.Get("isSynthetic").Bool():
		m := d.give(ln, msg.System, ln.id())
		m.Role, m.Hidden = msg.RoleUser, true
		m.Content = d.content(content, m)
	case l.child():
		author := msg.Agent{Kind: msg.KindAgent}
		if c := d.find(l.Call); c != nil {
			author = c.Agent
		}
		d.speak(ln, content, author)
	default:
		d.begin(ln, ln.id())
		d.speak(ln, content, msg.Agent{Kind: msg.KindHuman})
	}
}

// speak gives what was said to the run: a message for each text, picture or
// document. What an editor or the CLI put beside the words is no part of them.
func (d *stream) speak(ln *line, content jsonv.Value, author msg.Agent) {
	word := func(key string) *msg.Message {
		m := d.give(ln, msg.User, key)
		m.Role, m.Agent = msg.RoleUser, author
		return m
	}
	if content.Is(jsonv.String) {
		m := word(ln.id())
		m.Content = content.Text()
		command(m, content)
		return
	}
	words, asides := 0, 0
	for b := range content.Elems() {
		if !b.Exists() {
			continue
		}
		text := b.Get("text")
		if begins(text, "<system-reminder>") || begins(text, "<ide_") {
			d.say(d.aside(ln, &asides), b)
			continue
		}
		m := word(ordinal(ln.id(), &words))
		d.say(m, b)
		command(m, text)
	}
}

// aside adds a message for what stands beside the words of a user line.
func (d *stream) aside(ln *line, n *int) *msg.Message {
	m := d.give(ln, msg.System, ordinal(ln.id()+"/aside", n))
	m.Role, m.Hidden = msg.RoleUser, true
	return m
}

// say puts one block of a user line into a message of its own.
func (d *stream) say(m *msg.Message, b jsonv.Value) {
	if a, ok := attach(b); ok {
		m.Attachments = append(m.Attachments, a)
		return
	}
	if b.Get("type").Equal("text") {
		m.Content = b.Get("text").Text()
		return
	}
	m.Content = b.Text()
}

// command puts a prompt that was given as a command of the user's own into the
// form in which it was typed: /name and its arguments.
func command(m *msg.Message, text jsonv.Value) {
	if !begins(text, "<command-message>") {
		return
	}
	s := text.Str()
	name := tag(s, "command-name")
	if name == "" {
		return
	}
	m.SetAttr("command", name[:min(len(name), maxIdent)])
	m.SetAttr("command_message", tag(s, "command-message"))
	m.Content = msg.Plain(strings.TrimSpace(name + " " + tag(s, "command-args")))
}

// interrupted notes that the user stopped the agent. The result line, which
// follows, ends the run.
func (d *stream) interrupted(ln *line, text jsonv.Value) {
	l := ln.lane
	d.finish(ln, l)
	l.Stop, l.Failed = "interrupted", true
	m := d.status(ln, ln.id(), "interrupted")
	m.Hidden, m.Role = false, msg.RoleUser
	m.Content = text.Text()
}
