package main

import (
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

func record(name string) schema.Record {
	for _, r := range schema.Messages {
		if r.Name == name {
			return r
		}
	}
	panic("no record " + name)
}

// shape is how a field is encoded.
type shape int

const (
	text shape = iota
	str
	boolean
	zigzag
	int32s
	varints
	enum
	repeated
	nested
)

// shapeOf returns how a field is encoded, and its Go type; that of an element of a list.
func (g goTypes) shapeOf(r schema.Record, f schema.Field) (shape, string) {
	t := g.of(r.Name, f.Path)
	elem, list := strings.CutPrefix(t, "[]")
	switch {
	case t == "Text":
		return text, t
	case t == "string":
		return str, t
	case t == "bool":
		return boolean, t
	case f.Type == "sint64":
		return zigzag, t
	case t == "int32":
		return int32s, t
	case t == "int64", t == "uint64", t == "uint8":
		return varints, t
	case list:
		return repeated, elem
	case g.isStruct(t):
		return nested, t
	}
	return enum, t
}

// codec renders the functions that encode and decode a message.
func codec(g goTypes) string {
	var b strings.Builder
	b.WriteString(`package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/earshot-dev/earshot/core/msg"
)

// appendMessage appends the fields of m that are not zero. A text that lies in data is
// encoded as its range.
func appendMessage(dst, data []byte, m *msg.Message) []byte {
	var at int
`)
	g.appendFields(&b, record("Message"), "m")
	b.WriteString("return dst\n}\n")
	for _, r := range schema.Messages {
		g.readFunc(&b, r)
	}
	return b.String()
}

func (g goTypes) appendFields(b *strings.Builder, r schema.Record, v string) {
	for _, f := range r.Fields {
		x := v + "." + f.Path
		switch s, t := g.shapeOf(r, f); s {
		case text:
			fmt.Fprintf(b, "dst = appendText(dst, %d, %d, data, %s)\n", f.Number, f.Range, x)
		case str:
			fmt.Fprintf(b, "dst = appendString(dst, %d, %s)\n", f.Number, x)
		case boolean:
			fmt.Fprintf(b, "dst = appendBool(dst, %d, %s)\n", f.Number, x)
		case zigzag:
			fmt.Fprintf(b, "dst = appendUint(dst, %d, protowire.EncodeZigZag(%s))\n", f.Number, x)
		case int32s:
			fmt.Fprintf(b, "dst = appendInt32(dst, %d, %s)\n", f.Number, x)
		case varints, enum:
			if t != "uint64" {
				x = "uint64(" + x + ")"
			}
			fmt.Fprintf(b, "dst = appendUint(dst, %d, %s)\n", f.Number, x)
		case repeated:
			fmt.Fprintf(b, "for i := range %s {\ne := &%s[i]\ndst, at = begin(dst, %d, 1)\n", x, x, f.Number)
			g.appendFields(b, record(t), "e")
			b.WriteString("dst = end(dst, at, 1)\n}\n")
		case nested:
			fmt.Fprintf(b, "if e := &%s; %s {\ndst, at = begin(dst, %d, 1)\n", x, g.isSet(record(t), "e"), f.Number)
			g.appendFields(b, record(t), "e")
			b.WriteString("dst = end(dst, at, 1)\n}\n")
		}
	}
}

// isSet is the condition under which a nested record is encoded.
func (g goTypes) isSet(r schema.Record, v string) string {
	comparable := true
	for _, f := range r.Fields {
		s, _ := g.shapeOf(r, f)
		comparable = comparable && s != text && s != repeated
	}
	if comparable {
		return fmt.Sprintf("*%s != (msg.%s{})", v, r.Name)
	}
	var any []string
	for _, f := range r.Fields {
		x := v + "." + f.Path
		switch s, _ := g.shapeOf(r, f); s {
		case text:
			any = append(any, "!"+x+".IsZero()")
		case str:
			any = append(any, x+` != ""`)
		case boolean:
			any = append(any, x)
		default:
			any = append(any, x+" != 0")
		}
	}
	return strings.Join(any, " || ")
}

func (g goTypes) readFunc(b *strings.Builder, r schema.Record) {
	name := r.Name
	fmt.Fprintf(b, "\n// read%s reads a %s; its strings are parts of s.\nfunc (s text) read%s(m *msg.%s, in, data []byte) error {\n", name, name, name, name)
	b.WriteString("for len(in) > 0 {\nnum, v, n, err := next(in)\nif err != nil {\nreturn err\n}\nin = in[n:]\nswitch num {\n")
	for _, f := range r.Fields {
		x := "m." + f.Path
		fmt.Fprintf(b, "case %d: // %s\n", f.Number, snake(f.Path))
		switch s, t := g.shapeOf(r, f); s {
		case text:
			fmt.Fprintf(b, "%s = msg.Plain(s.of(v.bytes))\ncase %d:\n%s, err = readRange(%q, v.bytes, data)\n", x, f.Range, x, snake(f.Path))
		case str:
			fmt.Fprintf(b, "%s = s.of(v.bytes)\n", x)
		case boolean:
			fmt.Fprintf(b, "%s = v.num != 0\n", x)
		case zigzag:
			fmt.Fprintf(b, "%s = protowire.DecodeZigZag(v.num)\n", x)
		case int32s, varints:
			value := "v.num"
			if f.Max != 0 {
				value = fmt.Sprintf("min(v.num, %d)", f.Max)
			}
			if t != "uint64" {
				value = fmt.Sprintf("%s(%s)", t, value)
			}
			fmt.Fprintf(b, "%s = %s\n", x, value)
		case enum:
			fmt.Fprintf(b, "%s = msg.%s(enum(v))\n", x, t)
		case repeated:
			fmt.Fprintf(b, "%s = append(%s, msg.%s{})\nerr = s.read%s(&%s[len(%s)-1], v.bytes, data)\n", x, x, t, t, x, x)
		case nested:
			fmt.Fprintf(b, "err = s.read%s(&%s, v.bytes, data)\n", t, x)
		}
	}
	b.WriteString("}\nif err != nil {\nreturn err\n}\n}\nreturn nil\n}\n")
}
