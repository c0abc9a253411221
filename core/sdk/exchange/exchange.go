// Package exchange has the parts that decoders of model providers' APIs share. An exchange
// is one request and its response; a conversation is a sequence of exchanges, each of which
// repeats all messages before it and adds to them. No API has a reliable id of the
// conversation, and each exchange is a stream of its own, so that ids are computed from the
// request alone:
//
//   - The session is the client's id of the conversation, if it sends one; else a hash of
//     the instructions, of the first prompt and of the source. Two conversations of one
//     source that begin with the same words are one session; each answer to them is kept
//     (see core/internal/assemble, claims.go). The headers of coding agents have it too, and name sub-agents (Caller).
//   - The run is the work on one prompt: the client's id of the prompt, if it sends one, else a hash
//     of the session, of the number of prompts, and of the last one. Tool results are no prompts. All requests of a sub-agent that has an id are one run.
//   - Repeated messages are not emitted: the messages after the model's last one are new,
//     and all before it were in exchanges of their own. Of a conversation that is observed
//     late, the beginning is missing.
//
// No message has a time: a provider writes none, or only the second in which a response
// began. The sidecar has the time of arrival of each part. A response that is asked for later, by
// its id, has the second in which it ended, where the provider writes that.
package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxGiven is the number of parts that are recognized when they are repeated.
const maxGiven = 1024

// maxShort is the number of calls of a response that break off.
const maxShort = 64

// Exchange is the state of one exchange. Its JSON is the snapshot of a decoder.
type Exchange struct {
	Session  string `json:",omitempty"`
	Run      string `json:",omitempty"`
	Agent    string `json:",omitempty"`
	Provider string `json:",omitempty"`
	Source   string `json:",omitempty"` // of the stream; see decoder.Stream

	ID    string `json:",omitempty"` // of the response; empty before it
	Model string `json:",omitempty"`
	Stop  string `json:",omitempty"`
	// Usage is emitted at the end of the response, if Counted is set.
	Usage   msg.Tokens          `json:",omitzero"`
	Counted bool                `json:",omitempty"`
	Passes  []conversation.Pass `json:",omitempty"` // of other models than Model
	Tier    string              `json:",omitempty"` // of the service: flex, priority, batch
	More    string              `json:",omitempty"` // the speed and the place that tokens are billed by beside it
	Cost    string              `json:",omitempty"` // in US dollars, as the provider has it
	Extra   []msg.Attr          `json:",omitempty"` // counts without a token class
	Fault   string              `json:",omitempty"` // class of its last error
	Batch   bool                `json:",omitempty"` // the response is one of a batch's
	Over    bool                `json:",omitempty"`

	conversation.Deltas
	Texts    int    `json:",omitempty"`
	Thoughts int    `json:",omitempty"`
	Begun    bool   `json:",omitempty"` // the first piece of it has come
	Last     string `json:",omitempty"` // key of the last part

	Given []string `json:",omitempty"` // emitted parts, of an API that sends them twice
	Waits bool     `json:",omitempty"` // a call of the response is executed by the client
	Warm  bool     `json:",omitempty"` // the request has the provider read it, and answer another
	Made  int      `json:",omitempty"` // calls of the response
	Short []string `json:",omitempty"` // ids of those that break off
	// Retrieved is the response that the stream is a copy of: it was asked for by its id, by which the host finds its session and its run.
	Retrieved string `json:",omitempty"`

	Unnamed Unnamed `json:",omitzero"` // of an API whose calls have no ids
	Caller  Caller  `json:",omitzero"` // by the headers of the request
	Path    string  `json:"-"`         // of the request that is decoded: "POST /v1/…"
	Name    string  `json:"-"`         // of the event that is decoded

	headers map[string]string // of the same
}

// Part is a part of a response that arrives in pieces.
type Part = conversation.Part

