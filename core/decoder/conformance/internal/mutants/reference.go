// Package mutants has the decoders with which the conformance suite is tested: the
// reference decoder, which keeps each rule, and mutants, which break one rule each.
//
// They decode a small invented format, "reference". Each frame is a JSON object:
//
//	{"type":"user","chat":"c","id":"u1","at":"2026-03-01T10:00:00Z","text":"..."}   begins a run
//	{"type":"delta","chat":"c","id":"m1","text":"..."}                               a piece of an answer
//	{"type":"end","chat":"c","id":"m1","at":"...","in":12,"out":3}                   the answer is complete
//	{"type":"answer","chat":"c","id":"m1","at":"...","text":"...","in":12,"out":3}   the same, reloaded
//	{"type":"call","chat":"c","id":"t1","at":"...","tool":"grep","args":{...}}
//	{"type":"result","chat":"c","id":"t1","at":"...","text":"...","error":false}
//
// Only an answer that is not complete is open. A frame of these
// types without an id, or a call without a tool, is a bad frame.
package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// rest keeps the members that the reference decoder does not read. It leaves out nothing.
var rest = unknown.NewKeeper([]byte("[]"))

// Reference is the factory of the reference decoder.
type Reference struct{}

// Info implements decoder.Factory.
func (Reference) Info() decoder.Info {
	return decoder.Info{
		Name: "reference", Version: "1.0.0", Revision: 1, Summary: "Decodes an invented format.", Reload: true,
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Text},
	}
}

// New implements decoder.Factory.
func (Reference) New(s decoder.Stream) (decoder.Decoder, error) { return newReference(s) }

// state is the decoder's state, which its snapshot has as JSON.
type state struct {
	Chat   string
	Run    string
	Open   []answer
	Frames int `json:",omitempty"` // of counted-keys
}

// answer is an answer in progress.
type answer struct {
	Chat, Run, ID string
	Text          []byte
}

type referenceDecoder struct {
	state
	doc jsonv.Doc
}

func newReference(s decoder.Stream) (*referenceDecoder, error) {
	if s.Options != nil {
		return nil, errors.New("options: there are none")
	}
	return &referenceDecoder{state: state{Chat: s.Origin}}, nil
}

// Snapshot implements decoder.Snapshotter.
func (p *referenceDecoder) Snapshot() ([]byte, error) { return json.Marshal(p.state) }

// Restore implements decoder.Snapshotter.
func (p *referenceDecoder) Restore(b []byte) error { return json.Unmarshal(b, &p.state) }

// Decode implements decoder.Decoder.
func (p *referenceDecoder) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	if err := p.doc.Parse(f.Data); err != nil {
		reason := msg.ReasonInvalidJSON
		var syntax *jsonv.SyntaxError
		if errors.As(err, &syntax) && syntax.UTF8 {
			reason = msg.ReasonInvalidUTF8
		}
		out.Problem(reason, err.Error())
		return nil
	}
	v := p.doc.Root()
	if !v.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, fmt.Sprintf("a frame is an object, this is a %s", v.Kind()))
		return nil
	}
	if chat := v.Get("chat").Str(); chat != "" {
		p.Chat = chat
	}
	before := len(out.Messages)
	p.message(v, v.Get("type").Str(), f, out)
	rest.Keep(&p.doc, out, before, func(m *msg.Message) { m.Session, m.Run = p.Chat, p.Run })
	return nil
}

func (p *referenceDecoder) message(v jsonv.Value, typ string, f *frame.Frame, out *decoder.Output) {
	id := v.Get("id").Str()
	switch typ {
	case "user", "delta", "end", "answer", "call", "result":
		if id == "" || typ == "call" && v.Get("tool").Str() == "" {
			out.Problem(msg.ReasonWrongType, "a "+typ+" without its id or tool")
			return
		}
	}
	switch typ {
	case "user":
		p.Run = id
		m := p.add(out, v, id, msg.User)
		m.Role, m.Content, m.Signal = msg.RoleUser, v.Get("text").Text(), msg.RunStart
	case "delta":
		i := p.find(id)
		if i < 0 {
			i = len(p.Open)
			p.Open = append(p.Open, answer{Chat: p.Chat, Run: p.Run, ID: id})
		}
		p.Open[i].Text = v.Get("text").Text().Append(p.Open[i].Text)
	case "end":
		var text msg.Text
		if i := p.find(id); i >= 0 {
			text = msg.Plain(string(p.Open[i].Text))
			p.Open = slices.Delete(p.Open, i, i+1)
		}
		p.answer(out, v, id, text)
	case "answer":
		p.answer(out, v, id, v.Get("text").Text())
	case "call":
		m := p.add(out, v, "call:"+id, msg.ToolCall)
		m.Tool = msg.Tool{CallID: id, Name: v.Get("tool").Str(), Arguments: v.Get("args").JSON()}
	case "result":
		m := p.add(out, v, "result:"+id, msg.ToolResult)
		m.Tool.CallID, m.Content, m.IsError = id, v.Get("text").Text(), v.Get("error").Bool()
	default:
		if typ == "" {
			typ = "?"
		}
		m := out.Unknown(typ, f.Data)
		m.Key, m.Session = "unknown:"+msg.HashKey(string(f.Data)), p.Chat
		v.MarkRead()
	}
}

func (p *referenceDecoder) answer(out *decoder.Output, v jsonv.Value, id string, text msg.Text) {
	m := p.add(out, v, id, msg.Assistant)
	m.Role, m.Content, m.ResponseID = msg.RoleAssistant, text, id
	u := p.add(out, v, "usage:"+id, msg.Usage)
	u.Hidden, u.ResponseID = true, id
	u.Usage = msg.Tokens{Input: v.Get("in").Uint(), Output: v.Get("out").Uint(), Provenance: msg.Provider}
}

func (p *referenceDecoder) add(out *decoder.Output, v jsonv.Value, key string, kind msg.Kind) *msg.Message {
	m := out.Add()
	m.Key, m.Session, m.Run, m.Kind, m.Complete = key, p.Chat, p.Run, kind, msg.Complete
	m.Time, m.Precision, _ = when.Value(v.Get("at"))
	return m
}

func (p *referenceDecoder) find(id string) int {
	return slices.IndexFunc(p.Open, func(a answer) bool { return a.ID == id && a.Chat == p.Chat })
}

// Flush implements decoder.Decoder.
func (p *referenceDecoder) Flush(out *decoder.Output) error {
	for _, a := range p.Open {
		m := out.Add()
		m.Key, m.Session, m.Run, m.Kind, m.Role = a.ID, a.Chat, a.Run, msg.Assistant, msg.RoleAssistant
		m.Content, m.ResponseID = msg.Plain(string(a.Text)), a.ID
	}
	return nil
}
