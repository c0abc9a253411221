package claudestream

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxPieces is the size of the pieces of one response that are kept.
const maxPieces = 1 << 20

// envelope reads the members that all lines have, and finds the lane of the line.
func (d *stream) envelope(ln *claude.Line) {
	ln.Name = d.SessionOf(ln.Root.First("session_id", "sessionId"), d.Origin)
	ln.Time = conversation.TimeOf(ln.Root.Get("timestamp"))
	d.enter(ln, ident.Of(ln.Root.Get("parent_tool_use_id")))
}

// enter makes the lane of the sub-agent that the call caused, or the main one, the lane of
// the line.
func (d *stream) enter(ln *claude.Line, call string) {
	l := d.Lane(func(l *claude.Lane) bool { return l.Session == ln.Name && l.Call == call })
	if l == nil {
		l = &claude.Lane{Session: ln.Name, Text: new(conversation.LastText)}
		if call != "" {
			l.Run = conversation.Run{ID: "agent:" + call, Child: true, Parent: msg.UnknownRun, Call: call, Link: msg.ByNativeID}
			if c := d.Calls.Get(call); c != nil {
				c.Causes(l.ID)
				l.ID, l.Parent, l.Name = c.Child, c.Run, c.To
			}
			l.Agent = l.ID
			if main := d.leader(ln.Name); main != nil {
				l.Fork = main.Fork
			}
		}
		d.AddLane(ln, l)
	}
	if ln.Lane, ln.Run = l, ""; !l.Ended {
		ln.Run = l.ID
	}
}

// leader returns the main conversation of a session, or nil.
func (d *stream) leader(session string) *claude.Lane {
	for _, l := range d.Lanes {
		if !l.Child && l.Session == session {
			return l
		}
	}
	return nil
}

// Facts implements claude.Form.
func (*stream) Facts() []string {
	return []string{
		"type", "subtype", "message", "parent_tool_use_id", "request_id", "request", "response",
		"task_id", "status", "duration_ms", "num_turns", "total_cost_usd", "usage", "result",
	}
}

// Cause implements claude.Form: a line without an id of its own is named by the response.
func (*stream) Cause(ln *claude.Line, _ bool) string {
	reply := ident.First(ln.Root.Path("message", "id"), ln.Root.Path("event", "message", "id"))
	switch {
	case ln.Lane.Init != "":
		return ln.Lane.Init
	case claude.IsID(ln.UUID) || reply == "":
		return ln.ID()
	}
	return "turn:" + reply // the usage of the response has the id alone
}

// Started implements claude.Form. A sub-agent works where the main conversation does.
func (d *stream) Started(ln *claude.Line, m *msg.Message) {
	m.Client = ln.Lane.Client
	if main := d.leader(ln.Lane.Session); ln.Lane.Child && main != nil {
		m.Client = main.Client
	}
}

// Launched implements claude.Form.
func (*stream) Launched(*claude.Line, jsonv.Value, *claude.Call) {}

// Notice implements claude.Form: task_notification has the same and more.
func (*stream) Notice(ln *claude.Line, text jsonv.Value) {
	m := ln.Status(ln.ID(), "task-notification")
	m.Content = text.Text()
	m.SetAttr("task_id", claude.Tag(text.Str(), "task-id"))
}

// Interrupted implements claude.Form: the result line, which follows, ends the run.
func (*stream) Interrupted(ln *claude.Line, text jsonv.Value) {
	l := ln.Lane
	ln.Finish(ln, l)
	l.Stop, l.Failed = "interrupted", true
	m := ln.Status(ln.ID(), "interrupted")
	m.Hidden, m.Role = false, msg.RoleUser
	m.Content = text.Text()
}

// Finishing implements claude.Form: the parts of which only pieces have come are emitted, and
// the response counts for the turn.
func (*stream) Finishing(ln *claude.Line, l *claude.Lane) {
	emitPieces(ln.Out, l, true)
	if r := l.Response; !r.Done {
		l.Turn = l.Turn.Add(r.Summed())
	}
}