// fresh returns the state before the first frame.
func (e *Exchange) fresh() Exchange {
	return Exchange{Agent: e.Agent, Provider: e.Provider, Source: e.Source, Caller: e.Caller, Retrieved: e.Retrieved, headers: e.headers}
}

// Begin begins a response. Without a request before it, it is a conversation of its own.
func (e *Exchange) Begin(id, model string) {
	switch {
	case e.ID == id && id != "":
		return
	case id == "":
		id = "response:" + msg.HashKey(e.Session, e.Run, e.Last, model)
	}
	if e.Over { // another response of the same stream, without a request
		*e = e.fresh()
	}
	e.ID, e.Given, e.Waits, e.Begun, e.Made, e.Short = id, nil, false, false, 0, nil
	e.Tier, e.More, e.Cost, e.Extra, e.Fault = "", "", "", nil, ""
	if model != "" {
		e.Model = model
	}
	if e.Session == "" {
		e.Session, e.Run = id, id
	}
}

// Batched begins the response to one of the requests of a batch, whose results may be asked for often: its conversation is the batch.
func Batched(e *Exchange, request string) {
	*e = e.fresh()
	if e.Batch = true; e.Retrieved == "" {
		e.Retrieved = "batch"
	}
	e.Session, e.Run = e.Retrieved, e.Retrieved+"/"+request
}

// Answer is Begin with the values of a response, which each event may repeat.
func (e *Exchange) Answer(out *decoder.Output, id, model jsonv.Value) {
	if e.ID != "" && id.Equal(e.ID) {
		model.Equal(e.Model)
		return
	}
	if e.ID != "" && !e.Begun && !e.Over { // the response before it had no part
		m := e.Status(out, "begun:"+e.ID, "response_begun")
		m.Model, m.Provider, m.ResponseID = e.Model, e.Provider, e.ID
	}
	e.Begin(ident.Of(id), ident.Of(model))
}

// CutOff ends a response whose stream another one follows: its open parts are incomplete.
func (e *Exchange) CutOff(out *decoder.Output) {
	if e.Over || e.ID == "" {
		return
	}
	e.Flush(out)
	for len(e.Parts) > 0 {
		e.Drop(e.Parts[0])
	}
	e.Usage, e.Counted, e.Passes, e.Extra, e.Stop = msg.Tokens{}, false, nil, nil, ""
}

// Once reports whether a part arrives for the first time.
func (e *Exchange) Once(id string) bool {
	if slices.Contains(e.Given, id) {
		return false
	}
	if len(e.Given) < maxGiven {
		e.Given = append(e.Given, id)
	}
	return true
}

// Open opens a part. The key of a call has its id, that of the n-th text has n. It returns
// nil when there are too many.
func (e *Exchange) Open(name string, kind msg.Kind, callID string) *Part {
	p := e.Deltas.Open(name, kind)
	if p != nil {
		p.CallID, p.Key = callID, e.key(kind, callID)
	}
	return p
}

func (e *Exchange) key(kind msg.Kind, callID string) string {
	n, what := &e.Texts, "/text"
	switch kind {
	case msg.Reasoning:
		n, what = &e.Thoughts, "/thinking"
	case msg.ToolCall:
		return "call:" + callID
	}
	return conversation.Ordinal(e.ID+what, n)
}

// Add adds a piece to a part. The first piece of a response has a message of its own.
func (e *Exchange) Add(out *decoder.Output, p *Part, piece msg.Text) {
	e.First(out)
	e.Append(p, piece, conversation.MaxBytes)
}

// Piece is Add for the part of that name, a text or a thought, which it opens if need be.
func (e *Exchange) Piece(out *decoder.Output, name string, kind msg.Kind, piece msg.Text) {
	p := e.Part(name)
	if p == nil {
		p = e.Open(name, kind, "")
	}
	if p != nil {
		e.Add(out, p, piece)
	}
}

