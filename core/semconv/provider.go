package semconv

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Provider is gen_ai.provider.name of a chat or a run, empty where the version has none:
// the new repository took it off agents within the process. It is the provider that the traffic
// names; else the one that the model's handle begins with, as in openai/gpt-5; else the
// agent system that the traffic is of, which is a value of our own. The convention
// requires one, and wants the best that is known.
func (p *Profile) Provider(s *msg.Span) string {
	if p.dev && s.Kind != msg.SpanChat {
		return ""
	}
	return ProviderOf(s)
}

// ProviderOf returns the provider of the span's tokens, for every kind of span.
func ProviderOf(s *msg.Span) string {
	if s.Provider != "" {
		return s.Provider
	}
	for _, model := range [...]string{s.Model, s.AskedModel} {
		if name := handle(model); name != "" {
			return name
		}
	}
	if p := formats[s.Format].provider; p != "" {
		return p
	}
	return s.Format
}

// handle is the provider that a model's handle begins with; empty when it is none that
// is known.
func handle(model string) string {
	name, _, ok := strings.Cut(model, "/")
	if !ok {
		return ""
	}
	return msg.KnownProvider(name)
}
