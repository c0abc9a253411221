package legion

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// result decodes the line that ends a turn. f has its fields (metadata, or data), content
// repeats the last text of the turn.
func (r *record) result(f, content jsonv.Value) {
	s, l := r.s, r.lane
	text := content.Text()
	sub := r.sc.name(f.Get("subtype"))
	if rest, ok := bytes.CutPrefix(content.Escaped(), []byte("Conversation ")); ok && string(rest) == sub {
		text = msg.Text{}
	}
	m := r.add(msg.Stop, msg.NoRole)
	part := ""
	if len(r.id) == 0 { // distinguishes two results of one instant
		part = "/" + scalar(f.Get("duration_ms")) + "/" + scalar(f.Get("num_turns"))
	}
	m.Key = r.key(part, 0, text)
	m.IsError = f.Get("is_error").Bool()
	if !text.IsZero() && (m.IsError || !s.Text.Is(text)) {
		m.Content = text
	}
	if m.FinishReason = r.sc.name(f.Get("stop_reason")); m.FinishReason == "" {
		m.FinishReason = sub
	}
	if m.IsError {
		m.Tool.ErrorType = cmp.Or(r.sc.name(f.Get("error_type")), sub)
		if s.Cut {
			m.FinishReason, m.Tool.ErrorType = "interrupted", "interrupted"
		}
		if m.Content.IsZero() {
			m.Content = f.Get("errors").Text()
		}
	}
	m.Attrs = make([]msg.Attr, 0, 10)
	m.SetAttr("type", "result")
	m.SetAttr("subtype", sub)
	r.attrs(m, f, "duration_ms", "duration_api_ms", "num_turns", "total_cost_usd", "error_code", "api_error_status", "terminal_reason")
	r.end(m)

	key := m.Key
	if s.Stop == "" {
		s.Stop = strings.Clone(key)
	}
	used := anthropic.Usage(f.Get("usage")).Tokens(msg.Provider)
	if used.IsZero() {
		if used = l.Tokens.total(); used.IsZero() {
			return
		}
	}
	l.Tokens = tokens{}
	u := r.add(msg.Usage, msg.NoRole)
	u.Hidden, u.Usage = true, used
	u.Model, u.Provider = l.Model, anthropic.Provider("", l.Model)
	u.Key = "usage:" + l.ID
	if s.Stop != key || l.ID == "" { // a second result of the turn has tokens of its own
		u.Key = "usage:" + key
	}
}
