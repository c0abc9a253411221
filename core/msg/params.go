package msg

import "strings"

// Params are the attributes of a message with the signal ModelStart that describe
// the request: its parameters under the names below, as JSON has them, numbers in
// decimal. A decoder sets ParamStream wherever it has seen the request.
const (
	ParamStream           = "request.stream" // true or false
	ParamMaxTokens        = "request.max_tokens"
	ParamTemperature      = "request.temperature"
	ParamTopP             = "request.top_p"
	ParamTopK             = "request.top_k"
	ParamSeed             = "request.seed"
	ParamFrequencyPenalty = "request.frequency_penalty"
	ParamPresencePenalty  = "request.presence_penalty"
	ParamStopSequences    = "request.stop_sequences" // JSON list of strings
	ParamChoices          = "request.choice_count"
	ParamOutputType       = "request.output_type" // text, json, image or speech
	ParamReasoning        = "request.reasoning"   // how much of it, in the provider's words
)

// TypeTools is the attribute type of a status message whose content is the list of tools
// that a request offers: JSON, as the GenAI convention has gen_ai.tool.definitions.
const TypeTools = "tool_definitions"

// SessionFrom is an attribute of a message with the signal ModelStart: the name that the session is
// derived from, where the protocol has no id of the conversation.
const SessionFrom = "session_from"

// ModelOf is an attribute of a message that ends a run: run, if its Model is that of the run as a whole.
const ModelOf = "model_of"

// FinishReasonOf is an attribute of a message whose FinishReason is not the model's: run,
// when it is how the run ended.
const FinishReasonOf = "finish_reason_of"

// ResponseItem is an attribute of a part of a response: the provider's id of it, by which a view may name the response that
// has no other name there.
const ResponseItem = "item_id"

// ResponseStart is an attribute of a message with the signal ModelEnd: when the response began, in Unix nanoseconds, where
// the protocol has it. Such an end is exact, and a response without parts has it alone.
const ResponseStart = "response_start"

// Results is an attribute of a call: none, where its record never has the result. Whether such a call succeeded is not known.
const (
	Results = "results"
	None    = "none"
)

// TotalOf is an attribute of a usage message with a total that a store keeps, or a part of it, and writes again as it grows, also after
// the end of the run: session. It counts beside other messages, unlike the total of a form that was rebuilt.
const TotalOf = "total_of"

// RestOf is an attribute of a usage message with what the responses lack of a total: that of the
// session, or of the run.
const (
	RestOf    = "of"
	OfSession = "session"
	OfResult  = "result"
)

// paramPrefix is the common prefix of the names of parameters.
const paramPrefix = "request."

// Params returns the parameters of the request that m begins; nil when the request is not known.
func (m *Message) Params() []Attr {
	if m.Signal != ModelStart {
		return nil
	}
	var out []Attr
	for _, a := range m.Attrs {
		if strings.HasPrefix(a.Key, paramPrefix) {
			out = append(out, Attr{strings.Clone(a.Key), strings.Clone(a.Value)})
		}
	}
	return out
}
