package config

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MarshalYAML gives the configuration as a file has it, defaults included and
// secrets redacted.
func (c Config) MarshalYAML() (any, error) { return marshal(c) }

// MarshalJSON gives what MarshalYAML gives.
func (c Config) MarshalJSON() ([]byte, error) { return marshalJSON(c) }

// MarshalYAML gives the source's keys and those of its type side by side.
func (s Source) MarshalYAML() (any, error) { return marshal(s) }

// MarshalJSON gives what MarshalYAML gives.
func (s Source) MarshalJSON() ([]byte, error) { return marshalJSON(s) }

func marshal(v any) (*yaml.Node, error) {
	n, err := encode(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	escapeVariables(n)
	return n, nil
}

func marshalJSON(v any) ([]byte, error) {
	n, err := marshal(v)
	if err != nil {
		return nil, err
	}
	t, err := tree(n)
	if err != nil {
		return nil, err
	}
	return canonical(t)
}

// tree gives what encode made as what encoding/json writes.
func tree(n *yaml.Node) (any, error) {
	var err error
	switch n.Kind {
	case yaml.MappingNode:
		t := map[string]any{}
		for i := 0; i < len(n.Content) && err == nil; i += 2 {
			t[n.Content[i].Value], err = tree(n.Content[i+1])
		}
		return t, err
	case yaml.SequenceNode:
		t := make([]any, len(n.Content))
		for i := 0; i < len(n.Content) && err == nil; i++ {
			t[i], err = tree(n.Content[i])
		}
		return t, err
	}
	return scalarTree(n)
}

// escapeVariables keeps a $ in a value from being read as the start of a
// variable.
func escapeVariables(n *yaml.Node) {
	for i, c := range n.Content {
		if key := n.Kind == yaml.MappingNode && i%2 == 0; !key {
			escapeVariables(c)
		}
	}
	if n.Kind == yaml.ScalarNode {
		n.Value = strings.ReplaceAll(n.Value, "$", "$$")
	}
}

// encode is the inverse of loader.value.
func encode(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch x := v.Interface().(type) {
	case json.RawMessage:
		if x == nil {
			x = json.RawMessage("{}")
		}
		var document yaml.Node
		if err := yaml.Unmarshal(x, &document); err != nil {
			return nil, err
		}
		return document.Content[0], nil
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		n.SetString(string(text))
		return n, err
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		n.Kind = yaml.MappingNode
		return n, encodeStruct(n, v)
	case reflect.Map:
		n.Kind = yaml.MappingNode
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		})
		for _, name := range names {
			if err := encodePair(n, name.String(), v.MapIndex(name)); err != nil {
				return nil, err
			}
		}
		return n, nil
	case reflect.Slice:
		n.Kind = yaml.SequenceNode
		if v.Len() == 0 || v.Index(0).Kind() == reflect.String {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			e, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, e)
		}
		return n, nil
	}
	return n, n.Encode(v.Interface())
}

func encodeStruct(n *yaml.Node, v reflect.Value) error {
	for _, f := range fieldsOf(v.Type()) {
		if err := encodePair(n, f.key, v.Field(f.index)); err != nil {
			return err
		}
	}
	for _, f := range variantsOf(v.Type()) {
		if section := v.Field(f.index); !section.IsNil() {
			if err := encodeStruct(n, section.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

func encodePair(n *yaml.Node, key string, v reflect.Value) error {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	k := &yaml.Node{}
	k.SetString(key)
	e, err := encode(v)
	if err != nil {
		return err
	}
	n.Content = append(n.Content, k, e)
	return nil
}
