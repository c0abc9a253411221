package legion

import (
	"bytes"
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// call is a tool call of which a record may follow.
type call struct {
	conversation.Call
	Issued bool   `json:",omitempty"` // its message was emitted; else only a result or a sub-agent named it
	To     string `json:",omitempty"` // of a delegation
	Run    string `json:",omitempty"`
	Parent string `json:",omitempty"` // run
	Caused string `json:",omitempty"` // the call by which its run exists

	Delegates bool       `json:",omitempty"`
	Launched  bool       `json:",omitempty"` // its sub-agent works in the background; the result follows
	Task      string     `json:",omitempty"` // the sub-agent's id
	Wait      msg.Signal `json:",omitempty"` // WaitStart from the question for permission, WaitEnd from the answer
	Request   string     `json:",omitempty"` // for permission

	// Done is Partial until a record reports its end, Summary until one has its result too.
	Done  msg.Completeness `json:",omitempty"`
	Ended int64            `json:",omitempty"` // ns
	Error string           `json:",omitempty"` // class of its failure, if it is known

	Child *lane `json:",omitempty"` // the sub-agent's run
}

// mark makes the message one about the call, of the run that made it.
func (c *call) mark(m *msg.Message) {
	m.Run, m.ParentRun, m.ParentCall = c.Run, c.Parent, c.Caused
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
}

// in records the run that made the call.
func (c *call) in(l *lane) { c.Run, c.Parent, c.Caused = l.ID, l.Parent, l.Call }

// add adds a call of which this is the first record.
func (s *session) add(r *entry, id string) *call {
	c := &call{Call: conversation.Call{ID: id}, Run: s.Top.ID}
	_, evicted := s.Calls.Add(c)
	s.drop(r, evicted)
	return c
}

// call returns the call with that id, which may precede the stream.
func (s *session) call(r *entry, id []byte) *call {
	c := s.Calls.Get(string(id))
	if c == nil {
		c = s.add(r, string(id))
		c.in(r.lane)
	}
	return c
}

// drop emits the tokens of a call that the table has dropped, if any.
func (s *session) drop(r *entry, c *call) {
	if c != nil {
		c.Child.settle(r.Out, s)
	}
}

// newest returns the open call that was issued last of those that fit.
func (s *session) newest(fits func(*call) bool) *call {
	return s.Calls.Newest(func(c *call) bool { return c.Issued && c.Done == msg.Partial && fits(c) })
}

// issue emits a tool call, or the delegation that it is, with its first record.
func (r *entry) issue(b *block) *call {
	id := read(b.id)
	if len(id) == 0 {
		return nil
	}
	c := r.s.Calls.Get(string(id))
	if c != nil && c.Issued { // repeated
		b.name.Equal(c.Name)
		b.input.MarkRead()
		return c
	}
	r.wake()
	key := "call:" + string(id) // the id in it is remembered
	if c == nil {
		c = r.s.add(r, key[len("call:"):])
	}
	m := r.add(msg.ToolCall, msg.RoleAssistant)
	m.Key, m.Tool.CallID = key, key[len("call:"):]
	m.Tool.Name = cmp.Or(r.sc.name(b.name), "unknown")
	m.Tool.Server = conversation.ToolServer(m.Tool.Name)
	m.Tool.Arguments = b.input.JSON()
	r.lane.answer(m, r.response)
	r.at.or(b.timestamp).Set(m)
	c.Issued, c.Name = true, m.Tool.Name
	c.in(r.lane)
	if c.Delegates = r.sc.delegate(m, r.s.Dir, b.input); c.Delegates {
		c.To = m.Delegation.To
		if c.Child != nil { // its messages precede the call
			c.Child.Agent, c.Child.Parent = c.To, c.Run
		}
	}
	return c
}

// toolCall decodes a state of a tool call: one record for each change, each
// with everything known of the call by then.
//
//	pending ─ awaiting_permission ─ running ─ completed | failed
//	                              ╲ denied      interrupted
func (r *entry) toolCall() {
	data := r.fields
	response := r.msg.turn
	if !r.head.stored.Is(jsonv.String) { // flat; there message_id is the record's own id
		data = r.root
		response = data.Get("turn_id")
	} else if !response.Exists() {
		response = r.msg.id
	}
	r.response = r.lane.responseID(response)
	c := r.issue(&block{id: data.Get("tool_use_id"), name: data.Get("name"), input: data.Get("input"), timestamp: data.Get("created_at")})
	if c == nil {
		r.unknown("tool_call", r.Frame.Data)
		return
	}
	cause := data.Get("_triggering_message")
	cause.MarkRead()
	if c.Wait != msg.NoSignal {
		data.Get("permission").MarkRead()
	}
	status := string(read(data.Get("status")))
	class, ended := endings[status]
	switch {
	case ended, status == "running", status == "executing":
		granted := !data.Get("permission_granted").Is(jsonv.False) && status != "denied"
		c.answer(r, granted, data.First("permission_response_at", "started_at", "completed_at"))
	case status == "awaiting_permission", status == "permission_required":
		c.ask(r, cause.Get("data").First("request_id"), cause.Get("timestamp"))
	case status != "pending":
		r.unknown("tool_call "+status, r.Frame.Data)
	}
	if ended {
		o := outcome{at: conversation.TimeOf(data.Get("completed_at")), errorType: class}
		o.text, o.files = anthropic.Content(data.First("result", "error"))
		if class != "" {
			o.text, o.files = anthropic.Content(data.First("error", "result"))
		}
		o.bare = o.text.IsZero() && len(o.files) == 0
		c.finish(r, o)
	}
}

// endings has the error of a call that ended in a state.
var endings = map[string]string{
	"completed": "", "failed": "tool_error", "denied": "denied", "interrupted": interrupted, "orphaned": interrupted,
}

const interrupted = "interrupted"

// toolResult decodes a record of generation 1 that is nothing but a result.
func (r *entry) toolResult() {
	id := read(r.fields.First("tool_use_id", "tool_id"))
	if len(id) == 0 {
		r.unknown(r.typ, r.Frame.Data)
		return
	}
	b := block{content: r.content, isError: r.fields.Get("is_error")}
	o := b.outcome(false)
	o.failed = o.failed || r.typ == "tool_error"
	r.s.call(r, id).finish(r, o)
}

// outcome is how a call ended.
type outcome struct {
	text      msg.Text
	files     []msg.Attachment
	failed    bool
	errorType string // by the protocol
	bare      bool   // only the end is known; a record with the text may follow
	launched  bool   // it only reports that a sub-agent works in the background now
	at        conversation.Time
}

func (b *block) outcome(launched bool) outcome {
	o := outcome{failed: b.isError.Bool(), launched: launched, at: conversation.TimeOf(b.timestamp)}
	o.text, o.files = anthropic.Content(b.content)
	return o
}

// finish emits a call's result once: the first with a text, or one without until then.
func (c *call) finish(r *entry, o outcome) {
	failed := o.failed || o.errorType != ""
	switch {
	case c.Delegates && !failed && (o.launched || bytes.HasPrefix(opening(o.text), []byte("Async agent launched"))):
		if !c.Launched && c.Done == msg.Partial {
			c.Launched = true
			m := r.status("launched", o.text)
			m.Key = "launched:" + c.ID
			c.mark(m)
		}
		return
	case c.Done == msg.Complete || c.Done == msg.Summary && o.bare:
		return
	case c.Done == msg.Partial:
		c.Child.settle(r.Out, r.s)
		r.s.drop(r, r.s.Calls.End(c))
	}
	m := r.Out.Add()
	m.Session, m.Kind, m.Role = r.s.ID, msg.ToolResult, msg.RoleTool
	r.sc.key = append(append(r.sc.key[:0], "result:"...), c.ID...)
	m.Key = r.sc.str(r.sc.key)
	c.mark(m)
	m.Tool.Server = conversation.ToolServer(c.Name)
	if c.Caused != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	m.Content, m.Attachments = o.text, o.files
	o.at.Or(r.at.Time).Set(m)
	if c.Done == msg.Summary { // the end that was recorded before counts
		failed, o.errorType = failed || c.Error != "", cmp.Or(c.Error, o.errorType)
		m.Time = c.Ended
	}
	if m.IsError = failed; failed {
		m.Tool.ErrorType = cmp.Or(o.errorType, c.Error, errorType(o.text))
	}
	if m.Complete = msg.Complete; o.bare {
		m.Complete = msg.Summary
	}
	if c.Delegates {
		m.Kind = msg.DelegationResult
		m.Delegation.To = c.To
		if c.Child != nil {
			m.Delegation.ChildRun, m.Delegation.Link = c.Child.ID, msg.ByNativeID
		}
		if c.To == spawn.Codex {
			raw, _ := o.text.Alias()
			m.Delegation.CorrelationID = spawn.Output(raw)
		}
	}
	c.Done, c.Ended, c.Error = m.Complete, m.Time, m.Tool.ErrorType
}

// errorType returns the class of a failure that the protocol only calls an error.
func errorType(text msg.Text) string {
	head := opening(text)
	for _, known := range [...]struct{ begin, class string }{
		{"User denied permission", "denied"},
		{"The user doesn't want to", "denied"},
		{"[Request interrupted", interrupted},
		{"<tool_use_error>InputValidationError", "validation"},
	} {
		if bytes.HasPrefix(head, []byte(known.begin)) {
			return known.class
		}
	}
	return "tool_error"
}

// permission decodes a request for a permission, or its answer. Older ones name
// neither the call nor, in the answer, the request.
func (r *entry) permission() {
	field := func(keys ...string) (found jsonv.Value) {
		for _, key := range keys {
			for _, v := range [...]jsonv.Value{r.fields, r.root, r.head.data, r.head.content} {
				if x := v.Get(key); x.Exists() {
					return x
				}
			}
		}
		return found
	}
	asked := r.typ == "permission_request"
	id, request, tool := field("tool_use_id"), field("request_id"), field("tool_name")
	c := r.s.Calls.Get(string(id.Chars()))
	if c == nil {
		c = r.s.newest(func(c *call) bool {
			if asked {
				return c.Wait == msg.NoSignal && tool.Equal(c.Name)
			}
			return c.Wait == msg.WaitStart && (!request.Exists() || request.Equal(c.Request))
		})
	}
	phrase := "Permission requested for tool: "
	if c == nil {
		m := r.status("", msg.Text{})
		if request.Exists() {
			m.Key = r.typ + ":" + r.sc.scalar(request)
		}
		m.SetAttr("tool", r.sc.scalar(tool))
		field("content").Equal(phrase + tool.PeekStr())
		return
	}
	if asked {
		c.ask(r, request, r.head.timestamp)
		field("input_params").MarkRead()
	} else {
		c.answer(r, field("decision", "behavior").Equal("allow"), r.head.timestamp)
	}
	id.Equal(c.ID)
	tool.Equal(c.Name)
	known(request)
	field("content").Equal(phrase + c.Name)
}

// ask begins the wait of a call for a permission, and answer ends it.
func (c *call) ask(r *entry, request, at jsonv.Value) {
	if c.Wait == msg.NoSignal && c.Done == msg.Partial {
		c.Request = string(read(request))
		c.wait(r, msg.WaitStart, "wait:", at)
	}
}

func (c *call) answer(r *entry, granted bool, at jsonv.Value) {
	if c.Wait != msg.WaitStart {
		return
	}
	decision := "allow"
	if !granted {
		decision, c.Error = "deny", "denied"
	}
	c.wait(r, msg.WaitEnd, "waited:", at).SetAttr("decision", decision)
}

func (c *call) wait(r *entry, signal msg.Signal, prefix string, at jsonv.Value) *msg.Message {
	m := r.add(msg.Status, msg.NoRole)
	m.Key = prefix + c.ID
	c.mark(m)
	c.Wait, m.Signal, m.Hidden = signal, signal, true
	r.at.or(at).Set(m)
	m.SetAttr("type", "permission")
	return m
}
