package legion

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// user decodes a record with the role user: results of tools, or a text. A text beside a result
// is no prompt, and neither is one of generation 2 while a turn is active: the agent's own
// machinery put it there.
func (r *entry) user() {
	before, result := len(r.Out.Messages), r.msg.toolResult
	given := hasResult(r.msg.toolResults)
	r.launched = result.Get("isAsync").Bool() || result.Get("status").Equal("async_launched")
	result.MarkRead()
	r.prompt = !given && !hasResult(r.content) && !(r.head.stored.Exists() && r.s.Top.Active())
	r.blocks(r.msg.toolUses, "tool_use")
	r.blocks(r.msg.toolResults, "tool_result")
	switch {
	case r.content.Is(jsonv.Array):
		r.blocks(r.content, "")
	case countsResults(r.content.Escaped()) && (given || r.fields.Get("has_tool_results").Bool()):
		r.content.MarkRead()
	default:
		r.input(r.content.Text())
	}
	r.sdkMessage(before)
}

// hasResult reports whether a list of blocks has the result of a call.
func hasResult(list jsonv.Value) bool {
	for b := range list.Elems() {
		if b.Get("tool_use_id").Exists() {
			return true
		}
	}
	return false
}

// countsResults reports whether the text is the writer's "Tool results: N results", which
// replaces a missing text.
func countsResults(b []byte) bool {
	b, ok := bytes.CutPrefix(b, []byte("Tool results: "))
	n, end := bytes.CutSuffix(b, []byte(" results"))
	return ok && end && len(n) > 0 && len(bytes.Trim(n, "0123456789")) == 0
}

// input emits a text with the role user: a prompt, which begins a turn, a message of another
// minion, which does too, or a text that the agent's own machinery put there.
func (r *entry) input(text msg.Text) {
	if text.IsZero() {
		return
	}
	head, meta := opening(text), r.head.metadata
	switch {
	case bytes.HasPrefix(head, []byte("[Request interrupted by user")):
		r.s.Top.Stop = interrupted
		r.status("interrupt", text).Hidden = false
		return
	case bytes.HasPrefix(head, []byte("<task-notification>")):
		r.status("task_notification", text)
		return
	case meta.Get("subtype").Equal(localCommand), meta.Get("is_" + localCommand).Bool(), bytes.HasPrefix(head, []byte("<local-command-stdout>")):
		r.about(msg.System, msg.RoleUser, r.typ, localCommand, text)
		return
	}
	prompt, top := r.prompt && r.texts == 0, r.lane == &r.s.Top
	key := r.key("", r.texts, text)
	r.texts++
	if prompt && top {
		r.s.begin(r.Out, key)
	}
	m := r.add(msg.User, msg.RoleUser)
	m.Key, m.Content = key, text
	switch {
	case !top: // the agent that delegated wrote it
		m.Agent = msg.Agent{Kind: msg.KindAgent}
	case prompt:
		m.Signal = msg.RunStart
		m.Agent = msg.Agent{Name: userName, Kind: msg.KindHuman}
		r.sc.sender(m, head, meta.Get("comm"))
	}
}

const localCommand = "local_command_response"

// sender records which minion wrote a message to another, and the name under which its call
// is found.
func (sc *scratch) sender(m *msg.Message, head []byte, c jsonv.Value) {
	h, headed := headline(head)
	if from := c.First("from_display_name", "from_name"); headed {
		from.Equal(h.from)
	} else {
		h = commHead{from: sc.scalar(from)}
	}
	if t := sc.name(c.Get("comm_type")); t != "" {
		h.kind = t
	}
	switch h.from {
	case userName, "":
	case systemName:
		m.Agent = msg.Agent{Name: systemName}
	default:
		m.Agent = msg.Agent{ID: sc.scalar(c.Get("from_minion_id")), Name: h.from, Kind: msg.KindAgent}
		if h.channel == "" {
			m.Delegation.CorrelationPrompt = spawn.Sent(system, string(sentText(sc.plain(m.Content), headed)))
		}
	}
	m.SetAttr("comm_type", h.kind)
	m.SetAttr("from", h.from)
	m.SetAttr("channel", h.channel)
}

// The names under which the writer and the user speak.
const (
	systemName = "system"
	userName   = "user"
)

// commHead is the headline of a message from minion to minion.
type commHead struct{ kind, from, channel string }

// headline reads "**📋 Task from Minion #ada in channel #docs:** summary" and
// "**🚨 System Error:**".
func headline(head []byte) (h commHead, ok bool) {
	line, begins := bytes.CutPrefix(head, []byte("**"))
	line, _, ends := bytes.Cut(line, []byte(":**"))
	if !begins || !ends || bytes.IndexByte(line, '\n') >= 0 {
		return h, false
	}
	title, from, ok := strings.Cut(string(line), " from Minion #")
	if !ok {
		return commHead{kind: "system", from: systemName}, strings.HasSuffix(title, "System Error")
	}
	h.kind = strings.ToLower(title[strings.LastIndexByte(title, ' ')+1:])
	h.from, h.channel, _ = strings.Cut(from, " in channel #")
	return h, h.from != ""
}

// opening returns the first bytes of a text, decoded if it begins like one of
// those that have a meaning.
func opening(t msg.Text) []byte {
	const most = 400
	raw, quoted := t.Alias()
	if raw == nil {
		raw = []byte(t.String())
	}
	raw = raw[:min(len(raw), most)]
	if quoted && (raw[0] == '*' || raw[0] == '<' || raw[0] == '[') {
		return msg.Quoted(raw).Append(nil)
	}
	return raw
}
