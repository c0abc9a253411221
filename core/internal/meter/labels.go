package meter

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

const maxSets = 4096

// classes are the values of semconv.KeyTokenClass.
var classes = [...]string{"input", "output", "cache_read", "cache_write", "reasoning"}

// labels makes sets of attributes, each of them once.
type labels struct {
	profile *semconv.Profile
	names   *telemetry.Names
	spans   map[spanKey]*spanSet
	usages  map[usageKey]*usageSets
}

type spanKey struct {
	kind   msg.SpanKind
	failed bool
	models
	source, format, provider, server, agent, tool, delegate, problem string
}

type usageKey struct {
	chat                     bool
	source, format, provider string
	models
	agent string
}

// spanSet is the set of one spanKey.
type spanSet struct {
	metric.MeasurementOption
	slowest exemplars
}

// usageSets are the sets of one usageKey: alone, by type, and by class.
type usageSets struct {
	all, in, out metric.MeasurementOption
	classes      [len(classes)]metric.MeasurementOption
	largest      exemplars

	// The tokens that the messages of a batch add to the counters, and the span of the last.
	batch uint64
	added growth
	trace msg.TraceID
	span  msg.SpanID
}

func newLabels(p *semconv.Profile) labels {
	return labels{p, telemetry.NewNames(), make(map[spanKey]*spanSet), make(map[usageKey]*usageSets)}
}

// set collects attributes.
type set struct {
	labels *labels
	attrs  []attribute.KeyValue
}

// add adds an attribute whose values the configuration or the program bounds.
func (s *set) add(key, v string) {
	if v != "" {
		s.attrs = append(s.attrs, attribute.String(key, v))
	}
}

// value adds an attribute with a value of the configuration.
func (s *set) value(key string, v semconv.Value) {
	if v.Kind == semconv.IntValue {
		s.attrs = append(s.attrs, attribute.Int64(key, v.Int))
		return
	}
	s.add(key, v.Str)
}

// bounded adds an attribute whose values are from the traffic.
func (s *set) bounded(key, v string) {
	if v != "" {
		s.add(key, s.labels.names.Bound(key, v))
	}
}

// models adds the requested model and the one of the response.
func (s *set) models(m models) {
	s.bounded(semconv.KeyRequestModel, m.requested)
	s.bounded(semconv.KeyResponseModel, m.responded)
}

func (s *set) option(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(s.attrs[:len(s.attrs):len(s.attrs)], more...)...))
}

func (l *labels) span(s *msg.Span) *spanSet {
	k := spanKey{
		kind: s.Kind, failed: s.Outcome == msg.OutcomeError, source: s.Source, format: s.Format, agent: telemetry.Clip(s.Agent.Name),
	}
	switch s.Kind {
	case msg.SpanChat:
		k.provider, k.models, k.server = telemetry.Clip(l.profile.Provider(s)), modelsOf(s), telemetry.Clip(s.Server)
	case msg.SpanTool:
		k.tool = telemetry.Clip(s.Tool.Name)
	case msg.SpanDelegation:
		k.tool, k.delegate = telemetry.Clip(s.Tool.Name), telemetry.Clip(s.Delegate.To)
	default:
		k.provider = telemetry.Clip(l.profile.Provider(s))
	}
	if k.failed {
		if k.problem = telemetry.Clip(s.ErrorType); k.problem == "" {
			k.problem = telemetry.Other
		}
	}
	if o, ok := l.spans[k]; ok {
		return o
	}
	out := set{labels: l}
	out.add(semconv.KeyOperation, semconv.Operation(s.Kind))
	out.add(semconv.KeySource, k.source)
	out.add(semconv.KeyFormat, k.format)
	out.bounded(semconv.KeyProvider, k.provider)
	out.models(k.models)
	semconv.Server(k.server, out.value)
	out.bounded(semconv.KeyAgentName, k.agent)
	out.bounded(semconv.KeyToolName, k.tool)
	out.bounded(semconv.KeyDelegateTo, k.delegate)
	out.bounded(semconv.KeyErrorType, k.problem)
	o := &spanSet{MeasurementOption: out.option()}
	if len(l.spans) < maxSets {
		l.spans[k.clone()] = o
	}
	return o
}

// models are the requested model of a span and the one of its response.
type models struct{ requested, responded string }

func modelsOf(s *msg.Span) models {
	return models{telemetry.Clip(semconv.RequestModel(s)), telemetry.Clip(semconv.ResponseModel(s))}
}

// usageBy is the key of a usage message; the span of its response may know more of the models.
func (l *labels) usageBy(u *msg.Message, known models) usageKey {
	s := msg.Span{Kind: kindOf(u.ResponseID != ""), Source: u.Host.Source, Format: u.Host.Format, Provider: u.Provider, Model: u.Model, Agent: u.Agent}
	if known == (models{}) {
		known = modelsOf(&s)
	}
	return l.usageKey(&s, known)
}

func (l *labels) usageKey(s *msg.Span, m models) usageKey {
	return usageKey{s.Kind == msg.SpanChat, s.Source, s.Format, telemetry.Clip(semconv.ProviderOf(s)), m, telemetry.Clip(s.Agent.Name)}
}

func kindOf(chat bool) msg.SpanKind {
	if chat {
		return msg.SpanChat
	}
	return msg.SpanRun
}

func (l *labels) usage(k usageKey) *usageSets {
	if sets := l.usages[k]; sets != nil {
		return sets
	}
	out := set{labels: l}
	out.add(semconv.KeyOperation, semconv.Operation(kindOf(k.chat)))
	out.add(semconv.KeySource, k.source)
	out.add(semconv.KeyFormat, k.format)
	out.bounded(semconv.KeyProvider, k.provider)
	out.models(k.models)
	out.bounded(semconv.KeyAgentName, k.agent)
	sets := &usageSets{
		all: out.option(),
		in:  out.option(attribute.String(semconv.KeyTokenType, "input")),
		out: out.option(attribute.String(semconv.KeyTokenType, "output")),
	}
	for i, class := range classes {
		sets.classes[i] = out.option(attribute.String(semconv.KeyTokenClass, class))
	}
	if len(l.usages) < maxSets {
		l.usages[k.clone()] = sets
	}
	return sets
}

// clone copies the strings that lie in a batch.
func (k spanKey) clone() spanKey {
	for _, s := range []*string{&k.source, &k.format, &k.provider, &k.requested, &k.responded, &k.server, &k.agent, &k.tool, &k.delegate, &k.problem} {
		*s = strings.Clone(*s)
	}
	return k
}

func (k usageKey) clone() usageKey {
	for _, s := range []*string{&k.source, &k.format, &k.provider, &k.requested, &k.responded, &k.agent} {
		*s = strings.Clone(*s)
	}
	return k
}
