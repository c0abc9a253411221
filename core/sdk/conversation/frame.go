package conversation

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Parse parses a frame into doc. ok is false when it is no JSON, which is then the frame's
// problem.
func Parse(doc *jsonv.Doc, data []byte, out *decoder.Output) (root jsonv.Value, ok bool) {
	if err := doc.Parse(data); err != nil {
		bad(err, out)
		return jsonv.Value{}, false
	}
	return doc.Root(), true
}

// bad reports that a frame is no JSON.
func bad(err error, out *decoder.Output) {
	reason := msg.ReasonInvalidJSON
	var syntax *jsonv.SyntaxError
	if errors.As(err, &syntax) && syntax.UTF8 {
		reason = msg.ReasonInvalidUTF8
	}
	out.Problem(reason, err.Error())
}

// ParseObject is Parse for a frame that is an object.
func ParseObject(doc *jsonv.Doc, data []byte, out *decoder.Output) (root jsonv.Value, ok bool) {
	if root, ok = Parse(doc, data, out); ok && !root.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return jsonv.Value{}, false
	}
	return root, ok
}

// NoOptions refuses the options of a source whose format has none.
func NoOptions(format string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var options map[string]json.RawMessage
	if err := json.Unmarshal(raw, &options); err != nil {
		return fmt.Errorf("%s: options: %w", format, err)
	}
	for name := range options {
		return fmt.Errorf("%s: option %q: there are no options", format, name)
	}
	return nil
}