// Count sets the tokens of the response, which its end emits.
func (e *Exchange) Count(c conversation.Counts) {
	e.Counted, e.Usage = true, c.Tokens(msg.NoProvenance)
}

// Billed notes the tier of the service that tokens are billed by, and their cost by the provider, in US dollars.
func Billed(e *Exchange, tier jsonv.Value, cost string) {
	if e.Tier == "" {
		e.Tier = ident.Of(tier)
	} else {
		tier.Equal(e.Tier)
	}
	e.Cost = cmp.Or(cost, e.Cost)
}

// BilledIn notes the speed and the place that tokens are billed by: fast, us.
func BilledIn(e *Exchange, names ...string) {
	e.More = cmp.Or(msg.Tier(names...), e.More)
}

// terms are the names that the tokens are billed by. The body of a batch's result may have the tier of a request that is answered at once.
func terms(e *Exchange) string {
	tier := e.Tier
	if e.Batch {
		tier = "batch"
	}
	return msg.Tier(append([]string{tier}, strings.Split(e.More, "+")...)...)
}

// First emits the arrival of the first piece of the response, once.
func (e *Exchange) First(out *decoder.Output) {
	if e.Begun || e.Retrieved != "" { // a response that is asked for again has arrived before
		return
	}
	e.Begun = true
	m := e.Status(out, "first_token:"+e.ID, "first_token")
	m.Signal, m.Model, m.Provider, m.ResponseID = msg.FirstToken, e.Model, e.Provider, e.ID
}

// Close emits a complete part, if it is open.
func (e *Exchange) Close(out *decoder.Output, p *Part) {
	if !e.Drop(p) {
		return
	}
	e.give(out, p, msg.Complete, e.Last)
	if !p.Empty() {
		e.Last = p.Key
	}
}

// CloseAll emits the parts whose names begin so, in their order.
func (e *Exchange) CloseAll(out *decoder.Output, prefix string) {
	for i := 0; i < len(e.Parts); {
		if p := e.Parts[i]; strings.HasPrefix(p.Name, prefix) {
			e.Close(out, p)
		} else {
			i++
		}
	}
}

// Call emits a call that arrives whole.
func (e *Exchange) Call(out *decoder.Output, id, tool string, arguments msg.Text) {
	if p := e.Open("whole", msg.ToolCall, id); p != nil {
		p.Tool = tool
		e.Append(p, arguments, conversation.MaxBytes)
		e.Close(out, p)
	}
}

// Ran adds the result of a call that the provider has run.
func (e *Exchange) Ran(out *decoder.Output, id, tool string) *msg.Message {
	m := e.Message(out, msg.ToolResult, "result:"+id)
	m.Role, m.ParentKey, m.Tool.CallID, m.Tool.Name = msg.RoleTool, "call:"+id, id, tool
	return m
}

// give adds the message of a part, unless the part is empty.
func (e *Exchange) give(out *decoder.Output, p *Part, c msg.Completeness, parent string) {
	if p.Empty() {
		return
	}
	if p.Kind == msg.ToolCall && (p.Tool == "" || p.CallID == "") {
		m := e.Unknown(out, "tool_call", []byte(string(p.Text)))
		m.Key = "unknown:" + msg.HashKey(e.ID, p.Name) // more pieces may arrive
		m.Tool.CallID, m.Tool.Name, m.Complete = p.CallID, p.Tool, c
		return
	}
	m := e.Message(out, p.Kind, p.Key)
	m.ParentKey = parent
	if c == msg.Partial {
		m.Complete = c
	} else if p.Kind == msg.ToolCall {
		if e.Made++; breaksOff(p.Text) {
			BreakOff(e, p.CallID)
		}
	}
	spoken(e, m)
	if p.Cut {
		m.SetAttr("cut", "true")
	}
	if p.Fill(m); p.Kind == msg.ToolCall {
		e.delegate(m)
	}
}

