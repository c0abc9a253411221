package legion

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// call is a tool call of which a record may follow. It has a name once its message was emitted; else
// only a result or a sub-agent named it.
type call struct {
	conversation.Call
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
	Ended int64            `json:",omitempty"` // ns, or when its sub-agent was launched
	Error string           `json:",omitempty"` // class of its failure, if it is known

	Child *lane `json:",omitempty"` // the sub-agent's run
}

// mark makes the message one about the call, of the run that made it.
func (c *call) mark(m *msg.Message) {
	m.Run, m.ParentRun, m.ParentCall = c.Run, c.Parent, c.Caused
	m.Tool.CallID, m.Tool.Name, m.Tool.ProtocolID = c.ID, c.Name, c.ProtocolID
}

// in records the run that made the call.
func (c *call) in(l *lane) { c.Run, c.Parent, c.Caused = l.ID, l.Parent, l.Call }

// call returns the call with that id, which may precede the stream.
func (s *session) call(r *entry, id string) *call {
	if c := s.Calls.Named(id); c != nil {
		return c
	}
	return s.add(r, id)
}

// add adds a call of the run.
func (s *session) add(r *entry, id string) *call {
	c := &call{Call: conversation.Call{ID: strings.Clone(id)}}
	c.Within(cmp.Or(r.response, r.id, string(r.written)))
	c.in(r.lane)
	_, evicted := s.Calls.Add(c)
	evicted.close(r)
	return c
}

// close emits the tokens of the call's sub-agent: it has ended, or the call is evicted, if one is.
func (c *call) close(r *entry) {
	if c != nil {
		c.Child.emitTokens(r.Out, r.s, msg.Complete)
	}
}

// newest returns the open call that was issued last of those that fit.
func (s *session) newest(fits func(*call) bool) *call {
	return s.Calls.Newest(func(c *call) bool { return c.Name != "" && c.Done == msg.Partial && fits(c) })
}

