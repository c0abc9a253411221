// Package openai reads the parts that OpenAI's formats share: the Chat Completions and the
// Responses API, and the transcripts and events of Codex, which are built of the items of
// the Responses API.
package openai

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// Usage reads the counts of a response or of a thread as the provider writes them: Input
// includes the cached tokens and Output the reasoning. The names are those of
//
//	Responses  input_tokens, output_tokens, input_tokens_details.cached_tokens, output_tokens_details.reasoning_tokens
//	Chat       prompt_tokens, completion_tokens, prompt_tokens_details.cached_tokens, completion_tokens_details.reasoning_tokens
//	DeepSeek   prompt_cache_hit_tokens
//	Moonshot   cached_tokens
//	OpenRouter prompt_tokens_details.cache_write_tokens
//	LiteLLM    cache_read_input_tokens, cache_creation_input_tokens, prompt_tokens_details.cache_creation_tokens
//	Qwen       prompt_tokens_details.cache_creation_input_tokens
//	Perplexity reasoning_tokens
//	Codex      input_tokens, output_tokens, cached_input_tokens, cache_write_input_tokens, reasoning_output_tokens;
//	           its app-server inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens, reasoningOutputTokens
//
// Where the total is that of input, output and reasoning, the output was without it, as xAI writes it; Google's
// Chat API leaves the reasoning to the total alone. Perplexity counts it beside an output that may be less. Where the total has the
// cached tokens beside the input, as of a gateway to Anthropic, the input was without them.
func Usage(v jsonv.Value) (c conversation.Counts) {
	total, beside, chat := uint64(0), uint64(0), false
	for k, n := range v.Members() {
		switch string(k.Bytes()) {
		case "prompt_tokens":
			c.Input, chat = n.Uint(), true
		case "input_tokens", "inputTokens":
			c.Input = n.Uint()
		case "output_tokens", "completion_tokens", "outputTokens":
			c.Output = n.Uint()
		case "cached_input_tokens", "prompt_cache_hit_tokens", "cachedInputTokens", "cached_tokens", "cache_read_input_tokens":
			c.CacheRead = max(c.CacheRead, n.Uint())
		case "cache_write_input_tokens", "cacheWriteInputTokens", "cache_creation_input_tokens":
			c.CacheWrite = max(c.CacheWrite, n.Uint())
		case "reasoning_output_tokens", "reasoningOutputTokens":
			c.Reasoning = n.Uint()
		case "reasoning_tokens":
			beside = n.Uint()
		case "input_tokens_details", "prompt_tokens_details":
			cached(&c, n)
		case "output_tokens_details", "completion_tokens_details":
			c.Reasoning = n.Get("reasoning_tokens").Uint()
		case "total_tokens":
			total = n.Uint()
		}
	}
	rest := total - min(total, c.Input+c.Output)
	switch {
	case c.Reasoning > 0 && rest == c.Reasoning:
		c.Output += c.Reasoning
	case c.Reasoning > 0:
	case beside > c.Output:
		c.Output, c.Reasoning = c.Output+beside, beside
	case beside > 0:
		c.Reasoning = beside
	case chat && c.Input > 0 && rest > 0 && rest == c.CacheRead+c.CacheWrite: // a gateway to Anthropic, whose input is without them
		c.Input += rest
	case chat && c.Input > 0:
		c.Output, c.Reasoning = c.Output+rest, rest
	}
	return c
}

// Cost returns the cost that a usage object states, in US dollars:
//
//	OpenRouter cost; with a key of one's own (is_byok) that is its fee, and cost_details.upstream_inference_cost the price
//	Perplexity cost.total_cost
//	xAI        cost_in_usd_ticks, of which 10^10 are a dollar
func Cost(u jsonv.Value) string {
	cost := u.Get("cost")
	if total := cost.Get("total_cost"); total.Exists() {
		return total.Digits()
	}
	if ticks := u.Get("cost_in_usd_ticks").Uint(); ticks > 0 {
		return strconv.FormatFloat(float64(ticks)/1e10, 'f', -1, 64)
	}
	if u.Get("is_byok").Bool() {
		if above := u.Path("cost_details", "upstream_inference_cost"); above.Is(jsonv.Number) {
			return strconv.FormatFloat(cost.Float()+above.Float(), 'f', -1, 64)
		}
	}
	return cost.Digits()
}

