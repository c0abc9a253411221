package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// field is a key of a struct.
type field struct {
	key   string
	index int
}

// fieldsOf returns the keys of a struct in their order.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get(spec.KeyTag); key != "" {
			fields = append(fields, field{key, i})
		}
	}
	return fields
}

func named(fields []field, key string) (field, bool) {
	for _, f := range fields {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

func keys(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	return names
}

// keysOf returns the keys that a section of a type has.
func keysOf(t spec.Type) []string { return keys(fieldsOf(reflect.TypeOf(t.New()).Elem())) }

func names(types []spec.Type) []string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = t.Name
	}
	return out
}

// source reads a source. Its type is read first, wherever the file has it, because the
// other keys depend on it.
func (l *loader) source(path string, n *yaml.Node, s *Source) {
	v := reflect.ValueOf(s).Elem()
	pairs := l.pairs(path, n)
	for _, p := range pairs {
		if p.key == "type" {
			l.value(spec.Join(path, p.key), p.value, v.FieldByName("Type"))
		}
	}
	common := fieldsOf(v.Type())
	var own []field
	var section reflect.Value
	known := slices.IndexFunc(l.types.Sources, func(t spec.Type) bool { return t.Name == s.Type })
	if known >= 0 {
		s.Section = l.types.Sources[known].New()
		section = reflect.ValueOf(s.Section).Elem()
		own = fieldsOf(section.Type())
	}
	for _, p := range pairs {
		at := spec.Join(path, p.key)
		if p.key == "type" {
			continue
		}
		if f, ok := named(common, p.key); ok {
			l.value(at, p.value, v.Field(f.index))
		} else if f, ok := named(own, p.key); ok {
			l.value(at, p.value, section.Field(f.index))
		} else if owners := l.typesWith(p.key); len(owners) == 0 {
			candidates := append(keys(common), keys(own)...)
			for i := 0; i < len(l.types.Sources) && known < 0; i++ {
				candidates = append(candidates, keysOf(l.types.Sources[i])...)
			}
			l.problem(p.keyNode, at, "unknown key", spec.DidYouMean(p.key, candidates))
		} else if known >= 0 {
			l.problem(p.keyNode, at, "does not belong to a source of type "+s.Type, "it belongs to "+spec.Enumerate(owners, "and"))
		}
		// A key of some type, while this source's type is missing or unknown, is no
		// problem of its own.
	}
}

// typesWith returns the types of source that have the key.
func (l *loader) typesWith(key string) []string {
	var owners []string
	for _, t := range l.types.Sources {
		if slices.Contains(keysOf(t), key) {
			owners = append(owners, t.Name)
		}
	}
	return owners
}

// exporters reads the section of each type that the file has.
func (l *loader) exporters(path string, n *yaml.Node, e *Exporters) {
	v := reflect.ValueOf(e).Elem()
	common := fieldsOf(v.Type())
	for _, p := range l.pairs(path, n) {
		at := spec.Join(path, p.key)
		if f, ok := named(common, p.key); ok {
			l.value(at, p.value, v.Field(f.index))
			continue
		}
		i := slices.IndexFunc(l.types.Exporters, func(t spec.Type) bool { return isOf(p.key, t) })
		if i < 0 {
			l.problem(p.keyNode, at, "unknown key", spec.DidYouMean(p.key, append(keys(common), names(l.types.Exporters)...)))
			continue
		}
		if isNull(p.value) || p.value.Kind == yaml.AliasNode && isNull(p.value.Alias) {
			continue // as if it were not there
		}
		section := l.types.Exporters[i].New()
		l.value(at, p.value, reflect.ValueOf(section).Elem())
		if e.Sections == nil {
			e.Sections = map[string]spec.Section{}
		}
		e.Sections[p.key] = section
	}
}

// isOf reports whether the key is an exporter of the type.
func isOf(key string, t spec.Type) bool {
	name, more := strings.CutPrefix(key, t.Name+"-")
	return key == t.Name || more && t.Several && sourceName.MatchString(name)
}

// validateSource checks a source that could be read.
func (l *loader) validateSource(path string, s *Source) {
	if l.bad[path] {
		return
	}
	s.validate(spec.NewCheck(l, path, ""), names(l.types.Sources))
	if s.Section != nil {
		s.Section.Validate(spec.NewCheck(l, path, "type "+s.Type))
	}
}

// resolve fills in the values that follow from something else: paths relative to the
// folder of the file, the home directory for ~, and defaults that depend on another key.
func (l *loader) resolve(c *Config) {
	l.paths("", reflect.ValueOf(c).Elem())
	for i := range c.Sources {
		resolve(c.Sources[i].Section)
	}
	for _, section := range c.Exporters.Sections {
		resolve(section)
	}
	if c.Exporters.Semconv == "" {
		c.Exporters.Semconv = optedIn(l.env)
	}
}

func resolve(s spec.Section) {
	if r, ok := s.(spec.Resolver); ok {
		r.Resolve()
	}
}

// paths resolves the paths in a value and in everything below it.
func (l *loader) paths(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			l.paths(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			l.paths(spec.Index(path, i), v.Index(i))
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			l.paths(spec.Join(path, k.String()), e)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			key, value := spec.Join(path, f.key), v.Field(f.index)
			switch p := value.Addr().Interface().(type) {
			case *string:
				if v.Type().Field(f.index).Tag.Get(spec.KindTag) == spec.Path {
					l.path(key, p)
				}
			case *[]string:
				if v.Type().Field(f.index).Tag.Get(spec.KindTag) == spec.Path {
					for i := range *p {
						l.path(spec.Index(key, i), &(*p)[i])
					}
				}
			default:
				l.paths(key, value)
			}
		}
		switch s := v.Addr().Interface().(type) {
		case *Source:
			l.paths(path, reflect.ValueOf(&s.Section))
		case *Exporters:
			for name, section := range s.Sections {
				l.paths(spec.Join(path, name), reflect.ValueOf(section))
			}
		}
	}
}

// path puts the home directory in the place of a leading ~, and makes a relative path
// one below the folder of the file.
func (l *loader) path(key string, p *string) {
	rest, ok := strings.CutPrefix(*p, "~")
	switch {
	case *p == "" || filepath.IsAbs(*p):
		return
	case !ok || rest != "" && rest[0] != '/':
		if l.dir != "" {
			*p = filepath.Join(l.dir, *p)
		}
		return
	}
	dir := ""
	if l.env != nil {
		dir, _ = l.env("HOME")
	}
	if dir == "" {
		l.Report(key, "~ has no meaning: HOME is not set", "")
		return
	}
	*p = dir + rest
}

// Report implements spec.File.
func (l *loader) Report(path, message, hint string) {
	if l.bad[path] {
		return
	}
	l.bad[path] = true
	at := find(l.at, path)
	l.problems = append(l.problems, Problem{
		File: l.file, Line: at.line, Col: at.col, Path: path, Message: message, Hint: hint,
	})
}

// IsSet implements spec.File.
func (l *loader) IsSet(path string) bool {
	_, ok := l.at[path]
	return ok
}

// Quote implements spec.File.
func (l *loader) Quote(path, value string) string {
	if raw, ok := l.variables[path]; ok {
		return "the value of " + spec.Quote(raw)
	}
	return spec.Quote(value)
}
