package codex

import (
	"bytes"
	"iter"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/openai"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// item decodes a response_item: an input or an output of the model.
func (d *thread) item(r *record) {
	typ := r.p.Get("type").Str()
	if p := d.Response; p != nil && !p.Closed && (typ == "reasoning" || r.p.Get("role").Equal("assistant")) {
		p.Items = true // an event may have had it before
	}
	switch typ {
	case "message":
		d.message(r)
	case "reasoning":
		d.reasoning(r)
	case "agent_message":
		d.agentMessage(r)
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		d.call(r, typ)
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		d.output(r)
	case "web_search_call", "image_generation_call":
		d.served(r, typ)
	case "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "additional_tools":
		d.Status(r.id(), typ)
	default:
		d.unknown(r, "response_item/"+typ)
	}
}

// message decodes {role, content: [{type: input_text | output_text | input_image, …}]}.
func (d *thread) message(r *record) {
	role, said := r.p.Get("role"), r.p.Get("content")
	switch {
	case role.Equal("user"):
		d.user(r, said)
	case role.Equal("assistant"):
		if d.repeats(fingerprint('a', said), byItem) {
			d.repeated(r, "item:"+r.id(), "message", said)
			return
		}
		m := d.part(r, msg.Assistant, r.id(), r.id()+"/text")
		m.Content = content(said, m)
		setIDs(m, r.p, "phase")
	case role.Equal("developer"), role.Equal("system"):
		m := d.Add(msg.System, r.id())
		m.Role, m.Hidden = msg.RoleSystem, true
		m.Content = content(said, m)
	default:
		d.unknown(r, "response_item/message")
	}
}

// user decodes a message to the model: the words of a person, or of the agent that leads a
// sub-agent, and the texts that the CLI adds.
func (d *thread) user(r *record, said jsonv.Value) {
	var words, asides int
	for b := range parts(said) {
		if injected(b.text) != "" {
			asides++
		} else if !b.frame {
			words++
		}
	}
	if words == 0 && asides == 0 {
		d.unknown(r, "response_item/message")
		return
	}
	again := words > 0 && d.repeats(fingerprint('u', said), byItem)
	if again {
		d.repeated(r, "item:"+r.id(), "message", said)
	} else if words > 0 {
		d.prompt(r)
	}
	words, asides = 0, 0
	for b := range parts(said) {
		switch tag := injected(b.text); {
		case tag == "<subagent_notification>":
			d.notified(b.text, conversation.Ordinal(r.id()+"/aside", &asides))
		case tag != "":
			m := d.aside(conversation.Ordinal(r.id()+"/aside", &asides), tag)
			m.Content = b.text.Text()
		case b.frame || again:
		default:
			m := d.word(conversation.Ordinal(r.id(), &words))
			if f, ok := openai.File(b.file); ok {
				m.Attachments = append(m.Attachments, f)
			} else {
				d.speak(r, m, b.text, &asides)
			}
		}
	}
}

// word adds a message for a part of a prompt.
func (d *thread) word(key string) *msg.Message {
	m := d.Add(msg.User, key)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	if d.Child {
		m.Agent.Kind = msg.KindAgent
	}
	return m
}

// aside adds a message for a text that is injected into a prompt.
func (d *thread) aside(key, tag string) *msg.Message {
	m := d.Add(msg.System, key)
	m.Role, m.Hidden = msg.RoleUser, true
	m.SetAttr("injected", tag)
	return m
}

// speak puts the words of a prompt into m. The context that an editor put before them is a
// message of its own:
//
//	# Context from my IDE setup:
//	…
//	## My request for Codex:
//	Rename the field.
func (d *thread) speak(r *record, m *msg.Message, text jsonv.Value, asides *int) {
	before, after, ok := request(text)
	if !ok {
		m.Content = text.Text()
		if !d.Child && !d.Manual {
			m.Delegation.CorrelationPrompt = spawn.Prompt(spawn.Codex, d.Dir, text.Str())
		}
		return
	}
	m.Content = msg.Quoted(after)
	d.aside(conversation.Ordinal(r.id()+"/aside", asides), "# Context from my IDE setup").Content = msg.Quoted(before)
}

// reasoning decodes {summary: [{text}], content: [{text}] | null, encrypted_content}.
func (d *thread) reasoning(r *record) {
	emitted, again := 0, 0
	for _, list := range [...]struct {
		parts jsonv.Value
		seed  byte
		key   string
	}{{r.p.Get("summary"), 's', "/summary"}, {r.p.Get("content"), 'c', "/thinking"}} {
		n := 0
		for b := range list.parts.Elems() {
			text := b.Get("text")
			if len(text.Escaped()) == 0 {
				continue
			}
			key := conversation.Ordinal(r.id()+list.key, &n)
			if d.repeats(fingerprint(list.seed, text), byItem) {
				text.MarkRead()
				again++
				continue
			}
			emitted++
			d.part(r, msg.Reasoning, r.id(), key).Content = text.Text()
		}
	}
	switch {
	case emitted > 0:
	case again > 0:
		d.Status("item:"+r.id(), "reasoning")
	default: // it is encrypted
		m := d.part(r, msg.Reasoning, r.id(), r.id()+"/thinking")
		m.Hidden = true
		m.SetAttr("redacted", "true")
	}
}

// shown decodes an event with a text as the user interface shows it.
func (d *thread) shown(r *record, typ string) {
	text := r.p.First("message", "text")
	switch typ {
	case "user_message":
		d.asked(r, text)
	case "agent_message":
		d.answered(r, msg.Assistant, 'a', text)
	case "agent_reasoning":
		d.answered(r, msg.Reasoning, 's', text)
	case "agent_reasoning_raw_content":
		d.answered(r, msg.Reasoning, 'c', text)
	}
}

// asked decodes a prompt as it is shown.
func (d *thread) asked(r *record, text jsonv.Value) {
	images, paths := r.p.Get("images"), r.p.Get("local_images")
	if len(text.Escaped()) == 0 && images.Len()+paths.Len() == 0 || injected(text) != "" {
		d.Status(r.id(), "user_message")
		return
	}
	if d.repeats(fingerprint('u', text), byEvent) {
		d.repeated(r, r.id(), "user_message", text)
		return
	}
	d.prompt(r)
	m := d.word(r.id())
	for image := range images.Elems() {
		m.Attachments = append(m.Attachments, media.URL(image))
	}
	for path := range paths.Elems() {
		m.Attachments = append(m.Attachments, media.File(ident.Of(path)))
	}
	asides := 0
	d.speak(r, m, text, &asides)
}

// answered decodes an output of the model as it is shown.
func (d *thread) answered(r *record, kind msg.Kind, seed byte, text jsonv.Value) {
	if len(text.Escaped()) == 0 || d.repeats(fingerprint(seed, text), byEvent) {
		d.repeated(r, r.id(), r.p.Get("type").Str(), text)
		return
	}
	m := d.part(r, kind, r.id(), r.id())
	m.Content = text.Text()
	setIDs(m, r.p, "phase")
}

// completedText decodes a completed item that has a text of the conversation.
func (d *thread) completedText(r *record, seed byte, said jsonv.Value) {
	h := fingerprint(seed, said)
	if h == hash(hashBasis, []byte{seed}) || d.repeats(h, byDone) {
		d.repeated(r, r.id(), "item_completed", said)
		return
	}
	var m *msg.Message
	if seed == 'u' {
		d.prompt(r)
		m = d.word(r.id())
	} else {
		m = d.part(r, msg.Assistant, r.id(), r.id())
	}
	m.Content = content(said, m)
}

// part is one part of the content of a message.
type part struct {
	text  jsonv.Value // a string
	file  jsonv.Value // an image or a sound, see openai.File
	frame bool        // a text that marks where an image begins or ends
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
			switch {
			case b.Get("type").In("input_image", "input_audio", "input_file"):
				if p.file = b; !openai.Location(b).Is(jsonv.String) {
					continue
				}
			case !p.text.Is(jsonv.String):
				continue
			case images && (p.text.HasPrefix("<image") || p.text.HasPrefix("</image>")):
				p.frame = true
			}
			if !yield(p) {
				return
			}
		}
	}
}