// partial decodes stream_event: an event of the provider's own stream.
//
//	{"event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "…"}}}
func (d *stream) partial(ln *claude.Line) {
	event, r := ln.Root.Get("event"), ln.Lane.Response
	index := string(event.Get("index").Peek())
	switch typ := event.Get("type").Str(); typ {
	case "message_start":
		ln.Wake(true)
		m := event.Get("message")
		ln.Open(m).Count(ln, m.Get("usage"))
	case "content_block_start":
		content := event.Get("content_block")
		kind := msg.Assistant
		if content.Get("type").Equal("thinking") {
			kind = msg.Reasoning
		} else if !content.Get("type").Equal("text") {
			return
		}
		if r != nil && r.Part(index) == nil {
			r.Append(r.Deltas.Open(index, kind), content.First("text", "thinking").Text(), maxPieces)
		}
	case "content_block_delta":
		d.delta(ln, r, index, event.Get("delta"))
	case "content_block_stop":
		if r != nil {
			if p := r.Part(index); p != nil {
				p.Closed = true
			}
		}
	case "message_delta":
		if r != nil {
			usage := event.Get("usage")
			r.Count(ln, usage)
			r.StopFor(ln.Lane, event.Path("delta", "stop_reason"))
			if usage.Is(jsonv.Object) {
				r.Provenance = msg.Provider
			}
		}
	case "message_stop", "ping":
	case "goal_state": // of Qwen Code
		ln.Status(ln.ID(), typ).Content = event.Get(typ).JSON()
	case "error":
		fault := event.Get("error")
		m := ln.Status(ln.ID(), "stream_error")
		m.Signal, m.Content = msg.Retry, fault.Get("message").Text()
		m.SetAttr("error_type", ident.Of(fault.Get("type")))
	default:
		ln.Unknown("stream_event/"+typ, ln.Root)
	}
}

func (d *stream) delta(ln *claude.Line, r *claude.Response, index string, delta jsonv.Value) {
	if delta.Get("type").Equal("input_json_delta") {
		delta.Get("partial_json").MarkRead() // the whole call follows
	}
	if r == nil {
		return
	}
	if !r.Began {
		r.Began = true
		m := ln.Status("first_token:"+r.ID, "first_token")
		m.Signal = msg.FirstToken
		r.Mark(m)
	}
	r.Append(r.Part(index), delta.First("text", "thinking").Text(), maxPieces)
}

// emitPieces emits the texts of which only pieces have come: partial, or for good when the
// response has ended. A closed one is then complete.
func emitPieces(out *decoder.Output, l *claude.Lane, ended bool) {
	if l.Response == nil || l.Response.Done {
		return
	}
	r := l.Response.Response // a copy: Flush changes nothing
	for _, p := range l.Response.Parts {
		if p.Empty() {
			continue
		}
		m := out.Add()
		m.Kind, m.Key, m.ParentKey = p.Kind, r.Key(p.Kind), r.Last
		m.Session, m.Run, m.Agent, m.Role = l.Session, r.Run, l.Actor(), msg.RoleAssistant
		r.At.Set(m)
		r.Mark(m)
		m.Content = msg.Plain(string(p.Text))
		m.SetAttr("from_pieces", "true")
		if p.Cut {
			m.SetAttr("cut", "true")
		}
		r.Last = m.Key
		if ended {
			if p.Kind == msg.Assistant {
				l.Text.Set(m.Content)
			}
			if p.Closed {
				m.Complete = msg.Complete
			}
		}
	}
	if ended {
		l.Response.Response = r
	}
}

