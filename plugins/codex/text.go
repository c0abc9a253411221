package codex

import (
	"bytes"
	"iter"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

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
type family uint8

const (
	byItem  family = 1 << iota // response_item
	byEvent                    // event_msg
	byDone                     // event_msg of a completed item
)

// maxTexts is the number of texts of a turn that are compared with the following ones.
const maxTexts = 64

// knownText is the hash of a text, and the families that had it.
type knownText struct {
	Hash uint64
	By   family
}

// texts are the last texts of a turn, oldest first.
type texts []knownText

// repeats reports whether another family had the text before, and records that this one has it.
// A text that one family has twice occurred twice.
func (all *texts) repeats(text uint64, by family) bool {
	for i := range *all {
		if t := &(*all)[i]; t.Hash == text && t.By&by == 0 {
			t.By |= by
			return true
		}
	}
	if len(*all) == maxTexts {
		*all = slices.Delete(*all, 0, 1)
	}
	*all = append(*all, knownText{text, by})
	return false
}

// has reports whether a text is among the last ones.
func (all *texts) has(text uint64) bool {
	return slices.ContainsFunc(*all, func(t knownText) bool { return t.Hash == text })
}

// fingerprint is a hash of the texts of a content, of a prompt (seed u) without those that are
// injected. They are hashed as they are escaped in the line: one writer wrote the file, so that
// the same text is escaped in the same way.
func fingerprint(seed byte, content jsonv.Value) uint64 {
	h := hash(hashBasis, []byte{seed})
	for p := range parts(content) {
		if !p.frame && (seed != 'u' || injected(p.text) == "") {
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
