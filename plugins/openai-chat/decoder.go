// Package openaichat decodes exchanges with the Chat Completions API of OpenAI, and of
// the many servers that implement it, as a tap records them: the request, and the response
// as a stream of chunks or as one body.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - The pieces of calls are distinguished by their index; only the first has the id and the
//     name. Some servers leave the index out, and send a call whole; some number all calls 0,
//     and some of these have no ids for them.
//   - Usage is there only if it was asked for (stream_options.include_usage), and then in
//     a chunk of its own behind the last choice; some servers repeat it in every chunk,
//     as it is so far. prompt_tokens includes the cached ones, completion_tokens the
//     reasoning.
//   - Reasoning is no part of the standard; servers that send it call it
//     reasoning_content or reasoning.
//   - content is a string, or a list of parts: so Mistral's models think, {type: thinking,
//     thinking: [{type: text, text}]}.
//   - Where total_tokens shows it, completion_tokens are without the reasoning (xAI). Groq repeats the
//     usage in x_groq, where some of its versions have it alone. Moonshot has it in the last choice, and not always
//     in a chunk of its own.
//   - [DONE] is not JSON. Azure begins with a chunk without id and without choices.
//   - With n > 1 there are several answers. Each is emitted; the first decides how the
//     response ended.
package openaichat

import (
	"cmp"
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/chat"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "openai-chat", Revision: 14, Provider: "openai",
		Summary: "Chat Completions API of OpenAI and its like: requests, event streams and whole responses.",
		Request: chat.Request, Event: chat.Event, Done: (*exchange.Exchange).End, Lines: true, Many: true, Rest: unknown.NewKeeper(leavesOut),
		Retrieved: func(origin string) string { // a stored response, and the output of a batch
			return cmp.Or(exchange.Resource(origin, "chat/completions"), exchange.Resource(origin, "files"))
		},
		Whole: func(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
			chat.Event(x, v, out)
			x.End(out)
		},
	}.Factory()
}