// result decodes the result line, which ends a turn:
//
//	{subtype: success | error_max_turns | error_during_execution | …, is_error, result, usage, modelUsage, total_cost_usd, …}
//
// The tokens of a turn whose result was read before have been counted.
func (d *stream) result(ln *claude.Line) (rule string) {
	root := ln.Root
	d.enter(ln, "")
	l := ln.Lane
	if ln.Run == "" && d.Results.Has(ln.ID()) {
		return claude.RuleRepeated
	}
	if h, ok := d.release(l, root.Get("usage")); ok {
		current := *l
		*l, ln.Run, ln.Time = h, h.ID, h.Spoke
		defer func() {
			current.Before = current.Before.Add(l.Before).Less(h.Before.Add(h.Turn))
			*l = current
		}()
	} else {
		for _, o := range d.Lanes {
			if o.Session == l.Session {
				ln.Finish(ln, o)
			}
		}
	}
	ln.Wake(false)
	again := !d.Results.Add(l.ID, maxResults)
	d.Results.Add(ln.ID(), maxResults)
	if again {
		l.Turn = conversation.Counts{}
		root.Get("usage").MarkRead()
	} else {
		d.remainder(ln, l)
	}
	sub := ident.Of(root.Get("subtype"))
	m := ln.Emit(msg.Stop, ln.ID())
	m.Hidden = true
	m.Model, m.Provider = l.Model, anthropic.Provider("", l.Model)
	m.IsError = root.Get("is_error").Bool() || strings.HasPrefix(sub, "error")
	m.FinishReason = cmp.Or(l.Stop, ident.Of(root.Get("stop_reason")))
	switch {
	case !m.IsError:
		m.FinishReason = cmp.Or(m.FinishReason, sub)
	case l.Stop == "interrupted":
		m.FinishReason, m.Tool.ErrorType = l.Stop, l.Stop
	default:
		m.FinishReason, m.Tool.ErrorType = "error", sub
		if sub == "" || sub == "success" {
			m.Tool.ErrorType = "api_error"
		}
	}
	text := root.Get("result")
	if text.Is(jsonv.String) && len(text.Peek()) > 2 && !l.Text.Is(text.Text()) {
		m.Hidden, m.Content = false, text.Text()
	} else if errors := root.Get("errors"); m.IsError && errors.Len() > 0 {
		m.Hidden, m.Content = false, errors.JSON()
	}
	m.SetAttr("subtype", sub)
	conversation.AttrsAs(m, root, jsonv.Value.Digits, "duration_ms", "duration_api_ms", "num_turns", "total_cost_usd")
	const most = 4096
	if models := root.Get("modelUsage"); models.Len() > 0 && len(models.Peek()) <= most {
		m.SetAttr("model_usage", string(models.Raw()))
	}
	m.SetAttr("permission_denials", conversation.NonZero(root.Get("permission_denials").Len()))
	l.End(m)
	l.Before, l.Turn, l.Init = l.Before.Add(l.Turn), conversation.Counts{}, ""
	return ""
}

// maxHeld is how many turns are remembered whose result is to come.
const maxHeld = 32

// hold ends the turn that goes on when the next one begins. The CLI holds its result back while sub-agents go on
// in the background, and goes on with their answers.
func (d *stream) hold(ln *claude.Line, l *claude.Lane) {
	if l.Response == nil && l.Turn == (conversation.Counts{}) { // the prompt precedes system/init
		return
	}
	if l.Response != nil {
		l.Spoke = l.Response.At
	}
	ln.Finish(ln, l)
	d.Held = bounded.Push(d.Held, *l, maxHeld)
	l.Run, l.Text, ln.Run = conversation.Run{}, new(conversation.LastText), ""
	l.Before, l.Turn = l.Before.Add(l.Turn), conversation.Counts{}
}

// release returns the turn before the current one whose result has that usage: the oldest whose sum it is, or, where it
// is not that of the current one, the oldest.
func (d *stream) release(l *claude.Lane, usage jsonv.Value) (h claude.Lane, ok bool) {
	if len(d.Held) == 0 || !usage.Is(jsonv.Object) {
		return h, false
	}
	total := l.Bill(usage).Counts
	sums := func(l *claude.Lane) bool {
		turn := l.Turn
		if l.Response != nil && !l.Response.Done {
			turn = turn.Add(l.Response.Summed())
		}
		return total.SameInput(turn) || total.SameInput(l.Before.Add(turn))
	}
	if h, ok = bounded.Take(&d.Held, func(h claude.Lane) bool { return h.Session == l.Session && sums(&h) }); ok || sums(l) {
		return h, ok
	}
	return bounded.Take(&d.Held, func(h claude.Lane) bool { return h.Session == l.Session })
}

// remainder emits the tokens that the turn's responses lack: their lines have the output as
// it was then, the result line has all of it. It sums up the turn, or, where the process
// takes several prompts, all turns so far; the other classes, which are exact in each line,
// show which.
func (d *stream) remainder(ln *claude.Line, l *claude.Lane) {
	usage := ln.Root.Get("usage")
	if !usage.Is(jsonv.Object) {
		return
	}
	total := l.Bill(usage).Counts
	rest, ok := total.Sub(l.Turn)
	if !ok || !total.SameInput(l.Turn) {
		if since, more := total.Sub(l.Before.Add(l.Turn)); more {
			rest, ok = since, true
		}
	}
	if !ok || rest == (conversation.Counts{}) {
		return
	}
	m := ln.Emit(msg.Usage, "usage:"+l.ID)
	m.Hidden, m.Model, m.Provider = true, l.Model, anthropic.Provider("", l.Model)
	m.Usage = rest.Tokens(msg.Provider)
	m.Usage.Tier = anthropic.Tier(usage)
	m.SetAttr(msg.RestOf, msg.OfResult)
	l.Turn = l.Turn.Add(rest)
}
