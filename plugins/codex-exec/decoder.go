// Package codexexec decodes the standard output of `codex exec --json`: the events of one
// thread, as lines of JSON.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - It has no times, no ids of turns, and neither the prompt nor the model. Ids of
//     items (item_0) restart with each process. The id of a turn is therefore a hash
//     of its thread, of the turn before it and of its first event.
//   - The usage of turn.completed is the sum over the thread, the turns before a
//     `codex exec resume` included. The usage of a turn is the difference to the turn
//     before, if that is in the same stream.
//   - A usage of zeros is none: the process was told of no tokens before the turn ended.
//   - Input counts include the cached tokens. Reasoning is counted, if at all, as a part
//     of the output.
//   - At the end of a turn the items that are at work come as item.completed with the status in_progress:
//     the process ends, and they with it.
//   - Reasoning, answers and most changes of files come as item.completed alone.
//   - Warnings are items of the type error, and may come before the turn.
package codexexec

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return codex.Framing[state]{
		Name: "codex-exec", Revision: 5, Version: version, LeavesOut: leavesOut,
		Summary:    "Events of codex exec --json: threads, turns and items.",
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Text},
		Thread:     func(origin string) string { return ident.OfFile(origin, ".json") },
		Open: func(t *codex.Thread, s *state) func(jsonv.Value) bool {
			t.State = &s.State
			return (&stream{t, s}).event
		},
	}.Factory()
}

// version rises when the form of the state changes, see package snapshot.
const version = 2

type state struct {
	codex.State
	Last    string `json:",omitempty"` // the last turn of the thread in this stream
	Opening bool   `json:",omitempty"` // a turn has begun and has no item yet
}

// stream decodes the events of one stream.
type stream struct {
	*codex.Thread
	s *state
}

func (d *stream) event(root jsonv.Value) (keep bool) {
	typ := root.Get("type").Str()
	switch typ {
	case "thread.started":
		d.started(ident.Of(root.Get("thread_id")))
	case "turn.started":
		d.Run = ""
		d.Status("turn_started:"+msg.HashKey(d.SessionID(), d.s.Last), typ)
		d.s.Opening = true
	case "turn.completed":
		d.completed(root.Get("usage"))
	case "turn.failed":
		d.wake("failed", root.Path("error", "message"))
		d.stop(codex.Failed, root.Get("error"))
	case "error":
		d.fault(root)
	case "item.started", "item.updated", "item.completed":
		d.item(typ, root)
	default:
		d.unknown(typ, root)
	}
	root.Path("item", "sender_thread_id").Equal(d.ID)
	return true
}

func (d *stream) unknown(typ string, root jsonv.Value) {
	d.Unknown(msg.HashKey(d.Run, string(root.Peek())), typ, root)
}

// started decodes thread.started. A thread that is resumed begins again.
func (d *stream) started(id string) {
	if id != d.ID {
		*d.s = state{State: codex.State{ID: id}}
	}
	d.Run, d.s.Opening, d.Calls.Open = "", false, nil
	d.Status("thread:"+d.SessionID(), "thread.started")
}

// wake begins the run of the turn. Its id is a hash of the thread, of the turn before it
// and of the first event, which is of that kind; the kind of an item is none.
func (d *stream) wake(kind string, first jsonv.Value) {
	if d.Run != "" {
		return
	}
	facts := []string{d.SessionID(), d.s.Last, kind, string(first.Peek())}
	if kind == "" {
		facts = append(facts[:2], facts[3])
	}
	d.Run = "turn:" + msg.HashKey(facts...)
	d.s.Last, d.s.Opening, d.Calls.Open = d.Run, false, nil
}

// stop ends the run of the turn.
func (d *stream) stop(reason string, err jsonv.Value) {
	d.Stop(d.Run, d.Run, reason, err)
	d.Run = ""
}

// completed decodes turn.completed: {usage: {input_tokens, cached_input_tokens, output_tokens}}.
func (d *stream) completed(usage jsonv.Value) {
	d.wake("completed", usage)
	if total := openai.Usage(usage); total != (conversation.Counts{}) {
		d.Usage(d.Run, d.Run, d.Grow(total), msg.Provider)
	}
	d.stop(codex.Stopped, jsonv.Value{})
}

// fault decodes error: {message}. The CLI writes it for each attempt to connect again too.
func (d *stream) fault(v jsonv.Value) {
	text := v.Get("message")
	if d.s.Opening {
		d.wake("error", text)
	}
	again := text.HasPrefix("Reconnecting...")
	m := d.Fault("error:"+msg.HashKey(d.SessionID(), d.Run, string(text.Peek())), v, again)
	if again {
		m.SetAttr("type", "reconnecting")
	}
}

// item decodes item.started, item.updated and item.completed: {item: {id, type, …}}.
func (d *stream) item(typ string, root jsonv.Value) {
	v := root.Get("item")
	it := codex.Item{
		Value: v, ID: ident.Of(v.Get("id")), Type: v.Get("type").Str(),
		Done: typ == "item.completed" && !v.Get("status").Equal("in_progress"),
	}
	switch {
	case it.Known():
		d.wake("", v)
		it.ID = d.Run + "/" + it.ID
		d.Item(it)
	case it.ID != "" && it.Type == "error": // a warning, perhaps before the turn
		if d.Run != "" || d.s.Opening {
			d.wake("", v)
		}
		d.Fault("error:"+msg.HashKey(d.SessionID(), d.Run, it.ID, string(v.Get("message").Peek())), v, false).SetAttr("fatal", "false")
	default:
		if it.Type == "" {
			it.Type = "none"
		}
		d.unknown(typ+"/"+it.Type, root)
	}
}
