package semconv

import (
	"encoding/json"
	"math"

	"github.com/earshot-dev/earshot/core/msg"
)

// seenMessages is the JSON of an object with the formats of each message, by its id; empty without messages.
func seenMessages(list []msg.SeenMessage) string {
	if len(list) == 0 {
		return ""
	}
	by := make(map[string][]string, len(list))
	for _, m := range list {
		by[m.ID.String()] = m.By
	}
	b, err := json.Marshal(by)
	if err != nil { // texts always marshal
		return ""
	}
	return string(b)
}

// attrs calls add for each attribute that is not empty.
type attrs struct{ add func(key string, v Value) }

func (a attrs) str(key, v string) {
	if v != "" {
		a.add(key, Value{Kind: StringValue, Str: v})
	}
}

func (a attrs) count(key string, v uint64) {
	a.add(key, Value{Kind: IntValue, Int: int64(min(v, math.MaxInt64))})
}

func (a attrs) some(key string, v uint64) {
	if v > 0 {
		a.count(key, v)
	}
}

func (a attrs) flag(key string, v bool) {
	if v {
		a.add(key, Value{Kind: BoolValue, Bool: true})
	}
}

func (a attrs) seconds(key string, ns int64) {
	if ns > 0 {
		a.add(key, Value{Kind: FloatValue, Float: float64(ns) / 1e9})
	}
}

// Attributes calls add for each attribute of the span, in a fixed order, no key
// twice.
func (p *Profile) Attributes(s *msg.Span, add func(key string, v Value)) {
	a := attrs{add}
	a.str(KeyOperation, Operation(s.Kind))
	if !s.Unnamed {
		a.str(KeyConversation, s.Session)
	}
	a.str(KeyAgentName, s.Agent.Name)
	switch s.Kind {
	case msg.SpanChat:
		p.chat(a, s)
	case msg.SpanTool, msg.SpanDelegation:
		p.tool(a, s)
	default:
		p.run(a, s)
	}
	p.delegate(a, s)
	p.outcome(a, s)
	a.str(KeyWaitsFor, s.WaitsFor())
	if len(s.Seen.By) > 1 {
		a.add(KeySeenBy, Value{Kind: StringsValue, Strings: s.Seen.By})
	}
	a.str(KeySeenMessages, seenMessages(s.Seen.Messages))
	a.str(KeyTokensFrom, s.Seen.Tokens)
	a.str(KeyTimesFrom, s.Seen.Times)
	a.str(KeyOutcomeFrom, s.Seen.Outcome)
	a.str(KeyFirstFrom, s.Seen.FirstToken)
	a.str(KeyConflict, s.Seen.Conflict)

	a.str(KeyTenant, s.Tenant)
	a.str(KeySource, s.Source)
	a.str(KeyFormat, s.Format)
	a.str(KeySession, s.Session)
	a.str(KeyRun, s.Run)
	a.str(KeyParentRun, s.ParentRun)
	a.str(KeyAgentOwnID, s.Agent.ID)
	a.str(KeyAgentKind, s.Agent.Kind.String())
	a.str(KeyState, s.State.String())
}

func (p *Profile) run(a attrs, s *msg.Span) {
	if s.Kind == msg.SpanWorkflow {
		a.str(KeyWorkflowName, s.Agent.Name)
	}
	a.str(KeyProvider, p.Provider(s))
	if !p.dev && formats[s.Format].agentsStay { // the new repository took it off agents within the process
		a.str(KeyAgentID, s.Agent.ID)
	}
	a.str(KeyRequestModel, RequestModel(s))
	a.str(KeyResponseModel, ResponseModel(s))
	Server(s.Server, a.add)
	finish(a, s)
	a.str(KeyEnded, s.Ended)
	p.usage(a, s)
	pace(a, &s.Pace)
}

// pace adds the timing of the HTTP response that carried a run.
func pace(a attrs, p *msg.Pace) {
	a.seconds(KeyFirstByte, p.FirstByte)
	a.seconds(KeyFirstEvent, p.FirstEvent)
	a.seconds(KeyDuration, p.Total)
	a.seconds(KeyStall, p.LongestStall)
	a.seconds(KeyGapP50, p.GapP50)
	a.seconds(KeyGapP95, p.GapP95)
	a.some(KeyChunks, uint64(max(p.Chunks, 0)))
	a.some(KeyEvents, uint64(max(p.Events, 0)))
	a.some(KeyBytes, uint64(max(p.Bytes, 0)))
	a.flag(KeyBuffered, p.Buffered)
}

