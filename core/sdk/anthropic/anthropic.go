// Package anthropic reads the content blocks and the usage of Anthropic's Messages API, as
// the API itself, Claude Code and the programs around it write them. Values enter, texts,
// attachments and counts leave; nothing is remembered.
package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// Usage reads a usage object. Its input excludes the cached classes; its output includes the
// reasoning. Some writers break the written cache down by lifetime and leave out the sum.
func Usage(u jsonv.Value) conversation.Counts {
	c, _ := UsageAndExtra(u)
	return c
}

// Extra has the counts of a usage object that have no token class.
type Extra struct{ WebSearch, WebFetch uint64 }

// Set sets the attributes of the counts that are not zero.
func (x Extra) Set(attrs []msg.Attr) []msg.Attr {
	attrs = setCount(attrs, "web_search_requests", x.WebSearch)
	return setCount(attrs, "web_fetch_requests", x.WebFetch)
}

// UsageAndExtra reads all counts of a usage object, in one pass.
func UsageAndExtra(u jsonv.Value) (c conversation.Counts, x Extra) {
	for k, v := range u.Members() {
		switch string(k.Bytes()) {
		case "input_tokens":
			c.Input = v.Uint()
		case "output_tokens":
			c.Output = v.Uint()
		case "cache_read_input_tokens":
			c.CacheRead = v.Uint()
		case "cache_creation_input_tokens":
			c.CacheWrite = max(c.CacheWrite, v.Uint())
		case "cache_creation":
			c.CacheWrite1h = v.Get("ephemeral_1h_input_tokens").Uint()
			c.CacheWrite = max(c.CacheWrite, v.Get("ephemeral_5m_input_tokens").Uint()+c.CacheWrite1h)
		case "output_tokens_details":
			c.Reasoning = v.Get("thinking_tokens").Uint()
		case "server_tool_use":
			x.WebSearch, x.WebFetch = v.Get("web_search_requests").Uint(), v.Get("web_fetch_requests").Uint()
		}
	}
	return c, x
}

// Tier has the names that the tokens of a usage object are billed by: the tier of the service, the speed and the place.
func Tier(u jsonv.Value) string {
	return msg.Tier(ident.Of(u.Get("service_tier")), ident.Of(u.Get("speed")), ident.Of(u.Get("inference_geo")))
}

// Billed is what a response comes to: the tokens of the model that answers, and those of others.
type Billed struct {
	Counts conversation.Counts
	Passes []conversation.Pass // a model at most once
	// Several is set if the response was made in several passes, so that its last usage is the whole.
	Several bool
	// Above are the counts above the passes, which sums of others are made of.
	Above conversation.Counts
	Extra Extra
}

const maxPasses = 16 // models

// Bill reads a usage object with its iterations, the passes of a response that the provider bills one by one:
//
//	{input_tokens, …, iterations: [{type: message | compaction | advisor_message | fallback_message, model?, input_tokens, …}]}
//
// The counts above them leave out what a summary of the context (compaction) and another model (advisor_message) took, and the input of a
// loop of the provider's own tools after its first pass. fallback_message is the pass of the model that answers in the place of one
// that declined (message), which costs nothing if it has written nothing.
func Bill(u jsonv.Value) (b Billed) {
	b.Above, b.Extra = UsageAndExtra(u)
	b.Counts = b.Above
	passes := u.Get("iterations")
	model, n, fell := "", 0, -1
	for p := range passes.Elems() {
		typ := p.Get("type")
		if fallback := typ.Equal("fallback_message"); fallback || typ.Equal("message") && fell < 0 {
			if model = ident.Of(p.Get("model")); fallback {
				fell = n
			}
		}
		b.Several = b.Several || n > 0 || !typ.Equal("message")
		n++
	}
	if !b.Several {
		return b
	}
	var own conversation.Counts
	n = 0
	for p := range passes.Elems() {
		c, of := Usage(p), ident.Of(p.Get("model"))
		declined := n < fell && p.Get("type").Equal("message")
		n++
		switch {
		case declined && c.Output == 0:
		case of == "" || of == model:
			own = own.Add(c)
		default:
			i := slices.IndexFunc(b.Passes, func(p conversation.Pass) bool { return p.Model == of })
			if i < 0 && len(b.Passes) == maxPasses {
				own = own.Add(c)
				continue
			}
			if i < 0 {
				i, b.Passes = len(b.Passes), append(b.Passes, conversation.Pass{Model: of})
			}
			b.Passes[i].Counts = b.Passes[i].Counts.Add(c)
		}
	}
	b.Counts = b.Counts.Max(own)
	return b
}

