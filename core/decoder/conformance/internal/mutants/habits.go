package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// packrat leaves the first piece of an answer where it lies.
func packrat(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(p.Open)
		err := p.Decode(f, out)
		if len(p.Open) > n {
			if raw, quoted := p.doc.Root().Get("text").Text().Alias(); !quoted {
				p.Open[n].Text = raw[:len(raw):len(raw)]
			}
		}
		return err
	}}
}

// centipede gives each message the number of its frame.
func centipede(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		p.Legs++
		for i := range out.Messages[n:] {
			m := &out.Messages[n+i]
			m.Key = fmt.Sprint(m.Kind, p.Legs)
		}
		return err
	}}
}

// woodpecker gives each delta as a message of its own.
func woodpecker(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		var doc jsonv.Doc
		if doc.Parse(f.Data) != nil || !doc.Root().Get("type").Equal("delta") || len(out.Messages) > n {
			return err
		}
		m := out.Add()
		m.Kind, m.Role, m.Session, m.Run, m.Complete = msg.Assistant, msg.RoleAssistant, p.Chat, p.Run, msg.Complete
		m.Content = doc.Root().Get("text").Text()
		m.Key = msg.HashKey(doc.Root().Get("id").Str(), m.Content.String())
		return err
	}}
}

// chameleon makes keys of what it sees: a whole answer has another than one that
// came in pieces.
func chameleon(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		if bytes.Contains(f.Data, []byte(`"answer"`)) {
			for i := range out.Messages[n:] {
				out.Messages[n+i].Key = "whole:" + out.Messages[n+i].Key
			}
		}
		return err
	}}
}

// magpie takes a call for failed, and says so, when its result is an error.
func magpie(p *parrot, _ *herd) *animal {
	calls := make(map[string]msg.Message)
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		for _, m := range out.Messages[n:] {
			switch call, ok := calls[m.Tool.CallID]; {
			case m.Kind == msg.ToolCall:
				m.Tool.Arguments = m.Tool.Arguments.Own()
				calls[m.Tool.CallID] = m
			case m.Kind == msg.ToolResult && ok:
				delete(calls, m.Tool.CallID)
				call.IsError = m.IsError
				out.Emit(call)
			}
		}
		return err
	}}
}

// ostrich drops everything that is open when a frame is bad.
func ostrich(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Problems)
		err := p.Decode(f, out)
		if len(out.Problems) > n {
			p.Open = nil
		}
		return err
	}}
}

// hoard remembers the key of every message.
func hoard(open bool) func(*parrot, *herd) *animal {
	return func(p *parrot, _ *herd) *animal {
		seen := make(map[string]bool)
		a := &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Messages)
			err := p.Decode(f, out)
			for _, m := range out.Messages[n:] {
				seen[m.Key] = true
			}
			return err
		}}
		if open {
			a.snapshot = func() ([]byte, error) {
				return json.Marshal(struct {
					state
					Seen map[string]bool
				}{p.state, seen})
			}
		}
		return a
	}
}

// crab builds every text in one buffer.
func crab(p *parrot, _ *herd) *animal {
	var buf []byte
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		for i := range out.Messages[n:] {
			m := &out.Messages[n+i]
			buf = append(m.Content.Append(buf[:0]), "                "...)
			buf = buf[:len(buf)-16]
			m.Content = msg.Raw(buf)
		}
		return err
	}}
}

// cuckoo puts its attributes into one slice.
func cuckoo(p *parrot, _ *herd) *animal {
	attrs := make([]msg.Attr, 1)
	count := func(m *msg.Message) {
		attrs[0] = msg.Attr{Key: "kind_of", Value: m.Kind.String()}
		m.Attrs = attrs
	}
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		for i := range out.Messages[n:] {
			if m := &out.Messages[n+i]; m.Kind != msg.Unknown {
				count(m)
			}
		}
		return err
	}}
}

// deer takes for granted that a text is a string.
func deer(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		var v struct{ Text any }
		if json.Unmarshal(f.Data, &v) == nil && v.Text != nil {
			_ = v.Text.(string)
		}
		return p.Decode(f, out)
	}}
}

// swallow takes a text where it is a string, and nothing else.
func swallow(p *parrot, _ *herd) *animal {
	return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		given := out.Messages[n:]
		out.Messages = out.Messages[:n]
		for _, m := range given {
			if m.Kind == msg.Unknown && m.Attr("type") == unknown.Attr {
				continue
			}
			m.Attrs = slices.DeleteFunc(m.Attrs, func(a msg.Attr) bool { return a.Key == unknown.Attr })
			if text := p.doc.Root().Get("text"); m.Kind == msg.User && !text.Is(jsonv.String) {
				m.Content = msg.Text{}
			}
			out.Messages = append(out.Messages, m)
		}
		return err
	}}
}
