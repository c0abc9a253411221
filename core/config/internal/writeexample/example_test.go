package main

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
)

func exampleText(t *testing.T) string {
	t.Helper()
	text, err := example(types())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExampleFile fails when config.example.yaml differs from the structs.
func TestExampleFile(t *testing.T) {
	file, err := os.ReadFile("../../../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := exampleText(t); !bytes.Equal(file, []byte(want)) {
		t.Errorf("config.example.yaml is not up to date: run go generate ./core/config\n%s", cmp.Diff(string(file), want))
	}
}

// equal compares the keys of configurations; fields without a key, such as the positions in their files,
// are not exported.
func equal(t *testing.T, want, got *config.Config) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.FilterPath(unexported, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

func unexported(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && unicode.IsLower(rune(f.Name()[0]))
}

func TestExampleIsTheDefaultAndSources(t *testing.T) {
	c, err := types().Parse("config.example.yaml", []byte(exampleText(t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	off, _ := layers(types())
	want.Sources = off.Sources
	equal(t, want, c)
}

// TestExampleOfEqualFormats: a required key is written for each source, also with the value of one before.
func TestExampleOfEqualFormats(t *testing.T) {
	equal := types()
	equal.Sources[1].Example.Format = equal.Sources[0].Example.Format
	text, err := example(equal)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := equal.Parse("config.example.yaml", text, nil); err != nil {
		t.Error(err)
	}
}

func TestExampleSwitchedOn(t *testing.T) {
	text := switchOn(exampleText(t))
	c, err := types().Parse("config.example.yaml", []byte(text), nil)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	_, want := layers(types())
	expandSecrets(reflect.ValueOf(want).Elem())
	// TLS behind the tap needs an https upstream.
	upstream := reflect.ValueOf(want.Sources[1].Section).Elem().FieldByName("Upstream")
	upstream.SetString(strings.Replace(upstream.String(), "http:", "https:", 1))
	equal(t, want, c)
}

// expandSecrets replaces the variables of the example, which have defaults.
func expandSecrets(v reflect.Value) {
	variable := regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)
	expand := func(s spec.Secret) spec.Secret {
		if s.Reveal() == "" {
			return s
		}
		return spec.NewSecret(variable.ReplaceAllString(s.Reveal(), "$1"))
	}
	switch x := v.Interface().(type) {
	case spec.Secret:
		v.Set(reflect.ValueOf(expand(x)))
		return
	case spec.Headers:
		if x == nil {
			return
		}
		expanded := spec.Headers{}
		for name, s := range x {
			expanded[name] = expand(s)
		}
		v.Set(reflect.ValueOf(expanded))
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			expandSecrets(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			expandSecrets(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if e := v.MapIndex(key); e.Kind() == reflect.Interface {
				expandSecrets(e)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				expandSecrets(v.Field(i))
			}
		}
	}
}

// TestEveryKeyIsExplained: each key has a comment, is in the example, and is written in
// snake case; each field is a key or holds the section of a type.
func TestEveryKeyIsExplained(t *testing.T) {
	var c comments
	text := switchOn(exampleText(t))
	structs := structTypes(reflect.TypeFor[config.Config](), map[reflect.Type]bool{})
	for _, list := range [][]spec.Type{types().Sources, types().Exporters} {
		for _, typ := range list {
			structs = append(structs, structTypes(reflect.TypeOf(typ.New()), map[reflect.Type]bool{})...)
		}
	}
	for _, s := range structs {
		for i := range s.NumField() {
			f := s.Field(i)
			key, id := f.Tag.Get(spec.KeyTag), s.String()+"."+f.Name
			if !f.IsExported() || id == "config.Source.Section" || id == "config.Exporters.Sections" {
				continue
			}
			if !regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`).MatchString(key) {
				t.Errorf("%s: key %q", id, key)
			}
			if text := c.of(s, f.Name); text == "" || !strings.HasSuffix(strings.TrimSpace(text), ".") {
				t.Errorf("%s: comment %q is no sentence", id, text)
			}
			if !regexp.MustCompile(`(?m)^[ -]*` + key + `:`).MatchString(text) {
				t.Errorf("%s: %s is not in the example", id, key)
			}
		}
	}
	if c.err != nil || len(structs) < 15 {
		t.Errorf("%d structs, %v", len(structs), c.err)
	}
}

func structTypes(t reflect.Type, seen map[reflect.Type]bool) []reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return structTypes(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] || t == reflect.TypeFor[spec.Secret]() {
			return nil
		}
		seen[t] = true
		types := []reflect.Type{t}
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				types = append(types, structTypes(t.Field(i).Type, seen)...)
			}
		}
		return types
	}
	return nil
}

// switchOn removes every # that turns a key off.
func switchOn(example string) string {
	off := regexp.MustCompile(`(?m)^( *)#(\S|  )`)
	return strings.ReplaceAll(off.ReplaceAllString(example, "$1$2"), `upstream: "http:`, `upstream: "https:`)
}
