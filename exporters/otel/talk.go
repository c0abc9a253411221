package otel

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxTalks bounds the runs whose words are kept: those that spoke last.
const maxTalks = 512

// talks keep what was said in runs whose responses are still to come, because what a
// model is given, and the arguments of a call that takes long, come in earlier batches
// than the span that carries them. It is memory and no state: after a restart spans
// have what came since.
type talks struct {
	byRun map[run]*talk
	order []run // the one that spoke last is the last
}

type run struct{ tenant, format, session, run string }

// talk is what was said in a run.
type talk struct {
	system, tools []byte // JSON
	said          []said // in order
	bytes         int
	dropped       int // from the front, messages
}

// said is a message, or a part of one.
type said struct {
	id   msg.ID
	at   int64
	role string
	chat msg.SpanID // the response that it is of
	span msg.SpanID // of a call and its result
	part piece
}

func runOf(m *msg.Message) run { return run{m.Host.Tenant, m.Host.Format, m.Session, m.Run} }

// in is what was said in the run of the span; nil when nothing was.
func (t *talks) in(s *msg.Span) *talk {
	return t.byRun[run{s.Tenant, s.Format, s.Session, s.Run}]
}

// take takes up the messages of a batch.
func (t *talks) take(messages []msg.Message) {
	for i := range messages {
		m := &messages[i]
		if m.Host.Tombstone || m.Run == "" {
			continue
		}
		if s, ok := wordsOf(m); ok {
			t.talk(runOf(m)).say(s)
			continue
		}
		switch {
		case m.Kind == msg.System && m.Role == msg.RoleSystem && !m.Content.IsZero():
			t.talk(runOf(m)).system = instructions(m.Content)
		case m.Kind == msg.Status && m.Attr("type") == msg.TypeTools:
			t.talk(runOf(m)).tools = definitions(m.Content)
		}
	}
}

// forget drops what is too much, before more comes.
func (t *talks) forget() {
	for len(t.order) > maxTalks {
		delete(t.byRun, t.order[0])
		t.order = t.order[1:]
	}
	for _, k := range t.order {
		t.byRun[k].bound()
	}
}

// talk is that of a run, which speaks now.
func (t *talks) talk(k run) *talk {
	if n := len(t.order); n > 0 && t.order[n-1] == k {
		return t.byRun[k]
	}
	known := t.byRun[k]
	if known == nil {
		k = run{strings.Clone(k.tenant), strings.Clone(k.format), strings.Clone(k.session), strings.Clone(k.run)}
		if known = new(talk); t.byRun == nil {
			t.byRun = make(map[run]*talk)
		}
		t.byRun[k] = known
	} else {
		for i := range t.order {
			if t.order[i] == k {
				k, t.order = t.order[i], append(t.order[:i], t.order[i+1:]...)
				break
			}
		}
	}
	t.order = append(t.order, k)
	return known
}

// wordsOf is what a message adds to what is said; ok is false when it adds nothing.
func wordsOf(m *msg.Message) (s said, ok bool) {
	s = said{id: m.Host.ID, at: m.Time, chat: m.Host.Chat}
	words := func(t msg.Text) *string {
		w := strings.Clone(cut(t.String()))
		return &w
	}
	switch m.Kind {
	case msg.User:
		s.role, s.part = "user", piece{Type: "text", Content: words(m.Content)}
		if m.Content.IsZero() && len(m.Attachments) > 0 {
			s.part = file(&m.Attachments[0])
		}
	case msg.Assistant:
		s.role, s.part = "assistant", piece{Type: "text", Content: words(m.Content)}
	case msg.Reasoning:
		s.role, s.part = "assistant", piece{Type: "reasoning", Content: words(m.Content)}
	case msg.ToolCall, msg.Delegation:
		s.role, s.span = "assistant", m.Host.SpanID
		s.part = piece{Type: "tool_call", ID: strings.Clone(m.Tool.CallID), Name: strings.Clone(m.Tool.Name), Arguments: arguments(m.Tool.Arguments)}
	case msg.ToolResult, msg.DelegationResult:
		s.role, s.span = "tool", m.Host.SpanID
		s.part = piece{Type: "tool_call_response", ID: strings.Clone(m.Tool.CallID), Response: words(m.Content)}
	default:
		return said{}, false
	}
	return s, true
}

