// Package vercelui decodes the UI message stream of Vercel's AI SDK (versions 5 to 7), by which a
// server sends an agent's work to a chat, and the requests of the chat.
//
// Facts of the format that are easy to get wrong:
//
//   - A stream is one message of the assistant, of one step for each response of the model.
//     The ids of texts and thoughts ("0", "txt-0") are repeated in each step; a text and a thought
//     may have the same id.
//   - The input of a call may arrive in pieces, whole, or both; LangChain's adapter sends the
//     pieces and then the whole in the next stream, after the approval.
//   - An output may be preliminary: the next one replaces it.
//   - A call that waits for an approval, or for a tool of the chat itself, ends the stream. The
//     next request has the answer in its last message, and its stream goes on with that message.
//   - An answer that is written again, and one to a prompt that was edited, are asked for with the id of the same prompt; the
//     server names the new message only if the application gives it ids.
//   - Nothing has a time. Tokens and models are in messageMetadata, if the application puts them
//     there.
//   - assistant-ui has a dialect of its own: part-start, path, textDelta.
//   - Version 4 sent lines of a code and JSON, 0:"text", as text/plain (old.go).
package vercelui

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "vercel-ui",
			Revision:   9,
			Summary:    "UI message streams of Vercel's AI SDK, and the requests of the chat.",
			Transports: []frame.Kind{frame.Event, frame.Request, frame.Body, frame.Line},
		},
		LeavesOut: leavesOut,
		State:     1,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

const (
	maxSeen = 4096 // calls, results and notices
)

// stream decodes one stream, as a rule of one message.
type stream struct {
	*record.Current
	*state

	typ string
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session string                    `json:",omitempty"`
	Run     conversation.Run          `json:",omitzero"`
	Message string                    `json:",omitempty"` // id of the assistant's message
	Step    int                       `json:",omitempty"`
	Parts   conversation.Deltas       `json:",omitzero"`
	Calls   conversation.Calls[*call] `json:",omitzero"`
	Seen    bounded.Set[string]       `json:",omitzero"`
	Count   conversation.Response     `json:",omitzero"`  // the model and the tokens that the metadata has
	Steps   conversation.Counts       `json:",omitzero"`  // the tokens of its steps
	Stepped bool                      `json:",omitempty"` // a step has just ended
	Pieces  int                       `json:",omitempty"` // parts of assistant-ui's dialect
	Waits   bool                      `json:",omitempty"` // calls wait for the next request
}

type call struct {
	conversation.Call
	Approval string `json:",omitempty"`
	Step     int    `json:",omitempty"`
}

// Read decodes a chunk, a list of chunks, or a request.
func (d *stream) Read() {
	switch {
	case d.Root.Is(jsonv.Array):
		for v := range d.Root.Elems() {
			d.chunk(v)
		}
	case d.Frame.Kind == frame.Request:
		d.request(d.Root)
	case d.Frame.Kind == frame.Body && refused(d):
	default:
		d.chunk(d.Root)
	}
}

// Begin looks for the end of a stream, which is no JSON.
func (d *stream) Begin() (record bool) {
	if d.Frame.Kind != frame.Request && coded(d.Frame.Data) {
		lines(d)
		return false
	}
	done := bytes.Equal(bytes.TrimSpace(d.Frame.Data), []byte("[DONE]"))
	if done && d.Frame.Kind != frame.Close {
		d.end("", nil)
	}
	return !done
}

// In returns the session and the run.
func (d *stream) In() (session, run string) {
	return d.session(), d.Run.ID
}

// Flush emits the parts that are not complete.
func (d *stream) Flush() {
	for _, p := range d.Parts.Parts {
		if !p.Empty() && (p.Kind != msg.ToolCall || d.Calls.Get(p.CallID) == nil) {
			d.fill(d.Out.Add(), p, msg.Partial)
		}
	}
}

func (d *stream) session() string { return cmp.Or(d.Session, d.Origin, "unknown") }

// response is the id of the response of the step.
func (d *stream) response() string {
	return cmp.Or(d.Message, d.Run.ID) + "/" + strconv.Itoa(d.Step)
}

// unique returns the id of a call as one that is unique in the session.
func (d *stream) unique(id string) string { return ident.Within(d.Run.ID, id) }

// about writes the id of a call into a message, and the protocol's if that is another.
func (d *stream) about(m *msg.Message, unique string) {
	m.Tool.CallID, m.Tool.ProtocolID = unique, ident.Own(d.Run.ID, unique)
}

// begin begins a run, unless one is active. A stream that names none is named by the first id
// in it.
func (d *stream) begin(id, first string) {
	if d.Run.Active() && (id == "" || id == d.Run.ID) {
		return
	}
	if id == "" {
		id, d.Message = "run:"+msg.HashKey(d.session(), d.Run.ID, first), ""
	}
	d.Run.Begin(id)
	d.Parts, d.Calls, d.Count, d.Step, d.Pieces = conversation.Deltas{}, conversation.Calls[*call]{}, conversation.Response{}, 0, 0
	d.Steps, d.Stepped = conversation.Counts{}, false
}

