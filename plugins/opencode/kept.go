package opencode

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// kept decodes the messages that version 2 keeps, of which an answer is written again at each step of it.
type kept struct{ *stream }

// message decodes a message of version 2: its id and its type are beside its content in a row, and in it in an export.
//
//	{id, session_id, type, seq, time_created, time_updated, data: {…}}
//	{id, type, …}
func (d kept) message(s *session, of, v jsonv.Value) bool {
	id, typ := ident.Of(of.Get("id")), ident.Of(of.Get("type"))
	if id == "" || !v.Is(jsonv.Object) {
		return false
	}
	if s.Whole && !s.Second || d.Seen.Has("kept:"+id) { // versions before have it in parts; it has come
		v.MarkRead()
		return true
	}
	d.At = conversation.TimeOf(v.Path("time", "created"))
	over := true
	switch copied := forked(id, of.Get("seq")) || 0 < d.At.Nanos && d.At.Nanos < s.Began; { // its row may come before that of the fork
	case copied:
		d.repeats(s, id, typ, v)
	case typ == "user":
		d.asks(s, id, v)
	case typ == "synthetic":
		conversation.Attrs(d.injected(steps(d).begins(s, id, cmp.Or(s.User, id), true), id, v.Get("text")), v, "description")
	case typ == "system", typ == "skill":
		m := d.add(s, s.Run.Going(), msg.System, id)
		m.Hidden, m.Content = true, v.Get("text").Text()
		conversation.Attrs(m, v, "description", "skill", "name")
	case typ == "assistant":
		over = d.answers(s, id, of, v)
	case typ == "shell": // of a person
		if over = !v.Get("status").Equal("running"); over {
			m := d.status(s, "", id, typ)
			m.Role, m.Agent, m.Content = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, v.Path("output", "output").Text()
			conversation.Attrs(m, v, "shellID", "command", "status")
			conversation.AttrsAs(m, v, jsonv.Value.Digits, "exit")
		} else {
			v.Skip("shellID", "command")
		}
	case typ == "compaction":
		over = d.compacts(s, id, jsonv.Word(v.Get("status"), "running", "completed", "failed") == "running", v.Get("summary"), v)
	case typ == "idle":
		s.Idle = d.At.Nanos
		d.stop(s, cmp.Or(outcomes[jsonv.Word(v.Get("outcome"), "succeeded", "failed", "interrupted")], "stop"))
		d.rest(s)
	case typ == "agent-switched", typ == "model-switched", typ == "location-switched":
		d.status(s, s.Run.Going(), "event:evt_"+strings.TrimPrefix(id, "msg_"), typ).Content = v.JSON()
	default:
		return false
	}
	if over {
		d.Seen.Add("kept:"+id, maxSeen)
	}
	return true
}

// forked reports whether an id is that of a copy that a fork makes: of the event of the fork, and the place of the message.
func forked(id string, seq jsonv.Value) bool {
	return seq.Exists() && strings.HasSuffix(id, "_"+string(seq.Peek()))
}

// outcomes are the reasons for which the work of a session ends other than well.
var outcomes = map[string]string{"failed": "error", "interrupted": "interrupted"}

// repeats decodes a message that a fork repeats.
func (d kept) repeats(s *session, id, typ string, v jsonv.Value) {
	if typ == "user" {
		d.copied(&message{Session: s.ID, User: true}, id, "text", v)
	}
	n := 0
	for item := range v.Get("content").Elems() {
		if item.Get("type").Equal("text") {
			d.copied(&message{Session: s.ID}, part(id, "text", n), "text", item)
			n++
		}
	}
	v.MarkRead()
}

// part names a text of a response, as the events do.
func part(id, kind string, n int) string { return id + "/" + kind + "/" + strconv.Itoa(n) }

// asks decodes a prompt. While the work on one before it goes on, it steers that.
func (d kept) asks(s *session, id string, v jsonv.Value) {
	text := v.Get("text")
	d.linked(s, text.PeekStr())
	m := d.prompt(steps(d).begins(s, id, id, s.Run.Active() && s.Parent == ""), id)
	m.Content, m.Attachments = text.Text(), content(v.Get("files")).Files
	conversation.AttrsAs(m, v, conversation.ShortJSON, "agents", "skills")
}

// spawned is the text of version 2 before the task of a sub-agent.
const spawned = "You are a subagent spawned by another session.\n"

// likely is how sure a link by the prompt of two sessions, of which one is below the other, is.
const likely = 90

// linked links a sub-agent to the call that has its prompt: the call names the session only at its end.
func (d kept) linked(s *session, prompt string) {
	if s.Parent == "" || s.Run.Call != "" {
		return
	}
	task := msg.HashKey(strings.TrimPrefix(prompt, spawned))
	c := d.Calls.Oldest(func(c *call) bool { return c.Task && c.Child == "" && c.Prompt == task })
	if c == nil {
		return
	}
	if rec := d.known(c.Message); rec != nil && rec.Session == s.Parent {
		calls(d).links(rec, c, s.ID, msg.ByPrompt, likely)
	}
}

