// Package geminiapi decodes exchanges with the API of the Gemini models as a tap records them:
// generateContent and streamGenerateContent of Google AI, of Vertex AI and of Gemini Code
// Assist, and the Interactions API.
//
// Facts of the format that are easy to get wrong:
//
//   - The model of a request is in its path. Code Assist has it in the body, around the
//     request, as it has the response in {response}.
//   - usageMetadata of a later chunk replaces the earlier one: the counts of the prompt may
//     fall. It counts the thoughts apart from the candidates, and the results of the
//     provider's tools apart from the prompt.
//   - Calls have no ids, as a rule. Results name the tool, and are in the order of the calls;
//     an id that begins with the tool's name is the client's own.
//   - finishReason is STOP for calls too, and finishMessage says then that there are some. Clients of Google's own libraries
//     ask for the numbers of the enums. MALFORMED_FUNCTION_CALL and its like often have no message, no content and no id.
//   - Proxies in front of other models send STOP with nothing before the answer, or the counts behind it.
//   - Vertex AI may send a call in pieces: its name, then values with a JSONPath each, then {}.
//   - A stream without alt=sse is a list of chunks.
//   - The Interactions API has steps with ids. previous_interaction_id names the interaction that
//     a request goes on from, and the request has the new input only.
package geminiapi

import (
	_ "embed"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "gemini-api", Revision: 10, Provider: "gcp.gen_ai", Many: true, Lines: true,
		Summary: "Gemini API: generateContent, its streams, and interactions.",
		Request: request, Event: event, Rest: unknown.NewKeeper(leavesOut),
		Retrieved: func(origin string) string { return exchange.Resource(origin, "interactions") },
	}.Factory()
}

// event decodes a chunk or a whole response of either API.
func event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if resources(x, v, out) {
		return
	}
	if inner := v.Get("response"); inner.Is(jsonv.Object) && !v.Get("candidates").Exists() {
		v = inner
	}
	typ := v.Get("event_type")
	switch fault := v.Get("error"); {
	case fault.Is(jsonv.Object):
		typ.Equal("error")
		class := ident.Of(fault.Get("status"))
		if class == "" {
			class = ident.OrNumber(fault.Get("code"))
		}
		x.Fail(out, class, fault.Get("message").Text())
	case typ.Is(jsonv.String):
		interactionEvent(x, typ, v, out)
	case v.Get("object").Equal("interaction") || v.Get("steps").Is(jsonv.Array) || v.Get("outputs").Is(jsonv.Array):
		interaction(x, v, out)
	case v.Get("candidates").Is(jsonv.Array), v.Get("usageMetadata").Is(jsonv.Object), v.Get("promptFeedback").Is(jsonv.Object):
		chunk(x, v, out)
	case v.Get("totalTokens").IsCount(): // the answer of countTokens
	default:
		x.Unknown(out, "none", v.Raw())
	}
}

// chunk decodes a GenerateContentResponse.
func chunk(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	id := v.Get("responseId")
	if x.Over && id.Equal(x.ID) {
		v.Get("modelVersion").Equal(x.Model)
		if v.Get("candidates").Len() > 0 {
			x.Unknown(out, "after_end", v.Raw())
		}
		return
	}
	if id.Is(jsonv.String) || x.ID == "" || x.Over {
		x.Answer(out, id, v.Get("modelVersion"))
	}
	v.Get("modelVersion").Equal(x.Model)
	list, goesOn := v.Get("candidates"), false
	for c := range list.Elems() {
		goesOn = !candidate(x, c, out)
	}
	if b := v.Get("promptFeedback"); b.Get("blockReason").Is(jsonv.String) {
		x.Stop = ident.Of(b.Get("blockReason"))
		x.Fail(out, x.Stop, b.Get("blockReasonMessage").Text())
	}
	u := gemini.UsageOf(v.Get("usageMetadata"))
	if u == (gemini.Usage{}) {
		return
	}
	x.Count(u.Counts())
	exchange.BilledIn(x, gemini.Tier(v.Get("usageMetadata")))
	if begun := x.Begun || x.Stop != "STOP"; x.Stop != "" && begun && !goesOn && len(x.Parts) == 0 {
		x.End(out)
	}
}

// candidate decodes the part of a candidate in a chunk. It reports whether that has ended.
func candidate(x *exchange.Exchange, c jsonv.Value, out *decoder.Output) bool {
	n := strconv.FormatInt(c.Get("index").Int(), 10)
	for p := range c.Path("content", "parts").Elems() {
		gemini.Part(x, n, p, out)
	}
	gemini.Sources(x, c, out)
	stop := gemini.Finish(c.Get("finishReason"))
	if stop != "" {
		x.Stop = stop
		x.CloseAll(out, n+" ")
		if why := c.Get("finishMessage"); stop == "STOP" {
			why.MarkRead() // "Model generated function call(s)."
		} else if why.Is(jsonv.String) || gemini.Failed(stop) {
			x.Fail(out, stop, why.Text())
			x.Stop = stop
		}
	}
	return stop != ""
}
