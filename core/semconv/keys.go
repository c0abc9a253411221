package semconv

import "github.com/earshot-dev/earshot/core/msg"

// The keys of the convention, as of 1.41.
const (
	KeyOperation        = "gen_ai.operation.name"
	KeyProvider         = "gen_ai.provider.name"
	KeyConversation     = "gen_ai.conversation.id"
	KeyAgentName        = "gen_ai.agent.name"
	KeyAgentID          = "gen_ai.agent.id"
	KeyWorkflowName     = "gen_ai.workflow.name"
	KeyRequestModel     = "gen_ai.request.model"
	KeyRequestStream    = "gen_ai.request.stream"
	KeyMaxTokens        = "gen_ai.request.max_tokens"
	KeyTemperature      = "gen_ai.request.temperature"
	KeyTopP             = "gen_ai.request.top_p"
	KeyTopK             = "gen_ai.request.top_k"
	KeySeed             = "gen_ai.request.seed"
	KeyFrequencyPenalty = "gen_ai.request.frequency_penalty"
	KeyPresencePenalty  = "gen_ai.request.presence_penalty"
	KeyStopSequences    = "gen_ai.request.stop_sequences"
	KeyChoiceCount      = "gen_ai.request.choice.count"
	KeyOutputType       = "gen_ai.output.type"
	KeyResponseModel    = "gen_ai.response.model"
	KeyResponseID       = "gen_ai.response.id"
	KeyFinishReasons    = "gen_ai.response.finish_reasons"
	KeyTimeToFirstChunk = "gen_ai.response.time_to_first_chunk"
	KeyToolName         = "gen_ai.tool.name"
	KeyToolType         = "gen_ai.tool.type"
	KeyToolCallID       = "gen_ai.tool.call.id"

	KeyUsageInput         = "gen_ai.usage.input_tokens"
	KeyUsageOutput        = "gen_ai.usage.output_tokens"
	KeyUsageCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	KeyUsageCacheCreation = "gen_ai.usage.cache_creation.input_tokens"
	KeyUsageReasoning     = "gen_ai.usage.reasoning.output_tokens"

	KeyMCPMethod     = "mcp.method.name"
	KeyErrorType     = "error.type"
	KeyService       = "service.name"
	KeyServerAddress = "server.address"
	KeyServerPort    = "server.port"

	// Content, which is on spans only where the operator asks for it.
	KeyInputMessages   = "gen_ai.input.messages"
	KeyOutputMessages  = "gen_ai.output.messages"
	KeyInstructions    = "gen_ai.system_instructions"
	KeyToolDefinitions = "gen_ai.tool.definitions"
	KeyToolArguments   = "gen_ai.tool.call.arguments"
	KeyToolResult      = "gen_ai.tool.call.result"
)

// EventDetails is the event with the input and output messages of a model request, and
// its parameters.
const EventDetails = "gen_ai.client.inference.operation.details"

// The keys of the new repository that no release has.
const (
	KeyUsageCacheWrite = "gen_ai.usage.cache_write.input_tokens"
	KeyReasoningLevel  = "gen_ai.request.reasoning.level"
	KeyTransferMode    = "gen_ai.transfer.mode"
	KeyTransferTarget  = "gen_ai.transfer.target.name"
	KeyTransferType    = "gen_ai.transfer.target.type"
)

// The keys of our own.
const (
	KeyTenant        = "earshot.tenant"
	KeySource        = "earshot.source"
	KeyFormat        = "earshot.format"
	KeyRun           = "earshot.run.id"
	KeyParentRun     = "earshot.parent_run.id"
	KeySession       = "earshot.session.id"
	KeyEnded         = "earshot.run.finish_reason"
	KeyAgentOwnID    = "earshot.agent.id" // as the protocol has it, of an instance too
	KeyAgentKind     = "earshot.agent.kind"
	KeyState         = "earshot.span.state"
	KeyOutcome       = "earshot.outcome"
	KeyCancelReason  = "earshot.cancel.reason"
	KeyDelegateTo    = "earshot.delegate.to"
	KeyDelegateAsync = "earshot.delegate.async"
	KeyWaitsFor      = msg.EventWaitsFor // a person, while the span is open or at any time of it
	KeyChildRun      = "earshot.child_run.id"
	KeyLinkMethod    = "earshot.link.method"
	KeyConfidence    = "earshot.link.confidence"
	KeyHopQueue      = "earshot.hop.queue"        // of a call that another program answers, until its request is on the wire; seconds
	KeyHopTransport  = "earshot.hop.transport"    // between the programs, where both were recorded
	KeyHopServer     = "earshot.hop.server"       // with the transport, where that is not known
	KeyHopCrowded    = "earshot.hop.crowded"      // too many were alike to know the call of each
	KeyHopReturn     = "earshot.hop.return"       // from its answer on the wire to the caller's result
	KeySeenBy        = "earshot.seen_by"          // the formats, of a span that several views show
	KeySeenMessages  = "earshot.seen_by.messages" // the formats of each message that several views have, by its id
	KeyTokensFrom    = "earshot.tokens.from"
	KeyTimesFrom     = "earshot.times.from"
	KeyOutcomeFrom   = "earshot.outcome.from"
	KeyFirstFrom     = "earshot.first_token.from"
	KeyConflict      = "earshot.conflict"
	KeyMCPServer     = "earshot.mcp.server"
	KeyToolInternal  = "earshot.tool.internal"
	KeyArgumentBytes = "earshot.tool.arguments.bytes"
	KeyResultBytes   = "earshot.tool.result.bytes"
	KeyProvenance    = "earshot.usage.provenance"
	KeyFirstByte     = "earshot.response.time_to_first_byte" // of the HTTP response that carried a run; seconds, as the durations below
	KeyFirstEvent    = "earshot.response.time_to_first_event"
	KeyDuration      = "earshot.response.duration"
	KeyStall         = "earshot.response.longest_stall"
	KeyGapP50        = "earshot.response.gap.p50"
	KeyGapP95        = "earshot.response.gap.p95"
	KeyChunks        = "earshot.response.chunks"
	KeyEvents        = "earshot.response.events"
	KeyBytes         = "earshot.response.bytes"
	KeyBuffered      = "earshot.response.buffered"                 // its events came all at once at its end
	KeyDropped       = "earshot.input.messages.dropped"            // how many of the messages before are not there
	KeySpanKind      = "earshot.span.kind"                         // run, chat, tool, delegation or workflow; over OTLP, as the next two: the store has columns
	KeyModel         = "earshot.model"                             // as the protocol names it, of either of the two
	KeyFailedResult  = "earshot.tool.result"                       // of a call that failed: the convention has none
	KeyCacheWrite1h  = "earshot.usage.cache_write_1h.input_tokens" // of those written to a cache; as the next two over OTLP alone, for another sidecar
	KeyTier          = "earshot.usage.tier"                        // that the tokens are billed by
	KeyStated        = "earshot.usage.stated_picodollars"          // their cost by the protocol
	KeyTrimmed       = "earshot.trimmed"                           // how many attributes and events were taken off to fit a request
)
