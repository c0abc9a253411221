// Package anthropicsse decodes exchanges with Anthropic's Messages API as a tap records
// them: the request, and the response as a stream of events or as one body.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - Usage is sent twice: message_start has the input's classes and the first output
//     tokens, message_delta the output as it is in the end, and, since 2025, the input
//     again. The counts are running totals, never to be added. The later one is valid: vLLM
//     finds out in between how much of the input its cache had, which is no part of it then.
//   - A call's arguments come as pieces of JSON text; a call without arguments has no
//     pieces, and its input is {}.
//   - Tool results are user messages. A client may put texts beside them, reminders to
//     the model for the most part: they are no prompts.
//   - An event named error may come in the midst of a stream whose status was 200.
//   - The results of a batch are lines, each with a response, in any order.
//   - ping events and spaces behind the JSON mean nothing.
//   - The name of the conversation is in metadata.user_id, if anywhere: Claude Code puts the
//     session into it, as text that ends in _session_ID and, later, as JSON.
package anthropicsse

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/messages"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "anthropic-sse", Revision: 14, Provider: "anthropic",
		Summary: "Anthropic Messages API: requests, event streams and whole responses.",
		Request: messages.Request, Event: messages.Event, Lines: true, Many: true, Rest: unknown.NewKeeper(leavesOut),
		Retrieved: func(origin string) string { return exchange.Resource(origin, "batches") },
	}.Factory()
}
