package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// lengthOf is the length of another column's text in an expression.
var lengthOf = regexp.MustCompile(`len\((\w+)\)`)

// row renders msg.Row.
func row(g goTypes) string {
	var b, fill strings.Builder
	b.WriteString(`package msg

// Row is a message as a row of the table messages: the columns under their names.
// ` + "`earshot decode`" + ` prints it, and the golden files of decoders hold it. Empty fields are
// left out.
type Row struct {
`)
	t, _ := schema.Of("messages")
	for _, c := range t.Columns {
		if c.Row == "-" || c.Row == "" && c.From == "" {
			continue
		}
		kind, value := g.rowValue(t, c)
		fmt.Fprintf(&b, "%s %s `json:\"%s,omitempty\"`\n", camel(c.Name), kind, c.Name)
		fmt.Fprintf(&fill, "r.%s = %s\n", camel(c.Name), value)
	}
	fmt.Fprintf(&b, "}\n\n// Row returns m as a row.\nfunc (m *Message) Row() (r Row) {\n%sreturn r\n}\n", fill.String())

	b.WriteString(`
// EachAttribute calls f for each fact of m that has no column of its own: the fields of the
// message, then the attributes of the protocol whose keys are not theirs. The order is fixed
// and no key is repeated.
func (m *Message) EachAttribute(f func(key, value string)) {
`)
	var keys []string
	for _, a := range schema.Attributes {
		fmt.Fprintf(&b, "if v := %s; v != \"\" {\nf(%q, v)\n}\n", a.From, a.Key)
		keys = append(keys, fmt.Sprintf("%q", a.Key))
	}
	b.WriteString("m.eachAttr(f)\n}\n\n// isField reports whether a field of the message has the key.\nfunc isField(key string) bool {\nswitch key {\ncase " +
		strings.Join(keys, ", ") + ":\nreturn true\n}\nreturn false\n}\n")
	return b.String()
}

// rowValue returns the Go type of a column in msg.Row and the expression of its value.
func (g goTypes) rowValue(table schema.Table, c schema.Column) (kind, value string) {
	value = strings.ReplaceAll(c.From, "msg.", "")
	if c.Row != "" {
		value = c.Row
	}
	value = lengthOf.ReplaceAllStringFunc(value, func(s string) string { return "len(r." + camel(s[4:len(s)-1]) + ")" })
	switch t := c.SQLType(); {
	case strings.HasPrefix(t, "DateTime64"):
		return "string", "timeText(" + value + ")"
	case strings.HasPrefix(t, "Map("):
		return "map[string]string", value
	case strings.HasPrefix(t, "UInt"):
		return strings.ToLower(t), value
	case t == "Bool":
		return "bool", value
	case strings.HasSuffix(value, "[:]"):
		return "string", "hexText(" + value + ")"
	case g.column(table, c) == "Text":
		return "string", value + ".String()"
	default:
		return "string", value
	}
}