func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	d.Run.Mark(m)
	return m
}

// status adds a message that a user would not see, once; nil when it was added before.
func (d *stream) status(key string) *msg.Message {
	if !d.Seen.Add(d.Run.ID+" "+key, maxSeen) {
		return nil
	}
	return record.Hide(d.add(msg.Status, key), cmp.Or(d.typ, "request"))
}

func (d *stream) unknown(v jsonv.Value) { d.Unknown(d.typ, v, d.Run.ID) }

// fill writes a part into a message.
func (d *stream) fill(m *msg.Message, p *conversation.Part, c msg.Completeness) {
	p.Fill(m)
	m.Session, m.Run, m.Complete, m.Agent.Kind, m.ResponseID = d.session(), d.Run.ID, c, msg.KindAgent, d.response()
	m.Model = d.Count.Model
	if p.Cut {
		m.SetAttr("cut", "true")
	}
	if p.Kind == msg.ToolCall {
		d.about(m, p.CallID)
	}
}

// open opens a part of the step.
func (d *stream) open(name string, kind msg.Kind, id string) *conversation.Part {
	d.begin("", id)
	p := d.Parts.Part(name)
	if p == nil {
		if p = d.Parts.Open(name, kind); p == nil {
			return nil
		}
		p.Key = d.response() + "/" + id
		switch kind {
		case msg.Reasoning:
			p.Key += "/thinking"
		case msg.ToolCall:
			p.CallID = d.unique(id)
			p.Key = "call:" + p.CallID
		}
	}
	return p
}

// finish emits a part that is complete.
func (d *stream) finish(p *conversation.Part, c msg.Completeness) {
	if p == nil || !d.Parts.Drop(p) || p.Empty() {
		return
	}
	if p.Kind == msg.ToolCall {
		if added, _ := d.Calls.Add(&call{Call: conversation.Call{ID: p.CallID, Name: p.Tool}, Step: d.Step}); !added {
			return
		}
	} else if !d.Seen.Add("part:"+p.Key, maxSeen) { // the step has the id twice
		p.Key += "/" + msg.HashKey(string(p.Text))[:8]
	}
	if p.Tool == "" && p.Kind == msg.ToolCall || p.Kind == msg.ToolCall && !json.Valid([]byte(p.Arguments().String())) {
		c = msg.Partial
	}
	m := d.add(p.Kind, p.Key)
	signal := m.Signal
	d.fill(m, p, c)
	m.Signal = signal
}

// refused decodes the response of a server that refuses a request, in place of a stream: {"error":"…"}, {"error":{"message":"…"}},
// or {"code":"…","message":"…"}. The SDK has no form for it.
func refused(d *stream) bool {
	fault := d.Root.Get("error")
	if !d.Run.Active() || d.Root.Get("type").Exists() || !fault.Is(jsonv.Object) && !fault.Is(jsonv.String) && !d.Root.Get("message").Is(jsonv.String) {
		return false
	}
	text := jsonv.FirstText(fault.Get("message"), d.Root.Get("message"), fault)
	m := d.add(msg.Error, "error:"+msg.HashKey(d.response(), text.String()))
	m.IsError, m.Content, m.Tool.ErrorType = true, text, ident.First(d.Root.Get("code"), fault.Get("code"), fault.Get("type"))
	d.Run.Failed = true
	d.end("error", nil)
	return true
}

// end ends the run, or pauses it while calls wait for the chat.
func (d *stream) end(reason string, fill func(m *msg.Message)) {
	for len(d.Parts.Parts) > 0 {
		d.finish(d.Parts.Parts[0], msg.Summary)
	}
	if rest, _ := d.Count.Counts.Sub(d.Steps); rest != (conversation.Counts{}) {
		d.Count.ID = d.response() // the last one of the stream: the tokens are those of all of its steps
		if d.Steps != (conversation.Counts{}) {
			d.Count.ID += "/rest"
		}
		d.Count.Counts = conversation.Counts{}
		d.usage(d.Count, rest)
	}
	d.Count, d.Steps = conversation.Response{}, conversation.Counts{}
	if !d.Run.Active() || d.Waits {
		return
	}
	m := d.add(msg.Stop, "end:"+d.response())
	m.Hidden, m.FinishReason = true, reason
	if fill != nil {
		fill(m)
	}
	if d.Run.Failed {
		m.IsError, m.FinishReason = true, cmp.Or(m.FinishReason, "error")
	}
	if len(d.Calls.Open) > 0 && !m.IsError {
		m.Kind, m.Key, m.Signal, d.Waits = msg.Status, "waits:"+d.response(), msg.RunPause, true
		m.SetAttr("type", "waits")
		return
	}
	d.Run.End(m)
}