// Provider returns who served the model, by the prefix of the response's id. Other services
// behind a client leave no trace.
func Provider(responseID, model string) string {
	switch {
	case strings.HasPrefix(responseID, "msg_bdrk_"):
		return "aws.bedrock"
	case strings.HasPrefix(responseID, "msg_vrtx_"):
		return "gcp.vertex_ai"
	case strings.Contains(model, "claude"):
		return "anthropic"
	}
	return ""
}

// IsCall reports whether the type of a block is that of a tool call.
func IsCall(typ jsonv.Value) bool { return typ.In("tool_use", "server_tool_use", "mcp_tool_use") }

// Arguments writes the input of a tool_use block into the message. Claude Code wraps input
// that the model wrote as broken JSON.
func Arguments(m *msg.Message, input jsonv.Value) {
	if broken := input.Get("__unparsedToolInput"); broken.Exists() {
		m.Tool.Arguments = broken.Text()
		m.SetAttr("unparsed_arguments", "true")
		return
	}
	m.Tool.Arguments = input.JSON()
}

// Thinking writes a thinking or redacted_thinking block into the message: a thought without
// a text is encrypted for the provider.
func Thinking(m *msg.Message, b jsonv.Value) {
	if m.Content = b.Get("thinking").Text(); m.Content.IsZero() {
		m.Hidden = true
		m.SetAttr("redacted", "true")
	}
}

// ServerResult writes the outcome of a tool that the provider ran within the response, for
// example of a web_search_tool_result block, into the message. The caller sets the content.
func ServerResult(m *msg.Message, b jsonv.Value) {
	m.Role = msg.RoleTool
	m.SetAttr("block", ident.Of(b.Get("type")))
	code := b.Path("content", "return_code") // of a command
	if b.Path("content", "error_code").Exists() || b.Get("is_error").Bool() || code.Is(jsonv.Number) && code.Int() != 0 {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	}
}

// Content returns the text and the files of a content, which is a string or a list of
// blocks.
func Content(v jsonv.Value) (msg.Text, []msg.Attachment) {
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	var c Blocks
	for b := range v.Elems() {
		c.Add(b)
	}
	return c.Text(), c.Files
}

// Blocks joins the texts of content blocks by newlines and collects their files. A block of
// an unknown type is text: its JSON.
type Blocks struct {
	Files []msg.Attachment
	texts conversation.Texts
}

// Add adds a block.
func (c *Blocks) Add(b jsonv.Value) {
	var t msg.Text
	switch typ := b.Get("type"); {
	case typ.Equal("text"):
		t = b.Get("text").Text()
	case typ.Equal("image"), typ.Equal("document"):
		if f, ok := File(b); ok {
			c.Files = append(c.Files, f)
			return
		}
		t = b.JSON()
	case typ.Equal("tool_reference"):
		t = b.Get("tool_name").Text()
	case typ.Equal("mid_conv_system"):
		t, _ = Content(b.Get("content"))
	default:
		t = b.Text()
	}
	c.texts.Add(t)
}

// Text returns the texts of the blocks so far; a single one aliases the frame.
func (c *Blocks) Text() msg.Text { return c.texts.Joined() }

// File describes the file in an image or document block:
//
//	{"type":"image","source":{"type":"base64","media_type":"image/png","data":"…"}}
//	{"type":"image","source":{"type":"url","url":"…"}}
//
// ok is false when the block has neither, for example a document that is plain text.
func File(b jsonv.Value) (f msg.Attachment, ok bool) {
	source := b.Get("source")
	switch data := source.Get("data"); {
	case source.Get("url").Is(jsonv.String):
		f = media.URL(source.Get("url"))
	case data.Is(jsonv.String) && !source.Get("type").Equal("text"):
		f = media.Base64(data, ident.Of(source.Get("media_type")))
	default:
		return f, false
	}
	f.Name = ident.Of(b.First("title", "name", "filename"))
	if f.MediaType == "" {
		f.MediaType = ident.Of(source.Get("media_type"))
	}
	return f, true
}

// setCount sets the attribute to a count that is not zero, in the place that it has.
func setCount(attrs []msg.Attr, name string, n uint64) []msg.Attr {
	if n == 0 {
		return attrs
	}
	value := strconv.FormatUint(n, 10)
	for i := range attrs {
		if attrs[i].Key == name {
			attrs[i].Value = value
			return attrs
		}
	}
	return append(attrs, msg.Attr{Key: name, Value: value})
}
