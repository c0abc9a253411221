package telemetry

import (
	"strings"
	"sync"
)

// The bound of labels whose values come from the traffic: names of models, agents, tools and
// types of events. Of each label the first values are kept; later ones are counted together.
const (
	MaxNames     = 100
	MaxNameBytes = 128 // of a name
	Other        = "_OTHER"
)

// Names are the values of labels that come from the traffic.
type Names struct {
	mu    sync.Mutex
	known map[string]map[string]string // by label and name: the label's value
}

// NewNames returns no names.
func NewNames() *Names { return &Names{known: make(map[string]map[string]string)} }

// Bound is the label's value for a name: the name, if it is one of the label's first, or Other.
func (n *Names) Bound(label, name string) string {
	name = Clip(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	names := n.known[label]
	if names == nil {
		names = make(map[string]string)
		n.known[label] = names
	}
	if v, ok := names[name]; ok {
		return v
	}
	if len(names) >= MaxNames {
		return Other
	}
	name = strings.Clone(name) // it may lie in a batch
	names[name] = strings.ToValidUTF8(name, "\uFFFD")
	return names[name]
}

// Clip bounds the length of a name.
func Clip(name string) string { return name[:min(len(name), MaxNameBytes)] }
