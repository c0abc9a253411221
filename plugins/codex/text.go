package codex

import (
	"bytes"
	"iter"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// parts yields the parts of a content that is a list, of strings or of {type, text}, or one text: a text, or a file
// (see openai.File). Texts that mark where an image begins or ends are none.
func parts(content jsonv.Value) iter.Seq2[jsonv.Value, jsonv.Value] {
	return func(yield func(text, file jsonv.Value) bool) {
		if !content.Is(jsonv.Array) {
			yield(content, jsonv.Value{})
			return
		}
		images := false
		for b := range content.Elems() {
			images = images || b.Get("type").Equal("input_image")
		}
		for b := range content.Elems() {
			text, file := jsonv.Or(b.Get("text"), b), jsonv.Value{}
			switch {
			case b.Get("type").In("input_image", "input_audio", "input_file") && openai.Location(b).Is(jsonv.String):
				file = b
			case !text.Is(jsonv.String):
				continue
			case images && (text.HasPrefix("<image") || text.HasPrefix("</image>")):
				text.MarkRead()
				continue
			}
			if !yield(text, file) {
				return
			}
		}
	}
}

// first is the first text of a content.
func first(content jsonv.Value) jsonv.Value {
	for text := range parts(content) {
		if text.Is(jsonv.String) {
			return text
		}
	}
	return jsonv.Value{}
}

// body is the content in an object around it.
func body(v jsonv.Value) jsonv.Value {
	if inner := v.First("text", "content", "output"); inner.Is(jsonv.String) || inner.Is(jsonv.Array) {
		return inner
	}
	return v
}

// content returns the texts of a content, joined; its files become attachments of the
// message.
func content(v jsonv.Value, m *msg.Message) msg.Text {
	v = body(v)
	var texts conversation.Texts
	for text, file := range parts(v) {
		if f, ok := openai.File(file); ok {
			m.Attachments = append(m.Attachments, f)
		} else {
			texts.Add(text.Text())
		}
	}
	if texts.N == 0 && len(m.Attachments) == 0 && v.Len() > 0 {
		return v.JSON()
	}
	return texts.Joined()
}

// maxTexts is the number of texts of a turn that are compared with the following ones.
const maxTexts = 64

// knownText is the sum of a text, and the families that had it.
type knownText struct {
	Sum conversation.Sum
	By  family
}

// repeats reports whether another family of records had the text before, and records that this one has it.
// A text that one family has twice occurred twice.
func (d *turns) repeats(r *record, text conversation.Sum) bool {
	for i := range d.Texts {
		if t := &d.Texts[i]; t.Sum == text && t.By&r.family == 0 {
			t.By |= r.family
			return true
		}
	}
	d.Texts = bounded.Push(d.Texts, knownText{text, r.family}, maxTexts)
	return false
}

// again adds a hidden message for a record that repeats a text, and returns it; nil if it does not. The facts are in
// another message.
func (d *turns) again(r *record, text conversation.Sum, typ string, facts ...jsonv.Value) *msg.Message {
	if !d.repeats(r, text) {
		return nil
	}
	key := r.id()
	if r.family == byItem {
		key = "item:" + key
	}
	for _, v := range facts {
		v.MarkRead()
	}
	return d.Status(key, typ)
}

// sum is a sum of the texts of a content, of a prompt without what is injected. A text of one kind does not repeat one
// of another kind. Texts are summed as they are escaped in the line: one writer wrote the file, so that the same text is
// escaped in the same way.
func sum(kind msg.Kind, content jsonv.Value) conversation.Sum {
	s := conversation.SumOf(kind.String())
	for text := range parts(content) {
		if kind != msg.User || injected(text) == "" {
			s = s.Add(text.Escaped())
		}
	}
	return s
}

// injected returns the prefix of a text that the CLI passes to the model in the user's name;
// "" for any other text.
func injected(text jsonv.Value) string {
	if !text.HasPrefix("<") && !text.HasPrefix("# AGENTS.md instructions") {
		return ""
	}
	for _, known := range [...]string{
		"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<permissions instructions>",
		"<subagent_notification>", "<turn_aborted>", "<user_shell_command>", "<user_action>", "<skill>", "<skills_instructions>",
		"<apps_instructions>", "<plugins_instructions>", "<collaboration_mode>", "<multi_agent_mode>", "<realtime_conversation>", "<hook_prompt",
		"<goal_context>", "<model_switch>", "<personality_spec>", "<recommended_plugins>", "<codex_internal_context",
	} {
		if text.HasPrefix(known) {
			return known
		}
	}
	return ""
}

// asked decodes a message to the model: the words of a person, or of the agent that leads a
// sub-agent, and the texts that the CLI adds.
func (d *thread) asked(r *record, said jsonv.Value) {
	images, paths := r.p.Get("images"), r.p.Get("local_images")
	all, words := 0, images.Len()+paths.Len()
	for text := range parts(said) {
		all++
		if injected(text) == "" && (r.family == byItem || len(text.Escaped()) > 0) {
			words++
		}
	}
	known := words > 0 && d.again(r, sum(msg.User, said), r.kind, said, images) != nil
	switch {
	case words > 0 && !known:
		d.prompt(r)
	case known && r.family != byItem:
		return
	case r.family != byItem:
		d.Status(r.id(), r.kind)
		r.p.Skip("content") // a response_item has what is injected
		return
	case all == 0:
		d.unknown(r, "response_item/message")
	}
	words, asides := 0, 0
	for text, file := range parts(said) {
		switch tag := injected(text); {
		case tag == "<subagent_notification>":
			d.notified(text)
			fallthrough
		case tag != "":
			d.aside(conversation.Ordinal(r.id()+"/aside", &asides), tag, text.Text())
		case !known:
			m := d.Prompt(conversation.Ordinal(r.id(), &words))
			for image := range images.Elems() {
				m.Attachments = append(m.Attachments, media.URL(image))
			}
			for path := range paths.Elems() {
				m.Attachments = append(m.Attachments, media.File(ident.Of(path)))
			}
			if f, ok := openai.File(file); ok {
				m.Attachments = append(m.Attachments, f)
			} else if context := d.speak(m, text); context != nil {
				d.aside(conversation.Ordinal(r.id()+"/aside", &asides), "# Context from my IDE setup", msg.Quoted(context))
			}
		}
	}
}

// aside adds a message for a text that is injected into a prompt.
func (d *thread) aside(key, tag string, text msg.Text) {
	m := d.Add(msg.System, key)
	m.Role, m.Hidden, m.Content = msg.RoleUser, true, text
	m.SetAttr("injected", tag)
}

// speak puts the words of a prompt into m, and returns the context that an editor put before them, escaped:
//
//	# Context from my IDE setup:
//	…
//	## My request for Codex:
//	Rename the field.
func (d *thread) speak(m *msg.Message, text jsonv.Value) (context []byte) {
	const marker = "## My request for Codex:"
	b := text.Escaped()
	if i := bytes.LastIndex(b, []byte(marker)); i > 0 && (text.HasPrefix("# Context from my IDE setup:") || text.HasPrefix("# Files mentioned by the user:")) {
		words := b[i+len(marker):]
		for bytes.HasPrefix(words, []byte(`\n`)) {
			words = words[2:]
		}
		if len(words) > 0 {
			text.MarkRead()
			m.Content = msg.Quoted(words)
			return b[:i]
		}
	}
	d.Asked(m, text.Text())
	return nil
}

// said decodes a text of the model, a part of the item with that id.
func (d *thread) said(r *record, kind msg.Kind, id, key string, said jsonv.Value) {
	switch text := sum(kind, said); {
	case r.family != byItem && text == sum(kind, jsonv.Value{}):
		d.Status(r.id(), r.kind)
	case d.again(r, text, r.kind, said) == nil:
		m := d.part(r, kind, id, key)
		m.Content = content(said, m)
		codex.SetIDs(m, r.p, "phase")
	}
}

// thoughts adds the texts of a reasoning item with that id: lists of {text} or of strings. Those of a
// response_item may be encrypted.
func (d *thread) thoughts(r *record, id string, summary, raw jsonv.Value) {
	before, texts := len(d.Out.Messages), 0
	for _, list := range [...]struct {
		key   string
		texts jsonv.Value
	}{{"/summary", summary}, {"/thinking", raw}} {
		n := 0
		for text := range parts(list.texts) {
			if len(text.Escaped()) == 0 {
				continue
			}
			texts++
			if key := conversation.Ordinal(id+list.key, &n); d.repeats(r, sum(msg.Reasoning, text)) {
				text.MarkRead()
			} else {
				d.part(r, msg.Reasoning, id, key).Content = text.Text()
			}
		}
	}
	switch {
	case len(d.Out.Messages) > before:
	case r.family != byItem:
		d.Status(r.id(), r.name)
	case texts > 0:
		d.Status("item:"+id, r.name)
	default:
		m := d.part(r, msg.Reasoning, id, id+"/thinking")
		m.Hidden = true
		m.SetAttr("redacted", "true")
	}
}