// file describes what came beside words: by its address, or by its type alone.
func file(a *msg.Attachment) piece {
	kind, _, _ := strings.Cut(a.MediaType, "/")
	p := piece{Type: "attachment", Modality: strings.Clone(kind), MimeType: strings.Clone(a.MediaType)}
	if a.URL != "" {
		p.Type, p.URI = "uri", strings.Clone(cut(a.URL))
		p.Modality = cmp.Or(p.Modality, "document")
	}
	return p
}

// say adds what is said; a later version of a message takes the place of the earlier.
func (t *talk) say(s said) {
	t.bytes += s.part.size()
	for i := len(t.said) - 1; i >= 0; i-- {
		if t.said[i].id == s.id {
			t.bytes -= t.said[i].part.size()
			t.said[i] = s
			return
		}
	}
	t.said = append(t.said, s)
}

// bound drops the oldest.
func (t *talk) bound() {
	if t.bytes <= maxContent {
		return
	}
	n := 0
	for ; t.bytes > maxContent && n < len(t.said); n++ {
		t.bytes -= t.said[n].part.size()
	}
	t.dropped += n
	t.said = append(t.said[:0:0], t.said[n:]...)
}

// call returns the arguments and the result of a call, nil for what is not known.
func (t *talk) call(span msg.SpanID) (arguments, result []byte) {
	for i := range t.said {
		switch s := &t.said[i]; {
		case s.span != span || span.IsZero():
		case s.role == "tool":
			result = []byte(*s.part.Response)
		default:
			arguments = s.part.Arguments
		}
	}
	return arguments, result
}

// exchange returns what a model was given and what it answered. What was given is what
// was said before the first part of the answer, or before the request where there is no
// answer; dropped counts what of it is not known any more or was too much.
func (t *talk) exchange(chat msg.SpanID, asked int64) (in, out []message, dropped int) {
	first := -1
	for i := range t.said {
		s := &t.said[i]
		if s.chat != chat {
			continue
		}
		if first < 0 {
			first = i
		}
		out = join(out, s)
	}
	if first < 0 {
		for first = 0; first < len(t.said) && t.said[first].at <= asked; first++ {
		}
	}
	from, size := first, 0
	for from > 0 && size <= maxContent {
		from--
		size += t.said[from].part.size()
	}
	if size > maxContent && from < first-1 {
		from++
	}
	for i := from; i < first; i++ {
		in = join(in, &t.said[i])
	}
	return in, out, t.dropped + from
}

// join adds a part: to the last message if it is of the same one, else to a new one.
func join(m []message, s *said) []message {
	if n := len(m); n > 0 && m[n-1].Role == s.role && s.role != "user" {
		m[n-1].Parts = append(m[n-1].Parts, s.part)
		return m
	}
	return append(m, message{Role: s.role, Parts: []piece{s.part}})
}

// instructions is gen_ai.system_instructions.
func instructions(t msg.Text) []byte {
	words := cut(t.String())
	b, err := json.Marshal([]piece{{Type: "text", Content: &words}})
	if err != nil { // strings always marshal
		return nil
	}
	return b
}

// definitions is gen_ai.tool.definitions: where all that is said of the tools is too
// much, their names.
func definitions(t msg.Text) []byte {
	all := t.Append(nil)
	if !json.Valid(all) {
		return nil
	}
	if len(all) <= maxContent {
		return all
	}
	var names []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if json.Unmarshal(all, &names) != nil {
		return nil
	}
	b, err := json.Marshal(names)
	if err != nil || len(b) > maxContent {
		return nil
	}
	return b
}