// chat describes a request to a model.
func (p *Profile) chat(a attrs, s *msg.Span) {
	a.str(KeyProvider, p.Provider(s))
	a.str(KeyRequestModel, RequestModel(s))
	a.str(KeyResponseModel, ResponseModel(s))
	Server(s.Server, a.add)
	p.request(a, s)
	a.str(KeyResponseID, s.ResponseID)
	finish(a, s)
	if s.FirstToken > s.Start {
		a.add(KeyTimeToFirstChunk, Value{Kind: FloatValue, Float: float64(s.FirstToken-s.Start) / 1e9})
	}
	p.usage(a, s)
}

func finish(a attrs, s *msg.Span) {
	if len(s.FinishReasons) > 0 {
		a.add(KeyFinishReasons, Value{Kind: StringsValue, Strings: s.FinishReasons})
	}
}

func (p *Profile) usage(a attrs, s *msg.Span) {
	u := &s.Usage
	if u.IsZero() {
		return
	}
	a.count(KeyUsageInput, u.Input+u.CacheRead+u.CacheWrite)
	a.count(KeyUsageOutput, u.Output+u.Reasoning)
	if s.Kind == msg.SpanChat || !p.dev { // the new repository took them off agents
		a.some(KeyUsageCacheRead, u.CacheRead)
		a.some(p.cacheWrite, u.CacheWrite)
	}
	a.some(KeyUsageReasoning, u.Reasoning)
	a.str(KeyProvenance, u.Provenance.String())
}

// Terms calls add for facts that the convention has no attribute for: the terms by which the tokens of a span are billed, and their cost. The store
// has columns of them.
func Terms(s *msg.Span, add func(key string, v Value)) {
	a := attrs{add}
	a.some(KeyCacheWrite1h, s.Usage.CacheWrite1h)
	a.str(KeyTier, s.Usage.Tier)
	a.some(KeyStated, s.Usage.Stated)
}

func (p *Profile) tool(a attrs, s *msg.Span) {
	t := &s.Tool
	a.str(KeyToolName, t.Name)
	a.str(KeyToolCallID, t.ID())
	a.str(KeyToolType, ToolType(t))
	if t.Server != "" {
		a.str(KeyMCPMethod, "tools/call")
		a.str(KeyMCPServer, t.Server)
	}
	a.flag(KeyToolInternal, t.Internal)
	a.some(KeyArgumentBytes, uint64(s.ArgumentBytes))
	a.some(KeyResultBytes, uint64(s.ResultBytes))
}

// ToolType is gen_ai.tool.type: a tool behind an MCP server is an extension, any
// other a function.
func ToolType(t *msg.Tool) string {
	if t.Server != "" {
		return "extension"
	}
	return "function"
}

// delegate describes handing work over: on the call that does, and how it was
// found on the run that it caused.
func (p *Profile) delegate(a attrs, s *msg.Span) {
	d := &s.Delegate
	a.str(KeyDelegateTo, d.To)
	a.str(KeyChildRun, d.ChildRun)
	a.str(KeyLinkMethod, d.Link.String())
	a.some(KeyConfidence, uint64(d.Confidence))
	a.flag(KeyDelegateAsync, d.Async)
	a.seconds(KeyHopQueue, s.Hop.Queue)
	a.seconds(KeyHopTransport, s.Hop.Transport)
	a.seconds(KeyHopServer, s.Hop.Server)
	a.seconds(KeyHopReturn, s.Hop.Return)
	a.flag(KeyHopCrowded, s.Hop.Crowded)
	if p.dev && s.Kind == msg.SpanDelegation {
		a.str(KeyTransferTarget, d.To)
		if !d.Async { // neither mode has a word for a caller that continues
			a.str(KeyTransferMode, "return_to_caller")
		}
		a.str(KeyTransferType, "agent")
	}
}

func (p *Profile) outcome(a attrs, s *msg.Span) {
	switch s.Outcome {
	case msg.OutcomeUnset:
		return
	case msg.OutcomeError:
		t := s.ErrorType
		if t == "" {
			t = "_OTHER"
		}
		a.str(KeyErrorType, t)
	case msg.OutcomeCancelled:
		a.str(KeyCancelReason, s.ErrorType)
	}
	a.str(KeyOutcome, s.Outcome.String())
}
