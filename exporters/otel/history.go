package otel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxHistories bounds the runs in the cache; the least recently used is evicted.
const maxHistories = 512

// contentCache keeps the messages of recent runs, because the input of a model and the
// arguments of a slow call arrive in earlier batches than the span that carries them.
// It is not persisted: after a restart a span has the messages since then.
type contentCache struct {
	byRun map[runKey]*history
	order []runKey // least recently used first
}

type runKey struct{ tenant, format, session, run string }

// history is the recent content of one run.
type history struct {
	system, tools []byte  // JSON
	entries       []entry // in order of arrival
	bytes         int     // of all entries
	dropped       int     // messages dropped from the front
}

// entry is a message or one part of it.
type entry struct {
	id   msg.ID
	at   int64
	role string
	chat msg.SpanID // span of the response that has the part
	span msg.SpanID // span of the call, for a call and its result; of the run, for a result whose call was not read
	part part
	// quoted is set on a call whose arguments are no JSON: they are a string in those of the part.
	quoted bool
}

func runKeyOf(m *msg.Message) runKey { return runKey{m.Host.Tenant, m.Host.Format, m.Session, m.Run} }

// history returns the content of the span's run, or nil.
func (t *contentCache) history(s *msg.Span) *history {
	return t.byRun[runKey{s.Tenant, s.Format, s.Session, s.Run}]
}

// record adds the messages of a batch.
func (t *contentCache) record(messages []*msg.Message) {
	for _, m := range messages {
		if m.Host.Tombstone || m.Run == "" {
			continue
		}
		switch s, ok := entryOf(m); {
		case ok:
			t.touch(runKeyOf(m)).add(s)
		case m.Kind == msg.System && m.Role == msg.RoleSystem && !m.Content.IsZero():
			t.touch(runKeyOf(m)).system = instructions(m.Content)
		case m.Kind == msg.Status && m.Attr("type") == msg.TypeTools:
			t.touch(runKeyOf(m)).tools = definitions(m.Content)
		}
	}
}

// evict drops the least recently used runs, and the oldest messages of each run, that
// are over the bounds.
func (t *contentCache) evict() {
	for len(t.order) > maxHistories {
		delete(t.byRun, t.order[0])
		t.order = t.order[1:]
	}
	for _, k := range t.order {
		t.byRun[k].trim()
	}
}

// touch returns the history of a run and makes it the most recently used.
func (t *contentCache) touch(k runKey) *history {
	if n := len(t.order); n > 0 && t.order[n-1] == k {
		return t.byRun[k]
	}
	known := t.byRun[k]
	if known == nil {
		k = runKey{strings.Clone(k.tenant), strings.Clone(k.format), strings.Clone(k.session), strings.Clone(k.run)}
		if known = new(history); t.byRun == nil {
			t.byRun = make(map[runKey]*history)
		}
		t.byRun[k] = known
	} else {
		for i := range t.order {
			if t.order[i] == k {
				k = t.order[i] // before append moves the next one there: one assignment of both has no order
				t.order = append(t.order[:i], t.order[i+1:]...)
				break
			}
		}
	}
	t.order = append(t.order, k)
	return known
}

// entryOf returns the part that a message adds to the conversation; ok is false when it
// adds none.
func entryOf(m *msg.Message) (s entry, ok bool) {
	s = entry{id: m.Host.ID, at: m.Time, chat: m.Host.Chat}
	words := func(t msg.Text) *string {
		w := strings.Clone(truncate(t.String()))
		return &w
	}
	switch m.Kind {
	case msg.User:
		s.role, s.part = "user", part{Type: "text", Content: words(m.Content)}
		if m.Content.IsZero() && len(m.Attachments) > 0 {
			s.part = attachment(&m.Attachments[0])
		}
	case msg.Assistant:
		s.role, s.part = "assistant", part{Type: "text", Content: words(m.Content)}
	case msg.Reasoning:
		s.role, s.part = "assistant", part{Type: "reasoning", Content: words(m.Content)}
	case msg.ToolCall, msg.Delegation:
		s.role, s.span = "assistant", m.Host.SpanID
		s.part = part{Type: "tool_call", ID: strings.Clone(m.Tool.ID()), Name: strings.Clone(m.Tool.Name)}
		s.part.Arguments, s.quoted = arguments(m.Tool.Arguments)
	case msg.ToolResult, msg.DelegationResult:
		s.role, s.span = "tool", m.Host.SpanID
		s.part = part{Type: "tool_call_response", ID: strings.Clone(m.Tool.ID()), Response: words(m.Content), IsError: m.IsError}
	default:
		return entry{}, false
	}
	return s, true
}

