// Package letta decodes the traffic of a Letta server: the event stream of a run, the list of
// an agent's or a conversation's messages, the answer to a request that did not stream, and
// the requests themselves.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - A frame of a stream is a whole message or a piece of one, without a mark of which.
//     So the decoder joins pieces until another message begins; a message that arrived
//     whole has one piece.
//   - The pieces of one block share their otid. With some servers every block of a
//     response has the same id; with others every piece has an id of its own.
//   - Only the first piece of a call has the tool's name, in some versions only it has
//     the id of the call.
//   - A request for approval has another id than the response that contains it (one
//     less), and in a list the reasoning before it has that id too. Only the step is
//     common to both, so keys contain it where a message names its run; servers that name
//     no run in a stream name no step there either.
//   - Calls of one response may be written at the same time: their pieces interleave, and
//     only the otid distinguishes them.
//   - A stream does not echo the user's messages. A request has no ids at all: its
//     messages wait until the answer names the run, and their keys are made of run and
//     text.
//   - A list is newest first by default, down to the parts of one message.
//   - stop_reason and usage_statistics have no id, no time and, in a resumable stream, no
//     number: a second reading of the stream repeats them.
//   - A count that is null is unknown; it is not 0.
//   - A delegate that failed has its error in the result of a call that succeeded.
//   - The server normalizes the spacing of a call's arguments and trims reasoning when it
//     stores them. The decoder does the same in every form.
//
// The rule of each type of record is named in stream.record: texts are in block.go, calls in
// call.go with their results, messages to agents and decisions in input.go, stops, tokens and
// errors in run.go, lists and answers in body.go.
package letta

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
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
			Name:       "letta",
			Revision:   5,
			Summary:    "Runs of Letta agents: event streams, message lists, answers and requests.",
			Transports: []frame.Kind{frame.Line, frame.Event, frame.Body, frame.Request},
			Options: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
				`"session":{"type":"string","description":"the conversation's id, or the agent's; for streams whose URL does not name it"}}}`),
			Reload: true,
			Resume: json.RawMessage(`{"run":"run_id","nested":"parent_run_id","number":"seq_id","path":"/v1/runs/{{run}}/stream",` +
				`"method":"POST","parameters":{"starting_after":"{{number}}"},"in":"json","end":"empty"}`),
			Pages: json.RawMessage(`{"items":"data","after":"after","cursor":"id","limit":"limit","size":100,"query":{"order":"asc"}}`),
		},
		LeavesOut: leavesOut,
		State:     2,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{writer{Current: r, state: s}} },
	}.Factory()
}

// stream decodes one stream: it finds the run of each record.
type stream struct{ writer }

// state is the state between frames.
type state struct {
	Place   scope                     // of the last request
	Run     string                    `json:",omitempty"` // of frames without a run id
	Runs    []*run                    `json:",omitempty"` // least recently used first
	Calls   conversation.Calls[*call] `json:",omitzero"`  // without a result
	Pending []*pending                `json:",omitempty"` // messages to the agent that no run has answered yet
	Names   []agentName               `json:",omitempty"` // of agents
}

// Configure reads the session of the source.
func (d *stream) Configure(options json.RawMessage) error {
	var o struct{ Session string }
	err := record.Options(options, &o)
	d.origin = scopeOf(d.Origin).override(newScope(o.Session, ""))
	return err
}

// In returns the session and the run of a record.
func (d *stream) In() (session, run string) { return d.session(d.Run), d.Run }

// Begin decodes a frame that is no JSON.
func (d *stream) Begin() (record bool) {
	f := d.Frame
	switch d.level, d.whole = msg.Complete, f.Kind == frame.Body; {
	case f.Kind == frame.Close:
		d.unanswered()
	case f.Kind == frame.Request && len(bytes.TrimSpace(f.Data)) == 0:
		d.request(jsonv.Value{})
	default:
		return f.Kind == frame.Body || !d.sentinel(f.Data)
	}
	return false
}

