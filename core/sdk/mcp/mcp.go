// Package mcp reads the content blocks of the Model Context Protocol, of which the results of its tools, the
// prompts and updates of ACP, and the transcripts of agents that keep such results are made. Values enter, texts and
// files leave; nothing is remembered.
package mcp

import (
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// Content reads a list of blocks, one block, or a text in the place of one:
//
//	{type: text, text}  {type: image | audio, data, mimeType}  {type: resource_link, uri, name}
//	{type: resource, resource: {uri, text | blob}}
//
// A block of another type is not read.
func Content(v jsonv.Value) (c conversation.Content) {
	if !v.Is(jsonv.Array) {
		block(v, &c)
	}
	for b := range v.Elems() {
		block(b, &c)
	}
	return c
}

func block(b jsonv.Value, c *conversation.Content) {
	resource := b.Get("resource")
	switch {
	case b.Is(jsonv.String):
		c.Add(b.Text())
	case b.Get("text").Is(jsonv.String):
		b.Get("type").Equal("text")
		c.Add(b.Get("text").Text())
	case b.First("data", "uri").Is(jsonv.String):
		f := media.Of(b.Get("data"), b.Get("uri"), ident.Of(b.Get("mimeType")))
		f.Name = strings.TrimSpace(ident.Of(b.Get("name")))
		c.Attach(f)
	case resource.Get("blob").Is(jsonv.String):
		f := media.Base64(resource.Get("blob"), ident.Of(resource.Get("mimeType")))
		f.URL = ident.Of(resource.Get("uri"))
		c.Attach(f)
	case resource.Exists():
		c.Add(resource.Get("text").Text())
		c.Attach(media.URL(resource.Get("uri")))
	}
}
