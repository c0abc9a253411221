package agno

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Tokens are counted by response where the stream tells of requests
// (ModelRequestCompleted, as 2.9 does), and else once for the run, by its last event.
// The run's total is then only a sum of what was counted.

// cost is what a response took. It is given when the response is over: its calls
// come after the request's end.
type cost struct {
	Tokens msg.Tokens
	At     stamp
	First  string `json:",omitempty"` // seconds to the first token
}

// modelRequest begins a response.
func (s *stream) modelRequest(r *run, e *event) {
	s.counted(r)
	r.uses(e.v)
	r.Waits = true
	r.Reply = r.response(r.Replies)
	m := s.status(r, strings.TrimPrefix(r.Reply, r.ID+"/")+"/request", "ModelRequestStarted", e.at)
	m.Signal, m.Model, m.Provider = msg.ModelStart, r.Model, r.Provider
}

// copied reports whether a stored run is a copy that came with a forked session:
// what it took was counted there.
func (s *stream) copied(r *run) bool {
	if s.book == nil {
		return false
	}
	from := ident(s.book.objects[r.ID].First("forked_from_session_id", "fork_id"))
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

// modelResponse ends a response but for its calls.
func (s *stream) modelResponse(r *run, e *event) {
	if !r.Waits && r.Replies > 0 && r.Cost != nil && r.Cost.At == e.at && r.Cost.Tokens == tokens(e.v, r.Provider, r.Model) {
		return // the frame came twice
	}
	s.counted(r)
	r.uses(e.v)
	r.Reply = r.response(r.Replies)
	r.Replies++
	r.Waits = false
	r.Cost = &cost{Tokens: tokens(e.v, r.Provider, r.Model), At: e.at, First: number(e.v.Get("time_to_first_token"))}
	r.Counted = r.Counted || !r.Cost.Tokens.IsZero()
}

// counted gives the counts of a response that is over.
func (s *stream) counted(r *run) {
	if r.Cost != nil {
		s.tokens(r, msg.Complete)
	}
}

// tokens gives the counts of the response that is going on, or was last.
func (s *stream) tokens(r *run, c msg.Completeness) {
	if s.copied(r) {
		r.Cost = nil
		return
	}
	m := s.usage(r, r.Reply, r.Cost.Tokens, r.Cost.At)
	m.Complete = min(c, m.Complete)
	m.ResponseID = r.Reply
	m.SetAttr("time_to_first_token", r.Cost.First)
	r.Cost = nil
}

func (s *stream) usage(r *run, of string, t msg.Tokens, at stamp) *msg.Message {
	m := s.add(r, msg.Usage, "", at)
	m.Key, m.Hidden, m.Usage = "usage:"+of, true, t
	m.Model, m.Provider = r.Model, r.Provider
	return m
}

// total gives the counts of a run whose responses were not counted.
func (s *stream) total(r *run, e *event) {
	s.counted(r)
	metrics := e.v.Get("metrics")
	if s.book != nil && !metrics.Exists() {
		metrics = s.book.objects[r.ID].Get("metrics")
	}
	switch t := tokens(metrics, r.Provider, r.Model); {
	case t.IsZero() || s.copied(r):
	case r.Counted && !r.Begun:
	case r.Counted:
		s.stand(r, "usage:"+r.ID, "counted_by_response", e.at)
	default:
		s.usage(r, r.ID, t, e.at) // the sum of all legs of a paused run
	}
}

// tokens reads the counts of a request or a run and takes them apart: AGNO passes
// on what the provider says, and most providers count cached tokens as input and
// reasoning as output.
func tokens(v jsonv.Value, provider, model string) msg.Tokens {
	t := msg.Tokens{
		Input: v.Get("input_tokens").Uint(), Output: v.Get("output_tokens").Uint(), Reasoning: v.Get("reasoning_tokens").Uint(),
		CacheRead: v.Get("cache_read_tokens").Uint(), CacheWrite: v.Get("cache_write_tokens").Uint(),
	}
	if t.IsZero() {
		return t
	}
	t.Provenance = msg.Provider
	if cached := t.CacheRead + t.CacheWrite; cached <= t.Input && !apart(provider, model) {
		t.Input -= cached
	}
	if total := v.Get("total_tokens").Uint(); t.Reasoning <= t.Output && (total == 0 || total < t.Input+t.CacheRead+t.CacheWrite+t.Output+t.Reasoning) {
		t.Output -= t.Reasoning
	}
	return t
}

// apart reports whether a provider counts cached tokens beside the input.
func apart(provider, model string) bool {
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
