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

// keepsFrame keeps the first piece of an answer as an alias of the frame.
func keepsFrame(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// countedKeys uses the number of the frame as the key.
func countedKeys(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		p.Frames++
		for i := range out.Messages[n:] {
			m := &out.Messages[n+i]
			m.Key = fmt.Sprint(m.Kind, p.Frames)
		}
		return err
	}}
}

// messagePerDelta emits each delta as a message of its own.
func messagePerDelta(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// otherKeysInReload uses one key for a whole answer and another for one in deltas.
func otherKeysInReload(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// changesComplete emits a call again as failed when its result is an error.
func changesComplete(p *referenceDecoder, _ *shared) *mutantDecoder {
	calls := make(map[string]msg.Message)
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// forgetsOnBadFrame drops the open answers when a frame is bad.
func forgetsOnBadFrame(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Problems)
		err := p.Decode(f, out)
		if len(out.Problems) > n {
			p.Open = nil
		}
		return err
	}}
}

// grows remembers the key of every message.
func grows(open bool) func(*referenceDecoder, *shared) *mutantDecoder {
	return func(p *referenceDecoder, _ *shared) *mutantDecoder {
		seen := make(map[string]bool)
		a := &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// reusesText builds every text in one buffer.
func reusesText(p *referenceDecoder, _ *shared) *mutantDecoder {
	var buf []byte
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// reusesAttributes puts its attributes into one slice.
func reusesAttributes(p *referenceDecoder, _ *shared) *mutantDecoder {
	attrs := make([]msg.Attr, 1)
	count := func(m *msg.Message) {
		attrs[0] = msg.Attr{Key: "kind_of", Value: m.Kind.String()}
		m.Attrs = attrs
	}
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
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

// panicsOnOtherType panics when a text is not a string.
func panicsOnOtherType(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		var v struct{ Text any }
		if json.Unmarshal(f.Data, &v) == nil && v.Text != nil {
			_ = v.Text.(string)
		}
		return p.Decode(f, out)
	}}
}

// dropsOtherTypes drops a text that is not a string, and unknown members.
func dropsOtherTypes(p *referenceDecoder, _ *shared) *mutantDecoder {
	return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Decode(f, out)
		emitted := out.Messages[n:]
		out.Messages = out.Messages[:n]
		for _, m := range emitted {
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
