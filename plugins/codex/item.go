package codex

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// item decodes a response_item: an input or an output of the model.
func (d *thread) item(r *record) {
	typ := r.p.Get("type").Str()
	if typ == "" && r.p.Get("role").Is(jsonv.String) {
		typ = "message"
	}
	if p := d.Response; p != nil && !p.Closed && (typ == "reasoning" || r.p.Get("role").Equal("assistant")) {
		p.Items = true // an event may have had it before
	}
	switch typ {
	case "message":
		d.message(r)
	case "reasoning":
		d.reasoning(r)
	case "agent_message":
		d.agentMessage(r, typ)
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		d.calls.call(r, typ)
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		d.calls.output(r)
	case "web_search_call", "image_generation_call":
		d.calls.served(r, r.p, typ, r.id())
	case "ghost_snapshot":
		d.Status(r.id(), typ).SetAttr("git_commit", ident.Of(r.p.Path("ghost_commit", "id")))
	case "compaction", "compaction_summary", "context_compaction", "additional_tools":
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
		if !d.again(r, fingerprint('a', said), "message", said) {
			d.answer(r, r.id(), said, r.p)
		}
	case role.Equal("developer"), role.Equal("system"):
		m := d.Add(msg.System, r.id())
		m.Role, m.Hidden = msg.RoleSystem, true
		m.Content = content(said, m)
	default:
		d.unknown(r, "response_item/message")
	}
}

// answer adds the text of an item with that id.
func (d *thread) answer(r *record, id string, said, p jsonv.Value) {
	m := d.part(r, msg.Assistant, id, id+"/text")
	m.Content = content(said, m)
	codex.SetIDs(m, p, "phase")
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
	again := words > 0 && d.again(r, fingerprint('u', said), "message", said)
	if words > 0 && !again {
		d.prompt(r)
	}
	d.words(r, said, again)
}

// words adds the texts of a message to the model, those of its author unless they are known.
func (d *thread) words(r *record, said jsonv.Value, again bool) {
	var words, asides int
	for b := range parts(said) {
		switch tag := injected(b.text); {
		case tag == "<subagent_notification>":
			d.calls.notified(b.text)
			fallthrough
		case tag != "":
			d.aside(conversation.Ordinal(r.id()+"/aside", &asides), tag, b.text.Text())
		case b.frame:
			b.text.MarkRead()
		case again:
		default:
			m := d.Prompt(conversation.Ordinal(r.id(), &words))
			if f, ok := openai.File(b.file); ok {
				m.Attachments = append(m.Attachments, f)
			} else {
				d.speak(r, m, b.text, &asides)
			}
		}
	}
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
		d.Asked(m, text.Text())
		return
	}
	text.MarkRead()
	m.Content = msg.Quoted(after)
	d.aside(conversation.Ordinal(r.id()+"/aside", asides), "# Context from my IDE setup", msg.Quoted(before))
}

// reasoning decodes {summary: [{text}], content: [{text}] | null, encrypted_content}.
func (d *thread) reasoning(r *record) {
	if !d.thoughts(r, r.id(), r.p.Get("summary"), r.p.Get("content")) { // it is encrypted
		m := d.part(r, msg.Reasoning, r.id(), r.id()+"/thinking")
		m.Hidden = true
		m.SetAttr("redacted", "true")
	}
}

// thoughts adds the texts of a reasoning item with that id: lists of {text} or of strings. It reports
// whether there are any, or the record has a message without them.
func (d *thread) thoughts(r *record, id string, summary, raw jsonv.Value) bool {
	emitted, again := 0, 0
	for _, list := range [...]struct {
		parts jsonv.Value
		seed  byte
		key   string
	}{{summary, 's', "/summary"}, {raw, 'c', "/thinking"}} {
		n := 0
		for b := range list.parts.Elems() {
			text := b
			if b.Is(jsonv.Object) {
				text = b.Get("text")
			}
			if len(text.Escaped()) == 0 {
				continue
			}
			key := conversation.Ordinal(id+list.key, &n)
			if d.texts.repeats(fingerprint(list.seed, text), r.family) {
				text.MarkRead()
				again++
				continue
			}
			emitted++
			d.part(r, msg.Reasoning, id, key).Content = text.Text()
		}
	}
	switch {
	case emitted > 0:
	case r.family != byItem:
		d.Status(r.id(), "item_completed/Reasoning")
	case again > 0:
		d.Status("item:"+id, "reasoning")
	default:
		return false
	}
	return true
}

// asked decodes a prompt as it is shown.
func (d *thread) asked(r *record, text jsonv.Value) {
	images, paths := r.p.Get("images"), r.p.Get("local_images")
	if len(text.Escaped()) == 0 && images.Len()+paths.Len() == 0 || injected(text) != "" {
		d.Status(r.id(), "user_message")
		return
	}
	if d.again(r, fingerprint('u', text), "user_message", text, images) {
		return
	}
	d.prompt(r)
	m := d.Prompt(r.id())
	for image := range images.Elems() {
		m.Attachments = append(m.Attachments, media.URL(image))
	}
	for path := range paths.Elems() {
		m.Attachments = append(m.Attachments, media.File(ident.Of(path)))
	}
	asides := 0
	d.speak(r, m, text, &asides)
}

// answered decodes an output of the model as it is shown, or as its completed item has it.
func (d *thread) answered(r *record, kind msg.Kind, seed byte, said jsonv.Value) {
	if !d.known(r, seed, said) {
		m := d.part(r, kind, r.id(), r.id())
		m.Content = content(said, m)
		codex.SetIDs(m, r.p, "phase")
	}
}

// known reports whether an event has no text, or one that another family had before. The event
// is then a hidden message.
func (d *thread) known(r *record, seed byte, said jsonv.Value) bool {
	typ, text := r.p.Get("type").Str(), fingerprint(seed, said)
	if text == fingerprint(seed, jsonv.Value{}) {
		d.repeated(r, r.id(), typ, said)
		return true
	}
	return d.again(r, text, typ, said)
}
