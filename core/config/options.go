package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// options reads a mapping that only the decoder understands. It becomes canonical
// JSON (keys sorted, no white space), so that equal options are equal bytes, and
// nil when it is empty.
func (l *loader) options(path string, n *yaml.Node, dst *json.RawMessage) {
	tree := map[string]any{}
	for _, p := range l.pairs(path, n) {
		tree[p.key] = l.option(spec.Join(path, p.key), p.value)
	}
	if len(tree) == 0 {
		return
	}
	text, err := canonical(tree)
	if err != nil {
		l.problem(n, path, "cannot be written as JSON", "")
		return
	}
	*dst = text
}

func canonical(tree any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(tree)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (l *loader) option(path string, n *yaml.Node) any {
	n, ok := l.enter(path, n)
	if !ok {
		return nil
	}
	defer l.leave(n)
	l.at[path] = place{n.Line, n.Column}
	switch n.Kind {
	case yaml.MappingNode:
		tree := map[string]any{}
		for _, p := range l.pairs(path, n) {
			tree[p.key] = l.option(spec.Join(path, p.key), p.value)
		}
		return tree
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = l.option(spec.Index(path, i), item)
		}
		return list
	}
	return l.scalar(path, n)
}

// scalar returns an option with the type that YAML sees in it once its variables are
// replaced; a quoted text stays a text.
func (l *loader) scalar(path string, n *yaml.Node) any {
	text, changed, err := expand(n.Value, l.env)
	if err != nil {
		l.problem(n, path, err.Error(), "")
		return nil
	}
	r := &yaml.Node{Kind: yaml.ScalarNode, Tag: n.Tag, Style: n.Style, Value: text}
	if changed && n.Style == 0 {
		r.Tag = "" // it is resolved again
	}
	v, err := scalarTree(r)
	if err != nil {
		l.problem(n, path, err.Error(), "")
	}
	return v
}

var errNoJSON = errors.New("JSON has no such value")

// scalarTree returns a scalar as a value for encoding/json.
func scalarTree(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!int", "!!float":
		if strings.IndexAny(n.Value, "-0123456789") == 0 && json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil // digit for digit
		}
	case "!!null", "!!bool":
	default:
		return n.Value, nil
	}
	var v any
	err := n.Decode(&v)
	f, isFloat := v.(float64)
	if err != nil || isFloat && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return nil, errNoJSON
	}
	return v, nil
}
