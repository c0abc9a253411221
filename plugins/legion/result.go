package legion

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// result decodes the line that ends a turn. Its text repeats the last text of the turn.
func (r *entry) result() {
	s, l, f, content := r.s, r.lane, r.fields, r.content
	if r.head.stored.Is(jsonv.String) {
		content = f.Get("result")
	}
	text, sub := content.Text(), r.sc.name(f.Get("subtype"))
	if rest, ok := bytes.CutPrefix(content.Escaped(), []byte("Conversation ")); ok && string(rest) == sub {
		text = msg.Text{}
	}
	m := r.add(msg.Stop, msg.NoRole)
	part := ""
	if len(r.id) == 0 { // distinguishes two results of one instant
		part = "/" + r.sc.scalar(f.Get("duration_ms")) + "/" + r.sc.scalar(f.Get("num_turns"))
	}
	m.Key = r.key(part, 0, text)
	if m.IsError = f.Get("is_error").Bool(); m.IsError || !s.Text.Is(text) {
		m.Content = text
	}
	m.FinishReason = cmp.Or(r.sc.name(f.Get("stop_reason")), sub)
	if m.IsError {
		m.Tool.ErrorType = cmp.Or(r.sc.name(f.Get("error_type")), sub)
		if s.Top.Stop != "" {
			m.FinishReason, m.Tool.ErrorType = s.Top.Stop, s.Top.Stop
		}
		if m.Content.IsZero() {
			m.Content = f.Get("errors").Text()
		}
	}
	m.Attrs = make([]msg.Attr, 0, 10)
	m.SetAttr("type", "result")
	m.SetAttr("subtype", sub)
	r.sc.attrs(m, f, resultAttrs)
	l.End(m)

	key := m.Key
	if s.Stop == "" {
		s.Stop = strings.Clone(key)
	}
	used := anthropic.Usage(f.Get("usage")).Tokens(msg.Provider)
	if used.IsZero() {
		used = l.Tokens.total()
	}
	if l.Tokens = (tokens{}); used.IsZero() {
		return
	}
	if s.Stop == key && l.ID != "" { // a second result of the turn has tokens of its own
		key = l.ID
	}
	l.usage(r.add(msg.Usage, msg.NoRole), key, used)
}

var resultAttrs = [][]string{{"duration_ms"}, {"duration_api_ms"}, {"num_turns"}, {"total_cost_usd"}, {"error_code"}, {"api_error_status"}, {"terminal_reason"}}
