package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// writers renders the types that write the rows of each table.
func writers(g goTypes) string {
	var b strings.Builder
	for _, t := range schema.Tables {
		g.writer(&b, t)
	}
	body := b.String()
	return `package clickhouse

import (
	"cmp"
	"encoding/hex"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)
` + body
}

func (g goTypes) writer(b *strings.Builder, t schema.Table) {
	var fields, set, named, add strings.Builder
	var called, lengths []string
	for _, c := range t.Columns {
		for _, m := range lengthOf.FindAllStringSubmatch(c.From, -1) {
			lengths = append(lengths, m[1])
		}
	}
	for _, c := range t.Columns {
		if c.From == "" {
			continue
		}
		field := camel(c.Name)
		field = strings.ToLower(field[:1]) + field[1:]
		if strings.ToUpper(field) == camel(c.Name) {
			field = strings.ToLower(field)
		}
		kind, value := columnType(c.SQLType())
		fmt.Fprintf(&fields, "%s %s\n", field, kind)
		ref := "&r." + field
		if strings.HasPrefix(kind, "*") {
			ref = "r." + field
		}
		if value != "" {
			fmt.Fprintf(&set, "%s: %s,\n", field, value)
		}
		fmt.Fprintf(&named, "{Name: %q, Column: %s},\n", c.Name, ref)

		if method, ok := strings.CutPrefix(c.From, "("); ok {
			if !slices.Contains(called, method) {
				called = append(called, method)
				fmt.Fprintf(&add, "r.%s(%s)\n", strings.TrimSuffix(method, ")"), strings.Fields(t.Record)[0])
			}
			continue
		}
		value = lengthOf.ReplaceAllString(c.From, "${1}Len")
		call := g.appendCall(t, c, "r."+field, value)
		if slices.Contains(lengths, c.Name) {
			call = c.Name + "Len := " + call
		}
		fmt.Fprintln(&add, call)
	}
	profile := ""
	if t.Profile {
		profile = "p *semconv.Profile"
		fmt.Fprintf(&set, "profile: p,\n")
	}
	title := strings.ToUpper(t.Rows[:1]) + t.Rows[1:]
	fmt.Fprintf(b, "\n%stype %s struct {\ntable\n", comment("//", t.Doc), t.Rows)
	if t.Profile {
		b.WriteString("profile *semconv.Profile\n")
	}
	fmt.Fprintf(b, "\n%s}\n\n", fields.String())
	fmt.Fprintf(b, "func new%s(%s) *%s {\nr := &%s{\n%s}\n", title, profile, t.Rows, t.Rows, set.String())
	fmt.Fprintf(b, "r.table = table{name: %q, block: native.NewBlock([]native.Named{\n%s})}\nreturn r\n}\n\n", t.Name, named.String())
	fmt.Fprintf(b, "// add appends a row.\nfunc (r *%s) add(%s) {\n%s}\n", t.Rows, t.Record, add.String())
}

// columnType returns the Go type of a column of that type, and its value where the zero
// value will not do.
func columnType(t string) (kind, value string) {
	inner := func(prefix string) string { return strings.TrimSuffix(strings.TrimPrefix(t, prefix+"("), ")") }
	switch {
	case t == "LowCardinality(String)":
		return "native.Dict", ""
	case t == "String":
		return "native.Text", ""
	case strings.HasPrefix(t, "FixedString("):
		return "proto.ColFixedStr", "proto.ColFixedStr{Size: " + inner("FixedString") + "}"
	case strings.HasPrefix(t, "DateTime64("):
		precision, zone, _ := strings.Cut(inner("DateTime64"), ", ")
		value = "Precision: " + precision + ", PrecisionSet: true"
		if zone == "'UTC'" {
			value += ", Location: time.UTC"
		}
		return "proto.ColDateTime64", "proto.ColDateTime64{" + value + "}"
	case strings.HasPrefix(t, "Map("):
		return "native.Map", ""
	case strings.HasPrefix(t, "Array("):
		of, value := columnType(inner("Array"))
		if value == "" {
			value = of + "{}"
		}
		return "*native.Array[*" + of + "]", "native.NewArray(&" + value + ")"
	case t == "Bool", strings.HasPrefix(t, "UInt"), strings.HasPrefix(t, "Int"):
		return "proto.Col" + t, ""
	}
	panic("no column for the type " + t)
}

// appendCall returns the statement that appends a value to a column. Times are nanoseconds.
func (g goTypes) appendCall(t schema.Table, c schema.Column, column, value string) string {
	method := "Append"
	switch kind := c.SQLType(); {
	case strings.HasPrefix(kind, "DateTime64(3"):
		return column + ".AppendRaw(proto.DateTime64(" + value + " / 1e6))"
	case strings.HasPrefix(kind, "DateTime64("):
		return column + ".AppendRaw(proto.DateTime64(" + value + "))"
	case c.Binary:
		return column + ".Append(" + value + ")"
	case strings.HasPrefix(kind, "FixedString("):
		return column + ".Buf = hex.AppendEncode(" + column + ".Buf, " + value + ")"
	case kind != "String", g.column(t, c) == "Text":
	case strings.HasSuffix(value, "[:]"):
		method = "AppendHex"
	case g.column(t, c) == "[]byte":
		method = "AppendBytes"
	default:
		method = "AppendString"
	}
	return column + "." + method + "(" + value + ")"
}