// spoken makes a message a part of the response.
func spoken(e *Exchange, m *msg.Message) {
	m.Role, m.Model, m.Provider, m.ResponseID = msg.RoleAssistant, e.Model, e.Provider, e.ID
}

// Say adds the message of a part that arrives whole.
func (e *Exchange) Say(out *decoder.Output, kind msg.Kind, callID string) *msg.Message {
	m := e.Message(out, kind, e.key(kind, callID))
	spoken(e, m)
	m.ParentKey, e.Last = e.Last, m.Key
	m.Tool.CallID = callID
	return m
}

// waits reports whether the model waits for a tool that the client runs. Where a request forces a call, OpenAI's reason is
// stop; a response that was cut off waits for the calls that it has made before.
func waits(e *Exchange) bool {
	switch {
	case e.Stop == "tool_calls", e.Stop == "function_call", e.Stop == "tool_use", e.Stop == "pause_turn", e.Stop == "compaction", e.Stop == "requires_action":
		return true
	case cutOff(e.Stop):
		return e.Waits && e.Made > len(e.Short)
	}
	return e.Waits || e.Warm
}

// cutOff reports whether the provider ended a response, for that reason, before the model did.
func cutOff(stop string) bool {
	switch stop {
	case "length", "max_output_tokens", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded", "content_filter", "error":
		return true
	}
	return false
}

// breaksOff reports whether the arguments of a call are an object without an end.
func breaksOff(arguments []byte) bool {
	text := bytes.TrimSpace(arguments)
	return len(text) > 0 && text[0] == '{' && (text[len(text)-1] != '}' || !json.Valid(text))
}

// BreakOff notes that a call of the response is not whole.
func BreakOff(e *Exchange, id string) {
	if id != "" && len(e.Short) < maxShort && !slices.Contains(e.Short, id) {
		e.Short = append(e.Short, id)
	}
}

// unmade ends the calls in whose middle the response was cut off: no result of them can come.
func unmade(e *Exchange, out *decoder.Output) {
	if !cutOff(e.Stop) {
		return
	}
	for _, id := range e.Short {
		m := e.Ran(out, id, "")
		m.IsError, m.Tool.ErrorType = true, e.Stop
	}
}

// End ends the response: it emits the open parts, the usage, and the end of the run unless
// the model waits for a tool.
func (e *Exchange) End(out *decoder.Output) {
	if e.Over || e.ID == "" {
		return
	}
	e.CloseAll(out, "")
	unmade(e, out)
	e.usage(out, msg.Complete)
	e.Over = true
	m := e.Status(out, "end:"+e.ID, "response_end")
	m.Kind, m.Signal = msg.Stop, msg.ModelEnd
	m.Model, m.Provider, m.ResponseID, m.FinishReason = e.Model, e.Provider, e.ID, e.Stop
	if e.Fault != "" && (e.Stop == "error" || e.Stop == e.Fault) { // no reason of its own came behind the error
		m.IsError, m.Tool.ErrorType = true, e.Fault
	}
	if !waits(e) {
		m.Signal = msg.RunEnd
	}
}

// Fail emits an error of the provider. The run continues: clients retry.
func (e *Exchange) Fail(out *decoder.Output, typ string, text msg.Text) {
	m := e.Message(out, msg.Error, "error:"+msg.HashKey(e.ID, e.Run, typ, text.String()))
	m.Role, m.IsError, m.Content, m.Tool.ErrorType = msg.RoleAssistant, true, text, typ
	m.Model, m.Provider, m.ResponseID, m.Signal = e.Model, e.Provider, e.ID, msg.Retry
	e.Stop, e.Fault = cmp.Or(e.Stop, "error"), cmp.Or(typ, "error")
}

// Rejected emits that a request of a batch has no response, and ends its run.
func Rejected(e *Exchange, out *decoder.Output, typ string, text msg.Text) {
	m := e.Message(out, msg.Error, "error:"+msg.HashKey(e.Run, typ, text.String()))
	m.Role, m.IsError, m.Content, m.Tool.ErrorType = msg.RoleAssistant, true, text, typ
	m.Provider, m.Signal, m.FinishReason = e.Provider, msg.RunEnd, "error"
	e.Over = true
}