// cached reads the classes of an input.
func cached(c *conversation.Counts, v jsonv.Value) {
	for k, n := range v.Members() {
		switch string(k.Bytes()) {
		case "cached_tokens":
			c.CacheRead = max(c.CacheRead, n.Uint())
		case "cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens":
			c.CacheWrite = max(c.CacheWrite, n.Uint())
		case "cache_creation_token_details", "cache_creation":
			c.CacheWrite1h = n.Get("ephemeral_1h_input_tokens").Uint()
		}
	}
}

// Tokens returns the counts in exclusive classes, so that their sum is the processed total.
func Tokens(c conversation.Counts, p msg.Provenance) msg.Tokens {
	c.CacheRead = min(c.CacheRead, c.Input)
	c.CacheWrite = min(c.CacheWrite, c.Input-c.CacheRead)
	c.Input -= c.CacheRead + c.CacheWrite
	return c.Tokens(p)
}

// Batched returns the body of a line of a batch's output: {custom_id, response: {status_code, body}, error}. ok is false for any other object.
func Batched(v jsonv.Value) (request string, body, fault jsonv.Value, ok bool) {
	custom, response := v.Get("custom_id"), v.Get("response")
	if !custom.Is(jsonv.String) || !response.Is(jsonv.Object) && !v.Get("error").Is(jsonv.Object) {
		return "", body, fault, false
	}
	body, fault = response.Get("body"), v.Get("error")
	if inner := body.Get("error"); inner.Is(jsonv.Object) && !body.Get("object").Exists() {
		fault = inner
	}
	return ident.Of(custom), body, fault, true
}

// Session returns the id of the conversation that a client put into the metadata of a
// request; "" when there is none.
func Session(metadata jsonv.Value) string {
	for _, name := range [...]string{"session_id", "conversation_id", "thread_id"} {
		if id := ident.Of(metadata.Get(name)); id != "" {
			return id
		}
	}
	return ""
}

// File describes a part of a content that is a file; ok is false for any other part.
//
//	{type: image_url, image_url: {url}}  {type: file, file: {file_data, filename}}  {type: input_audio, input_audio: {data, format}}
//	{type: input_image, image_url}  {type: input_file, file_data | file_url, filename}  {type: input_audio, audio_url | data}
func File(part jsonv.Value) (a msg.Attachment, ok bool) {
	typ := part.Get("type")
	if !typ.In("image_url", "file", "input_audio", "input_image", "input_file", "computer_screenshot") {
		return msg.Attachment{}, false
	}
	if inner := part.Get(typ.PeekStr()); inner.Is(jsonv.Object) {
		part = inner
	}
	if format := part.Get("format"); format.Exists() {
		return media.Base64(part.Get("data"), "audio/"+ident.Of(format)), true
	}
	where := Location(part)
	if !where.Is(jsonv.String) {
		return msg.Attachment{}, false
	}
	a = media.URL(where)
	a.Name = ident.Of(part.Get("filename"))
	return a, true
}

// Location returns the URL of a part that is a file, which may be a data URL.
func Location(part jsonv.Value) jsonv.Value {
	return part.First("url", "image_url", "audio_url", "file_data", "file_url", "data")
}

// Content returns the text of a content, which is a string, a file or a list of parts, and its
// files. A part that is neither a text nor a file is in the text as JSON.
func Content(v jsonv.Value) (text msg.Text, files []msg.Attachment) {
	if f, ok := File(v); ok { // the screenshot of a computer
		return msg.Text{}, []msg.Attachment{f}
	}
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	var t conversation.Texts
	for p := range v.Elems() {
		if f, ok := File(p); ok {
			files = append(files, f)
		} else if p.Get("type").In("text", "input_text", "output_text") {
			t.Add(p.Get("text").Text())
		} else {
			t.Add(p.JSON())
		}
	}
	return t.Joined(), files
}
