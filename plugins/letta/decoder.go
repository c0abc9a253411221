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
// Every form is a sequence of records, and this file is its door: events, lists, answers and requests
// leave it as records. The rule of each type is named in stream.record: texts are in block.go,
// calls in call.go with their results, messages to agents and decisions in input.go, stops, tokens
// and errors in run.go.
package letta

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"

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
			Revision:   7,
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
		State:     3,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{writer{Current: r, state: s}} },
	}.Factory()
}

// stream decodes one stream: it finds the run of each record.
type stream struct{ writer }

// writer makes the messages of a frame.
type writer struct {
	*record.Current
	*state
	level  msg.Completeness // of the messages of the frame
	whole  bool             // the frame is complete: no later frame continues it
	inner  jsonv.Doc        // JSON in a string of the frame
	origin scope            // of the source
	none   run              // without an id
}

// state is the state between frames.
type state struct {
	Place   scope                     // of the last request
	Run     string                    `json:",omitempty"` // of frames without a run id
	Runs    []*run                    `json:",omitempty"` // least recently used first
	Calls   conversation.Calls[*call] `json:",omitzero"`  // without a result
	Pending []msg.Message             `json:",omitempty"` // to the agent, that no run has answered yet; their Run is the one if none does
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
	f, data := d.Frame, bytes.TrimSpace(d.Frame.Data)
	d.level, d.whole = msg.Complete, f.Kind == frame.Body
	switch {
	case f.Kind == frame.Close:
		d.unanswered()
	case f.Kind == frame.Request && len(data) == 0:
		d.request(jsonv.Value{})
	case d.whole:
		return true
	case string(data) == "[DONE]": // some streams send it twice
		d.done()
	case string(data) == "[DONE_GEN]", string(data) == "[DONE_STEP]": // of older servers
		d.find(d.Run).close(d)
	default:
		return true
	}
	return false
}

// Read decodes one event or line, one request, or one body: a list, the answer to a request that
// did not stream, one stored message, or an error.
func (d *stream) Read() {
	v, kind := d.Root, d.Frame.Kind
	switch {
	case kind == frame.Request:
		d.request(v)
	case kind != frame.Body:
		d.record(v, d.Frame.Name)
	case v.Is(jsonv.Array), v.Get("messages").Is(jsonv.Array), len(typeOf(v)) > 0:
		d.body(v)
	case v.First("detail", "error").Exists():
		d.leave()
		d.failure(v)
	default:
		d.unknown(v, "body")
	}
}

// Flush emits the open messages as partial. A message to an agent that has not answered yet
// waits for the answer, because its key contains the run.
func (d *stream) Flush() {
	d.level = msg.Partial
	for _, r := range d.Runs {
		for _, b := range r.Open {
			r.emit(d, b)
		}
	}
}

// typeOf returns the type of a record. Records of the oldest servers have none: the field with
// the content has the name of the type.
func typeOf(v jsonv.Value) []byte {
	if typ := v.Get("message_type"); typ.Exists() {
		return typ.Chars()
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
	d.At = conversation.TimeOf(v.Get("date"))
	for _, name := range [...]string{"id", "otid", "step_id"} { // keys are made of them
		if id := v.Get(name); id.Is(jsonv.String) {
			id.MarkRead()
		}
	}
	switch string(typeOf(v)) {
	case "reasoning_message", "internal_monologue":
		d.text(v, thinking, v.First("reasoning", "internal_monologue"))
	case "hidden_reasoning_message": // has no text
		d.text(v, hidden, jsonv.Value{})
	case "assistant_message":
		d.text(v, speaking, v.First("content", "assistant_message", "message"))
	case "tool_call_message", "function_call":
		d.content(v, func(r *run) { r.calls(d, v, false) })
	case "approval_request_message":
		d.content(v, func(r *run) { r.calls(d, v, true) })
	case "tool_return_message", "function_return":
		d.content(v, func(r *run) { r.results(d, v) })
	case "summary_message", "summary":
		d.content(v, func(r *run) { r.note(d, v, "compact_summary", v.First("summary", "content")).Signal = msg.Compaction })
	case "event_message", "event":
		d.content(v, func(r *run) { r.note(d, v, cmp.Or(ident.Of(v.Get("event_type")), "event"), v.Get("event_data")) })
	case "user_message":
		d.stored(v, msg.RoleUser)
	case "system_message":
		d.stored(v, msg.RoleSystem)
	case "approval_response_message":
		d.decisions(v)
	case "ping": // names the run, and repeats the number of its last frame
		d.runOf(v, false).number(v.Get("seq_id"))
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
	v.Get("message_type").MarkRead()
}

// text decodes a whole text or a piece of one.
func (d *stream) text(v jsonv.Value, part string, content jsonv.Value) {
	p := piece{record: v, part: part}
	p.text, p.files = contentOf(content)
	d.content(v, func(r *run) { r.piece(d, &p) })
}

// content decodes a record with content in its run, unless its number came before.
func (d *stream) content(v jsonv.Value, decode func(*run)) {
	r, seq := d.runOf(v, true), v.Get("seq_id")
	if r.number(seq); seq.Is(jsonv.Number) && !r.Numbers.Add(seq.Int()) {
		v.MarkRead()
		return
	}
	if decode(r); d.whole {
		r.close(d)
	}
}

// leave cuts the open blocks of all runs: the body is independent of the stream before it.
func (d *stream) leave() {
	for _, r := range d.Runs {
		r.cut(d)
	}
	d.Run = ""
}

// body decodes stored messages, which lack the run's own records and so yield to the messages of its stream, or the
// answer to a request that did not stream:
//
//	{"messages": [...], "stop_reason": {"message_type": "stop_reason", ...}, "usage": {...}}
func (d *stream) body(v jsonv.Value) {
	d.leave()
	messages, usage, stop := slices.Collect(jsonv.Each(jsonv.Or(v.Get("messages"), v))), v.Get("usage"), v.Get("stop_reason")
	answer := usage.Exists() || stop.Exists()
	if !answer {
		d.level = msg.Summary
	}
	if !answer && newestFirst(messages) {
		slices.Reverse(messages)
	}
	for _, m := range messages {
		d.record(m, "")
	}
	if !answer || d.Run == "" {
		d.Run = d.unanswered().ID
	}
	if answer {
		d.At = conversation.Time{}
		if stop.Exists() {
			d.stop(v)
		}
		if usage.Is(jsonv.Object) {
			d.usage(usage)
		}
		d.done()
	}
	d.Run = ""
}

// newestFirst reports whether a list runs backwards, which is the default order. The dates
// decide; within a second the numbers of the blocks of one message, or else what the first and
// the last message are: a user's comes first, a result last.
func newestFirst(list []jsonv.Value) bool {
	up, before := 0, int64(0)
	for _, v := range list {
		if now := conversation.TimeOf(v.Get("date")).Nanos; now != 0 {
			if before != 0 {
				up += cmp.Compare(now, before)
			}
			before = now
		}
	}
	for i := 1; i < len(list) && up == 0; i++ {
		if a, b := list[i-1], list[i]; bytes.Equal(a.Get("id").Escaped(), b.Get("id").Escaped()) {
			up = bytes.Compare(b.Get("otid").Escaped(), a.Get("otid").Escaped())
		}
	}
	rank := func(v jsonv.Value) int {
		switch string(typeOf(v)) {
		case "user_message", "system_message":
			return 0
		case "tool_return_message", "function_return":
			return 2
		}
		return 1
	}
	if n := len(list); n > 1 && up == 0 {
		up = rank(list[n-1]) - rank(list[0])
	}
	return up < 0
}