// Flush emits the open parts as incomplete.
func (e *Exchange) Flush(out *decoder.Output) {
	if e.Over || e.ID == "" {
		return
	}
	last := e.Last
	for _, p := range e.Parts {
		e.give(out, p, msg.Partial, last)
		if !p.Empty() {
			last = p.Key
		}
	}
	e.usage(out, msg.Partial)
	if e.Stop != "" && e.Stop != "error" { // the response has its finish reason, but its stream has not ended
		m := e.Status(out, "end:"+e.ID, "response_end")
		m.Kind, m.Complete = msg.Stop, msg.Partial
		m.Model, m.Provider, m.ResponseID, m.FinishReason = e.Model, e.Provider, e.ID, e.Stop
	}
}

func (e *Exchange) usage(out *decoder.Output, c msg.Completeness) {
	if !e.Counted {
		return
	}
	m := e.Message(out, msg.Usage, "usage:"+e.ID)
	if m.Hidden = true; c == msg.Partial {
		m.Complete = c
	}
	m.Model, m.Provider, m.ResponseID, m.FinishReason, m.Usage = e.Model, e.Provider, e.ID, e.Stop, e.Usage
	m.SetAttr("request_id", e.Caller.Request)
	m.SetAttr("service_tier", e.Tier)
	m.SetAttr("cost_usd", e.Cost)
	m.Attrs = append(m.Attrs, e.Extra...)
	m.Usage.Tier, m.Usage.Stated = terms(e), msg.Dollars(e.Cost)
	m.Usage.Provenance = msg.Provider
	if c == msg.Partial {
		m.Usage.Provenance = msg.TranscriptPartial
	}
	conversation.Passes(out, *m, e.Passes)
}

// Message adds a message of the run.
func (e *Exchange) Message(out *decoder.Output, kind msg.Kind, key string) *msg.Message {
	m := out.Add()
	if m.Kind, m.Key, m.Complete = kind, key, msg.Complete; e.Retrieved != "" {
		m.Complete = msg.Summary
	}
	e.of(m)
	return m
}

// of sets the session, the run and the agent of a message.
func (e *Exchange) of(m *msg.Message) {
	m.Session, m.Run = e.Session, e.Run
	if m.Session == "" {
		m.Session = "unknown"
	}
	m.Agent = msg.Agent{Name: e.Agent, Kind: msg.KindAgent}
	if e.Caller.Agent != "" {
		m.Agent.ID, m.Agent.Name = e.Caller.Agent, cmp.Or(e.Caller.Type, "agent")
	}
}

// Status adds a message that a user would not see, of that type.
func (e *Exchange) Status(out *decoder.Output, key, typ string) *msg.Message {
	m := e.Message(out, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// Notes emits what an object of the response has beside the answer, a hidden status for each of the names: a judgement, sources.
func Notes(e *Exchange, out *decoder.Output, v jsonv.Value, names ...string) {
	for _, name := range names {
		if has := v.Get(name); has.Len() > 0 {
			m := e.Status(out, name+":"+msg.HashKey(e.ID, string(has.Peek())), name)
			m.Content, m.Model, m.Provider, m.ResponseID = has.JSON(), e.Model, e.Provider, e.ID
		}
	}
}

// Unknown keeps an unknown frame or part as it is.
func (e *Exchange) Unknown(out *decoder.Output, typ string, raw []byte) *msg.Message {
	if typ == "" {
		typ = "none"
	}
	m := e.Message(out, msg.Unknown, "unknown:"+msg.HashKey(e.ID, string(raw)))
	m.Hidden, m.Content = true, msg.Raw(raw)
	m.SetAttr("type", typ)
	return m
}
