package grace

import (
	"encoding/json"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// The model asks for actions in a notation that looks like XML and is not: code is in it as it
// is, with or without CDATA, between fences, after a few words. It is read as the agent reads
// it, by its tags alone. There are no entities and no attributes with a meaning, and a text is
// read once.

const maxActions = 64

// parseActions returns the actions of a text that consists of them:
//
//	<write_code><path>a.py</path><content><![CDATA[…]]></content></write_code>
func parseActions(s string) (out []intent) {
	s = strings.TrimSpace(s)
	if rest, fenced := strings.CutPrefix(s, "```"); fenced {
		s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(rest, "xml"), "```"))
	}
	if name, inner, rest, ok := element(s); ok && name == "actions" && strings.TrimSpace(rest) == "" {
		s = strings.TrimSpace(inner)
	}
	for s != "" && len(out) < maxActions {
		name, inner, rest, ok := element(s)
		if !ok || !actions[name].tool && name != "finish" && name != "revise_plan" {
			return nil // it is about XML, or is not all of it
		}
		out = append(out, intent{name, arguments(inner)})
		s = strings.TrimSpace(rest)
	}
	return out
}

// arguments are the elements of an action as a JSON object; one that is itself JSON is copied
// unchanged.
func arguments(s string) string {
	args := []byte{'{'}
	for n := 0; n < maxActions; n++ {
		s = strings.TrimSpace(s)
		name, inner, rest, ok := element(s)
		if !ok && (n > 0 || s == "") {
			break
		} else if !ok {
			name, inner, rest = "text", s, ""
		}
		if n > 0 {
			args = append(args, ',')
		}
		args = append(jsonv.AppendQuote(args, name), ':')
		text := strings.TrimSpace(inner)
		if data, ok := strings.CutPrefix(text, cdataStart); ok {
			text = strings.TrimSuffix(data, cdataEnd)
		}
		if text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
			args = append(args, text...)
		} else {
			args = jsonv.AppendQuote(args, text)
		}
		s = rest
	}
	return string(append(args, '}'))
}

const cdataStart, cdataEnd = "<![CDATA[", "]]>"

// element cuts the element at the start of s. An end tag in CDATA does not end it.
func element(s string) (name, inner, rest string, ok bool) {
	tag, body, closed := strings.Cut(s, ">")
	name, opened := strings.CutPrefix(tag, "<")
	name, empty := strings.CutSuffix(name, "/")
	name, _, _ = strings.Cut(name, " ")
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	switch {
	case !opened || !closed || name == "" || strings.Trim(name, letters) != "":
		return "", "", "", false
	case empty:
		return name, "", body, true
	}
	end := "</" + name + ">"
	for at := 0; ; {
		i := strings.Index(body[at:], end)
		if i < 0 {
			return "", "", "", false
		}
		data, after := strings.Index(body[at:at+i], cdataStart), -1
		if data >= 0 {
			after = strings.Index(body[at+data:], cdataEnd)
		}
		if after < 0 { // CDATA that never ends is text like any other
			return name, body[:at+i], body[at+i+len(end):], true
		}
		at += data + after + len(cdataEnd)
	}
}

// intent is an action that has not been seen to run.
type intent struct {
	Name string
	Args string // JSON
}

// readIntents looks for actions in a text of the model. The text is then hidden, for a reader sees
// the calls.
func (d *stream) readIntents(m *msg.Message) {
	var names []string
	for _, a := range parseActions(m.Content.String()) {
		names = append(names, a.Name)
		if len(a.Args) <= maxIntent {
			d.Intents = bounded.Push(d.Intents, a, maxIntents)
		}
	}
	if len(names) > 0 {
		m.Hidden = true
		m.SetAttr("actions", strings.Join(names, ","))
	}
}
