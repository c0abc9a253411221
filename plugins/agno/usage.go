package agno

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Tokens are counted by response where the stream has requests (ModelRequestCompleted, since
// 2.9), and else once for the run, by its last event. With counts by response, the run's
// total is only their sum.

// cost is the usage of a response. It is emitted when the response is over: the response's
// calls follow the end of the request.
type cost struct {
	Tokens msg.Tokens
	At     stamp
	First  string `json:",omitempty"` // seconds to the first token
}

// modelRequest begins a response.
func (s *stream) modelRequest(r *run, e *event) {
	s.flushUsage(r)
	r.setModel(e.v)
	r.Waits = true
	r.Reply = r.response(r.Replies)
	m := s.addStatus(r, strings.TrimPrefix(r.Reply, r.ID+"/")+"/request", "ModelRequestStarted", e.at)
	m.Signal, m.Model, m.Provider = msg.ModelStart, r.Model, r.Provider
}

// isFork reports whether a stored run is a copy in a forked session: its tokens were counted
// in the original.
func (s *stream) isFork(r *run) bool {
	if s.index == nil {
		return false
	}
	from := ident(s.index.runs[r.ID].First("forked_from_session_id", "fork_id"))
	return from != "" && from != r.Session
}

// response names a response by its order in the leg of the run.
func (r *run) response(n int) string {
	id := r.ID + "/"
	if r.Leg != "" {
		id += r.Leg + "/"
	}
	return id + "r" + strconv.Itoa(n)
}

// modelResponse ends a response except for its calls.
func (s *stream) modelResponse(r *run, e *event) {
	if !r.Waits && r.Replies > 0 && r.Cost != nil && r.Cost.At == e.at && r.Cost.Tokens == tokens(e.v, r.Provider, r.Model) {
		return // a repetition
	}
	s.flushUsage(r)
	r.setModel(e.v)
	r.Reply = r.response(r.Replies)
	r.Replies++
	r.Waits = false
	r.Cost = &cost{Tokens: tokens(e.v, r.Provider, r.Model), At: e.at, First: number(e.v.Get("time_to_first_token"))}
	r.Counted = r.Counted || !r.Cost.Tokens.IsZero()
}

// flushUsage emits the counts of a response that is over.
func (s *stream) flushUsage(r *run) {
	if r.Cost != nil {
		s.emitUsage(r, msg.Complete)
	}
}

// emitUsage emits the counts of the open or last response.
func (s *stream) emitUsage(r *run, c msg.Completeness) {
	if s.isFork(r) {
		r.Cost = nil
		return
	}
	m := s.addUsage(r, r.Reply, r.Cost.Tokens, r.Cost.At)
	m.Complete = min(c, m.Complete)
	m.ResponseID = r.Reply
	m.SetAttr("time_to_first_token", r.Cost.First)
	r.Cost = nil
}

func (s *stream) addUsage(r *run, of string, t msg.Tokens, at stamp) *msg.Message {
	m := s.addMessage(r, msg.Usage, "", at)
	m.Key, m.Hidden, m.Usage = "usage:"+of, true, t
	m.Model, m.Provider = r.Model, r.Provider
	return m
}

// emitTotal emits the counts of a run whose responses were not counted.
func (s *stream) emitTotal(r *run, e *event) {
	s.flushUsage(r)
	metrics := e.v.Get("metrics")
	if s.index != nil && !metrics.Exists() {
		metrics = s.index.runs[r.ID].Get("metrics")
	}
	switch t := tokens(metrics, r.Provider, r.Model); {
	case t.IsZero() || s.isFork(r):
	case r.Counted && !r.Begun:
	case r.Counted:
		s.addPlaceholder(r, "usage:"+r.ID, "counted_by_response", e.at)
	default:
		s.addUsage(r, r.ID, t, e.at) // the sum of all legs of a paused run
	}
}

// tokens reads the counts of a request or a run and separates them: AGNO copies the
// provider's counts, and most providers count cached tokens as input and reasoning as output.
func tokens(v jsonv.Value, provider, model string) msg.Tokens {
	t := msg.Tokens{
		Input: v.Get("input_tokens").Uint(), Output: v.Get("output_tokens").Uint(), Reasoning: v.Get("reasoning_tokens").Uint(),
		CacheRead: v.Get("cache_read_tokens").Uint(), CacheWrite: v.Get("cache_write_tokens").Uint(),
	}
	if t.IsZero() {
		return t
	}
	t.Provenance = msg.Provider
	if cached := t.CacheRead + t.CacheWrite; cached <= t.Input && !cacheBesideInput(provider, model) {
		t.Input -= cached
	}
	if total := v.Get("total_tokens").Uint(); t.Reasoning <= t.Output && (total == 0 || total < t.Input+t.CacheRead+t.CacheWrite+t.Output+t.Reasoning) {
		t.Output -= t.Reasoning
	}
	return t
}

// cacheBesideInput reports whether a provider counts cached tokens beside the input.
func cacheBesideInput(provider, model string) bool {
	switch provider {
	case "anthropic", "aws.bedrock":
		return true
	case "openrouter", "litellm", "portkey":
		return false
	}
	return strings.HasPrefix(model, "claude")
}

// provider returns the name that OpenTelemetry has for AGNO's.
func provider(name string) string {
	name = strings.ToLower(name)
	switch name {
	case "google", "gemini":
		return "gcp.gemini"
	case "vertexai":
		return "gcp.vertex_ai"
	case "azure", "azureopenai":
		return "azure.ai.openai"
	case "azureaifoundry":
		return "azure.ai.inference"
	case "aws", "awsbedrock", "bedrock":
		return "aws.bedrock"
	case "mistral":
		return "mistral_ai"
	case "xai":
		return "x_ai"
	}
	return strings.ReplaceAll(name, " ", "_")
}

func number(v jsonv.Value) string {
	if !v.Is(jsonv.Number) {
		return ""
	}
	return string(v.Raw())
}
