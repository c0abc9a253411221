// Package codexexec decodes what `codex exec --json` writes on its standard output:
// the events of one thread, as lines of JSON.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - It has no times, no ids of turns, and neither the prompt nor the model. Ids of
//     items (item_0) begin anew with every process. A turn is therefore named by a
//     hash of its thread, of the turn before it and of the first thing that it says.
//   - The usage of turn.completed is the sum over the thread, the turns before a
//     `codex exec resume` included. What a turn took is the difference to the turn
//     before, where that is in the same stream.
//   - Input counts include what came from the cache. Reasoning is counted, if at all,
//     as a part of the output.
//   - Reasoning, answers and most changes of files come as item.completed alone.
//   - Warnings are items of the type error, and may come before the turn.
package codexexec

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// rest keeps what was not read.
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
		Revision:   2,
		Summary:    "Events of codex exec --json: threads, turns and items.",
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Text},
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if len(s.Options) > 0 {
		var options map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return nil, fmt.Errorf("codex-exec: options: %w", err)
		}
		for name := range options {
			return nil, fmt.Errorf("codex-exec: option %q: there are no options", name)
		}
	}
	return &stream{origin: nameOf(s.Origin)}, nil
}

// stream decodes the events of one stream.
type stream struct {
	doc    jsonv.Doc
	origin string // what the stream is called, for threads that do not name themselves
	out    *decoder.Output
	state
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
	if err := d.doc.Parse(f.Data); err != nil {
		reason := msg.ReasonInvalidJSON
		var syntax *jsonv.SyntaxError
		if errors.As(err, &syntax) && syntax.UTF8 {
			reason = msg.ReasonInvalidUTF8
		}
		out.Problem(reason, err.Error())
		return nil
	}
	root := d.doc.Root()
	if !root.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return nil
	}
	d.out = out
	before := len(out.Messages)
	d.event(root)
	root.Path("item", "sender_thread_id").Equal(d.Thread)
	rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session, m.Run = d.session(), d.Run })
	d.out = nil
	return nil
}

// Flush gives nothing: what is open has been given as far as it is known.
func (d *stream) Flush(*decoder.Output) error { return nil }

func (d *stream) event(root jsonv.Value) {
	typ := root.Get("type").Str()
	switch typ {
	case "thread.started":
		d.thread(root)
	case "turn.started":
		d.Run = ""
		d.status("turn_started:"+msg.HashKey(d.session(), d.Last), typ)
		d.Opening = true
	case "turn.completed":
		d.completed(root)
	case "turn.failed":
		d.failed(root)
	case "error":
		d.fault(root)
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
