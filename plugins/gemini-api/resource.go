package geminiapi

import (
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Resources are what the API keeps: contents that later requests name (cachedContents), and batches, whose requests are
// answered later. Neither is a turn of a conversation: a batch is asked for again and again until it is done, with
// all its responses each time, and has no prompt where these are. So they are hidden messages, and have no tokens.

// resourceRequest decodes the request that makes one. It reports whether the path is that of resources.
func resourceRequest(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) bool {
	typ := "batch"
	switch path, _, _ := strings.Cut(x.Path, "?"); {
	case strings.Contains(path, "/cachedContents"):
		typ = "cached_content"
	case strings.Contains(path, ":batchGenerateContent"), strings.Contains(path, "/batches"):
	default:
		return false
	}
	path := x.Path
	x.PassOver(jsonv.Value{})
	if v.Len() == 0 { // of one that is read or deleted
		return true
	}
	if batch := v.Get("batch"); batch.Is(jsonv.Object) {
		v = batch
	}
	m := resource(x, out, typ, "request", path, v)
	var texts conversation.Texts
	for _, name := range [...]string{"systemInstruction", "contents", "tools", "toolConfig", "inputConfig", "input_config"} {
		if part := v.Get(name); part.Exists() {
			texts.Add(part.JSON())
		}
	}
	m.Content = texts.Joined()
	conversation.Attrs(m, v, "ttl")
	return true
}

// resources decodes a resource, or a list of them. It reports whether v is one.
func resources(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) bool {
	name := v.Get("name").PeekStr()
	switch {
	case strings.Contains("/"+name, "/cachedContents/"):
		resource(x, out, "cached_content", "", name, v)
	case strings.Contains("/"+name, "/batches/"):
		meta := v.Get("metadata")
		if !meta.Is(jsonv.Object) {
			meta = v
		}
		m := resource(x, out, "batch", "", name, meta)
		v.Get("name").Equal(name)
		for _, answers := range [...]jsonv.Value{v.Path("response", "inlinedResponses"), v.Path("response", "responsesFile"), meta.Get("output")} {
			if answers.Exists() {
				m.Content = answers.JSON()
			}
		}
		if fault := v.Get("error"); fault.Is(jsonv.Object) {
			m.IsError, m.Content = true, fault.Get("message").Text()
			m.Tool.ErrorType = ident.First(fault.Get("status"))
		}
	case v.Get("cachedContents").Is(jsonv.Array):
		for c := range v.Get("cachedContents").Elems() {
			resources(x, c, out)
		}
	case v.Get("operations").Is(jsonv.Array):
		for b := range v.Get("operations").Elems() {
			resources(x, b, out)
		}
	default:
		return false
	}
	return true
}

// resource adds the message of a state of a resource.
func resource(x *exchange.Exchange, out *decoder.Output, typ, part, name string, v jsonv.Value) *msg.Message {
	updated := v.First("updateTime", "update_time", "createTime")
	m := x.Message(out, msg.Status, typ+":"+msg.HashKey(part, name, string(v.Get("state").Peek()), string(updated.Peek()), string(v.First("displayName", "display_name").Peek())))
	m.Hidden = true
	m.SetAttr("type", typ)
	conversation.Attrs(m, v, "name", "model", "displayName", "display_name", "state", "expireTime", "updateTime", "update_time")
	m.SetAttr("stats", conversation.ShortJSON(v.Get("batchStats")))
	m.SetAttr("tokens", v.Path("usageMetadata", "totalTokenCount").Digits())
	return m
}