// attachment describes a file of a message by its URL, or by its type alone.
func attachment(a *msg.Attachment) part {
	kind, _, _ := strings.Cut(a.MediaType, "/")
	p := part{Type: "attachment", Modality: strings.Clone(kind), MimeType: strings.Clone(a.MediaType)}
	if a.URL != "" {
		p.Type, p.URI = "uri", strings.Clone(truncate(a.URL))
		p.Modality = cmp.Or(p.Modality, "document")
	}
	return p
}

// add appends an entry; a later version of a message replaces the earlier one.
func (t *history) add(s entry) {
	t.bytes += s.part.size()
	for i := len(t.entries) - 1; i >= 0; i-- {
		if t.entries[i].id == s.id {
			t.bytes -= t.entries[i].part.size()
			t.entries[i] = s
			return
		}
	}
	t.entries = append(t.entries, s)
}

// trim drops the oldest entries over maxContent.
func (t *history) trim() {
	n := 0
	for ; t.bytes > maxContent; n++ {
		t.bytes -= t.entries[n].part.size()
	}
	if n == 0 {
		return
	}
	t.dropped += n
	t.entries = append(t.entries[:0:0], t.entries[n:]...)
}

// call returns the arguments and the result of a call, nil where unknown.
func (t *history) call(span msg.SpanID) (arguments, result []byte) {
	for i := range t.entries {
		switch s := &t.entries[i]; {
		case s.span != span || span.IsZero():
		case s.role == "tool":
			result = []byte(*s.part.Response)
		default:
			if arguments = s.part.Arguments; s.quoted {
				arguments = unquoted(arguments)
			}
		}
	}
	return arguments, result
}

// unquoted returns the text of a string in JSON: an attribute of its own is one.
func unquoted(value []byte) []byte {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return value
	}
	return []byte(text)
}

// chat returns the input and output messages of a response. The input is every entry
// before the first part of the output, or before the request where there is no output;
// dropped counts the input messages that were evicted or are over maxContent.
func (t *history) chat(chat msg.SpanID, asked int64) (in, out []message, dropped int) {
	first := -1
	for i := range t.entries {
		s := &t.entries[i]
		if s.chat != chat {
			continue
		}
		if first < 0 {
			first = i
		}
		out = appendPart(out, s)
	}
	if first < 0 {
		for first = 0; first < len(t.entries) && t.entries[first].at <= asked; first++ {
		}
	}
	from, size := first, 0
	for from > 0 && size <= maxContent {
		from--
		size += t.entries[from].part.size()
	}
	if size > maxContent && from < first-1 {
		from++
	}
	for i := from; i < first; i++ {
		in = appendPart(in, &t.entries[i])
	}
	return in, out, t.dropped + from
}

// rest returns the texts of a run, by its span, that are on no span of a response or a call: prompts that no response had as its
// new input, results of calls that were not read, and answers of a program.
func (t *history) rest(run msg.SpanID) (in, out []message) {
	first := make(map[msg.SpanID]int) // the part with which a response begins
	for i := len(t.entries) - 1; i >= 0; i-- {
		first[t.entries[i].chat] = i
	}
	answered := make([]bool, len(t.entries)) // the next message of the assistant begins a response
	next := false
	for i := len(t.entries) - 1; i >= 0; i-- {
		s := &t.entries[i]
		if s.role == "assistant" {
			next = !s.chat.IsZero() && first[s.chat] == i
		}
		answered[i] = next
	}
	for i := range t.entries {
		switch s := &t.entries[i]; {
		case s.role == "user" && !answered[i], s.role == "tool" && t.alone(s, run):
			in = appendPart(in, s)
		case s.role == "assistant" && s.chat.IsZero() && s.part.Type != "tool_call":
			out = appendPart(out, s)
		}
	}
	return in, out
}

// alone reports whether a result is on no span of a call, because that was not read.
func (t *history) alone(result *entry, run msg.SpanID) bool {
	return result.span == run || t.dropped == 0 && !slices.ContainsFunc(t.entries, func(e entry) bool {
		return e.span == result.span && e.part.Type == "tool_call"
	})
}

// appendPart adds a part to the last message if the role is the same, else to a new one.
func appendPart(m []message, s *entry) []message {
	if n := len(m); n > 0 && m[n-1].Role == s.role && s.role != "user" {
		m[n-1].Parts = append(m[n-1].Parts, s.part)
		return m
	}
	return append(m, message{Role: s.role, Parts: []part{s.part}})
}

// instructions returns the value of gen_ai.system_instructions.
func instructions(t msg.Text) []byte {
	words := truncate(t.String())
	b, err := json.Marshal([]part{{Type: "text", Content: &words}})
	if err != nil { // strings always marshal
		return nil
	}
	return b
}

// definitions returns the value of gen_ai.tool.definitions: the definitions, or only the
// tools' types and names where the definitions are over maxContent.
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
