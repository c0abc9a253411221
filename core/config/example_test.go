package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestExampleFile fails when config.example.yaml is not what the structs say.
func TestExampleFile(t *testing.T) {
	file, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, Example()) {
		t.Errorf("config.example.yaml is not up to date: run go generate ./core/config\n%s", cmp.Diff(string(file), string(Example())))
	}
}

func TestExampleIsTheDefaultAndSources(t *testing.T) {
	c, err := Parse("config.example.yaml", Example(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Sources = exampleSources()
	if diff := cmp.Diff(want, c, ignorePositions); diff != "" {
		t.Error(diff)
	}
}

// switchOn removes every # that turns a key off.
func switchOn(example []byte) string {
	off := regexp.MustCompile(`(?m)^( *)#(\S|  )`)
	return strings.ReplaceAll(off.ReplaceAllString(string(example), "$1$2"), `upstream: "http:`, `upstream: "https:`)
}

func TestExampleSwitchedOn(t *testing.T) {
	text := switchOn(Example())
	c, err := Parse("config.example.yaml", []byte(text), nil)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	_, want := exampleConfigs()
	// The example's variables have defaults.
	expandSecrets(t, reflect.ValueOf(want).Elem())
	want.Sources[1].Tap.Upstream = strings.Replace(want.Sources[1].Tap.Upstream, "http:", "https:", 1)
	if diff := cmp.Diff(want, c, ignorePositions); diff != "" {
		t.Error(diff)
	}
}

func expandSecrets(t *testing.T, v reflect.Value) {
	switch x := v.Interface().(type) {
	case Secret:
		text, _, err := expand(x.Reveal(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.Reveal() != "" {
			v.Set(reflect.ValueOf(NewSecret(text)))
		}
		return
	case map[string]Secret:
		expanded := map[string]Secret{}
		for k, s := range x {
			text, _, err := expand(s.Reveal(), nil)
			if err != nil {
				t.Fatal(err)
			}
			expanded[k] = NewSecret(text)
		}
		if len(x) > 0 {
			v.Set(reflect.ValueOf(expanded))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			expandSecrets(t, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			expandSecrets(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				expandSecrets(t, v.Field(i))
			}
		}
	}
}

// TestEveryKeyIsExplained: each key has a comment, is in the example, and is
// written in snake case; each field is a key or the section of a type.
func TestEveryKeyIsExplained(t *testing.T) {
	explained, example := comments(), switchOn(Example())
	for _, s := range structTypes(reflect.TypeFor[Config](), map[reflect.Type]bool{}) {
		for i := range s.NumField() {
			f := s.Field(i)
			if !f.IsExported() || f.Tag.Get("type") != "" {
				continue
			}
			key, id := f.Tag.Get("yaml"), s.Name()+"."+f.Name
			if !regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`).MatchString(key) {
				t.Errorf("%s: key %q", id, key)
			}
			if c := explained[id]; c == "" || !strings.HasSuffix(strings.TrimSpace(c), ".") {
				t.Errorf("%s: comment %q is no sentence", id, c)
			}
			if !regexp.MustCompile(`(?m)^[ -]*` + key + `:`).MatchString(example) {
				t.Errorf("%s: %s is not in the example", id, key)
			}
		}
	}
}

func structTypes(t reflect.Type, seen map[reflect.Type]bool) []reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return structTypes(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] || t == reflect.TypeFor[Secret]() {
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

// TestConfigComesBack writes a configuration and reads it again.
func TestConfigComesBack(t *testing.T) {
	text := strings.ReplaceAll(switchOn(Example()), `"/v1/messages"`, `"/v1/$$$${x}"`) +
		"  # an end\n"
	text = strings.Replace(text, "options: {}", `options: {b: [1, 1.50, "1", null, {"$$${HOST}": "$${HOST}"}], a: "x: y"}`, 1)
	want := mustParse(t, text)
	asYAML, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{asYAML, asJSON} {
		got, err := Parse("again.yaml", []byte(strings.ReplaceAll(string(text), redacted, "clickhouse://h/earshot")), environment)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		// What was redacted comes back as something else, but comes back.
		secret := cmp.Comparer(func(a, b Secret) bool { return (a.Reveal() == "") == (b.Reveal() == "") })
		if diff := cmp.Diff(want, got, ignorePositions, secret); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
}
