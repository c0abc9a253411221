package legion

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// result decodes the line that ends a turn. f has its fields (metadata, or
// data), content its text, which is the turn's last text once more.
func (r *record) result(f, content jsonv.Value) {
	s, l := r.s, r.lane
	text := content.Text()
	sub := r.sc.name(f.Get("subtype"))
	if rest, ok := bytes.CutPrefix(body(content), []byte("Conversation ")); ok && string(rest) == sub {
		text = msg.Text{}
	}
	m := r.add(msg.Stop, msg.NoRole)
	part := ""
	if len(r.id) == 0 { // tells two results of one instant apart
		part = "/" + scalar(f.Get("duration_ms")) + "/" + scalar(f.Get("num_turns"))
	}
	m.Key = r.key(part, 0, text)
	m.IsError = f.Get("is_error").Bool()
	if !text.IsZero() && (m.IsError || !s.Said.is(r.sc, text)) {
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
	l.stop(r, m)

	key := m.Key
	if s.Stop == "" {
		s.Stop = strings.Clone(key)
	}
	tokens := tokensOf(f.Get("usage"))
	tokens.Provenance = msg.Provider
	if tokens.IsZero() {
		if tokens = l.Tally.total(); tokens.IsZero() {
			return
		}
	}
	l.Tally = tally{}
	u := r.add(msg.Usage, msg.NoRole)
	u.Hidden, u.Usage = true, tokens
	u.Model, u.Provider = l.Model, providerOf(l.Model)
	u.Key = "usage:" + l.Run
	if s.Stop != key || l.Run == "" { // a second result of the turn has tokens of its own
		u.Key = "usage:" + key
	}
}

// stop makes m the end of the run.
func (l *lane) stop(r *record, m *msg.Message) {
	m.Signal = msg.RunEnd
	if l == &r.s.Top {
		r.s.Open = false
	}
}

// response returns the id of a response; most records of one follow each other.
func (l *lane) response(v jsonv.Value) string {
	if b := chars(v); string(b) != l.Tally.ID {
		return string(b)
	}
	return l.Tally.ID
}

// tally adds up the usage of a run's responses. Every part of a response
// repeats it, growing if anything.
type tally struct {
	Sum       msg.Tokens    `json:"sum,omitzero"`
	Last      msg.Tokens    `json:"last,omitzero"`
	ID        string        `json:"id,omitempty"` // of the last response
	At        int64         `json:"at,omitempty"`
	Precision msg.Precision `json:"precision,omitempty"`
}

func (t *tally) count(response string, u msg.Tokens, at stamp) {
	if response != t.ID {
		t.Sum = t.Sum.Add(t.Last)
		t.ID, t.Last = response, msg.Tokens{}
	}
	l := &t.Last
	l.Input, l.Output = max(l.Input, u.Input), max(l.Output, u.Output)
	l.CacheRead, l.CacheWrite = max(l.CacheRead, u.CacheRead), max(l.CacheWrite, u.CacheWrite)
	l.Reasoning = max(l.Reasoning, u.Reasoning)
	t.At, t.Precision = at.ns, at.precision
}

func (t *tally) total() msg.Tokens {
	u := t.Sum.Add(t.Last)
	u.Provenance = msg.TranscriptPartial
	return u
}

// tell gives the tokens of a run that no result line gave.
func (l *lane) tell(out *decoder.Output, s *session, c msg.Completeness) {
	u := l.Tally.total()
	if u.IsZero() {
		return
	}
	m := out.Add()
	m.Session, m.Kind, m.Hidden = s.id, msg.Usage, true
	m.Key, m.Usage, m.Complete = l.usageKey(), u, c
	m.Model, m.Provider = l.Model, providerOf(l.Model)
	m.Time, m.Precision = l.Tally.At, l.Tally.Precision
	l.mark(m)
}

// settle gives them for good.
func (l *lane) settle(out *decoder.Output, s *session) {
	l.tell(out, s, msg.Complete)
	if !l.Tally.total().IsZero() {
		l.Told++
	}
	l.Tally = tally{}
}

// usageKey names the tokens of a run; those of a sub-agent that spoke again
// after its end are counted on.
func (l *lane) usageKey() string {
	if l.Told == 0 {
		return "usage:" + l.Run
	}
	return "usage:" + l.Run + "/" + strconv.Itoa(l.Told)
}
