package config

import (
	"bytes"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:generate go run ./internal/writeexample ../../config.example.yaml

// structs are the files whose field comments explain the keys, so that a key is
// described in one place.
//
//go:embed config.go source.go
var structs embed.FS

const exampleHead = `# Earshot configuration: every key, with its default where it has one.
# Generated from core/config by "go generate ./core/config"; edits go there.
#
# The least that works is one source. Keys behind a # without a space are off;
# remove the # to use them.
#
# Durations are written like 500ms or 1h30m, sizes like 64MiB or 10GB. ${VAR} and
# ${VAR:-default} come from the environment, in values only; $$ is a literal $.
# Relative paths are relative to the folder that this file is in, and a
# leading ~/ is the home directory.
`

// Example returns config.example.yaml: a file that is valid as it stands and has
// every key. Switched on, the others are valid too; only TLS behind the tap wants
// an https upstream.
func Example() []byte {
	off, on := exampleConfigs()
	w := exampleWriter{comments: comments(), seen: map[string]bool{}}
	var b bytes.Buffer
	b.WriteString(exampleHead)
	for _, section := range w.fields(reflect.ValueOf(*off), reflect.ValueOf(*on)) {
		b.WriteString("\n" + strings.Join(section, "\n") + "\n")
	}
	return b.Bytes()
}

// comments returns the comments of the struct fields, by "Type.Field".
func comments() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"config.go", "source.go"} {
		text, err := structs.ReadFile(name)
		if err != nil {
			panic("config: " + err.Error()) // embedded above
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			panic("config: " + err.Error()) // it compiled
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, field := range f.Names {
						out[spec.Name.Name+"."+field.Name] = f.Doc.Text()
					}
				}
			}
			return false
		})
	}
	return out
}

// exampleWriter writes two configurations as one: what off has is live, and what
// only on has is commented out.
type exampleWriter struct {
	comments map[string]string
	seen     map[string]bool // fields already explained
}

// fields returns the lines of each field of a struct.
func (w *exampleWriter) fields(off, on reflect.Value) [][]string {
	t := off.Type()
	fresh := reflect.New(t)
	initialize(fresh.Interface())
	var out [][]string
	for _, f := range fieldsOf(t) {
		id := t.Name() + "." + t.Field(f.index).Name
		value, commented := off.Field(f.index), false
		if isEmpty(value) && !isEmpty(on.Field(f.index)) {
			value, commented = on.Field(f.index), true
		}
		if w.seen[id] && reflect.DeepEqual(value.Interface(), fresh.Elem().Field(f.index).Interface()) {
			continue
		}
		var lines []string
		if !w.seen[id] {
			for line := range strings.Lines(w.comments[id]) {
				lines = append(lines, "# "+strings.TrimSuffix(line, "\n"))
			}
		}
		w.seen[id] = true
		if commented {
			for _, line := range w.key(f.key, value, value) {
				lines = append(lines, "#"+line)
			}
		} else {
			lines = append(lines, w.key(f.key, value, on.Field(f.index))...)
		}
		out = append(out, lines)
	}
	for _, v := range variantsOf(t) {
		if section := off.Field(v.index); !section.IsNil() {
			out = append(out, w.fields(section.Elem(), on.Field(v.index).Elem())...)
		}
	}
	return out
}

// key returns the lines of a key and its value.
func (w *exampleWriter) key(key string, off, on reflect.Value) []string {
	off, on = reflect.Indirect(off), reflect.Indirect(on)
	lines := []string{key + ":"}
	switch {
	case isSection(off.Type()):
		for _, f := range w.fields(off, on) {
			lines = append(lines, indent(f, "  ")...)
		}
	case off.Kind() == reflect.Slice && isSection(off.Type().Elem()):
		for i := range off.Len() {
			item := slices.Concat(w.fields(off.Index(i), on.Index(i))...)
			first := slices.IndexFunc(item, func(line string) bool { return !strings.HasPrefix(line, "#") })
			lines = append(lines, indent(item[:first], "  ")...)
			lines = append(lines, "  - "+item[first])
			lines = append(lines, indent(item[first+1:], "    ")...)
		}
	case off.Kind() == reflect.Map && off.Len() > 0:
		for _, name := range off.MapKeys() { // examples have one entry
			v := off.MapIndex(name)
			lines = append(lines, indent(w.key(name.String(), v, v), "  ")...)
		}
	default:
		lines[0] += " " + leaf(off)
	}
	return lines
}

func leaf(v reflect.Value) string {
	if s, ok := v.Interface().(Secret); ok {
		v = reflect.ValueOf(s.Reveal())
	}
	n, err := encode(v)
	if err == nil {
		n.Style |= yaml.FlowStyle
		quoteScalars(n)
		var text []byte
		if text, err = yaml.Marshal(n); err == nil {
			return strings.TrimSuffix(string(text), "\n")
		}
	}
	return fmt.Sprint("# ", err) // not reached: the values are ours
}

// quoteScalars quotes every text that is more than a word, as people do who know
// what YAML makes of a leading * or of ": ".
func quoteScalars(n *yaml.Node) {
	for _, c := range n.Content {
		quoteScalars(c)
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || isWord(n.Value) {
		return
	}
	n.Style = yaml.DoubleQuotedStyle
	if strings.ContainsAny(n.Value, "\"\\") {
		n.Style = yaml.SingleQuotedStyle
	}
}

func indent(lines []string, by string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = by + line
	}
	return out
}

// isSection reports whether the type is a struct with keys.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0 }

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return v.IsZero() && !isSection(v.Type())
	}
	return v.Kind() != reflect.Bool && v.IsZero()
}
