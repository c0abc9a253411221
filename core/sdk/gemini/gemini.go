// Package gemini reads the parts that formats with Gemini's contents share: the API of the
// models, as requests and as sessions of the Live API, the chat recordings of Gemini CLI, and
// the transcripts of Qwen Code.
package gemini

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// Usage are the counts of a response as Gemini writes them.
type Usage struct {
	Prompt   uint64 // includes Cached
	Cached   uint64
	Output   uint64 // of the candidates
	Thoughts uint64
	ToolUse  uint64 // results of the provider's own tools, which the model read
	Total    uint64
}

// UsageOf reads usageMetadata.
func UsageOf(v jsonv.Value) Usage {
	return Usage{
		Prompt: v.Get("promptTokenCount").Uint(), Cached: v.Get("cachedContentTokenCount").Uint(),
		Output: v.Get("candidatesTokenCount").Uint(), Thoughts: v.Get("thoughtsTokenCount").Uint(),
		ToolUse: v.Get("toolUsePromptTokenCount").Uint(), Total: v.Get("totalTokenCount").Uint(),
	}
}

// Tier returns the tier of the service of usageMetadata: serviceTier of the Gemini API, trafficType of Vertex.
func Tier(v jsonv.Value) string {
	if tier := ident.Of(v.Get("serviceTier")); tier != "" {
		return tier
	}
	return strings.TrimPrefix(strings.ToLower(ident.Of(v.Get("trafficType"))), "on_demand_")
}

// Finish returns the finishReason of a candidate. Clients of Google's own libraries ask for the numbers of the enum instead
// of its names ($alt=json;enum-encoding=int); above five the APIs of Gemini and of Vertex number differently, and the number is the reason.
func Finish(v jsonv.Value) string {
	names := [...]string{"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"}
	if n := v.Int(); v.Is(jsonv.Number) && 0 <= n && int(n) < len(names) {
		return names[n]
	}
	return ident.OrNumber(v)
}

// Failed reports whether a finishReason is that of a response which the model did not end, and the limit of its length neither:
// a call that it could not write (MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, …) or an answer that was blocked (SAFETY, RECITATION, …).
// A finishMessage may be beside it.
func Failed(reason string) bool {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS":
		return false
	}
	return true
}

// Counts returns the counts in the classes of package conversation. Gemini counts the thoughts
// apart from the candidates. A client that fills the same fields from another provider has
// them in the candidates: the total, where there is one, decides.
func (u Usage) Counts() conversation.Counts {
	in, out := u.Prompt+u.ToolUse, u.Output+u.Thoughts
	if u.Total != 0 && u.Total == in+u.Output && u.Thoughts <= u.Output {
		out = u.Output
	}
	cached := min(u.Cached, in)
	return conversation.Counts{Input: in - cached, CacheRead: cached, Output: out, Reasoning: u.Thoughts}
}

// Content returns the text and the files of a content, which is a string, a part or a list of
// parts. Calls, their results and thoughts are none of it, and are not read.
func Content(v jsonv.Value) (msg.Text, []msg.Attachment) {
	switch v.Kind() {
	case jsonv.Array:
	case jsonv.Object:
		var t conversation.Texts
		var files []msg.Attachment
		part(v, &t, &files)
		return t.Joined(), files
	default:
		return v.Text(), nil
	}
	var t conversation.Texts
	var files []msg.Attachment
	for p := range v.Elems() {
		part(p, &t, &files)
	}
	return t.Joined(), files
}

func part(p jsonv.Value, t *conversation.Texts, files *[]msg.Attachment) {
	if p.Is(jsonv.String) {
		t.Add(p.Text())
		return
	}
	if f, ok := File(p); ok {
		*files = append(*files, f)
		return
	}
	switch text := p.Get("text"); {
	case p.Get("thought").Bool(), p.Get("functionCall").Exists(), p.Get("functionResponse").Exists():
	case text.Is(jsonv.String):
		if whole := text.Text(); !whole.IsZero() {
			t.Add(whole)
		}
	default:
		t.Add(p.JSON())
	}
}

// File describes a part that is a file:
//
//	{inlineData: {mimeType, data, displayName}}  {fileData: {mimeType, fileUri}}
func File(p jsonv.Value) (a msg.Attachment, ok bool) {
	if in := p.First("inlineData", "inline_data"); in.Get("data").Is(jsonv.String) {
		a = media.Base64(in.Get("data"), ident.Of(in.First("mimeType", "mime_type")))
		a.Name = ident.Of(in.Get("displayName"))
		return a, true
	}
	at := p.First("fileData", "file_data")
	if uri := at.First("fileUri", "file_uri"); uri.Is(jsonv.String) {
		a = media.URL(uri)
		a.MediaType = ident.Of(at.First("mimeType", "mime_type"))
		return a, true
	}
	return msg.Attachment{}, false
}

// Result reads a functionResponse: {id, name, response: {output | error | …}, parts}.
func Result(v jsonv.Value) (text msg.Text, files []msg.Attachment, failed bool) {
	for p := range v.Get("parts").Elems() {
		if f, ok := File(p); ok {
			files = append(files, f)
		}
	}
	r := v.Get("response")
	if fault := r.Get("error"); fault.Exists() {
		return fault.Text(), files, true
	}
	if output := r.Get("output"); output.Is(jsonv.String) {
		return output.Text(), files, false
	}
	return r.Text(), files, false
}
