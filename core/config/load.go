package config

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// Limits on a file. They are far above any file that a person writes and keep a file of
// aliases of aliases from growing without bound.
const (
	maxFile   = 1 << 20
	maxDepth  = 64
	maxValues = 100_000
)

// Types are the components that a file may name, in the order in which problems list them.
type Types struct{ Sources, Exporters []spec.Type }

// Load reads a configuration file. Variables are from env, which is os.LookupEnv except in
// tests. When the error is an *Error, the Config holds every value that could be read:
// enough for further checks, not for a run.
func (t Types) Load(path string, env func(string) (string, bool)) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	dir := ""
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() { // not a pipe or standard input
		dir = filepath.Dir(path)
	}
	return t.parse(path, dir, data, env)
}

// Parse is Load for a file's content; name is the file's name in problems. Relative
// paths stay as they are. The error is nil or an *Error.
func (t Types) Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	return t.parse(name, "", data, env)
}

func (t Types) parse(name, dir string, data []byte, env func(string) (string, bool)) (*Config, error) {
	if dir == "." {
		dir = ""
	}
	c := Default()
	l := &loader{
		types: t, file: name, dir: dir, env: env,
		at:        map[string]place{"": {1, 1}},
		variables: map[string]string{},
		bad:       map[string]bool{},
		open:      map[*yaml.Node]bool{},
	}
	c.file, c.at = l.file, l.at
	root, problem := parseYAML(data)
	if problem != nil {
		problem.File = name
		return c, asError([]Problem{*problem})
	}
	if root != nil {
		l.value("", root, reflect.ValueOf(c).Elem())
	}
	if l.bad[""] || l.stopped {
		return c, asError(l.problems)
	}
	l.resolve(c)
	for i := range c.Sources {
		l.validateSource(spec.Index("sources", i), &c.Sources[i])
	}
	c.validate(spec.NewCheck(l, "", ""))
	return c, asError(l.problems)
}

// loader fills structs from the nodes of a file and collects the problems.
type loader struct {
	types    Types
	file     string
	dir      string // that relative paths are relative to; empty: the working directory
	env      func(string) (string, bool)
	problems []Problem

	at        map[string]place    // where each value begins, by path
	variables map[string]string   // texts that had variables in them, as the file has them
	bad       map[string]bool     // paths that have a problem already
	open      map[*yaml.Node]bool // collections being read, which no alias may name
	values    int
	stopped   bool
}

func (l *loader) problem(n *yaml.Node, path, message, hint string) {
	l.bad[path] = true
	l.problems = append(l.problems, Problem{
		File: l.file, Line: n.Line, Col: n.Column, Path: path, Message: message, Hint: hint,
	})
}

// enter follows an alias and keeps count. The caller leaves a node it entered.
func (l *loader) enter(path string, n *yaml.Node) (*yaml.Node, bool) {
	if l.stopped {
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		if l.open[n.Alias] {
			l.problem(n, path, "the anchor "+spec.Quote(n.Value)+" contains itself", "")
			return nil, false
		}
		n = n.Alias
	}
	if !l.count(path, n) {
		return nil, false
	}
	if len(l.open) >= maxDepth {
		l.problem(n, path, fmt.Sprintf("nested more than %d levels deep", maxDepth), "")
		return nil, false
	}
	if tag := n.ShortTag(); strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") || tag == "!!binary" {
		l.problem(n, path, "the YAML tag "+spec.Quote(tag)+" has no meaning here", "")
		return nil, false
	}
	if n.Kind != yaml.ScalarNode {
		l.open[n] = true
	}
	return n, true
}

// count stops the reading of a file that has become too much.
func (l *loader) count(path string, n *yaml.Node) bool {
	if l.values++; l.values > maxValues && !l.stopped {
		l.stopped = true
		l.problem(n, path, fmt.Sprintf("the file has more than %d values, aliases included", maxValues), "")
	}
	return !l.stopped
}

func (l *loader) leave(n *yaml.Node) { delete(l.open, n) }

