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
//   - Input counts include the cached tokens. Reasoning is counted, if at all, as a part
//     of the output.
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
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// rest keeps the fields that the decoder does not read.
var rest = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:       "codex-exec",
		Version:    "1.0.0",
		Revision:   3,
		Summary:    "Events of codex exec --json: threads, turns and items.",
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Text},
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if err := conversation.NoOptions("codex-exec", s.Options); err != nil {
		return nil, err
	}
	return &stream{Thread: codex.Thread{Origin: codex.Name(s.Origin, ".json")}}, nil
}

// stream decodes the events of one stream.
type stream struct {
	doc jsonv.Doc
	codex.Thread
	local
}

// local is the part of the state that codex does not have.
type local struct {
	Last    string `json:",omitempty"` // the last turn of the thread in this stream
	Opening bool   `json:",omitempty"` // a turn has begun and has no item yet
}

// stateVersion rises when the state's form changes, see package snapshot.
const stateVersion = 2

type state struct {
	codex.State
	local
}

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) {
	return snapshot.Of(stateVersion, &state{d.State, d.local})
}

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error {
	var s state
	err := snapshot.Restore(stateVersion, b, &s)
	d.State, d.local = s.State, s.local
	return err
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one event.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := conversation.ParseObject(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	d.Out = out
	before := len(out.Messages)
	d.event(root)
	root.Path("item", "sender_thread_id").Equal(d.ID)
	rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session, m.Run = d.SessionID(), d.Run })
	d.Out = nil
	return nil
}

// Flush adds no message: an open item was emitted with the content it has so far.
func (d *stream) Flush(*decoder.Output) error { return nil }

func (d *stream) event(root jsonv.Value) {
	typ := root.Get("type").Str()
	switch typ {
	case "thread.started":
		d.threadStarted(ident.Of(root.Get("thread_id")))
	case "turn.started":
		d.Run = ""
		d.Status("turn_started:"+msg.HashKey(d.SessionID(), d.Last), typ)
		d.Opening = true
	case "turn.completed":
		d.completed(root.Get("usage"))
	case "turn.failed":
		text := root.Path("error", "message")
		d.wake("failed", string(text.Peek()))
		m := d.stop("error")
		m.IsError, m.Content = true, text.Text()
	case "error":
		d.fault(root.Get("message"))
	case "item.started", "item.updated", "item.completed":
		item := root.Get("item")
		if !d.item(item, typ == "item.completed") {
			name := item.Get("type").Str()
			if name == "" {
				name = "none"
			}
			d.unknown(typ+"/"+name, root)
		}
	default:
		d.unknown(typ, root)
	}
}

func (d *stream) unknown(typ string, root jsonv.Value) {
	d.Unknown(msg.HashKey(d.Run, string(root.Peek())), typ, root)
}

// threadStarted decodes thread.started. A thread that is resumed begins again.
func (d *stream) threadStarted(id string) {
	if id != d.ID {
		d.State, d.local = codex.State{ID: id}, local{}
	}
	d.Run, d.Opening, d.Calls.Open = "", false, nil
	d.Status("thread:"+d.SessionID(), "thread.started")
}

// wake begins the run of the turn. Its id is a hash of the thread, of the turn before it
// and of the first event.
func (d *stream) wake(first ...string) {
	if d.Run != "" {
		return
	}
	d.Run = "turn:" + msg.HashKey(append([]string{d.SessionID(), d.Last}, first...)...)
	d.Last, d.Opening, d.Calls.Open = d.Run, false, nil
}

// stop ends the run of the turn.
func (d *stream) stop(reason string) *msg.Message {
	m := d.Add(msg.Stop, "stop:"+d.Run)
	m.Signal, m.FinishReason = msg.RunEnd, reason
	d.Run = ""
	return m
}

// completed decodes turn.completed: {usage: {input_tokens, cached_input_tokens, output_tokens}}.
func (d *stream) completed(usage jsonv.Value) {
	d.wake("completed", string(usage.Peek()))
	if usage.Is(jsonv.Object) {
		m := d.Add(msg.Usage, "usage:"+d.Run)
		m.Hidden, m.Usage = true, openai.Tokens(d.Grow(openai.Usage(usage)), msg.Provider)
	}
	d.stop("stop").Hidden = true
}

// fault decodes error: {message}. The CLI writes it for each attempt to connect again too.
func (d *stream) fault(text jsonv.Value) {
	if d.Opening {
		d.wake("error", string(text.Peek()))
	}
	m := d.Add(msg.Error, "error:"+msg.HashKey(d.SessionID(), d.Run, string(text.Peek())))
	m.IsError, m.Content = true, text.Text()
	if text.HasPrefix("Reconnecting...") {
		m.Kind, m.IsError, m.Hidden, m.Signal = msg.Status, false, true, msg.Retry
		m.SetAttr("type", "reconnecting")
	}
}
