package codex

import (
	"bytes"
	"iter"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// part is one part of a message's content.
type part struct {
	text  jsonv.Value // a string
	file  jsonv.Value // where an image or a sound lies
	frame bool        // only says where an image begins or ends
}

// parts yields the parts of a content that is a string or a list.
func parts(content jsonv.Value) iter.Seq[part] {
	return func(yield func(part) bool) {
		if content.Is(jsonv.String) {
			yield(part{text: content})
			return
		}
		images := false
		for b := range content.Elems() {
			images = images || b.Get("type").Equal("input_image")
		}
		for b := range content.Elems() {
			p := part{text: b.Get("text")}
			switch typ := b.Get("type"); {
			case typ.Equal("input_image"), typ.Equal("input_audio"), typ.Equal("input_file"):
				p.file = b.First("image_url", "audio_url", "file_data", "file_url", "data")
				if !p.file.Is(jsonv.String) {
					continue
				}
			case !p.text.Is(jsonv.String):
				continue
			case images && (begins(p.text, "<image") || begins(p.text, "</image>")):
				p.frame = true
			}
			if !yield(p) {
				return
			}
		}
	}
}

// content returns the texts of a content, joined; what is no text becomes an
// attachment of the message.
func (d *thread) content(v jsonv.Value, m *msg.Message) msg.Text {
	switch v.Kind() {
	case jsonv.String:
		return v.Text()
	case jsonv.Object: // one part, or an object around the content
		if inner := v.First("text", "content", "output"); inner.Is(jsonv.String) {
			return inner.Text()
		} else if inner.Is(jsonv.Array) {
			return d.content(inner, m)
		}
		return v.JSON()
	}
	var one msg.Text
	var joined []byte
	texts := 0
	for p := range parts(v) {
		switch {
		case p.file.Exists():
			m.Attachments = append(m.Attachments, attach(p.file))
			continue
		case p.frame:
			continue
		}
		switch texts++; texts {
		case 1:
			one = p.text.Text()
		case 2:
			joined = p.text.Text().Append(append(one.Append(nil), '\n'))
		default:
			joined = p.text.Text().Append(append(joined, '\n'))
		}
	}
	if texts > 1 {
		return msg.Plain(string(joined))
	}
	if texts == 0 && len(m.Attachments) == 0 && v.Len() > 0 {
		return v.JSON()
	}
	return one
}

// fingerprint is a hash of the texts of a content, as they stand in the line, that
// are somebody's words. One writer wrote all of a file, so that the same text is
// escaped in the same way.
func fingerprint(seed byte, content jsonv.Value) uint64 {
	h := hash(hashBasis, []byte{seed})
	for p := range parts(content) {
		if !p.frame && injected(p.text) == "" {
			h = hash(h, body(p.text))
		}
	}
	return h
}

// injected is how a text begins that the CLI gives to the model in the user's name;
// empty when the text is no such thing.
func injected(text jsonv.Value) string {
	if !begins(text, "<") && !begins(text, "# AGENTS.md instructions") {
		return ""
	}
	for _, known := range [...]string{
		"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<permissions instructions>",
		"<subagent_notification>", "<turn_aborted>", "<user_shell_command>", "<user_action>", "<skill>", "<skills_instructions>",
		"<apps_instructions>", "<plugins_instructions>", "<collaboration_mode>", "<multi_agent_mode>", "<realtime_conversation>", "<hook_prompt",
		"<goal_context>", "<model_switch>", "<personality_spec>", "<recommended_plugins>", "<codex_internal_context",
	} {
		if begins(text, known) {
			return known
		}
	}
	return ""
}

// request cuts a prompt where the words begin. Both parts are as they stand in the
// line.
func request(text jsonv.Value) (before, after []byte, ok bool) {
	const marker = "## My request for Codex:"
	if !begins(text, "# Context from my IDE setup:") && !begins(text, "# Files mentioned by the user:") {
		return nil, nil, false
	}
	b := body(text)
	i := bytes.LastIndex(b, []byte(marker))
	if i < 0 {
		return nil, nil, false
	}
	after = b[i+len(marker):]
	for bytes.HasPrefix(after, []byte(`\n`)) {
		after = after[2:]
	}
	return b[:i], after, len(after) > 0
}

// tagged is what stands between <name> and the last </name>.
func tagged(s, name string) string {
	_, s, _ = strings.Cut(s, "<"+name+">")
	if i := strings.LastIndex(s, "</"+name+">"); i >= 0 {
		return s[:i]
	}
	return ""
}
