package agno

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// usage counts the tokens of a run: by response where the stream has requests
// (ModelRequestCompleted, since 2.9), and else once for the run, by its last event. With counts
// by response, the run's total is their sum with the requests of other models (memory, summaries), which
// only its details have.
type usage struct {
	Reply   string `json:",omitempty"` // the open response, where the stream has requests
	Replies int    `json:",omitempty"` // responses that are over, in this leg
	Waits   bool   `json:",omitempty"` // for a response of the model
	Cost    *cost  `json:",omitempty"` // of a response that may still have calls
	Counted bool   `json:",omitempty"` // tokens were counted by response

	Sum conversation.Counts `json:",omitzero"` // of the responses
}

// cost is the usage of a response. It is emitted when the response is over: the response's
// calls follow the end of the request.
type cost struct {
	Tokens msg.Tokens
	At     conversation.Time
	First  string `json:",omitempty"` // seconds to the first token
}

// request begins a response.
func (u *usage) request(r *run, e *event) {
	u.flush(r, msg.Complete)
	r.setModel(e.v)
	u.Waits = true
	name := u.name(r)
	m := r.status(r.key(name+"/request"), "ModelRequestStarted", e.at)
	m.Signal, m.Model, m.Provider = msg.ModelStart, r.Model, r.Provider
}

// name names the next response by its order in the leg of the run.
func (u *usage) name(r *run) string {
	name := "r" + strconv.Itoa(u.Replies)
	if r.Leg != "" {
		name = r.Leg + "/" + name
	}
	u.Reply = r.key(name)
	return name
}

// respond ends a response except for its calls.
func (u *usage) respond(r *run, e *event) {
	t := tokens(e.v, r.Provider, r.Model)
	if !u.Waits && u.Replies > 0 && u.Cost != nil && u.Cost.At == e.at && u.Cost.Tokens == t {
		return // a repetition
	}
	u.flush(r, msg.Complete)
	r.setModel(e.v)
	u.name(r)
	u.Replies++
	u.Waits = false
	u.count(tokens(e.v, r.Provider, r.Model), e.at) // of the model that the event names
	u.Cost.First = e.v.Get("time_to_first_token").Digits()
}

// count counts the tokens of a response that may still have calls.
func (u *usage) count(t msg.Tokens, at conversation.Time) {
	u.Cost = &cost{Tokens: t, At: at}
	u.Counted = u.Counted || !t.IsZero()
}

// flush emits the counts of the open or last response.
func (u *usage) flush(r *run, c msg.Completeness) {
	k := u.Cost
	if u.Cost = nil; k == nil || r.s.body.isFork(r) {
		return
	}
	u.Sum = u.Sum.Add(conversation.CountsOf(k.Tokens))
	m := u.emit(r, u.Reply, k.Tokens, k.At)
	m.Complete = min(c, m.Complete)
	m.ResponseID = u.Reply
	m.SetAttr("time_to_first_token", k.First)
}

func (u *usage) emit(r *run, of string, t msg.Tokens, at conversation.Time) *msg.Message {
	m := r.add(msg.Usage, "usage:"+of, at)
	m.Hidden, m.Usage = true, t
	m.Model, m.Provider = r.Model, r.Provider
	return m
}

// total emits the counts of a run whose responses were not counted: of a run that paused, of
// all its legs.
func (u *usage) total(r *run, e *event) {
	u.flush(r, msg.Complete)
	metrics := jsonv.Or(e.v.Get("metrics"), r.s.body.stored(r).Get("metrics"))
	t := tokens(metrics, r.Provider, r.Model)
	if t.IsZero() || r.s.body.isFork(r) {
		return
	}
	rest, _ := conversation.CountsOf(t).Sub(u.Sum)
	rest = u.others(r, e, metrics.Get("details"), rest)
	switch {
	case !u.Counted:
		u.emit(r, r.ID, rest.Tokens(t.Provenance), e.at)
	case r.Begun:
		r.status("usage:"+r.ID, "counted_by_response", e.at).Complete = msg.Complete
	}
}

// others emits the counts of the requests of other models than the run's, and returns those that are left of all:
// an event may have counted them before.
func (u *usage) others(r *run, e *event, details jsonv.Value, rest conversation.Counts) conversation.Counts {
	for kind, list := range details.Members() {
		if kind.Is("model") {
			continue
		}
		n := 0
		for v := range list.Elems() {
			model, provider := ident.Of(v.Get("id")), ident.Of(v.Get("provider"))
			t := tokens(v, provider, model)
			left, ok := rest.Sub(conversation.CountsOf(t))
			if key := conversation.Ordinal(r.ID+"/"+kind.String(), &n); ok && !t.IsZero() {
				rest = left
				m := u.emit(r, key, t, e.at)
				m.Model, m.Provider = model, provider
				m.SetAttr("model_type", kind.String())
			}
		}
	}
	return rest
}

// tokens reads the counts of a request or a run and separates them: AGNO copies the
// provider's counts, and most providers count cached tokens as input and reasoning as output.
func tokens(v jsonv.Value, provider, model string) msg.Tokens {
	t := msg.Tokens{
		Input: sumOfCounts(v.Get("input_tokens")), Output: sumOfCounts(v.Get("output_tokens")), Reasoning: sumOfCounts(v.Get("reasoning_tokens")),
		CacheRead: sumOfCounts(v.First("cache_read_tokens", "cached_tokens")), CacheWrite: sumOfCounts(v.Get("cache_write_tokens")),
	}
	if t.IsZero() {
		return t
	}
	t.Provenance = msg.Provider
	if cached := t.CacheRead + t.CacheWrite; cached <= t.Input && !cacheBesideInput(provider, model) {
		t.Input -= cached
	}
	if total := sumOfCounts(v.Get("total_tokens")); t.Reasoning <= t.Output && (total == 0 || total < t.Total()) {
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

// sumOfCounts reads a count. Before 2.0 the metrics of a run have a list of them, one for each response.
func sumOfCounts(v jsonv.Value) (sum uint64) {
	for one := range jsonv.Each(v) {
		sum += one.Uint()
	}
	return sum
}