// content returns the texts of a content, joined; its files become attachments of the
// message.
func content(v jsonv.Value, m *msg.Message) msg.Text {
	switch v.Kind() {
	case jsonv.String:
		return v.Text()
	case jsonv.Object: // one part, or an object around the content
		if inner := v.First("text", "content", "output"); inner.Is(jsonv.String) {
			return inner.Text()
		} else if inner.Is(jsonv.Array) {
			return content(inner, m)
		}
		return v.JSON()
	}
	var texts conversation.Texts
	for p := range parts(v) {
		if f, ok := openai.File(p.file); ok {
			m.Attachments = append(m.Attachments, f)
		} else if !p.frame {
			texts.Add(p.text.Text())
		}
	}
	if texts.N == 0 && len(m.Attachments) == 0 && v.Len() > 0 {
		return v.JSON()
	}
	return texts.Joined()
}

// The families of records that have the texts of a conversation: a text is in one, two or
// three of them, in any order.
const (
	byItem  = 1 << iota // response_item
	byEvent             // event_msg
	byDone              // event_msg of a completed item
)

// maxTexts is the number of texts of a turn that are compared with the following ones.
const maxTexts = 64

// knownText is the hash of a text, and the families that had it.
type knownText struct {
	Hash uint64
	By   uint8
}

// repeats reports whether another family had the text before, and records that this one has it.
// A text that one family has twice occurred twice.
func (d *thread) repeats(text uint64, by uint8) bool {
	for i := range d.Texts {
		if t := &d.Texts[i]; t.Hash == text && t.By&by == 0 {
			t.By |= by
			return true
		}
	}
	if len(d.Texts) == maxTexts {
		d.Texts = slices.Delete(d.Texts, 0, 1)
	}
	d.Texts = append(d.Texts, knownText{text, by})
	return false
}

// hasText reports whether a text is among the last ones.
func (d *thread) hasText(text uint64) bool {
	return slices.ContainsFunc(d.Texts, func(t knownText) bool { return t.Hash == text })
}

// fingerprint is a hash of the texts of a content that are a person's or a model's words, as
// they are escaped in the line: one writer wrote the file, so that the same text is escaped
// in the same way.
func fingerprint(seed byte, content jsonv.Value) uint64 {
	h := hash(hashBasis, []byte{seed})
	for p := range parts(content) {
		if !p.frame && injected(p.text) == "" {
			h = hash(h, p.text.Escaped())
		}
	}
	return h
}

// hash adds s to a 64-bit FNV-1a hash. It is called for each text, and hash/fnv allocates.
func hash[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

const hashBasis = 14695981039346656037

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

// request splits a prompt into the context that an editor put before it and the words. Both
// parts are escaped.
func request(text jsonv.Value) (before, after []byte, ok bool) {
	const marker = "## My request for Codex:"
	if !text.HasPrefix("# Context from my IDE setup:") && !text.HasPrefix("# Files mentioned by the user:") {
		return nil, nil, false
	}
	b := text.Escaped()
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
