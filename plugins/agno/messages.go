package agno

import (
	"bytes"
	"iter"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A stored run has its messages as they were sent to the model. They have the texts, which its
// events lack, and all of a run that was stored without events:
//
//	{"role":"user","content":"…","created_at":1770000000}
//	{"role":"assistant","content":"…","reasoning_content":"…","tool_calls":[{"id":"c1","function":{"name":"…","arguments":"{…}"}}],"metrics":{…}}
//	{"role":"tool","tool_call_id":"c1","tool_name":"…","tool_args":{…},"content":"…","tool_call_error":false}

// ownMessages yields the messages that belong to a run: not those of its history, nor those
// of the run that it was forked from.
func ownMessages(v jsonv.Value) iter.Seq[jsonv.Value] {
	return func(yield func(jsonv.Value) bool) {
		skip := v.Get("forked_from_message_index").Int()
		for m := range v.Get("messages").Elems() {
			if skip--; skip < 0 && !m.Get("from_history").Bool() && !yield(m) {
				return
			}
		}
	}
}

// textOf returns a message's text: a string, or the text parts of a list.
func textOf(v jsonv.Value) msg.Text {
	if !v.Is(jsonv.Array) {
		return asText(v)
	}
	var all []byte
	for p := range v.Elems() {
		for _, t := range [...]jsonv.Value{p, p.Get("text")} {
			all = append(all, t.Str()...)
		}
	}
	return msg.Plain(string(all))
}

// inputOf returns the prompt of a stored run.
func inputOf(v jsonv.Value) msg.Text {
	in := v.Get("input")
	if content := in.Get("input_content"); content.Kind() != jsonv.Missing {
		in = content
	}
	return asText(jsonv.Or(v.Get("run_input"), in))
}

// emitPrompt emits the prompt of a stored run.
func (b *body) emitPrompt(r *run, at conversation.Time) {
	v := b.stored(r)
	for m := range ownMessages(v) {
		if m.Get("role").In("system", "developer") {
			x := r.add(msg.System, r.key("system"), at)
			x.Role, x.Hidden, x.Content = msg.RoleSystem, true, textOf(m.Get("content"))
			break
		}
	}
	text := inputOf(v)
	if text.IsZero() {
		return
	}
	m := r.input(at, text, msg.Agent{})
	if p := r.parent(); p != nil {
		m.Agent = p.Agent
	}
	if r.Parent == "" {
		m.Agent.Kind = msg.KindHuman
		conversation.AttrsAs(m, v, ident.OrNumber, "user_id")
	}
}

// partOf returns the event that a part of a stored run is, without the fields of the part.
func partOf(v jsonv.Value) event {
	e := event{in: v, said: true}
	e.read(v)
	e.typ, e.created, e.content, e.contentType, e.reasoning = jsonv.Value{}, jsonv.Value{}, jsonv.Value{}, jsonv.Value{}, jsonv.Value{}
	return e
}

// messagesOf returns the events that a stored run's messages are.
func (b *body) messagesOf(v jsonv.Value) (out []*event) {
	part, begin := partOf(v), conversation.TimeOf(v.Get("created_at"))
	part.of = b.run(runID(v))
	all := make([]event, 0, 2+2*v.Get("messages").Len())
	add := func(rule *rule, x jsonv.Value, at conversation.Time) {
		part.v, part.rule, part.at = x, rule, at
		all = append(all, part)
	}
	answers, calls, results := &rule{phase: within, do: (*run).answer}, b.s.rules["ToolCallStarted"], b.s.rules["ToolCallCompleted"]
	add(b.s.rules["RunStarted"], v, begin)
	end := conversation.Time{}
	for m := range ownMessages(v) {
		at := conversation.TimeOf(m.Get("created_at"))
		end = at.Or(end)
		switch {
		case byModel(m):
			add(answers, m, at)
			for t := range m.Get("tool_calls").Elems() {
				add(calls, t, at)
			}
		case m.Get("role").In("tool", "function"), m.Get("tool_call_id").Exists():
			if m.Get("tool_calls").Len() == 0 {
				add(results, m, at)
			}
			for x := range m.Get("tool_calls").Elems() { // those of all calls
				add(results, x, at)
			}
		}
	}
	if took := measured(v.Get("metrics")); end.Nanos == 0 && begin.Nanos != 0 && took > 0 { // no message has a time
		end = begin
		end.Nanos += took
	}
	if rule := b.s.rules[ending(v)]; rule != nil && end.Nanos != 0 { // else the result of its call ends it
		add(rule, v, end)
	}
	out = make([]*event, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// ending is the name of the event that ended or interrupted a stored run, by its status; empty of one that goes on.
func ending(v jsonv.Value) string {
	switch string(v.Get("status").Chars()) {
	case "PENDING", "RUNNING":
		if !v.Path("metrics", "input_tokens").Is(jsonv.Array) { // before 2.0 it was never set to another one
			return ""
		}
	case "PAUSED":
		return "RunPaused"
	case "CANCELLED":
		return "RunCancelled"
	case "ERROR":
		return "RunError"
	}
	return "RunCompleted"
}

// answer decodes a stored response of the model, except for its calls.
func (r *run) answer(e *event) {
	byResponse := e.in.Path("metrics", "details").Exists()
	if byResponse {
		r.Usage.flush(r, msg.Complete)
		r.Usage.name(r)
		r.Usage.Replies++
	}
	r.Text.read(r, e.v)
	if t := tokens(e.v.Get("metrics"), r.Provider, r.Model); byResponse && !t.IsZero() {
		r.Usage.count(t, e.at)
	}
}

// metricsOf returns the metrics of a call in the tools of a stored run.
func (st *storedRun) metricsOf(call string) jsonv.Value {
	if st.metrics == nil {
		st.metrics = make(map[string]jsonv.Value)
		for _, v := range [...]jsonv.Value{st.v, st.embedded} {
			for t := range v.Get("tools").Elems() {
				if m := t.Get("metrics"); measured(m) != 0 {
					st.metrics[ident.PeekOrNumber(t.Get("tool_call_id"))] = m
				}
			}
		}
	}
	return st.metrics[call]
}

// before returns how many of the run's messages, of those that are not read yet, precede an event: up to the call that it
// begins or waits for, and all before the end.
func (st *storedRun) before(e *event) (n int) {
	switch e.rule.phase {
	case callStarts:
		return st.calling(callID(e.tool()))
	case pauses:
		for _, tool := range waiting(e.v, runID(e.v)) {
			n = max(n, st.calling(callID(tool)))
		}
	case ends, fails:
		return len(st.says)
	}
	return n
}

// maxAhead limits the search for the call that a message makes. It is the next one, unless the events have gaps.
const maxAhead = 256

// calling returns how many of the messages are over with that call.
func (st *storedRun) calling(id jsonv.Value) int {
	return 1 + slices.IndexFunc(st.says[:min(len(st.says), maxAhead)], func(x *event) bool {
		own := callID(x.v)
		return x.rule.phase == callStarts && own.Exists() && bytes.Equal(own.Peek(), id.Peek())
	})
}

// say reads the texts in the next messages of a run whose events lack them.
func (st *storedRun) say(r *run, messages int) {
	said, called := false, false
	for _, x := range st.says[:messages] {
		switch {
		case x.rule.phase == callStarts:
			called = callID(x.v).Exists()
		case st.deltas:
			x.v.Skip("content", "reasoning_content")
		case byModel(x.v) && r.Text.read(r, x.v):
			r.Last = x.at.Or(r.Last)
			r.startUnannounced(r.Last)
			st.gaps = st.gaps || called && said // between them is a call that no event has
			st.texts, said = st.texts+1, true
		}
	}
	st.says = st.says[messages:]
}

// read adds the text of a message to the open piece, and reports whether there is any.
func (t *text) read(r *run, m jsonv.Value) bool {
	content, thinking := textOf(m.Get("content")), m.Get("reasoning_content").Text()
	t.add(r, content, thinking, msg.Text{})
	return !content.IsZero() || !thinking.IsZero()
}

// split reports whether the texts of a stored run were emitted between its calls.
func (b *body) split(r *run) bool {
	st := b.run(r.ID)
	return !st.gaps && (st.texts > 0 || len(r.Calls.open()) == len(r.Calls.List))
}
