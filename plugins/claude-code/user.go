package claudecode

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// interruptText is how the CLI says that the user stopped the agent.
const interruptText = "[Request interrupted by user"

// user decodes a user line. Most are results of tools; of the others only those
// that are none of the CLI's own messages are prompts.
func (d *transcript) user(ln *line) {
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
	d.said(ln, content, opening(content))
}

// results decodes a line that brings results, and what else it holds.
func (d *transcript) results(ln *line, content jsonv.Value, single bool) {
	var extra jsonv.Value
	if single {
		extra = ln.root.Get("toolUseResult")
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
		say(d.aside(ln, &asides), b)
	}
}

// said decodes a line of somebody's words; text is the first of them.
func (d *transcript) said(ln *line, content, text jsonv.Value) {
	origin := ln.root.Path("origin", "kind")
	switch {
	case ln.root.Get("isCompactSummary").Bool():
		m := d.status(ln, ln.id(), "compact_summary")
		m.Content = d.content(content, m)
	case begins(text, interruptText):
		d.interrupted(ln, text)
	case origin.Equal("task-notification"), !origin.Exists() && notice(text):
		d.wake(ln)
		d.notices(ln, text)
	case begins(text, "<command-name>"), begins(text, "<bash-input>"), begins(text, "<bash-std"), begins(text, "<local-command-"):
		m := d.status(ln, ln.id(), "local_command")
		m.Content = d.content(content, m)
	case fromAgent(origin, text):
		d.letter(ln, content, text, ln.root.Get("origin"))
	case ln.root.Get("isMeta").Bool():
		m := d.give(ln, msg.System, ln.id())
		m.Role, m.Hidden = msg.RoleUser, true
		m.Content = d.content(content, m)
	case ln.lane.child():
		d.wake(ln)
		d.speak(ln, content, d.task(ln, text))
	default:
		d.begin(ln, ln.id())
		d.speak(ln, content, msg.Agent{Kind: msg.KindHuman})
	}
}

// opening is the first text of a content.
func opening(content jsonv.Value) jsonv.Value {
	for b := range content.Elems() {
		if b.Get("type").Equal("text") {
			return b.Get("text")
		}
	}
	return content
}

// speak gives what was said to the run: a message for each text, picture or
// document. What an editor or the CLI put beside the words is no part of them.
func (d *transcript) speak(ln *line, content jsonv.Value, author msg.Agent) {
	if content.Is(jsonv.String) {
		m := d.word(ln, ln.id(), author)
		m.Content = content.Text()
		if begins(content, "<command-message>") {
			command(m, content)
		}
		return
	}
	words, asides := 0, 0
	for b := range content.Elems() {
		if !b.Exists() {
			continue
		}
		text := b.Get("text")
		if begins(text, "<system-reminder>") || begins(text, "<ide_") {
			say(d.aside(ln, &asides), b)
			continue
		}
		m := d.word(ln, ordinal(ln.id(), &words), author)
		say(m, b)
		if begins(text, "<command-message>") {
			command(m, text)
		}
	}
}

func (d *transcript) word(ln *line, key string, author msg.Agent) *msg.Message {
	m := d.give(ln, msg.User, key)
	m.Role, m.Agent = msg.RoleUser, author
	return m
}

// aside adds a message for what stands beside the words of a user line.
func (d *transcript) aside(ln *line, n *int) *msg.Message {
	m := d.give(ln, msg.System, ordinal(ln.id()+"/aside", n))
	m.Role, m.Hidden = msg.RoleUser, true
	return m
}

// say puts one block of a user line into a message of its own.
func say(m *msg.Message, b jsonv.Value) {
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
// form in which it was typed: /name and its arguments. Commands that the CLI
// answers itself begin with their name and are no prompts.
func command(m *msg.Message, text jsonv.Value) {
	s := text.Str()
	name := tag(s, "command-name")
	if name == "" {
		return
	}
	m.SetAttr("command", name)
	m.SetAttr("command_message", tag(s, "command-message"))
	m.Content = msg.Plain(strings.TrimSpace(name + " " + tag(s, "command-args")))
}

// interrupted ends the run: the user stopped it.
func (d *transcript) interrupted(ln *line, text jsonv.Value) {
	l := ln.lane
	d.finish(ln, l)
	m := d.give(ln, msg.Stop, ln.id())
	m.Role, m.Run = msg.RoleUser, l.Run
	m.Content = text.Text()
	m.IsError, m.FinishReason = true, "interrupted"
	if m.Run != "" {
		m.Signal = msg.RunEnd
	}
	l.Ended = true
}

// fromAgent reports whether another agent wrote the line.
func fromAgent(origin, text jsonv.Value) bool {
	switch {
	case origin.Equal("coordinator"), origin.Equal("peer"), origin.Equal("teammate"), origin.Equal("channel"):
		return true
	}
	return begins(text, "<teammate-message") || begins(text, "<cross-session-message") || begins(text, "Another Claude session sent a message")
}

// letter gives a message of another agent (SendMessage). The CLI does not say
// which call sent it.
func (d *transcript) letter(ln *line, content, text, origin jsonv.Value) {
	d.wake(ln)
	author := msg.Agent{ID: origin.Get("from").Str(), Name: origin.Get("name").Str(), Kind: msg.KindAgent}
	if author == (msg.Agent{Kind: msg.KindAgent}) {
		author.Name = attribute(text.Str(), "teammate_id")
	}
	kind := origin.Get("kind").Str()
	if kind == "" {
		kind = "peer"
	}
	before := len(ln.out.Messages)
	d.speak(ln, content, author)
	for i := before; i < len(ln.out.Messages); i++ {
		ln.out.Messages[i].SetAttr("origin", kind)
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

// number is a number as an attribute's value; empty when v is none.
func number(v jsonv.Value) string {
	if !v.Is(jsonv.Number) {
		return ""
	}
	return strconv.FormatInt(v.Int(), 10)
}
