package meter

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

const (
	maxValues = 100 // of an attribute
	maxLength = 128 // of a value, in bytes
	maxSets   = 4096
	other     = "_OTHER"
)

// classes are the values of semconv.KeyTokenClass.
var classes = [...]string{"input", "output", "cache_read", "cache_write", "reasoning"}

// labels makes sets of attributes, and makes each once.
type labels struct {
	profile *semconv.Profile
	known   map[string]map[string]string // by attribute: what its values are called
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

	// What the messages of a batch add to the counters, and which was the last.
	batch uint64
	more  growth
	trace msg.TraceID
	span  msg.SpanID
}

func newLabels(p *semconv.Profile) labels {
	return labels{p, make(map[string]map[string]string), make(map[spanKey]*spanSet), make(map[usageKey]*usageSets)}
}

// value is what a value from outside is called: itself, if it is one of the first
// hundred.
func (l *labels) value(key, v string) string {
	values := l.known[key]
	if values == nil {
		values = make(map[string]string)
		l.known[key] = values
	}
	if name, ok := values[v]; ok {
		return name
	}
	if len(values) >= maxValues {
		return other
	}
	v = strings.Clone(v)
	values[v] = strings.ToValidUTF8(v, "\uFFFD")
	return values[v]
}

// clip bounds a value from outside.
func clip(s string) string { return s[:min(len(s), maxLength)] }

// set collects attributes.
type set struct {
	labels *labels
	attrs  []attribute.KeyValue
}

// own adds what the configuration or the program names.
func (s *set) own(key, v string) {
	if v != "" {
		s.attrs = append(s.attrs, attribute.String(key, v))
	}
}

// value adds a value of the configuration.
func (s *set) value(key string, v semconv.Value) {
	if v.Kind == semconv.IntValue {
		s.attrs = append(s.attrs, attribute.Int64(key, v.Int))
		return
	}
	s.own(key, v.Str)
}

// outside adds what the traffic names.
func (s *set) outside(key, v string) {
	if v != "" {
		s.own(key, s.labels.value(key, v))
	}
}

// models adds the model that was asked for and the one that answered.
func (s *set) models(m models) {
	s.outside(semconv.KeyRequestModel, m.asked)
	s.outside(semconv.KeyResponseModel, m.answered)
}

func (s *set) option(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(s.attrs[:len(s.attrs):len(s.attrs)], more...)...))
}

func (l *labels) span(s *msg.Span) *spanSet {
	k := spanKey{
		kind: s.Kind, failed: s.Outcome == msg.OutcomeError, source: s.Source, format: s.Format, agent: clip(s.Agent.Name),
	}
	switch s.Kind {
	case msg.SpanChat:
		k.provider, k.models, k.server = clip(l.profile.Provider(s)), modelsOf(s), clip(s.Server)
	case msg.SpanTool:
		k.tool = clip(s.Tool.Name)
	case msg.SpanDelegation:
		k.tool, k.delegate = clip(s.Tool.Name), clip(s.Delegate.To)
	default:
		k.provider = clip(l.profile.Provider(s))
	}
	if k.failed {
		if k.problem = clip(s.ErrorType); k.problem == "" {
			k.problem = other
		}
	}
	if o, ok := l.spans[k]; ok {
		return o
	}
	out := set{labels: l}
	out.own(semconv.KeyOperation, semconv.Operation(s.Kind))
	out.own(semconv.KeySource, k.source)
	out.own(semconv.KeyFormat, k.format)
	out.outside(semconv.KeyProvider, k.provider)
	out.models(k.models)
	semconv.Server(k.server, out.value)
	out.outside(semconv.KeyAgentName, k.agent)
	out.outside(semconv.KeyToolName, k.tool)
	out.outside(semconv.KeyDelegateTo, k.delegate)
	out.outside(semconv.KeyErrorType, k.problem)
	o := &spanSet{MeasurementOption: out.option()}
	if len(l.spans) < maxSets {
		l.spans[k.clone()] = o
	}
	return o
}

// models are those that a span names.
type models struct{ asked, answered string }

func modelsOf(s *msg.Span) models {
	return models{clip(semconv.RequestModel(s)), clip(semconv.ResponseModel(s))}
}

// usageBy is the key of a usage message; of its response's models the span knows more.
func (l *labels) usageBy(u *msg.Message, known models) usageKey {
	s := msg.Span{Kind: kindOf(u.ResponseID != ""), Source: u.Host.Source, Format: u.Host.Format, Provider: u.Provider, Model: u.Model, Agent: u.Agent}
	if known == (models{}) {
		known = modelsOf(&s)
	}
	return l.usageKey(&s, known)
}

func (l *labels) usageKey(s *msg.Span, m models) usageKey {
	return usageKey{s.Kind == msg.SpanChat, s.Source, s.Format, clip(semconv.ProviderOf(s)), m, clip(s.Agent.Name)}
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
	out.own(semconv.KeyOperation, semconv.Operation(kindOf(k.chat)))
	out.own(semconv.KeySource, k.source)
	out.own(semconv.KeyFormat, k.format)
	out.outside(semconv.KeyProvider, k.provider)
	out.models(k.models)
	out.outside(semconv.KeyAgentName, k.agent)
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

// clone copies what lies in a batch.
func (k spanKey) clone() spanKey {
	for _, s := range []*string{&k.source, &k.format, &k.provider, &k.asked, &k.answered, &k.server, &k.agent, &k.tool, &k.delegate, &k.problem} {
		*s = strings.Clone(*s)
	}
	return k
}

func (k usageKey) clone() usageKey {
	for _, s := range []*string{&k.source, &k.format, &k.provider, &k.asked, &k.answered, &k.agent} {
		*s = strings.Clone(*s)
	}
	return k
}
