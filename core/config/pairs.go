package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// pair is a key of a mapping and its value.
type pair struct {
	key            string
	keyNode, value *yaml.Node
}

// pairs returns the keys of a mapping in their order: its own, and then those
// that "<<" merges into it and that it does not have itself. Nothing (a section
// whose keys are all commented out) is an empty mapping.
func (l *loader) pairs(path string, n *yaml.Node) []pair {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		l.problem(n, path, "expected a mapping of keys to values, got "+l.got(path, n), "")
		return nil
	}
	var own, merged []pair
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, value := n.Content[i], n.Content[i+1]
		if !l.count(path, keyNode) {
			return nil
		}
		name := keyNode
		if name.Kind == yaml.AliasNode {
			name = name.Alias
		}
		if name.Kind != yaml.ScalarNode {
			l.problem(keyNode, path, "a key must be a name", "")
			continue
		}
		if name.ShortTag() == "!!merge" {
			merged = append(merged, l.merge(path, value)...)
			continue
		}
		if f := first[name.Value]; f != nil {
			l.problem(keyNode, spec.Join(path, name.Value), fmt.Sprintf("duplicate key, first given in line %d", f.Line), "")
			continue
		}
		first[name.Value] = keyNode
		own = append(own, pair{name.Value, keyNode, value})
	}
	for _, p := range merged {
		if first[p.key] == nil {
			first[p.key] = p.keyNode
			own = append(own, p)
		}
	}
	return own
}

// merge returns the keys that the value of a "<<" merges: those of a mapping, or of
// each of a list of mappings.
func (l *loader) merge(path string, n *yaml.Node) []pair {
	n, ok := l.enter(path, n)
	if !ok {
		return nil
	}
	defer l.leave(n)
	switch n.Kind {
	case yaml.MappingNode:
		return l.pairs(path, n)
	case yaml.SequenceNode:
		var all []pair
		for _, item := range n.Content {
			all = append(all, l.merge(path, item)...)
		}
		return all
	}
	l.problem(n, path, "<< merges a mapping, got "+l.got(path, n), "")
	return nil
}
