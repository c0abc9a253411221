// Command generate writes the code, the protocol and its documentation that follow from
// package schema, below the root of the module that it is called with.
package main

import (
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: generate ROOT")
	}
	g, err := readTypes(filepath.Join(os.Args[1], "core/msg"))
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range outputs {
		path := filepath.Join(os.Args[1], o.path)
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			log.Fatal(err)
		}
		content, err := o.render(g, string(old))
		if err != nil {
			log.Fatalf("%s: %v", o.path, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// output is a file that is generated, or has a generated part: render returns its new
// content from the old one.
type output struct {
	path   string
	render func(g goTypes, old string) (string, error)
}

var outputs = []output{
	{"core/internal/wire/message_gen.go", source(codec)},
	{"core/msg/row_gen.go", source(row)},
	{"exporters/clickhouse/rows_gen.go", source(writers)},
	{"core/proto/earshot/decoder/v1/decoder.proto", between("// Generated from core/msg/schema: begin.\n", "// Generated from core/msg/schema: end.\n", messages)},
	{"core/proto/PROTOCOL.md", between("<!-- generated from core/msg/schema: begin -->\n", "<!-- generated from core/msg/schema: end -->\n", table)},
}

// source renders a whole file of Go.
func source(body func(goTypes) string) func(goTypes, string) (string, error) {
	return func(g goTypes, _ string) (string, error) {
		b, err := format.Source([]byte("// Code generated from core/msg/schema; DO NOT EDIT.\n\n" + body(g)))
		return string(b), err
	}
}

// between renders the part of a file between two lines.
func between(begin, end string, body func(goTypes) string) func(goTypes, string) (string, error) {
	return func(g goTypes, old string) (string, error) {
		head, rest, ok := strings.Cut(old, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			return "", fmt.Errorf("no lines %q and %q", begin, end)
		}
		return head + begin + body(g) + end + tail, nil
	}
}

// snake returns a Go path as a protobuf name: Tool.CallID is tool_call_id.
func snake(path string) string {
	var b strings.Builder
	runes := []rune(path)
	for i, r := range runes {
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// camel returns the name of a column as a Go name: session_id is SessionID.
func camel(column string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(column, func(r rune) bool { return r == '_' || r == '.' }) {
		switch part {
		case "id", "ts":
			b.WriteString(strings.ToUpper(part))
		default:
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// comment returns text as a comment whose lines begin with prefix, wrapped; an empty line
// separates paragraphs.
func comment(prefix, text string) string {
	const width = 92
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			fmt.Fprintln(&b, prefix)
		}
		line := prefix
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+1+len(word) > width {
				fmt.Fprintln(&b, line)
				line = prefix
			}
			line += " " + word
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
