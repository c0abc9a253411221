package config

import "reflect"

// field is a key of a struct.
type field struct {
	key   string
	index int
}

// fieldsOf returns the keys of a struct in their order.
func fieldsOf(t reflect.Type) []field { return tagged(t, "yaml") }

// variantsOf returns the structs of Source whose keys a type adds, by type.
func variantsOf(t reflect.Type) []field { return tagged(t, "type") }

func tagged(t reflect.Type, tag string) []field {
	var fields []field
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get(tag); key != "" {
			fields = append(fields, field{key, i})
		}
	}
	return fields
}

func keys(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	return names
}