// answers decodes a response of the model, and reports whether it is over.
func (d kept) answers(s *session, id string, of, v jsonv.Value) (over bool) {
	began, rec := d.At, d.known(id)
	if rec == nil {
		rec = d.remember(message{ID: id, Session: s.ID, Run: s.turn(cmp.Or(s.User, id), false)})
		rec.Agent = ident.Peek(v.Get("agent"))
		conversation.Attrs(d.begin(rec, s.User, v.Path("model", "id"), v.Path("model", "providerID")), v, "agent", "model.variant")
	} else {
		v.Skip("agent", "model")
	}
	end := conversation.TimeOf(v.Path("time", "completed"))
	streamed := conversation.TimeOf(v.Path("time", "streamed")).Or(end)
	n := make(map[string]int)
	for item := range v.Get("content").Elems() {
		typ := ident.Of(item.Get("type"))
		item.Skip("native", "executed", "providerState", "providerResultState")
		switch kind := kinds[typ]; {
		case kind != 0:
			key := part(id, typ, n[typ])
			n[typ]++
			item.Skip("state") // of its provider
			if d.At = conversation.TimeOf(item.Path("time", "completed")).Or(streamed); d.At.Nanos > 0 {
				d.said(rec, kind, key, item.Get("text"))
			} else {
				d.Parts.Drop(d.Parts.Part(key))
				d.piece(rec, kind, key, item.Get("text"))
			}
		case typ == "tool":
			d.At = conversation.TimeOf(item.Get("time").First("ran", "created")).Or(began)
			d.calls(rec, item)
		default:
			d.unknown(typ, item)
		}
	}
	switch r := v.Get("retry"); {
	case !r.Is(jsonv.Object):
	case d.Seen.Add("retry:"+id+r.Get("attempt").Digits(), maxSeen):
		d.At = conversation.TimeOf(of.Get("time_updated")).Or(began)
		d.retried(s, id, r.Get("attempt"), r.Path("error", "message"))
	default:
		r.MarkRead()
	}
	fault := v.Get("error")
	if end.Nanos == 0 && !fault.Exists() {
		return false
	}
	d.At = end.Or(began)
	finish := ident.Of(v.Get("finish"))
	d.counted(s, rec, v, finish)
	d.finished(rec, cmp.Or(d.failed(s, fault), finish, "stop"))
	return true
}

// calls decodes a call of a response: {id, name, state: {status, input, content, metadata, error}, time: {created, ran, completed}}.
func (d kept) calls(rec *message, v jsonv.Value) {
	id, state := ident.Peek(v.Get("id")), v.Get("state")
	over := "over:" + ident.Within(rec.ID, id)
	switch {
	case id == "":
		d.unknown("tool", v)
		return
	case d.Seen.Has(over):
		v.MarkRead()
		return
	}
	status := jsonv.Word(state.Get("status"), "running", "completed", "error")
	if calls(d).tool(rec, "", v.Get("id"), v.Get("name"), cmp.Or(status, "pending"), state, conversation.TimeOf(v.Path("time", "completed"))) {
		d.Seen.Add(over, maxSeen)
	}
}

// counted emits the tokens of a response of version 2, whose reasoning is apart from the output.
func (d kept) counted(s *session, rec *message, v jsonv.Value, finish string) {
	if t := v.Get("tokens"); t.Is(jsonv.Object) {
		c := counts(t, true)
		d.tokens(rec, c, v, msg.Complete, finish)
		s.Sum, s.Spent = s.Sum.Add(c), s.Spent+v.Get("cost").Float()
	}
}

// compacts decodes a compaction of the context, and reports whether it is over.
func (d kept) compacts(s *session, id string, running bool, summary, v jsonv.Value) (over bool) {
	if key := "compaction:" + id; d.Seen.Add(key, maxSeen) {
		m := d.status(s, s.Run.Going(), key, "compaction")
		record.Signal(m, msg.Compaction)
		conversation.Attrs(m, v, "reason")
	} else {
		v.Skip("reason")
	}
	if running {
		summary.MarkRead() // the end has the whole
		return false
	}
	rec := &message{ID: id, Session: s.ID, Run: s.Run.Going(), Summary: true}
	rec.Response = conversation.Response{ID: id, At: d.At, Model: ident.Of(v.Path("model", "id")), Provider: ident.Of(v.Path("model", "providerID"))}
	d.said(rec, msg.Assistant, part(id, "text", 0), summary)
	d.counted(s, rec, v, "")
	d.failed(s, v.Get("error"))
	return true
}

// sum reads the tokens of a session that OpenCode adds up in its row.
func (d kept) sum(s *session, v jsonv.Value) {
	in, out, reasoning := v.Get("tokens_input").Uint(), v.Get("tokens_output").Uint(), v.Get("tokens_reasoning").Uint()
	s.Total = conversation.Counts{
		Input: in, Output: out + reasoning, Reasoning: reasoning, CacheRead: v.Get("tokens_cache_read").Uint(), CacheWrite: v.Get("tokens_cache_write").Uint(),
	}
	if t := v.Get("tokens"); t.Is(jsonv.Object) { // of an export
		s.Total = counts(t, true)
	}
	s.Cost, s.Until = v.Get("cost").Float(), conversation.TimeOf(jsonv.Or(v.Get("time_idle"), v.Path("time", "idle"))).Nanos
	d.rest(s)
}

// rest emits the tokens of a session that are of no message: those of its title and, in early versions, of its compactions.
// They are known when the session is idle and all its messages have come.
func (d kept) rest(s *session) {
	none := conversation.Counts{}
	if !s.Counted || s.Whole || s.Run.Active() || s.Sum == none || s.Idle < s.Until {
		return
	}
	rest, _ := s.Total.Max(s.Sum).Sub(s.Sum)
	if rest == none && s.Rest == none {
		return
	}
	s.Rest = rest
	m := s.Share(d.Out, "/rest", rest, "", "", conversation.Time{Nanos: s.Began, Precision: msg.Millis})
	const digits = 1e9
	cost := strconv.FormatFloat(math.Round(max(s.Cost-s.Spent, 0)*digits)/digits, 'f', -1, 64)
	m.SetAttr("cost", cost)
	m.Usage.Stated = msg.Dollars(cost)
}
