package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// protoField is a line of decoder.proto.
type protoField struct {
	name, kind, comment string
	number              int
}

// protoFields returns the fields of a record by their numbers.
func (g goTypes) protoFields(r schema.Record) []protoField {
	var out []protoField
	for _, f := range r.Fields {
		p := protoField{name: snake(f.Path), number: f.Number, comment: f.Comment}
		switch s, t := g.shapeOf(r, f); s {
		case text:
			p.kind = "string"
			out = append(out, protoField{p.name + "_at", "Range", "Range of " + p.name, f.Range})
		case str:
			p.kind = "string"
		case boolean:
			p.kind = "bool"
		case zigzag, int32s:
			p.kind = cmp.Or(f.Type, t)
		case varints:
			p.kind = t
			if t == "uint8" {
				p.kind = "uint32"
			}
		case enum, nested:
			p.kind = t
		case repeated:
			p.kind = "repeated " + t
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b protoField) int { return a.number - b.number })
	return out
}

// messages renders the part of decoder.proto that follows from the schema.
func messages(g goTypes) string {
	var b strings.Builder
	for _, r := range schema.Messages {
		fmt.Fprintf(&b, "\n%smessage %s {\n", comment("//", r.Doc), r.Name)
		for _, f := range g.protoFields(r) {
			fmt.Fprintf(&b, "%s  %s %s = %d;\n", comment("  //", strings.TrimSuffix(f.comment, ", ...")+"."), f.kind, f.name, f.number)
		}
		b.WriteString("}\n")
	}
	return b.String() + "\n"
}

// table renders the table of fields of PROTOCOL.md.
func table(g goTypes) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, r := range schema.Messages {
		fmt.Fprintf(&b, "| %s | number | type | meaning |\n|---|---|---|---|\n", r.Name)
		for _, f := range g.protoFields(r) {
			fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", f.name, f.number, f.kind, f.comment)
		}
		b.WriteString("\n")
	}
	return b.String()
}
