package claudestream

import (
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxBlocks = 256     // blocks of one response of which pieces are kept
	maxPieces = 1 << 20 // bytes of them
)

// block is a content block of which pieces have come. The whole of it follows as
// an assistant line, at the latest when the response is over; the pieces count if
// it does not.
type block struct {
	Index   int64
	Thought bool   `json:",omitempty"`
	Text    []byte `json:",omitempty"`
	Over    bool   `json:",omitempty"`
}

// partial decodes stream_event: an event of the provider's own stream.
//
//	{"event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "…"}}}
func (d *stream) partial(ln *line) {
	event := ln.root.Get("event")
	l := ln.lane
	switch typ := event.Get("type").Str(); typ {
	case "message_start":
		m := event.Get("message")
		d.wake(ln)
		r := d.response(ln, m.Get("id"), m.Get("model"))
		r.count(ln, m.Get("usage"))
	case "content_block_start":
		l.start(event.Get("index").Int(), event.Get("content_block"))
	case "content_block_delta":
		d.delta(ln, event.Get("index").Int(), event.Get("delta"))
	case "content_block_stop":
		if b := l.block(event.Get("index").Int()); b != nil {
			b.Over = true
		}
	case "message_delta":
		if r := l.Response; r != nil {
			r.count(ln, event.Get("usage"))
			r.stop(l, event.Path("delta", "stop_reason"))
			r.Final = r.Final || event.Get("usage").Is(jsonv.Object)
		}
	case "message_stop", "ping":
	case "error":
		fault := event.Get("error")
		m := d.status(ln, ln.id(), "stream_error")
		m.Signal, m.Content = msg.Retry, fault.Get("message").Text()
		m.SetAttr("error_type", ident(fault.Get("type")))
	default:
		d.unknown(ln, "stream_event/"+typ, ln.root)
	}
}

func (l *lane) start(index int64, content jsonv.Value) {
	r := l.Response
	typ := content.Get("type")
	text, thought := typ.Equal("text"), typ.Equal("thinking")
	if r == nil || !text && !thought || len(r.Blocks) >= maxBlocks || l.block(index) != nil {
		return
	}
	b := block{Index: index, Thought: thought}
	b.Text = first(content, "text", "thinking").Text().Append(nil)
	r.Blocks = append(r.Blocks, b)
}

func (d *stream) delta(ln *line, index int64, delta jsonv.Value) {
	if delta.Get("type").Equal("input_json_delta") {
		delta.Get("partial_json").MarkRead() // a call has its arguments when it is whole
	}
	l := ln.lane
	r := l.Response
	if r == nil {
		return
	}
	if !r.Begun {
		r.Begun = true
		m := d.status(ln, "first_token:"+r.ID, "first_token")
		m.Signal, m.ResponseID, m.Model, m.Provider = msg.FirstToken, r.ID, r.Model, r.Provider
	}
	piece := first(delta, "text", "thinking").Text()
	size := piece.Len()
	for i := range r.Blocks {
		size += len(r.Blocks[i].Text)
	}
	if b := l.block(index); b != nil && size <= maxPieces {
		b.Text = piece.Append(b.Text)
	}
}

func (l *lane) block(index int64) *block {
	if l.Response == nil {
		return nil
	}
	for i := range l.Response.Blocks {
		if b := &l.Response.Blocks[i]; b.Index == index {
			return b
		}
	}
	return nil
}

// whole forgets the first block of that kind of which there are pieces: here is the
// whole of it.
func (r *response) whole(thought bool) {
	for i := range r.Blocks {
		if r.Blocks[i].Thought == thought {
			r.Blocks = append(r.Blocks[:i:i], r.Blocks[i+1:]...)
			return
		}
	}
}

// pieces gives the texts of which only pieces have come: as they are so far, or,
// when the response is over, for good.
func (l *lane) pieces(out *decoder.Output, over bool) {
	r := l.Response
	if r == nil || r.Done {
		return
	}
	texts, thoughts, last := r.Texts, r.Thoughts, r.Last
	for _, b := range r.Blocks {
		if len(b.Text) == 0 {
			continue
		}
		kind, key := msg.Assistant, ""
		if b.Thought {
			kind, key = msg.Reasoning, ordinal(r.ID+"/thinking", &thoughts)
		} else {
			if over {
				l.Said = hash(b.Text)
			}
			key = ordinal(r.ID+"/text", &texts)
		}
		m := out.Add()
		m.Kind, m.Key, m.ParentKey = kind, key, last
		m.Session, m.Run, m.Agent, m.Role = l.Session, r.Run, l.agent(), msg.RoleAssistant
		m.Time, m.Precision = r.Time, r.Prec
		m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.ID
		m.Content = msg.Plain(string(b.Text))
		m.SetAttr("from_pieces", "true")
		if last = key; over && b.Over {
			m.Complete = msg.Complete
		}
	}
	if over {
		r.Texts, r.Thoughts, r.Last = texts, thoughts, last
	}
}
