// Package llmmessage decodes the WebSocket protocol of myagent: the events of an agent at work,
// and the snapshots of its whole memory that it sends beside them (agent.llm_message).
//
// Facts of the format that are easy to get wrong, and that this decoder is built around:
//
//   - Every snapshot repeats the conversation. It is sent after each call of the
//     model, and taken before the model's answer is stored: the newest text is in
//     the next one, if there is one. At the end of a turn it may be ahead of the
//     events.
//   - A snapshot is no log. It sheds its oldest messages (100 by default), loses
//     groups of calls without results after a retry, and gains prompts that no user
//     wrote. total_messages is the length of the array.
//   - The metadata of a snapshot have the answer (final_response) before the memory has
//     it, and keep it into the next turn; agent_state is FINISHED when the agent is
//     done. Most snapshots never have that state.
//   - Messages have neither ids nor times, and in the server's events alone the user's
//     prompt first appears in a snapshot, after the first events that answer it. Calls
//     have ids there, and nowhere else: the events of the same call have a step_id,
//     which begins at 0 in each turn. Both forms have the tool and the arguments of a
//     call.
//   - The user's prompt is rewritten: Question: …\n\nGuide: …, and the guide may
//     arrive alone as a message of the user. So may the request for a summary.
//   - The result of a tool is wrapped in a snapshot: Observed output of cmd `…`
//     executed:\n….
//   - Pieces of an answer (agent.partial_answer) and snapshots wait up to 75 ms for a
//     newer one and are then dropped for it. Pieces are lost for good, and the last
//     one arrives behind events with higher seq, even behind the final answer.
//   - From the second turn on, a session wraps its tools once more: a call then has
//     two or three pairs of events, one within the other, each with a step of its own.
//   - Times are local and have no zone, but for the calls of the model in statistics,
//     which are UTC. Statistics of several agents repeat the same calls.
//   - A session that is restored after a broken connection has a new id, and begins
//     with events of the old one under new numbers.
//   - The solvers of a pipeline share the session. Only solver events name them.
package llmmessage

import (
	"crypto/sha256"
	_ "embed"
	"hash"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// unread keeps the fields that the decoder did not read.
var unread = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:       "llm-message",
		Version:    "1.0.0",
		Revision:   3,
		Summary:    "WebSocket events and memory snapshots of myagent.",
		Transports: []frame.Kind{frame.Text, frame.Event, frame.Line, frame.Body},
		Options:    optionSchema(),
		Reload:     true,
	}
}

// New returns a decoder for one connection, or one file of its events.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	zone, err := parseOptions(s.Options)
	if err != nil {
		return nil, err
	}
	return &stream{origin: sessionOfOrigin(s.Origin), zone: zone, sum: sha256.New()}, nil
}

// stream decodes one connection.
type stream struct {
	doc    jsonv.Doc
	origin string // the session of events that name none
	zone   *time.Location
	sum    hash.Hash
	state
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one event, or a snapshot by itself.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := conversation.Parse(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	switch {
	case root.Is(jsonv.Object):
		d.event(root, out)
	case root.Is(jsonv.Array) && f.Kind == frame.Body:
		d.bareSnapshot(root, root, out)
	default:
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return nil
	}
	unread.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.session(root.Get("session_id")).ID })
	return nil
}

// Flush emits the answers that are still being written.
func (d *stream) Flush(out *decoder.Output) error {
	for _, s := range d.Sessions {
		if s.Draft.Key == "" || len(s.Draft.Text) == 0 {
			continue
		}
		m := out.Add()
		m.Kind, m.Role, m.Key, m.Session, m.Run = msg.Assistant, msg.RoleAssistant, s.Draft.Key, s.ID, s.Draft.Run
		m.Agent = s.agent()
		m.Content = msg.Plain(string(s.Draft.Text))
		m.Time, m.Precision = s.Draft.At.Time, s.Draft.At.Precision
		m.SetAttr("holes", d.missedEvents(&s.Draft))
	}
	return nil
}

// sessionOfOrigin is the session of a stream that names none: the name of the file.
func sessionOfOrigin(origin string) string {
	origin = strings.ToValidUTF8(origin, "\uFFFD")
	parts := strings.FieldsFunc(origin, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return "unknown"
	}
	name := parts[len(parts)-1]
	if i := strings.Index(name, ".json"); i > 0 {
		name = name[:i]
	}
	return name
}
