package gemini

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Tools adds those that a request offers: functions, and tools of the provider by their names.
func Tools(a *exchange.Ask, v jsonv.Value) {
	for t := range v.Elems() {
		for k, def := range t.Members() {
			if !def.Is(jsonv.Array) {
				a.Tools.Add(k.String(), "", jsonv.Value{}, jsonv.Value{})
				continue
			}
			for f := range def.Elems() {
				a.Tools.Add("function", ident.Of(f.Get("name")), f.Get("description"), f.First("parameters", "parametersJsonSchema"))
			}
		}
	}
}

// Params adds the parameters of a generation config, which both APIs have in their spelling.
func Params(a *exchange.Ask, v jsonv.Value) {
	for _, p := range [...]struct{ name, camel, snake string }{
		{msg.ParamMaxTokens, "maxOutputTokens", "max_output_tokens"}, {msg.ParamTemperature, "temperature", "temperature"},
		{msg.ParamTopP, "topP", "top_p"}, {msg.ParamTopK, "topK", "top_k"}, {msg.ParamSeed, "seed", "seed"},
		{msg.ParamFrequencyPenalty, "frequencyPenalty", "frequency_penalty"}, {msg.ParamPresencePenalty, "presencePenalty", "presence_penalty"},
		{msg.ParamChoices, "candidateCount", "candidate_count"}, {msg.ParamReasoning, "thinkingLevel", "thinking_level"},
		{msg.ParamStopSequences, "stopSequences", "stop_sequences"},
	} {
		a.Param(p.name, v.First(p.camel, p.snake))
	}
	a.Param(msg.ParamReasoning, v.Path("thinkingConfig", "thinkingLevel"))
	switch mime := v.First("responseMimeType", "response_mime_type"); {
	case mime.Equal("application/json"):
		a.Is(msg.ParamOutputType, "json")
	case mime.Equal("text/plain"):
		a.Is(msg.ParamOutputType, "text")
	}
}
