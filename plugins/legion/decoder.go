// Package legion decodes the messages.jsonl files of Claude Code WebUI, in which
// a "legion" of minions (one Claude Code session each) works and talks, and the
// comms.jsonl files beside them.
//
// One file mixes three generations of records, line by line:
//
//	1  {"type":"assistant","content":"…","timestamp":…,"metadata":{…}}
//	2  {"_type":"AssistantMessage","timestamp":…,"data":{"content":[blocks…]}}
//	3  {"_type":"ToolCallUpdate","data":{"tool_use_id":…,"status":"running",…}}
//
// The newest writers flatten the third into {"type":"tool_call",…}. A WebSocket
// carries the same records in an envelope, {"type":"message","data":{…}}.
//
// Facts that are easily missed:
//
//   - A tool call is told up to five times: as a block of the assistant's
//     message, as pending, awaiting_permission and running, and when it is over,
//     when the result also stands in a user message. It is one call with one
//     result; whichever record comes first counts, and a result that came
//     without its text (denied) is completed by the one that has it.
//   - A timestamp is an ISO string or a float of seconds, whatever the type.
//   - Where a message had no text the writer put a phrase in ("Assistant
//     response", "Tool results: 2 results"). Nobody said that.
//   - role user is not a human: minions write to each other as user messages
//     with a headline ("**📋 Task from Minion #ada:** …"). No id joins it with the
//     call by which it was sent, only the text.
//   - A minion's own file does not say how it is called; state.json beside it does,
//     and the others, when they write to it and hear from it.
//   - The user's prompt stays a record of generation 1 in the newest files, so a
//     text in a generation 2 user message while a turn is running was put there by
//     the agent's own machinery, and begins no turn.
//   - usage on an assistant message is a snapshot from the beginning of its
//     response; only the result line has the final count, of the whole turn. So
//     the tokens of a turn stand on one usage message, from the result when there
//     is one. Its total_cost_usd and duration_api_ms grow over the session.
//   - The result line repeats the turn's last text.
//   - A sub-agent in the background has its call answered at once ("Async agent
//     launched"); the answer comes with a task notification, perhaps turns later,
//     and the turn that takes it up has no prompt.
//
// Lines without an id of their own are named by a hash of their type, their
// timestamp as written and their text: two identical lines are one message.
package legion

import (
	"bytes"
	_ "embed"
	"errors"
	"sync"

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

// Limits of what a decoder remembers.
const (
	maxSessions = 64   // of one stream; a file has one
	maxOpen     = 1024 // calls without a result, of a session
	maxDone     = 32   // calls whose result may be told again, of a session: the next records do
	maxKept     = 4096 // bytes of a turn's last text, of a session
	maxNames    = 512  // strings that come again and again: models, tools
	maxDir      = 1024 // bytes of a session's directory
	maxScratch  = 1 << 20
)

type factory struct{ scratch *sync.Pool }

// New returns the factory of this decoder.
func New() decoder.Factory {
	return factory{&sync.Pool{New: func() any { return newScratch() }}}
}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:          "legion",
		Version:       "1.0.0",
		Revision:      3,
		Summary:       "Claude Code WebUI (Legion) messages.jsonl and comms.jsonl, all generations, and their WebSocket form",
		Transports:    []frame.Kind{frame.Line, frame.Text, frame.Body},
		MetadataFiles: []string{"state.json"},
		Reload:        true,
	}
}

func (f factory) New(s decoder.Stream) (decoder.Decoder, error) {
	return &Decoder{scratch: f.scratch, origin: originOf(s.Origin), sessions: make(map[string]*session)}, nil
}

// Decoder decodes one stream.
type Decoder struct {
	scratch  *sync.Pool
	origin   origin
	sessions map[string]*session
	last     *session // that of the last record
	clock    uint64   // counts sessions' uses and calls, to find the oldest
}

var _ decoder.Snapshotter = (*Decoder)(nil)

// Decode takes one record.
func (d *Decoder) Decode(f *frame.Frame, out *decoder.Output) error {
	if len(bytes.TrimSpace(f.Data)) == 0 { // a blank line, or the end of the stream
		return nil
	}
	sc := d.scratch.Get().(*scratch)
	defer d.scratch.Put(sc)
	if err := sc.doc.Parse(f.Data); err != nil {
		reason := msg.ReasonInvalidJSON
		if s := (*jsonv.SyntaxError)(nil); errors.As(err, &s) && s.UTF8 {
			reason = msg.ReasonInvalidUTF8
		}
		out.Problem(reason, err.Error())
		return nil
	}
	root := sc.doc.Root()
	if !root.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, "a record is an object, not "+root.Kind().String())
		return nil
	}
	if f.Kind == frame.Body {
		d.companion(out, root)
	} else {
		d.record(sc, out, f.Data, root)
	}
	sc.trim()
	return nil
}

// Flush gives the tokens of turns that have not ended.
func (d *Decoder) Flush(out *decoder.Output) error {
	for _, s := range d.inOrder() {
		s.tell(out, msg.Partial)
	}
	return nil
}

// chars returns the text of a string, in place where it can be; nil for any
// other kind.
func chars(v jsonv.Value) []byte {
	noted(v)
	return peek(v)
}

// noted counts a string as read.
func noted(v jsonv.Value) {
	if v.Is(jsonv.String) {
		v.MarkRead()
	}
}

// peek is chars for who only looks for what has that name: it does not count as read.
func peek(v jsonv.Value) []byte {
	raw := body(v)
	if bytes.IndexByte(raw, '\\') >= 0 {
		return []byte(v.PeekStr())
	}
	return raw
}

// body returns what stands between a string's quotes, escapes and all; nil for
// any other kind. It is enough for a look at words without anything to escape, and does
// not count as read.
func body(v jsonv.Value) []byte {
	if !v.Is(jsonv.String) {
		return nil
	}
	raw := v.Peek()
	return raw[1 : len(raw)-1]
}
