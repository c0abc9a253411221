package legion

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// input emits a text with the role user: a prompt, which begins a turn, a message of another
// minion, which does too, or a text that the agent's own machinery put there. prompt is false
// where the record cannot be one.
func (r *record) input(text msg.Text, meta jsonv.Value, prompt bool) {
	if text.IsZero() {
		return
	}
	head := opening(text)
	switch {
	case bytes.HasPrefix(head, []byte("[Request interrupted by user")):
		r.s.Cut = true
		m := r.status(text)
		m.Hidden = false
		m.SetAttr("subtype", "interrupt")
		return
	case bytes.HasPrefix(head, []byte("<task-notification>")):
		r.status(text).SetAttr("subtype", "task_notification")
		return
	case meta.Get("subtype").Equal("local_command_response"), meta.Get("is_local_command_response").Bool(),
		bytes.HasPrefix(head, []byte("<local-command-stdout>")):
		m := r.add(msg.System, msg.RoleUser)
		m.Key, m.Content = r.key("", 0, text), text
		m.SetAttr("type", r.typ)
		m.SetAttr("subtype", "local_command_response")
		return
	}
	prompt = prompt && r.texts == 0
	key := r.key("", r.texts, text)
	r.texts++
	top := r.lane == &r.s.Top
	if prompt && top {
		r.begin(key)
	}
	m := r.add(msg.User, msg.RoleUser)
	m.Key, m.Content = key, text
	switch {
	case !top: // the agent that delegated wrote it
		m.Agent = msg.Agent{Kind: msg.KindAgent}
	case !prompt:
		m.Agent = msg.Agent{}
	default:
		m.Signal = msg.RunStart
		m.Agent = msg.Agent{Name: userName, Kind: msg.KindHuman}
		r.sender(m, head, meta)
	}
}

// sender records which minion wrote a message to another, and the name under which its call
// is found.
func (r *record) sender(m *msg.Message, head []byte, meta jsonv.Value) {
	h, ok := headline(head)
	headed := ok
	c := meta.Get("comm")
	if c.Is(jsonv.Object) {
		if from := c.First("from_display_name", "from_name"); !ok && from.Exists() {
			h.from = scalar(from)
			ok = h.from != ""
		} else {
			from.Equal(h.from)
		}
		if t := r.sc.name(c.Get("comm_type")); t != "" {
			h.kind, ok = t, true
		}
	}
	if !ok {
		return
	}
	switch h.from {
	case userName, "":
	case systemName:
		m.Agent = msg.Agent{Name: systemName}
	default:
		m.Agent = msg.Agent{ID: scalar(c.Get("from_minion_id")), Name: h.from, Kind: msg.KindAgent}
		if h.channel == "" {
			m.Delegation.CorrelationPrompt = spawn.Sent(system, string(sentText(r.sc.plain(m.Content), headed)))
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

// comm is the headline of a message from minion to minion.
type commHead struct{ kind, from, channel string }

// headline reads "**📋 Task from Minion #ada in channel #docs:** summary" and
// "**🚨 System Error:**".
func headline(head []byte) (h commHead, ok bool) {
	line, ok := bytes.CutPrefix(head, []byte("**"))
	if !ok {
		return h, false
	}
	line, _, ok = bytes.Cut(line, []byte(":**"))
	if !ok || bytes.IndexByte(line, '\n') >= 0 {
		return h, false
	}
	title, from, ok := strings.Cut(string(line), " from Minion #")
	if !ok {
		return commHead{kind: "system", from: systemName}, strings.HasSuffix(title, "System Error")
	}
	if i := strings.LastIndexByte(title, ' '); i >= 0 {
		title = title[i+1:]
	}
	h.kind = strings.ToLower(title)
	h.from, h.channel, _ = strings.Cut(from, " in channel #")
	return h, h.from != ""
}

// opening returns the first bytes of a text, decoded if it begins like one of
// those that have a meaning.
func opening(t msg.Text) []byte {
	const most = 400
	raw, quoted := t.Alias()
	if raw == nil {
		s := t.String()
		return []byte(s[:min(len(s), most)])
	}
	raw = raw[:min(len(raw), most)]
	if quoted && (raw[0] == '*' || raw[0] == '<' || raw[0] == '[') {
		return msg.Quoted(raw).Append(nil)
	}
	return raw
}
