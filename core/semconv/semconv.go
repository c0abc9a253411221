// Package semconv maps msg.Span to OpenTelemetry's GenAI naming convention. It is the
// only place that knows the names; both exporters use it, so that a span has the same
// attributes in ClickHouse and over OTLP.
//
// The convention is in development and has moved to a repository of its own
// without a release since, so the names come in versions:
//
//	1.41          the last release with GenAI in it, and the default
//	genai-latest  the changes of the new repository: cache_write, transfer.*, metrics
//
// A fact without a name in the convention is called earshot.*, in both.
//
// # Tokens
//
// msg.Tokens are exclusive classes. The convention's input_tokens contain the
// cached ones and its output_tokens the reasoning, so they are added up here. A
// run's tokens are the sum of its chats': adding up all spans counts twice.
//
// # Status
//
// Only a failure has a status, Error with error.type. Success is Unset, as the
// convention wants of instrumentation. Cancelled work, and work whose result never arrived,
// is Unset too: a person who changes their mind is no error rate.
// earshot.outcome separates the three.
//
// # Unknown values
//
// gen_ai.conversation.id is the protocol's own conversation id and is left out if the
// protocol has none: no hash, no file name, no run id replaces it. earshot.session.id
// joins the spans of a conversation in any case.
//
// gen_ai.agent.id is for an agent that persists and never for one instance: only formats
// with such ids have it (see formats). earshot.agent.id is the id of the protocol in
// either case.
//
// gen_ai.request.model is the requested model and gen_ai.response.model the responding
// one. A transcript of responses names only the second, and an agent's own protocol as a
// rule the first.
//
// gen_ai.response.finish_reasons is why the model stopped; the end of a run is
// earshot.run.finish_reason.
//
// gen_ai.provider.name is required, see Provider.
package semconv

import (
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// The names of the profiles.
const (
	GenAI141    = "1.41"
	GenAILatest = "genai-latest"
)

// Profile is a version of the convention. It is immutable.
type Profile struct {
	name       string
	schemaURL  string
	cacheWrite string // key of the tokens written to a cache
	dev        bool
}

var profiles = [...]Profile{
	{name: GenAI141, schemaURL: "https://opentelemetry.io/schemas/1.41.0", cacheWrite: KeyUsageCacheCreation},
	{name: GenAILatest, schemaURL: "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev", cacheWrite: KeyUsageCacheWrite, dev: true},
}

// New returns the profile with that name; the empty name is the default.
func New(name string) (*Profile, error) {
	if name == "" {
		name = GenAI141
	}
	var known []string
	for _, p := range profiles {
		if p.name == name {
			return &p, nil
		}
		known = append(known, p.name)
	}
	return nil, fmt.Errorf("semconv: profile %q: not one of %s", name, strings.Join(known, ", "))
}

// String is the profile's name.
func (p *Profile) String() string { return p.name }

// Latest reports whether the names are those of the new repository.
func (p *Profile) Latest() bool { return p.dev }

// SchemaURL is the schema that the names are of.
func (p *Profile) SchemaURL() string { return p.schemaURL }

// Scope is the name of the instrumentation scope of every span.
const Scope = "github.com/earshot-dev/earshot"

// Name returns the span's name: the operation and its object.
func (p *Profile) Name(s *msg.Span) string {
	op, target := Operation(s.Kind), ""
	switch s.Kind {
	case msg.SpanChat:
		target = RequestModel(s)
		if target == "" {
			target = s.Model
		}
	case msg.SpanTool, msg.SpanDelegation:
		target = s.Tool.Name
		if to := s.Delegate.To; p.dev && to != "" {
			target += " " + to
		}
	default:
		target = s.Agent.Name
	}
	if target == "" {
		return op
	}
	return op + " " + target
}

// Operation is gen_ai.operation.name of spans of that kind.
func Operation(k msg.SpanKind) string {
	switch k {
	case msg.SpanChat:
		return "chat"
	case msg.SpanTool, msg.SpanDelegation:
		return "execute_tool"
	case msg.SpanWorkflow:
		return "invoke_workflow"
	}
	return "invoke_agent"
}

// Kind is the OpenTelemetry kind of a span, by its number in OTLP.
type Kind int32

// The kinds that occur: a request to a model leaves the process, all else is
// within it.
const (
	Internal Kind = 1
	Client   Kind = 3
)

// String is the kind's name as the collector's ClickHouse exporter writes it.
func (k Kind) String() string {
	if k == Client {
		return "Client"
	}
	return "Internal"
}

// Kind is the span's kind.
func (p *Profile) Kind(s *msg.Span) Kind {
	if s.Kind == msg.SpanChat {
		return Client
	}
	return Internal
}

// Code is a span's status code, by its number in OTLP.
type Code int32

// The codes that occur.
const (
	Unset Code = 0
	Error Code = 2
)

// String is the code's name as the collector's ClickHouse exporter writes it.
func (c Code) String() string {
	if c == Error {
		return "Error"
	}
	return "Unset"
}

// Status returns the span's status: only an Error has a message.
func (p *Profile) Status(s *msg.Span) (Code, string) {
	if s.Outcome == msg.OutcomeError {
		return Error, s.StatusMessage
	}
	return Unset, ""
}

// ServiceName is the resource attribute service.name. It is the source's name:
// the deployment that the operator named in the configuration. Agents are not
// services here, because an agent's name may be known later than its first
// span, and there may be as many as a model cares to invent.
func ServiceName(s *msg.Span) string { return s.Source }

// EventName is the name of an event of a span, in our name space: the
// convention has none for a retry, a pause or a wait for permission.
func (p *Profile) EventName(e *msg.SpanEvent) string { return "earshot." + e.Name }
