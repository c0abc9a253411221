package codex

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// item decodes a response_item: what went to the model or came from it.
func (d *thread) item(r *record) {
	typ := r.p.Get("type").Str()
	if p := d.Response; p != nil && !p.Closed && (typ == "reasoning" || r.p.Get("role").Equal("assistant")) {
		p.Items = true // though an event may have told it before
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
		d.status(r, r.id(), typ)
	default:
		d.unknown(r, "response_item/"+typ)
	}
}

// message decodes {role, content: [{type: input_text | output_text | input_image, …}]}.
func (d *thread) message(r *record) {
	role, content := r.p.Get("role"), r.p.Get("content")
	switch {
	case role.Equal("user"):
		d.user(r, content)
	case role.Equal("assistant"):
		if d.told(fingerprint('a', content), byItem) {
			content.MarkRead()
			d.status(r, "item:"+r.id(), "message")
			return
		}
		m := d.part(r, msg.Assistant, r.id(), r.id()+"/text")
		m.Content = d.content(content, m)
		m.SetAttr("phase", ident(r.p.Get("phase")))
	case role.Equal("developer"), role.Equal("system"):
		m := d.give(r, msg.System, r.id())
		m.Role, m.Hidden = msg.RoleSystem, true
		m.Content = d.content(content, m)
	default:
		d.unknown(r, "response_item/message")
	}
}

// user decodes a message to the model: what a person, or whoever leads a
// sub-agent, says, and what the CLI puts beside it.
func (d *thread) user(r *record, content jsonv.Value) {
	var words, asides int
	for b := range parts(content) {
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
	again := words > 0 && d.told(fingerprint('u', content), byItem)
	if again {
		content.MarkRead()
		d.status(r, "item:"+r.id(), "message")
	} else if words > 0 {
		d.prompt(r)
	}
	words, asides = 0, 0
	for b := range parts(content) {
		switch tag := injected(b.text); {
		case tag == "<subagent_notification>":
			d.notified(r, b.text, ordinal(r.id()+"/aside", &asides))
		case tag != "":
			m := d.aside(r, ordinal(r.id()+"/aside", &asides), tag)
			m.Content = b.text.Text()
		case b.frame || again:
		default:
			m := d.word(r, ordinal(r.id(), &words))
			if b.file.Exists() {
				m.Attachments = append(m.Attachments, attach(b.file))
			} else {
				d.speak(r, m, b.text, &asides)
			}
		}
	}
}

// word adds a message for a part of a prompt.
func (d *thread) word(r *record, key string) *msg.Message {
	m := d.give(r, msg.User, key)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	if d.Child {
		m.Agent.Kind = msg.KindAgent
	}
	return m
}

func (d *thread) aside(r *record, key, tag string) *msg.Message {
	m := d.give(r, msg.System, key)
	m.Role, m.Hidden = msg.RoleUser, true
	m.SetAttr("injected", tag)
	return m
}

// speak puts the text of a prompt into m. What an editor put before the words is
// no part of them:
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
	d.aside(r, ordinal(r.id()+"/aside", asides), "# Context from my IDE setup").Content = msg.Quoted(before)
}

// reasoning decodes {summary: [{text}], content: [{text}] | null, encrypted_content}.
func (d *thread) reasoning(r *record) {
	given, again := 0, 0
	for _, list := range [...]struct {
		parts jsonv.Value
		seed  byte
		key   string
	}{{r.p.Get("summary"), 's', "/summary"}, {r.p.Get("content"), 'c', "/thinking"}} {
		n := 0
		for b := range list.parts.Elems() {
			text := b.Get("text")
			if len(body(text)) == 0 {
				continue
			}
			key := ordinal(r.id()+list.key, &n)
			if d.told(fingerprint(list.seed, text), byItem) {
				text.MarkRead()
				again++
				continue
			}
			given++
			d.part(r, msg.Reasoning, r.id(), key).Content = text.Text()
		}
	}
	switch {
	case given > 0:
	case again > 0:
		d.status(r, "item:"+r.id(), "reasoning")
	default: // the model keeps it to itself
		m := d.part(r, msg.Reasoning, r.id(), r.id()+"/thinking")
		m.Hidden = true
		m.SetAttr("redacted", "true")
	}
}

// heard decodes an event that shows what was said.
func (d *thread) heard(r *record, typ string) {
	text := r.p.First("message", "text")
	switch typ {
	case "user_message":
		d.asked(r, text, byEvent)
	case "agent_message":
		d.answered(r, msg.Assistant, 'a', text, byEvent)
	case "agent_reasoning":
		d.answered(r, msg.Reasoning, 's', text, byEvent)
	case "agent_reasoning_raw_content":
		d.answered(r, msg.Reasoning, 'c', text, byEvent)
	}
}

// asked decodes a prompt as it was shown.
func (d *thread) asked(r *record, text jsonv.Value, by uint8) {
	files := 0
	for _, name := range [...]string{"images", "local_images"} {
		files += r.p.Get(name).Len()
	}
	if len(body(text)) == 0 && files == 0 || injected(text) != "" {
		d.status(r, r.id(), "user_message")
		return
	}
	if d.told(fingerprint('u', text), by) {
		text.MarkRead()
		d.status(r, r.id(), "user_message")
		return
	}
	d.prompt(r)
	m := d.word(r, r.id())
	for image := range r.p.Get("images").Elems() {
		m.Attachments = append(m.Attachments, attach(image))
	}
	for path := range r.p.Get("local_images").Elems() {
		m.Attachments = append(m.Attachments, local(path))
	}
	asides := 0
	d.speak(r, m, text, &asides)
}

// answered decodes what the model said as it was shown.
func (d *thread) answered(r *record, kind msg.Kind, seed byte, text jsonv.Value, by uint8) {
	if len(body(text)) == 0 || d.told(fingerprint(seed, text), by) {
		text.MarkRead()
		d.status(r, r.id(), r.p.Get("type").Str())
		return
	}
	m := d.part(r, kind, r.id(), r.id())
	m.Content = text.Text()
	m.SetAttr("phase", ident(r.p.Get("phase")))
}
