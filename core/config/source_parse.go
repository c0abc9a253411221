package config

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source reads a source. Its type comes first, wherever it stands, because it
// says which other keys there are.
func (l *loader) source(path string, n *yaml.Node, s *Source) {
	v := reflect.ValueOf(s).Elem()
	pairs := l.pairs(path, n)
	for _, p := range pairs {
		if p.key == "type" {
			l.value(join(path, p.key), p.value, v.FieldByName("Type"))
		}
	}
	fields := fieldsOf(v.Type())
	variants := variantsOf(v.Type())
	var own []field
	var section reflect.Value
	variant, known := named(variants, s.Type)
	if known {
		pointer := v.Field(variant.index)
		pointer.Set(reflect.New(pointer.Type().Elem()))
		initialize(pointer.Interface())
		section = pointer.Elem()
		own = fieldsOf(section.Type())
	}
	for _, p := range pairs {
		at := join(path, p.key)
		if p.key == "type" {
			continue
		}
		if f, ok := named(fields, p.key); ok {
			l.value(at, p.value, v.Field(f.index))
		} else if f, ok := named(own, p.key); ok {
			l.value(at, p.value, section.Field(f.index))
		} else if types := typesWith(p.key); len(types) == 0 {
			candidates := append(keys(fields), keys(own)...)
			for i := 0; i < len(variants) && !known; i++ {
				candidates = append(candidates, keys(variantFields(variants[i]))...)
			}
			l.problem(p.keyNode, at, "unknown key", DidYouMean(p.key, candidates))
		} else if known {
			l.problem(p.keyNode, at, "does not belong to a source of type "+s.Type, "it belongs to "+enumerate(types, "and"))
		}
		// A key of some type, while this source's type is missing or unknown, is no
		// problem of its own.
	}
}

// typesWith returns the types of source that have the key.
func typesWith(key string) []string {
	var types []string
	for _, v := range variantsOf(reflect.TypeFor[Source]()) {
		if slices.Contains(keys(variantFields(v)), key) {
			types = append(types, v.key)
		}
	}
	return types
}

func variantFields(v field) []field {
	return fieldsOf(reflect.TypeFor[Source]().Field(v.index).Type.Elem())
}

// enumerate writes a list as a sentence has it: "a, b and c".
func enumerate(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
