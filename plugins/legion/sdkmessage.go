package legion

import (
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/pyrepr"
)

// sdkMessage decodes metadata.raw_sdk_message of a record of generation 1 from which the
// writer took nothing else. It is the agent's own message as JSON, or as Python prints it;
// any other text is left alone.
func (r *record) sdkMessage(raw jsonv.Value, response string) {
	if !raw.Exists() {
		raw = r.root.Get("raw_sdk_message")
	}
	data := raw.Peek()
	if raw.Is(jsonv.String) {
		data = []byte(raw.PeekStr())
	}
	if len(data) == 0 {
		return
	}
	var doc jsonv.Doc
	if doc.Parse(data) != nil {
		var ok bool
		if data, ok = pyrepr.JSON(data); !ok || doc.Parse(data) != nil {
			return
		}
	}
	raw.MarkRead()
	v := doc.Root()
	if m := v.Get("message"); m.Is(jsonv.Object) {
		v = m
	}
	if c := v.Get("content"); c.Is(jsonv.Array) {
		v = c
	}
	for b := range v.Elems() {
		if b.Is(jsonv.Object) && b.Get("text").Is(jsonv.String) && r.typ == "user" {
			continue // a tool-result line is no prompt
		}
		r.block(b, response, jsonv.Value{}, false, false)
	}
}