// value reads a node into a value of any type that a configuration has.
func (l *loader) value(path string, n *yaml.Node, v reflect.Value) {
	n, ok := l.enter(path, n)
	if !ok {
		return
	}
	defer l.leave(n)
	l.at[path] = place{n.Line, n.Column}

	switch dst := v.Addr().Interface().(type) {
	case *json.RawMessage:
		l.options(path, n, dst)
		return
	case *spec.Secret:
		if text, ok := l.text(path, n, "a string"); ok {
			*dst = spec.NewSecret(text)
		}
		return
	case spec.Unit:
		l.unit(path, n, dst)
		return
	case *Sandbox:
		if n.Kind == yaml.ScalarNode && n.Value == "off" {
			dst.Off = true
			return
		}
	case *Source:
		l.source(path, n, dst)
		return
	case *Exporters:
		l.exporters(path, n, dst)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		l.structure(path, n, v)
	case reflect.Pointer:
		if !isNull(n) {
			v.Set(reflect.New(v.Type().Elem()))
			setDefaults(v)
			l.structure(path, n, v.Elem())
		}
	case reflect.Slice:
		l.list(path, n, v)
	case reflect.Map:
		l.mapping(path, n, v)
	case reflect.String:
		if text, ok := l.text(path, n, "a string"); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		if text, ok := l.text(path, n, "true or false"); ok {
			l.boolean(path, n, text, v)
		}
	case reflect.Int:
		if text, ok := l.text(path, n, "a whole number"); ok {
			i, err := strconv.Atoi(text)
			if err != nil {
				l.problem(n, path, "expected a whole number, got "+l.got(path, n), "")
				return
			}
			v.SetInt(int64(i))
		}
	default:
		panic("config: no reader for " + v.Type().String())
	}
}

func (l *loader) structure(path string, n *yaml.Node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	for _, p := range l.pairs(path, n) {
		at := spec.Join(path, p.key)
		f, ok := named(fields, p.key)
		if !ok {
			l.problem(p.keyNode, at, "unknown key", spec.DidYouMean(p.key, keys(fields)))
			continue
		}
		l.value(at, p.value, v.Field(f.index))
	}
}

func setDefaults(pointer reflect.Value) {
	if d, ok := pointer.Interface().(spec.Defaults); ok {
		d.SetDefaults()
	}
}

func (l *loader) list(path string, n *yaml.Node, v reflect.Value) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = "put it in [ ]"
		}
		l.problem(n, path, "expected a list, got "+l.got(path, n), hint)
		return
	}
	v.SetZero() // a list takes the place of the default
	for i, item := range n.Content {
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		e := v.Index(i)
		setDefaults(e.Addr())
		l.value(spec.Index(path, i), item, e)
	}
}

func (l *loader) mapping(path string, n *yaml.Node, v reflect.Value) {
	for _, p := range l.pairs(path, n) {
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		e := reflect.New(v.Type().Elem())
		setDefaults(e)
		l.value(spec.Join(path, p.key), p.value, e.Elem())
		v.SetMapIndex(reflect.ValueOf(p.key), e.Elem())
	}
}

// text returns the text of a scalar with its variables replaced.
func (l *loader) text(path string, n *yaml.Node, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		hint := ""
		if n.Value == "~" {
			hint = `YAML reads a bare ~ as nothing: write "~"`
		}
		l.problem(n, path, "expected "+want+", got "+l.got(path, n), hint)
		return "", false
	}
	text, changed, err := expand(n.Value, l.env)
	if err != nil {
		l.problem(n, path, err.Error(), "")
		return "", false
	}
	if changed {
		l.variables[path] = n.Value
	}
	return text, true
}

func (l *loader) boolean(path string, n *yaml.Node, text string, v reflect.Value) {
	switch text {
	case "true", "false":
		v.SetBool(text == "true")
	default:
		hint := map[string]string{"yes": "true", "on": "true", "no": "false", "off": "false"}[strings.ToLower(text)]
		if hint != "" {
			hint = "write " + hint
		}
		l.problem(n, path, "expected true or false, got "+l.got(path, n), hint)
	}
}

func (l *loader) unit(path string, n *yaml.Node, dst spec.Unit) {
	text, ok := l.text(path, n, dst.Expected())
	if !ok {
		return
	}
	if err := dst.UnmarshalText([]byte(text)); err != nil {
		hint := ""
		if _, ok := dst.(*spec.Duration); ok && strings.HasSuffix(text, "d") {
			hint = "a day is 24h"
		}
		l.problem(n, path, err.Error()+", got "+l.got(path, n), hint)
	}
}

// got describes the value of a node for a message. It never shows the value of a
// variable.
func (l *loader) got(path string, n *yaml.Node) string {
	if raw, ok := l.variables[path]; ok {
		return "the value of " + spec.Quote(raw)
	}
	switch n.ShortTag() {
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + strings.Trim(spec.Quote(n.Value), `"`)
	}
	return spec.Quote(n.Value)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