// Read decodes one event or line, one body, or one request.
func (d *stream) Read() {
	switch kind := d.Frame.Kind; {
	case d.Root.Is(jsonv.Array):
		d.list(d.Root)
	case kind == frame.Body:
		d.body(d.Root)
	case kind == frame.Request:
		d.request(d.Root)
	default:
		d.record(d.Root, d.Frame.Name)
	}
}

// Flush emits the open messages as partial. A message to an agent that has not answered yet
// waits for the answer, because its key contains the run.
func (d *stream) Flush() {
	d.level = msg.Partial
	for _, r := range d.Runs {
		for _, b := range r.Open {
			r.emit(&d.writer, b, false)
		}
	}
}

// sentinel handles the words that end a stream and are not JSON: [DONE], which some streams
// send twice, and the [DONE_GEN] and [DONE_STEP] of older servers.
func (d *stream) sentinel(data []byte) bool {
	switch string(bytes.TrimSpace(data)) {
	case "[DONE]":
		d.done()
	case "[DONE_GEN]", "[DONE_STEP]":
		if r := d.find(d.Run); r != nil {
			r.close(&d.writer)
		}
	default:
		return false
	}
	return true
}

// typeOf returns the type of a record. Records of the oldest servers have none: the field with
// the content has the name of the type.
func typeOf(v, typ jsonv.Value, event string) []byte {
	if typ.Exists() {
		return typ.Chars()
	}
	if event == "error" {
		return []byte("error_message")
	}
	for _, field := range [...]string{"internal_monologue", "function_call", "function_return", "assistant_message"} {
		if v.Get(field).Exists() {
			return []byte(field)
		}
	}
	return nil
}

// record decodes one frame of a stream, or one element of a list.
func (d *stream) record(v jsonv.Value, event string) {
	w, typ := &d.writer, jsonv.Value{}
	for k, m := range v.Members() {
		switch string(k.Bytes()) {
		case "message_type":
			typ = m
		case "id", "otid", "step_id": // keys are made of them
			if m.Is(jsonv.String) {
				m.MarkRead()
			}
		}
	}
	content := func(decode func(*run)) {
		if r := d.content(v); r != nil {
			decode(r)
		}
	}
	switch string(typeOf(v, typ, event)) {
	case "reasoning_message", "internal_monologue":
		content(func(r *run) { r.piece(w, v, thinking, v.First("reasoning", "internal_monologue")) })
	case "hidden_reasoning_message": // has no text
		content(func(r *run) { r.piece(w, v, hidden, jsonv.Value{}) })
	case "assistant_message":
		content(func(r *run) { r.piece(w, v, text, v.First("content", "assistant_message", "message")) })
	case "tool_call_message", "function_call":
		content(func(r *run) { r.calls(w, v, false) })
	case "approval_request_message":
		content(func(r *run) { r.calls(w, v, true) })
	case "tool_return_message", "function_return":
		content(func(r *run) { r.results(w, v) })
	case "summary_message", "summary":
		content(func(r *run) { r.note(w, v, "compact_summary", v.First("summary", "content")).Signal = msg.Compaction })
	case "event_message", "event":
		content(func(r *run) { r.note(w, v, cmp.Or(ident.Of(v.Get("event_type")), "event"), v.Get("event_data")) })
	case "user_message":
		d.storedPrompt(v, msg.RoleUser)
	case "system_message":
		d.storedPrompt(v, msg.RoleSystem)
	case "approval_response_message":
		d.decisions(v, d.stored(v))
	case "ping": // names the run, and repeats the number of its last frame
		if r := d.runOrLast(v); r != nil {
			r.number(v.Get("seq_id"))
		}
	case "stop_reason":
		d.stop(v)
	case "usage_statistics":
		d.usage(v)
	case "error_message":
		d.failure(v)
	default:
		if event == "error" {
			d.failure(v)
		} else {
			d.unknown(v, event)
		}
		return
	}
	typ.MarkRead()
}

// content returns the run of a record with content; nil for a repeated one.
func (d *stream) content(v jsonv.Value) *run {
	r, seq := d.runOf(v), v.Get("seq_id")
	if seq.Is(jsonv.Number) {
		if r.number(seq); !r.Numbers.Add(seq.Int()) {
			v.MarkRead()
			return nil
		}
	}
	return r
}