// issue emits a tool call, or the delegation that it is, with its first record.
func (r *entry) issue(of, name, input, at jsonv.Value) *call {
	id := r.StrOf(of)
	if id == "" {
		return nil
	}
	c := r.s.Calls.Named(id)
	if c != nil && c.ProtocolID != "" && 0 < c.Ended && c.Ended < r.time(at).Nanos {
		c = nil // a call that begins after the end of the one with its number is another
	}
	if c != nil && c.Name != "" { // repeated
		name.Equal(c.Name)
		input.MarkRead()
		return c
	}
	r.wake()
	if c == nil {
		c = r.s.add(r, id)
	}
	c.Name = cmp.Or(r.Name(name), "unknown")
	c.in(r.lane)
	m := r.add(msg.ToolCall, msg.RoleAssistant)
	m.Key, m.Tool.Arguments = r.Join("call:", c.ID), input.JSON()
	c.On(m)
	r.lane.answer(m, r.response)
	r.time(at).Set(m)
	if c.Delegates = delegate(r.Memory, m, r.s.Dir, input); c.Delegates {
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
	f, turn := r.fields, r.msg.turn
	if !r.stored {
		f, turn = r.root, r.head.turn
	}
	r.response = r.StrOf(jsonv.Or(turn, r.msg.id))
	c := r.issue(f.Get("tool_use_id"), f.Get("name"), f.Get("input"), f.Get("created_at"))
	if c == nil {
		r.unknown("tool_call", r.Root)
		return
	}
	cause := f.Get("_triggering_message")
	cause.MarkRead()
	if c.Wait != msg.NoSignal {
		f.Get("permission").MarkRead()
	}
	status := r.StrOf(f.Get("status"))
	class, ended := endings[status]
	switch {
	case ended, status == "running", status == "executing":
		granted := !f.Get("permission_granted").Is(jsonv.False) && status != "denied"
		c.answer(r, granted, f.First("permission_response_at", "started_at", "completed_at"))
	case status == "awaiting_permission", status == "permission_required":
		c.ask(r, cause.Get("data").First("request_id"), cause.Get("timestamp"))
	case status != "pending":
		r.unknown("tool_call "+status, r.Root)
	}
	if ended {
		said := f.First("result", "error")
		if class != "" {
			said = f.First("error", "result")
		}
		o := outcomeOf(said, class != "", f.Get("completed_at"))
		o.class, o.bare = class, o.text.IsZero() && len(o.files) == 0
		c.finish(r, o)
	}
}

// endings has the error of a call that ended in a state.
var endings = map[string]string{
	"completed": "", "failed": "tool_error", "denied": "denied", "interrupted": interrupted, "orphaned": interrupted,
}

const interrupted = "interrupted"

// outcome is how a call ended.
type outcome struct {
	text   msg.Text
	files  []msg.Attachment
	failed bool
	class  string // of the failure, by the protocol
	bare   bool   // only the end is known; a record with the text may follow
	at     conversation.Time
}

func outcomeOf(content jsonv.Value, failed bool, at jsonv.Value) outcome {
	o := outcome{failed: failed, at: conversation.TimeOf(at)}
	o.text, o.files = anthropic.Content(content)
	return o
}

// finish emits a call's result once: the first with a text, or one without until then.
func (c *call) finish(r *entry, o outcome) {
	switch {
	case c.Delegates && !o.failed && (r.launched || bytes.HasPrefix(r.Plain(o.text), []byte("Async agent launched"))):
		if !c.Launched && c.Done == msg.Partial {
			c.Launched, c.Ended = true, r.At.Nanos
			m := r.status("launched", o.text)
			m.Key = r.Join("launched:", c.ID)
			c.mark(m)
		}
		return
	case c.Done == msg.Complete || c.Done == msg.Summary && o.bare:
		return
	case c.Done == msg.Partial:
		c.close(r)
		r.s.Calls.End(c).close(r)
	}
	m := r.Out.Add()
	m.Session, m.Kind, m.Role = r.s.ID, msg.ToolResult, msg.RoleTool
	m.Key, m.Content, m.Attachments = r.Join("result:", c.ID), o.text, o.files
	c.mark(m)
	c.On(m)
	if c.Caused != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	o.at.Or(r.At).Set(m)
	if c.Done == msg.Summary { // the end that was recorded before counts
		o.failed, o.class = o.failed || c.Error != "", cmp.Or(c.Error, o.class)
		m.Time = c.Ended
	}
	if m.IsError = o.failed; o.failed {
		m.Tool.ErrorType = cmp.Or(o.class, c.Error, claude.ErrorType(string(conversation.Cut(r.Plain(o.text), claude.MaxOpening))))
	}
	if m.Complete = msg.Complete; o.bare {
		m.Complete = msg.Summary
	}
	if c.Delegates {
		m.Kind, m.Delegation.To = msg.DelegationResult, c.To
		if c.Child != nil {
			conversation.Causes(m, c.Child.ID)
		}
		if c.To == spawn.Codex {
			raw, _ := o.text.Alias()
			m.Delegation.CorrelationID = spawn.Output(raw)
		}
	}
	c.Done, c.Ended, c.Error = m.Complete, m.Time, m.Tool.ErrorType
}

// permission decodes a request for a permission, or its answer. Older ones name
// neither the call nor, in the answer, the request.
func (r *entry) permission() {
	field := func(keys ...string) (found jsonv.Value) {
		for _, key := range keys {
			found = jsonv.Or(found, r.fields.Get(key), r.root.Get(key), r.head.data.Get(key), r.head.content.Get(key))
		}
		return found
	}
	asked := r.typ == "permission_request"
	id, request, tool := field("tool_use_id"), field("request_id"), field("tool_name")
	c := r.s.Calls.Named(string(id.Chars()))
	if c == nil {
		c = r.s.newest(func(c *call) bool {
			if asked {
				return c.Wait == msg.NoSignal && tool.Equal(c.Name)
			}
			return c.Wait == msg.WaitStart && (!request.Exists() || request.Equal(c.Request))
		})
	}
	name := tool.PeekStr()
	if c != nil {
		name = c.Name
		id.In(c.ID, c.ProtocolID)
		tool.Equal(name)
		r.StrOf(request) // joins the question to its answer, and counts as read
	}
	field("content").Equal("Permission requested for tool: " + name)
	switch {
	case c == nil:
		m := r.status("", msg.Text{})
		if request.Exists() {
			m.Key = r.typ + ":" + r.Scalar(request)
		}
		m.SetAttr("tool", r.Scalar(tool))
	case asked:
		c.ask(r, request, jsonv.Value{})
		field("input_params").MarkRead()
	default:
		c.answer(r, field("decision", "behavior").Equal("allow"), jsonv.Value{})
	}
}

// ask begins the wait of a call for a permission, and answer ends it.
func (c *call) ask(r *entry, request, at jsonv.Value) {
	if c.Wait == msg.NoSignal && c.Done == msg.Partial {
		c.Request = strings.Clone(r.StrOf(request))
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
	m.Key = r.Join(prefix, c.ID)
	c.mark(m)
	c.Wait, m.Signal = signal, signal
	r.time(at).Set(m)
	return record.Hide(m, "permission")
}
